"""What a consumer does: divide the queues, pull, cache, call the listener, move the offset.

Mirrors: package org.apache.rocketmq.client.impl.consumer.

    member_state, group_member           what it knows; what every kind of consumer does
    subscriptions                        what it subscribes to
    rebalance, first_offset              which queues it owns and where they begin
    pull_loop, pull_api, process_queue   fetch, filter, keep
    consume_service, consume_hooks       one call of the listener, and what is recorded of it
    concurrently, orderly                the two services that call the listener
    queue_locks                          who may consume a queue in order
    send_back                            what becomes of a message that failed
    offset_store, local_offset_store     how far the group is
    running_info                         what an operator sees
    reset                                move to other offsets
"""

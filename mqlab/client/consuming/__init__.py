"""What a consumer does: share the queues, pull, keep, call the listener, move the offset.

Mirrors: package org.apache.rocketmq.client.impl.consumer. Left out: see mqlab.client.

    group_member, subscriptions          who it is and what it wants
    rebalance, first_offset              which queues it owns and where they begin
    pull_loop, pull_api, process_queue   fetch, filter, keep
    concurrently, orderly                the two services that call the listener
    queue_locks                          who may consume a queue in order
    send_back                            what becomes of a message that failed
    offset_store, local_offset_store     how far the group is
    reset                                begin elsewhere
"""

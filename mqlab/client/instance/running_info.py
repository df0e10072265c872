"""What a consumer tells about itself when a broker asks for an operator.

Mirrors: ConsumerRunningInfo, ProcessQueueInfo, GetConsumerStatusBody. Lab 09 and ``lab.admin`` read them.

    properties        every setting as text, and PROP_… of the process
    subscriptionSet   what it wants, %RETRY% too
    mqTable           per queue: cached offsets and count, commit offset, locked, droped (so spelled), timestamps
    statusTable       per topic: the minute's and hour's counters

Pull and lite pull consumers tell less: no statusTable, and only the lite one has queues.
Left out: jstack (a coroutine has no thread to dump) and POP tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mqlab.client.consuming.process_queue import MessageTree, ProcessQueue
from mqlab.client.instance.statistics import ConsumeStatus
from mqlab.wire.body import camel_case
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.client.consuming.group_member import GroupMember
    from mqlab.client.push_consumer import PushConsumer


def running_info(
    consumer: GroupMember[Any], push: PushConsumer | None, commit_offsets: Mapping[MessageQueue, int]
) -> dict[str, Any]:
    """The body of an answer to 307, as values; ``commit_offsets``: memory's word, or the store's.

    ``push`` is the consumer again when it is a push consumer.
    """
    client = consumer.client
    return {
        "jstack": None,
        "mqPopTable": {},
        "mqTable": {
            queue_key(queue): _queue_info(push, queue, held, commit_offsets.get(queue, -1))
            for queue, held in consumer.reported_queues().items()
        },
        "properties": {**_properties(consumer), **(_push_properties(push) if push else {})},
        "statusTable": {
            topic: _status(client.statistics.consume_status(consumer.group, topic))
            for topic in (consumer.subscribed_topics() if push else ())
        },
        "subscriptionSet": [wanted.to_value() for wanted in consumer.rebalance.subscriptions.values()],
        "userConsumerInfo": {},
    }


def queue_key(queue: MessageQueue) -> str:
    """A queue as the key of a JSON object: its own object as text (Java reads it as it reads its own form).

    >>> queue_key(MessageQueue("orders", "broker-a", 0))
    '{"brokerName":"broker-a","queueId":0,"topic":"orders"}'
    """
    whole = {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _queue_info(
    push: PushConsumer | None, queue: MessageQueue, process_queue: ProcessQueue, commit_offset: int
) -> dict[str, Any]:
    nothing = MessageTree()  # a learner's own process queue need not have RocketMQ's two maps
    cached = getattr(process_queue, "msg_tree_map", nothing)
    taken = getattr(process_queue, "consuming_msg_orderly_tree_map", nothing)
    parked = push is not None and queue in push.pull_loop.parked
    return {
        "cachedMsgCount": process_queue.msg_count,
        "cachedMsgMaxOffset": cached.last_offset() or 0,
        "cachedMsgMinOffset": cached.first_offset() or 0,
        "cachedMsgSizeInMiB": process_queue.msg_size_mib,
        "commitOffset": commit_offset,
        "droped": process_queue.dropped,
        "lastConsumeTimestamp": process_queue.last_consume_timestamp,
        "lastLockTimestamp": process_queue.last_lock_timestamp,
        "lastPullTimestamp": push.ports.clock.now_ms() if push and parked else process_queue.last_pull_timestamp,
        "locked": process_queue.locked,
        "transactionMsgCount": len(taken),
        "transactionMsgMaxOffset": taken.last_offset() or 0,
        "transactionMsgMinOffset": taken.first_offset() or 0,
        "tryUnlockTimes": process_queue.try_unlock_times,
    }


def _properties(consumer: GroupMember[Any]) -> dict[str, str]:
    settings = {camel_case(each.name): _java(getattr(consumer.config, each.name)) for each in fields(consumer.config)}
    addresses = consumer.client.name_servers.addresses
    return {
        **settings,
        "clientIP": consumer.ports.ip,
        "consumerGroup": consumer.group,
        "instanceName": consumer.config.instance_name or consumer.name,
        "namesrvAddr": ";".join(addresses),
        "PROP_CLIENT_VERSION": "V5_3_3",
        "PROP_CONSUMER_START_TIMESTAMP": str(consumer.client.started_ms or 0),
        "PROP_CONSUME_TYPE": consumer.consume_type,
        "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in addresses),
    }


def _push_properties(push: PushConsumer) -> dict[str, str]:
    return {
        "PROP_CONSUMEORDERLY": _java(push.is_orderly),
        "PROP_THREADPOOL_CORE_SIZE": str(push.config.consume_thread_min),
        "pullThresholdForQueue": str(push.pull_threshold_for_queue),  # these two as the last rebalance scaled them
        "pullThresholdSizeForQueue": str(push.pull_threshold_size_for_queue),
    }


def _java(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "name", None) or value)


def _status(status: ConsumeStatus) -> dict[str, float]:
    return {
        "consumeFailedMsgs": status.consume_failed_msgs,
        "consumeFailedTPS": status.consume_failed_tps,
        "consumeOKTPS": status.consume_ok_tps,
        "consumeRT": status.consume_rt,
        "pullRT": status.pull_rt,
        "pullTPS": status.pull_tps,
    }

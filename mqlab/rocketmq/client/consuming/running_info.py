"""What a consumer reports about itself when an operator asks through a broker.

Mirrors: ConsumerRunningInfo, ProcessQueueInfo, GetConsumerStatusBody. ``lab.admin`` shows them.

    properties        every setting as text, and PROP_… of the process
    subscriptionSet   what it subscribes to, %RETRY% too
    mqTable           per queue: cached offsets and count, commit offset, locked, droped (so spelled), timestamps
    mqPopTable        per popped queue: what the listener has not finished, droped, the last pop
    statusTable       per topic: the minute's and hour's counters

Pull and lite pull consumers report less: no statusTable, and only the lite one has queues.

Left out: jstack (a coroutine has no thread to dump).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from mqlab.rocketmq.client.consuming.member_state import MemberState, PushState
from mqlab.rocketmq.client.consuming.process_queue import MessageTree, ProcessQueue
from mqlab.rocketmq.client.instance.statistics import ConsumeStatus
from mqlab.rocketmq.wire.body import camel_case, queue_key
from mqlab.rocketmq.wire.message import MessageQueue


def running_info(
    state: MemberState[Any],
    consume_type: str,
    started_ms: int | None,
    queues: Mapping[MessageQueue, ProcessQueue],
    commit_offsets: Mapping[MessageQueue, int],
    parked: Collection[MessageQueue] = (),
    popped: Mapping[MessageQueue, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The body of an answer to GET_CONSUMER_RUNNING_INFO, as values.

    ``commit_offsets``: those in memory, or else in the store; ``parked``: queues whose next pull waits;
    ``popped``: what there is to say of each queue that is popped.
    """
    push = state if isinstance(state, PushState) else None
    now_ms = state.ports.clock.now_ms()
    return {
        "jstack": None,
        "mqPopTable": {queue_key(queue): value for queue, value in (popped or {}).items()},
        "mqTable": {
            queue_key(queue): _queue_info(
                process_queue,
                commit_offsets.get(queue, -1),
                now_ms if queue in parked else process_queue.last_pull_timestamp,
            )
            for queue, process_queue in queues.items()
        },
        "properties": {**_properties(state, consume_type, started_ms), **(_push_properties(push) if push else {})},
        "statusTable": {
            topic: _status(state.statistics.consume_status(state.group, topic))
            for topic in (state.subscriptions if push else ())
        },
        "subscriptionSet": [data.to_value() for data in state.subscriptions.values()],
        "userConsumerInfo": {},
    }


def _queue_info(process_queue: ProcessQueue, commit_offset: int, last_pull_ms: int) -> dict[str, Any]:
    empty = MessageTree()  # a learner's own process queue need not have RocketMQ's two maps
    cached = getattr(process_queue, "msg_tree_map", empty)
    taken = getattr(process_queue, "consuming_msg_orderly_tree_map", empty)
    return {
        "cachedMsgCount": process_queue.msg_count,
        "cachedMsgMaxOffset": cached.last_offset() or 0,
        "cachedMsgMinOffset": cached.first_offset() or 0,
        "cachedMsgSizeInMiB": process_queue.msg_size_mib,
        "commitOffset": commit_offset,
        "droped": process_queue.dropped,
        "lastConsumeTimestamp": process_queue.last_consume_timestamp,
        "lastLockTimestamp": process_queue.last_lock_timestamp,
        "lastPullTimestamp": last_pull_ms,
        "locked": process_queue.locked,
        "transactionMsgCount": len(taken),
        "transactionMsgMaxOffset": taken.last_offset() or 0,
        "transactionMsgMinOffset": taken.first_offset() or 0,
        "tryUnlockTimes": process_queue.try_unlock_times,
    }


def _properties(state: MemberState[Any], consume_type: str, started_ms: int | None) -> dict[str, str]:
    known = [field.name for field in fields(state.config) if field.name != "client_ip"]  # RocketMQ spells it clientIP
    settings = {camel_case(name): _java(getattr(state.config, name)) for name in known}
    addresses = state.cluster.name_servers.addresses
    return {
        **settings,
        "clientIP": state.config.client_ip or state.ports.ip,
        "consumerGroup": state.group,
        "instanceName": state.config.instance_name or state.ports.node,
        "namesrvAddr": ";".join(addresses),
        "PROP_CLIENT_VERSION": "V5_3_3",
        "PROP_CONSUMER_START_TIMESTAMP": str(started_ms or 0),
        "PROP_CONSUME_TYPE": consume_type,
        "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in addresses),
    }


def _push_properties(push: PushState) -> dict[str, str]:
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

"""Problems of running members: subscriptions that differ, queues without a lock, blocked threads.

Mirrors: mqadmin consumerStatus (ConsumerRunningInfo.analyzeSubscription, analyzeProcessQueue).

    10.0.0.3@billing-1                       subscriptions differ from 10.0.0.4@billing-2's: orders paid, not new
    10.0.0.3@billing-1  orders broker-a 0    can't consume for a while, maybe blocked, 61000ms

As RocketMQ does, it waits until the *first* member has run for two minutes, however young the others are: members that
differ during a deployment are reported, although all is well. Lab 06 builds a comparison without such false alarms.
Left out: stack traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mqlab.rocketmq.admin.connections import examine_consumer_connection_info
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.message import MessageQueue

SETTLED_MS = 120_000  # subscriptions are compared once the first member has run for this time
BLOCKED_MS = 60_000


@dataclass(frozen=True, slots=True)
class ConsumerProblem:
    """One problem of one member, or of one of its queues."""

    client_id: str
    message_queue: MessageQueue | None
    problem: str


def consumer_problems(admin: AdminNode, group: str) -> Rows[ConsumerProblem]:
    """The problems of the members of a push group; BrokerError with code 206 when there are no members."""
    members = [connection.client_id for connection in examine_consumer_connection_info(admin, group).connections]
    infos = {client_id: _running(admin, group, client_id) for client_id in members}
    problems = [*_subscriptions(admin, infos), *_queues(admin, infos)]
    return Rows(problems, f"problems of {group}")


def _running(admin: AdminNode, group: str, client_id: str) -> dict[str, Any]:
    _, address = admin.brokers_of_group(group)[0]
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    return admin.ask_value(address, code, consumerGroup=group, clientId=client_id, jstackEnable=False)


def _subscriptions(admin: AdminNode, infos: dict[str, dict[str, Any]]) -> Iterator[ConsumerProblem]:
    first, *others = infos
    # Members that just started may not have their subscriptions yet: RocketMQ waits as well.
    started_ms = to_long(infos[first]["properties"]["PROP_CONSUMER_START_TIMESTAMP"])
    if admin.ports.clock.now_ms() - started_ms <= SETTLED_MS:
        return
    expected = _wanted(infos[first])
    for client_id in others:
        subscriptions = _wanted(infos[client_id])
        if subscriptions != expected:
            what = ", ".join(
                f"{topic} {subscriptions[topic]}"
                for topic in subscriptions
                if subscriptions[topic] != expected.get(topic)
            )
            missing = ", ".join(f"no {topic}" for topic in expected if topic not in subscriptions)
            differ = ", ".join(text for text in (what, missing) if text)
            yield ConsumerProblem(client_id, None, f"subscriptions differ from {first}'s: {differ}")


def _queues(admin: AdminNode, infos: dict[str, dict[str, Any]]) -> Iterator[ConsumerProblem]:
    now_ms = admin.ports.clock.now_ms()
    for client_id, info in infos.items():
        is_orderly = info["properties"]["PROP_CONSUMEORDERLY"] == "true"
        queues = {queue_from_key(key): queue_info for key, queue_info in info["mqTable"].items()}
        for queue in sorted(queues):
            problem = (_orderly if is_orderly else _concurrent)(queues[queue], now_ms)
            if problem:
                yield ConsumerProblem(client_id, queue, problem)


def _wanted(info: dict[str, Any]) -> dict[str, str]:
    wanted = [SubscriptionData.from_value(subscription) for subscription in info["subscriptionSet"]]
    return {
        subscription.topic: subscription.sub_string
        for subscription in sorted(wanted, key=lambda subscription: subscription.topic)
    }


def _orderly(queue: dict[str, Any], now_ms: int) -> str:
    if not queue["locked"]:
        return f"can't lock for a while, {now_ms - to_long(queue['lastLockTimestamp'])}ms"
    if queue["droped"] and to_long(queue["tryUnlockTimes"]) > 0:
        return f"unlock {queue['tryUnlockTimes']} times, still failed"
    return ""


def _concurrent(queue: dict[str, Any], now_ms: int) -> str:
    idle_ms = now_ms - to_long(queue["lastConsumeTimestamp"])
    if idle_ms > BLOCKED_MS and to_long(queue["cachedMsgCount"]) > 0:
        return f"can't consume for a while, maybe blocked, {idle_ms}ms"
    return ""

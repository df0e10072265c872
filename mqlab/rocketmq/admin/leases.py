"""How groups ask for messages, and what the timer of a broker has: POP and timed messages as an operator sees them.

Mirrors: mqadmin setConsumeMode; requests 401, 402, 60 and 61.

    lab.admin.set_message_request_mode("orders", "billing", "POP")       on every broker that has the topic
    lab.admin.message_request_modes("broker-a")                           the text of messageRequestMode.json
    lab.admin.timer_check_point("broker-a"), timer_metrics("broker-a")    how far the wheel is; how many messages wait
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.timer_units import CHECK, CHECK_LAYOUT

MODES = ("PULL", "POP")


def set_message_request_mode(
    admin: AdminNode, topic: str, group: str, mode: str = "POP", pop_share_queue_num: int = -1
) -> list[str]:
    """Let a group pop a topic, or pull it again; returns the brokers that took it.

    ``pop_share_queue_num``: with how many members each member shares its queues, -1 for all. UsageError for another
    mode, BrokerError when a broker has no such topic.
    """
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}", hint="one of PULL, POP")
    body = {"consumerGroup": group, "mode": mode, "popShareQueueNum": pop_share_queue_num, "topic": topic}
    taken = []
    for name, address in admin.brokers():
        admin.ask(address, RequestCode.SET_MESSAGE_REQUEST_MODE, java_json.to_json(body))
        taken.append(name)
    return taken


def message_request_modes(admin: AdminNode, broker_name: str) -> str:
    """The modes that a broker knows, as JSON."""
    return _body(admin, broker_name, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE).decode("utf-8")


def timer_metrics(admin: AdminNode, broker_name: str) -> dict[str, int]:
    """How many timed messages of each topic wait at a broker, by its own count; recalls make it drift."""
    value = java_json.loads(_body(admin, broker_name, RequestCode.GET_TIMER_METRICS).decode("utf-8"))
    return {topic: to_long(entry["count"]) for topic, entry in value["timingCount"].items()}


def timer_check_point(admin: AdminNode, broker_name: str) -> dict[str, int]:
    """How far a broker's wheel was read and filled: the numbers of its check file, by name."""
    numbers = CHECK.unpack_from(_body(admin, broker_name, RequestCode.GET_TIMER_CHECK_POINT))
    return {spec.name: number for spec, number in zip(CHECK_LAYOUT, numbers, strict=True)}


def _body(admin: AdminNode, broker_name: str, code: RequestCode) -> bytes:
    ((_, address),) = admin.brokers([broker_name])
    return admin.ask(address, code).body or b""

"""The verbs of ``mqlab admin``: what each asks ``lab.admin``, its options and its example.

Mirrors: the sub-commands of org.apache.rocketmq.tools.command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.durations import moment_ms
from mqlab.errors import UsageError
from mqlab.rocketmq.admin.clusters import KeyValue
from mqlab.rocketmq.admin.groups import groups_at
from mqlab.rocketmq.answers import Rows, Shown, plain

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin
    from mqlab.rocketmq.wire.message import MessageExt

MORE_OF_A_MESSAGE = (
    "physical_offset",
    "store_size",
    "sys_flag",
    "flag",
    "born_timestamp",
    "born_host",
    "store_host",
    "prepared_transaction_offset",
    "properties",
)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: its summary, the options it takes, the function that asks lab.admin, and the options of an example."""

    summary: str
    options: tuple[str, ...]
    answer: Callable[..., Any]
    example: str = ""


def _progress(admin: Admin, group: str | None) -> Any:
    return admin.consumer_progress() if group is None else admin.examine_consume_stats(group)


def _settings(admin: Admin, broker: str) -> Rows[KeyValue]:
    settings = admin.get_broker_config(broker)
    return Rows([KeyValue(name, value) for name, value in sorted(settings.items())], f"settings of {broker}")


def _group_settings(admin: Admin, group: str, broker: str) -> Any:
    if group not in groups_at(admin, dict(admin.brokers(broker))[broker]):  # asking for its settings would make it
        raise UsageError(f"{broker} has no group {group!r}", hint="consumerProgress shows the groups")
    return admin.examine_subscription_group_config(group, broker)


def _reset(admin: Admin, topic: str, group: str, timestamp: str) -> Any:
    moment = timestamp if timestamp == "now" else moment_ms(timestamp)
    return admin.reset_offset_by_timestamp(topic, group, moment, dry_run=True)


def _track(admin: Admin, topic: str, msg_id: str) -> Rows[Any]:
    messages = admin.query_message_by_unique_key(topic, msg_id)
    if not messages:
        raise UsageError(f"no message of {topic} has the unique id {msg_id}")
    return admin.message_track_detail(messages[0])


@dataclass(frozen=True, slots=True)
class WholeMessage(Shown):
    """One message with its properties and hosts, one fact per line."""

    message: MessageExt

    def to_value(self) -> list[dict[str, Any]]:
        """The columns of a table of messages, and the message's other fields."""
        more = {name: getattr(self.message, name) for name in MORE_OF_A_MESSAGE}
        hosts = {name: ":".join(map(str, more[name])) for name in ("born_host", "store_host")}
        return [{**plain(self.message), **more, **hosts}]

    def __str__(self) -> str:
        from mqlab.lab.views.message import MessageView

        return MessageView(self.message).text()


VERBS: dict[str, Verb] = {
    "clusterList": Verb("The brokers and their message rates.", (), lambda admin: admin.cluster_list()),
    "brokerStatus": Verb(
        "All runtime figures of a broker.",
        ("broker",),
        lambda admin, broker: admin.fetch_broker_runtime_stats(broker),
    ),
    "getBrokerConfig": Verb("Every setting of a broker.", ("broker",), _settings),
    "topicList": Verb("All topics and their purpose.", (), lambda admin: admin.fetch_all_topic_list()),
    "topicRoute": Verb(
        "The brokers and queues of a topic.",
        ("topic",),
        lambda admin, topic: admin.examine_topic_route_info(topic),
        "-t orders",
    ),
    "topicStatus": Verb(
        "A topic's queues and their offsets.",
        ("topic",),
        lambda admin, topic: admin.examine_topic_stats(topic),
        "-t orders",
    ),
    "topicConfig": Verb(
        "A topic's settings at a broker.",
        ("topic", "broker"),
        lambda admin, topic, broker: admin.examine_topic_config(topic, broker),
        "-t orders",
    ),
    "getConsumerConfig": Verb(
        "A group's settings at a broker.",
        ("group", "broker"),
        _group_settings,
        "-g billing",
    ),
    "consumeTimeSpan": Verb(
        "For every queue: its first and last store time, and the time that the group has reached.",
        ("topic", "group"),
        lambda admin, topic, group: admin.query_consume_time_span(topic, group),
        "-t orders -g billing",
    ),
    "getUser": Verb(
        "A user as each broker knows it.",
        ("user", "any_broker"),
        lambda admin, username, broker: admin.get_user(username, broker=broker),
        "-u billing",
    ),
    "listUser": Verb(
        "The users of brokers that ask for a name.",
        ("filter", "any_broker"),
        lambda admin, filter, broker: admin.list_user(filter, broker=broker),
        "-f bill",
    ),
    "consumerProgress": Verb("The offsets and the lag of groups.", ("any_group",), _progress, "-g billing"),
    "queryMsgById": Verb(
        "The message with an offset id.",
        ("id", "topic_too"),
        lambda admin, msg_id: WholeMessage(admin.view_message(msg_id)),
        "-i 0A00000200002A9F0000000000000000",
    ),
    "queryMsgByUniqueKey": Verb(
        "The messages with a unique id.",
        ("topic", "id"),
        lambda admin, topic, msg_id: admin.query_message_by_unique_key(topic, msg_id),
        "-t orders -i 0A0000048091063501690000000A0003",
    ),
    "queryMsgByKey": Verb(
        "All messages with a key.",
        ("topic", "key", "from", "to"),
        lambda admin, topic, key, **times: admin.query_message(topic, key, **times),
        "-t orders -k order-1",
    ),
    "queryMsgByOffset": Verb(
        "The message at a queue offset.",
        ("topic", "broker", "queue", "offset"),
        lambda admin, **position: WholeMessage(admin.query_message_by_offset(**position)),
        "-t orders -b broker-a -i 0 -o 5",
    ),
    "printMsg": Verb(
        "All messages of a topic in a time range.",
        ("topic", "from", "to"),
        lambda admin, topic, begin_ms, end_ms: admin.query_message_by_time(topic, begin_ms, end_ms),
        "-t orders",
    ),
    "messageTrack": Verb(
        "What became of a message in each group.",
        ("topic", "id"),
        _track,
        "-t orders -i 0A0000048091063501690000000A0003",
    ),
    "queryMsgTraceById": Verb(
        "What producers and consumers traced about a message.",
        ("id",),
        lambda admin, msg_id: admin.view_trace(msg_id),
        "-i 0A0000048091063501690000000A0003",
    ),
    "deadLetters": Verb(
        "A group's dead letters.", ("group",), lambda admin, group: admin.query_dlq(group), "-g billing"
    ),
    "resetOffsetByTime": Verb(
        "What a reset to a time would read again or skip.",
        ("topic", "group", "time"),
        _reset,
        "-t orders -g billing -s 0",
    ),
    "skipAccumulatedMessage": Verb(
        "What skipping the backlog would skip.",
        ("topic", "group"),
        lambda admin, topic, group: admin.skip_accumulated_message(topic, group, dry_run=True),
        "-t orders -g billing",
    ),
    "statsAll": Verb(
        "All topics with their groups and backlogs.", ("any_topic",), lambda admin, topic: admin.stats_all(topic)
    ),
}


def _create_topic(
    admin: Admin, topic: str, read_queue_nums: int, write_queue_nums: int, perm: int, broker: str | None
) -> Any:
    return admin.create_topic(
        topic, read_queue_nums=read_queue_nums, write_queue_nums=write_queue_nums, perm=perm, brokers=broker
    )


CHANGES: dict[str, Verb] = {
    "updateTopic": Verb(
        "Create a topic or change it.",
        ("topic", "read", "write", "perm", "any_broker"),
        _create_topic,
        "-t orders -r 8 -w 8",
    ),
    "deleteTopic": Verb(
        "Delete a topic: its messages cannot be read any more.",
        ("topic",),
        lambda admin, topic: admin.delete_topic(topic),
        "-t orders",
    ),
    "deleteSubGroup": Verb(
        "Delete a group's settings.",
        ("group",),
        lambda admin, group: admin.delete_subscription_group(group),
        "-g billing",
    ),
    "wipeWritePerm": Verb(
        "Let no producer send to a broker any more.",
        ("broker",),
        lambda admin, broker: admin.wipe_write_perm(broker),
    ),
    "addWritePerm": Verb(
        "Let producers send to a broker again.",
        ("broker",),
        lambda admin, broker: admin.add_write_perm(broker),
    ),
    "createUser": Verb(
        "Make a user.",
        ("user", "password", "type", "any_broker"),
        lambda admin, username, password, user_type, broker: admin.create_user(
            username, password, user_type, broker=broker
        ),
        "-u billing -p 12345678",
    ),
    "updateUser": Verb(
        "Change a user's password, type or status.",
        ("user", "any_password", "any_type", "any_status", "any_broker"),
        lambda admin, username, broker, **said: admin.update_user(username, broker=broker, **said),
        "-u billing -s disable",
    ),
    "deleteUser": Verb(
        "Forget a user.",
        ("user", "any_broker"),
        lambda admin, username, broker: admin.delete_user(username, broker=broker),
        "-u billing",
    ),
    "cloneGroupOffset": Verb(
        "Let a group continue where another one is.",
        ("topic", "from_group", "to_group"),
        lambda admin, topic, group, to_group: admin.clone_group_offset(group, to_group, topic),
        "-t orders -s billing -d mail",
    ),
    "setConsumeMode": Verb(
        "Let a group pop a topic, or pull it.",
        ("topic", "group", "mode", "share"),
        lambda admin, topic, group, mode, pop_share_queue_num: admin.set_message_request_mode(
            topic, group, mode, pop_share_queue_num
        ),
        "-t orders -g billing -m POP",
    ),
    "resendDeadLetters": Verb(
        "Give a group its dead letters again.", ("group",), lambda admin, group: admin.resend_dlq(group), "-g billing"
    ),
}
"""Verbs for a cluster alone: a directory is never changed."""

DONE_AFTER_A_LOOK: dict[str, Callable[..., Any]] = {
    "resetOffsetByTime": lambda admin, topic, group, timestamp: admin.reset_offset_by_timestamp(
        topic, group, timestamp if timestamp == "now" else moment_ms(timestamp)
    ),
    "skipAccumulatedMessage": lambda admin, topic, group: admin.skip_accumulated_message(topic, group),
}
"""Verbs that show first what they would do; in a cluster they then ask, and do it."""

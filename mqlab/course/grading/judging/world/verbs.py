"""The table of what an answer may do with a Lab, a client, a listener's context: verbs, and attributes to read or set.

Answers that use a Lab need it; a new lab may add a row.

    role                        verbs                                 readable          writable
    ConsumeConcurrentlyContext  sleep compute start                   message_queue     ack_index delay_level_..
    Lab                         producer push_consumer run_for kill   now_ms
    PushConsumer                subscribe on_messages start ..        message_queues    ..
    Admin                       examine_consume_stats update_topic ..
    Disk, StoreToWrite, ..      what a learner's part of a broker gets (lab 16)
    function                    a function of the case that an answer gets as an argument

A verb that answers an exercise is missing in it: see ``Exercise.forbids`` and World.perform.
Names of clients, groups, topics and databases become names of files, so only RocketMQ's letters are accepted.
The settings that an answer may give to a client are listed; those that name a folder or another topic are left out. A
Lab's seed cannot be read: a hidden case is made from it. Of mqadmin's verbs, those are missing that change a broker's
settings, which name folders.
The inside of a Lab (its journal, its world, its brokers' tables) is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from mqlab.course.grading.judging.world.settings import (
    GROUP,
    LITE_PULL_CONSUMER,
    PRODUCER,
    PULL_CONSUMER,
    PUSH_CONSUMER,
    SIMPLE_CONSUMER,
    TOPIC,
    names,
)
from mqlab.course.grading.sandbox.database_guard import Cursor, guarded
from mqlab.errors import UsageError

Verb = Callable[..., Any]
FUNCTION = "function"
"""The role of a function that a case hands to an answer: read(position, size), search(timestamp_ms)."""
NAME = re.compile(r"[%A-Za-z0-9_-]{1,127}")
NAMES = ("name", "instance_name", "unit_name")
"""Settings that become parts of paths and addresses, next to the first argument."""
ADDRESS = re.compile(r"[A-Za-z0-9:-][A-Za-z0-9.:-]{0,63}")
"""What client_ip may be: it becomes a part of a client id, and of a folder's name."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Role:
    """What kind of object it is for an answer. ``shown`` turns a result into what may cross."""

    name: str
    verbs: dict[str, Verb] = field(default_factory=dict)
    readable: frozenset[str] = frozenset()
    writable: frozenset[str] = frozenset()
    shown: Callable[[Any], Any] = _as_it_is


def _calls(*names: str) -> dict[str, Verb]:
    def verb(name: str) -> Verb:
        return lambda target, *args, **kwargs: getattr(target, name)(*args, **kwargs)

    return {name: verb(name) for name in names}


def _makes(**settings_of: frozenset[str]) -> dict[str, Verb]:
    """Verbs whose first argument and names must match NAME, each with the settings that an answer may give."""

    def verb(wanted: str, allowed: frozenset[str]) -> Verb:
        def make(target: Any, first: str, *args: Any, **settings: Any) -> Any:
            for setting in settings:
                if setting not in allowed:
                    raise UsageError(
                        f"an answer cannot give {wanted} the setting {setting}",
                        hint=f"it may give {', '.join(sorted(allowed)) or 'none'}",
                    )
            for name in (first, *(settings.get(option) for option in NAMES)):
                if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
                    raise UsageError(f"{name!r} cannot be a name", hint="use letters, digits, %, _ and - only")
            address = settings.get("client_ip")
            if address is not None and not (isinstance(address, str) and ADDRESS.fullmatch(address)):
                raise UsageError(f"{address!r} cannot be a client_ip", hint='an address such as "10.0.0.3"')
            return getattr(target, wanted)(first, *args, **settings)

        return make

    return {name: verb(name, allowed) for name, allowed in settings_of.items()}


def _read_ahead(name: str) -> Verb:
    """A verb of a connection that gives a cursor."""
    return lambda target, *args: Cursor(getattr(target, name)(*args))


def _leave(target: Any, failed: str | None) -> Any:
    """The end of a ``with`` block: ``failed`` names the class of the error that ended it."""
    error = None if failed is None else RuntimeError(failed)
    return target.__exit__(None if error is None else RuntimeError, error, None)


DISK_BYTES, FILE_BYTES = 64 << 20, 4_096
"""What an answer's part may create and replace in one life, and what a file counts at least."""


def _with_room(name: str) -> Verb:
    """A verb of a disk that makes a file: the judge's own disk must not be filled. The size, or the data, is last."""

    def make(disk: Any, file: str, content: Any) -> Any:
        size = content if isinstance(content, int) else len(content)
        if disk.made_bytes + max(size, FILE_BYTES) > DISK_BYTES:
            raise UsageError(f"the disk has no room for {size:,} bytes more", hint=f"it has {DISK_BYTES:,} bytes")
        getattr(disk, name)(file, content)
        disk.made_bytes += max(0, FILE_BYTES - size)

    return make


CONTEXT = _calls("sleep", "compute", "start")
ENTER_AND_LEAVE: dict[str, Verb] = {"__enter__": lambda target: target.__enter__(), "__exit__": _leave}
ROLES = {
    role.name: role
    for role in (
        Role(
            "ConsumeConcurrentlyContext",
            CONTEXT,
            names("message_queue"),
            names("ack_index delay_level_when_next_consume"),
        ),
        Role(
            "ConsumeOrderlyContext",
            CONTEXT,
            names("message_queue"),
            names("auto_commit suspend_current_queue_time_millis"),
        ),
        Role(
            "Lab",
            _makes(
                producer=PRODUCER,
                transaction_producer=PRODUCER,
                push_consumer=PUSH_CONSUMER,
                pull_consumer=PULL_CONSUMER,
                lite_pull_consumer=LITE_PULL_CONSUMER,
                simple_consumer=SIMPLE_CONSUMER,
                create_topic=TOPIC - names("order"),
                database=names(""),
                resource=names("slots"),
            )
            | _calls(
                "run_for",
                "run_until",
                "run_until_quiet",
                "at",
                "traffic",
                "kill",
                "power_off",
                "start",
                "partition",
                "heal",
                "slow",
                "slow_disk",
                "disk_full",
                "lose_disk",
                "drop",
                "skew_clock",
                "deliveries",
                "progress",
                "leases",
                "upcoming",
            ),
            names("now_ms admin"),
        ),
        Role(
            "Admin",
            _calls(
                # what there is, and who is connected
                "examine_broker_cluster_info",
                "cluster_list",
                "ha_status",
                "stats_all",
                "fetch_all_topic_list",
                "examine_topic_route_info",
                "examine_topic_config",
                "examine_topic_stats",
                "query_topic_consume_by_who",
                "query_all_groups",
                "examine_subscription_group_config",
                "examine_consume_stats",
                "consumer_progress",
                "lag",
                "query_consume_time_span",
                "examine_consumer_connection_info",
                "examine_producer_connection_info",
                "get_all_producer_info",
                "get_consumer_running_info",
                "consumer_status",
                "get_consume_status",
                "consumer_problems",
                # messages
                "view_message",
                "query_message",
                "query_message_by_unique_key",
                "query_message_by_time",
                "query_message_by_offset",
                "message_track_detail",
                "view_trace",
                "query_dlq",
                "resend_dlq",
                "consume_message_directly",
                # what an operator changes
                "wipe_write_perm",
                "add_write_perm",
                "delete_expired_commit_log",
                "clean_expired_consumer_queue",
                "delete_topic",
                "delete_subscription_group",
                "clone_group_offset",
                "reset_offset_by_timestamp",
                "skip_accumulated_message",
                "reset_offset_of_queue",
            )
            | _makes(create_topic=TOPIC, update_topic=TOPIC, create_and_update_subscription_group_config=GROUP),
        ),
        Role("LabDatabases", _makes(database=names(""))),  # lab 07: the part that survives the death of a process
        Role(
            "Producer",
            _calls(
                "send",
                "send_async",
                "send_oneway",
                "send_batch",
                "fetch_publish_message_queues",
                "shutdown",
                "send_message_in_transaction",
            ),
            names("name client_id"),
        ),
        Role(
            "PushConsumer",
            _calls(
                "subscribe",
                "unsubscribe",
                "on_messages",
                "on_messages_orderly",
                "register_message_listener",
                "start",
                "shutdown",
                "suspend",
                "resume",
            ),
            names("name client_id message_queues offset_store"),
        ),
        Role(
            "PullConsumer",
            _calls(
                "pull",
                "pull_block_if_not_found",
                "start",
                "shutdown",
                "fetch_subscribe_message_queues",
                "fetch_consume_offset",
                "update_consume_offset",
                "min_offset",
                "max_offset",
                "search_offset",
                "send_message_back",
                "register_topics",
            ),
            names("name client_id"),
        ),
        Role(
            "LitePullConsumer",
            _calls(
                "subscribe",
                "unsubscribe",
                "assign",
                "assignment",
                "poll",
                "seek",
                "seek_to_begin",
                "seek_to_end",
                "commit",
                "commit_sync",
                "committed",
                "offset_for_timestamp",
                "fetch_message_queues",
                "pause",
                "resume",
                "start",
                "shutdown",
            ),
            names("name client_id"),
        ),
        Role(
            "SimpleConsumer",
            _calls(
                "subscribe",
                "unsubscribe",
                "start",
                "shutdown",
                "receive",
                "receive_async",
                "ack",
                "change_invisible_duration",
            ),
            names("name client_id"),
        ),
        Role(FUNCTION, {"__call__": lambda target, *args, **kwargs: target(*args, **kwargs)}),
        Role(
            "Disk",
            _calls("names", "size", "read", "load", "write", "sync")
            | {name: _with_room(name) for name in ("create", "replace")},
        ),
        Role("StoreToRead", _calls("get", "max_offset")),
        Role("StoreToWrite", _calls("put", "get", "max_offset")),
        Role("WireBroker", _calls("now_ms", "message_id"), names("store pulls groups retries")),
        Role("WireRequest", {}, names("code fields body client number tags answer")),
        Role("WirePulls", _calls("pull")),
        Role("WireGroups", _calls("members", "committed", "commit")),
        Role("WireRetries", _calls("send_back")),
        Role("OffsetStore", _calls("update_offset", "read_memory", "persist", "persist_all", "clone_offset_table")),
        Role("Pending", _calls("result", "then"), names("done")),
        Role("Traffic", _calls("stop"), names("number sent failed")),
        Role("Resource", ENTER_AND_LEAVE, names("name slots in_use waiting longest_queue")),
        Role("Database", {"connect": lambda target: guarded(target.connect())}),
        Role(
            "Connection",
            _calls("commit", "rollback", "close")
            | {name: _read_ahead(name) for name in ("execute", "executemany", "executescript", "cursor")}
            | ENTER_AND_LEAVE,
            names("in_transaction total_changes isolation_level"),
        ),
        Role(
            "Cursor",
            _calls("execute", "executemany", "fetchone", "fetchmany", "fetchall", "close")
            | {"__iter__": lambda target: target.fetchall()},
            names("rowcount lastrowid description"),
        ),
    )
}
OTHER_NAMES = {
    "RemoteOffsetStore": "OffsetStore",
    "LocalOffsetStore": "OffsetStore",
    "OffsetMemory": "OffsetStore",
    "WaitingConnection": "Connection",
    "TransactionProducer": "Producer",
}


def role_of(value: Any) -> Role | None:
    """The role of an object of mqlab, or of SQLite; None for values and for what answers must not hold."""
    if type(value).__name__ == "NodeHandle":  # a node's handle plays the role of its node
        value = value.node
    kind = type(value)
    if isinstance(value, FunctionType | MethodType | partial):
        return ROLES[FUNCTION]
    if kind.__module__.startswith("mqlab.course.teach.") and callable(value):
        return ROLES[FUNCTION]
    if not kind.__module__.startswith(("mqlab.", "sqlite3")):
        return None
    if kind.__module__.startswith("mqlab.rocketmq.admin.") and kind.__name__ != "Admin":
        return None  # what the admin answers crosses by value; its Connection is not SQLite's
    return ROLES.get(OTHER_NAMES.get(kind.__name__, kind.__name__))

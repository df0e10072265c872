"""The table of what an answer may do with a Lab, a client, a listener's context: verbs, and attributes to read or set.

Mirrors: nothing in RocketMQ. Labs 00 and 02 to 09 have answers that use it; a new lab may add a row.

    role                        verbs                                 readable          writable
    ConsumeConcurrentlyContext  sleep compute                         message_queue     ack_index delay_level_..
    Lab                         producer push_consumer run_for kill   now_ms seed
    PushConsumer                subscribe on_messages start ..        message_queues    ..

Names of clients, groups, topics and databases become names of files, so they are held to the letters RocketMQ allows,
and settings that name a folder are refused.
Left out: looking into a Lab from outside its front door (journal, world, brokers' tables).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import UsageError
from mqlab.grading.database_guard import guarded

Verb = Callable[..., Any]
NAME = re.compile(r"[%A-Za-z0-9_-]{1,127}")


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


def _makes(*names: str) -> dict[str, Verb]:
    """Verbs whose first argument and ``name=`` are names, and whose settings name no folder."""

    def verb(wanted: str) -> Verb:
        def make(target: Any, first: str, *args: Any, **settings: Any) -> Any:
            for name in (first, settings.get("name")):
                if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
                    raise UsageError(f"{name!r} is no name", hint="letters, digits, %, _ and - only")
            for setting in settings:
                if setting.endswith(("dir", "directory", "path")):
                    raise UsageError(f"an answer cannot choose a folder: {setting}")
            return getattr(target, wanted)(first, *args, **settings)

        return make

    return {name: verb(name) for name in names}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _leave(target: Any, failed: str | None) -> Any:
    """The end of a ``with`` block: ``failed`` names the class of the error that ended it."""
    error = None if failed is None else RuntimeError(failed)
    return target.__exit__(None if error is None else RuntimeError, error, None)


CONTEXT = _calls("sleep", "compute")
ENTER_AND_LEAVE: dict[str, Verb] = {"__enter__": lambda target: target.__enter__(), "__exit__": _leave}
ROLES = {
    role.name: role
    for role in (
        Role(
            "ConsumeConcurrentlyContext",
            CONTEXT,
            _names("message_queue"),
            _names("ack_index delay_level_when_next_consume"),
        ),
        Role(
            "ConsumeOrderlyContext",
            CONTEXT,
            _names("message_queue"),
            _names("auto_commit suspend_current_queue_time_millis"),
        ),
        Role(
            "Lab",
            _makes(
                "producer", "push_consumer", "pull_consumer", "lite_pull_consumer", "transaction_producer",
                "create_topic", "database", "resource",
            )
            | _calls(
                "run_for", "run_until", "run_until_quiet", "at", "traffic", "kill", "power_off", "start", "partition",
                "heal", "slow", "drop", "skew_clock", "deliveries", "progress", "upcoming",
            ),
            _names("now_ms seed admin"),
        ),
        Role(
            "Producer",
            _calls(
                "send", "send_async", "send_oneway", "send_batch", "fetch_publish_message_queues", "shutdown",
                "send_message_in_transaction",
            ),
            _names("name client_id"),
        ),
        Role(
            "PushConsumer",
            _calls(
                "subscribe", "unsubscribe", "on_messages", "on_messages_orderly", "register_message_listener", "start",
                "shutdown", "suspend", "resume",
            ),
            _names("name client_id message_queues offset_store"),
        ),
        Role(
            "PullConsumer",
            _calls("pull", "pull_block_if_not_found", "start", "shutdown", "fetch_subscribe_message_queues",
                   "fetch_consume_offset", "update_consume_offset", "min_offset", "max_offset", "search_offset",
                   "send_message_back", "register_topics"),
            _names("name client_id"),
        ),
        Role(
            "LitePullConsumer",
            _calls("subscribe", "unsubscribe", "assign", "assignment", "poll", "seek", "seek_to_begin", "seek_to_end",
                   "commit", "commit_sync", "committed", "offset_for_timestamp", "fetch_message_queues", "pause",
                   "resume", "start", "shutdown"),
            _names("name client_id"),
        ),
        Role("OffsetStore", _calls("update_offset", "read_memory", "persist", "persist_all", "clone_offset_table")),
        Role("Pending", _calls("result", "then"), _names("done")),
        Role("Traffic", _calls("stop"), _names("number sent failed")),
        Role("Resource", ENTER_AND_LEAVE, _names("name slots in_use waiting longest_queue")),
        Role("Database", {"connect": lambda target: guarded(target.connect())}),
        Role(
            "Connection",
            _calls("execute", "executemany", "executescript", "commit", "rollback", "close", "cursor")
            | ENTER_AND_LEAVE,
            _names("in_transaction total_changes isolation_level"),
        ),
        Role(
            "Cursor",
            _calls("execute", "executemany", "fetchone", "fetchmany", "fetchall", "close")
            | {"__iter__": lambda target: target.fetchall()},
            _names("rowcount lastrowid description"),
        ),
    )
}  # fmt: skip
OTHER_NAMES = {
    "RemoteOffsetStore": "OffsetStore", "LocalOffsetStore": "OffsetStore", "OffsetMemory": "OffsetStore",
    "WaitingConnection": "Connection", "TransactionProducer": "Producer",
}  # fmt: skip


def role_of(value: Any) -> Role | None:
    """The role of an object of mqlab, or of SQLite; None for values and for what answers must not hold."""
    if type(value).__name__ == "NodeHandle":  # a node's handle plays the role of its node
        value = value.node
    kind = type(value)
    if not kind.__module__.startswith(("mqlab.", "sqlite3")):
        return None
    return ROLES.get(OTHER_NAMES.get(kind.__name__, kind.__name__))

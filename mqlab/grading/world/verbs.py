"""The table of what an answer may do with a Lab, a client, a listener's context: verbs, and attributes to read or set.

Answers that use a Lab need it; a new lab may add a row.

    role                        verbs                                 readable          writable
    ConsumeConcurrentlyContext  sleep compute                         message_queue     ack_index delay_level_..
    Lab                         producer push_consumer run_for kill   now_ms
    PushConsumer                subscribe on_messages start ..        message_queues    ..

Names of clients, groups, topics and databases become names of files, so only RocketMQ's letters are accepted.
The settings that an answer may give to a client are listed; those that name a folder or another topic are left out. A
Lab's seed cannot be read: a hidden case is made from it.
The inside of a Lab (its journal, its world, its brokers' tables) is not in the table.
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
NAMES = ("name", "instance_name", "unit_name")
"""Settings that become parts of paths and addresses, beside the first argument."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLIENT = _names(
    """name instance_name unit_name unit_mode poll_name_server_interval heartbeat_broker_interval
    persist_consumer_offset_interval pull_time_delay_mills_when_exception mq_client_api_timeout enable_trace"""
)
PRODUCER = CLIENT | _names(
    """topics create_topic_key default_topic_queue_nums send_msg_timeout send_msg_max_timeout_per_request
    retry_times_when_send_failed retry_times_when_send_async_failed retry_another_broker_when_not_store_ok
    retry_response_codes max_message_size compress_msg_body_over_howmuch compress_type compress_level
    send_latency_fault_enable latency_max not_available_duration start_detector_enable detect_interval detect_timeout
    mq_fault_strategy enable_backpressure_for_async_mode back_pressure_for_async_send_num
    back_pressure_for_async_send_size"""
)
CONSUMER = CLIENT | _names(
    "message_model consume_from_where consume_timestamp allocate_message_queue_strategy process_queue"
)
PUSH_CONSUMER = CONSUMER | _names(
    """cores consume_thread_min consume_thread_max consume_concurrently_max_span pull_threshold_for_queue
    pull_threshold_size_for_queue pull_threshold_for_topic pull_threshold_size_for_topic pull_interval pull_batch_size
    pull_batch_size_in_bytes consume_message_batch_max_size post_subscription_when_pull max_reconsume_times
    suspend_current_queue_time_millis consume_timeout await_termination_millis_when_shutdown message_timeout"""
)
PULL_CONSUMER = CONSUMER | _names(
    """broker_suspend_max_time_millis consumer_timeout_millis_when_suspend consumer_pull_timeout_millis
    max_reconsume_times"""
)
LITE_PULL_CONSUMER = CONSUMER | _names(
    """pull_batch_size pull_thread_nums pull_threshold_for_all pull_threshold_for_queue pull_threshold_size_for_queue
    consume_max_span auto_commit auto_commit_interval_millis poll_timeout_millis broker_suspend_max_time_millis
    consumer_timeout_millis_when_suspend consumer_pull_timeout_millis topic_metadata_check_interval_millis"""
)


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
            for name in (first, *(settings.get(each) for each in NAMES)):
                if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
                    raise UsageError(f"{name!r} cannot be a name", hint="use letters, digits, %, _ and - only")
            return getattr(target, wanted)(first, *args, **settings)

        return make

    return {name: verb(name, allowed) for name, allowed in settings_of.items()}


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
                producer=PRODUCER, transaction_producer=PRODUCER, push_consumer=PUSH_CONSUMER,
                pull_consumer=PULL_CONSUMER, lite_pull_consumer=LITE_PULL_CONSUMER,
                create_topic=_names("read_queue_nums write_queue_nums perm brokers"), database=_names(""),
                resource=_names("slots"),
            )
            | _calls(
                "run_for", "run_until", "run_until_quiet", "at", "traffic", "kill", "power_off", "start", "partition",
                "heal", "slow", "drop", "skew_clock", "deliveries", "progress", "upcoming",
            ),
            _names("now_ms admin"),
        ),
        Role("LabDatabases", _makes(database=_names(""))),  # lab 07: the part that survives the death of a process
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

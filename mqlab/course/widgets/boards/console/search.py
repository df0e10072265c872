"""The console's search for messages: by key, by unique id, by offset id or by time, as Dashboard's Message page.

find_messages(admin, "order-1", by="key", topic="orders")
find_messages(admin, topic="orders", by="time", begin="2026-01-01 00:00:05", end="")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.counts import counted
from mqlab.course.widgets.boards.console.section import PageSection, found_row
from mqlab.durations import moment_ms
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin
    from mqlab.rocketmq.wire.message import MessageExt

WAYS = ("key", "unique id", "offset id", "time")
READ_AT_ONCE = 10_000  # a range of time is read from the queues: more than this needs a beginning or an end


def find_messages(
    admin: Admin, text: str = "", *, by: str = "key", topic: str = "", begin: str = "", end: str = ""
) -> PageSection:
    """The messages that are found. Times are ms or UTC, empty for no limit; both limits are included.

    UsageError for another way to search, a missing topic, and a time range over all of a large topic.
    """
    if by not in WAYS:
        raise UsageError(f"messages are not found by {by!r}", hint=f"by: {', '.join(WAYS)}")
    if by != "time" and not text.strip():
        raise UsageError(f"give the {by} to search for")
    if by == "offset id":
        return _found(f"view_message({text.strip()!r})", [admin.view_message(text.strip())])
    if not topic:
        raise UsageError("give the topic to search in", hint="only an offset id itself says where its message is")
    if by == "key":
        return _found(f"query_message({topic!r}, {text!r})", list(admin.query_message(topic, text)))
    if by == "unique id":
        messages = admin.query_message_by_unique_key(topic, text.strip())
        return _found(f"query_message_by_unique_key({topic!r}, {text.strip()!r})", list(messages))
    return _by_time(admin, topic, begin.strip(), end.strip())


def _by_time(admin: Admin, topic: str, begin: str, end: str) -> PageSection:
    limits = {name: moment_ms(value) for name, value in (("begin_ms", begin), ("end_ms", end)) if value}
    if not limits:
        stored = sum(stat.max_offset - stat.min_offset for stat in admin.examine_topic_stats(topic))
        if stored > READ_AT_ONCE:
            raise UsageError(f"{topic} has {counted(stored, 'messages')}", hint="give a time to begin or to end with")
    words = "".join(f", {name}={value}" for name, value in limits.items())
    return _found(f"query_message_by_time({topic!r}{words})", list(admin.query_message_by_time(topic, **limits)))


def _found(verb: str, messages: list[MessageExt]) -> PageSection:
    return PageSection("Found", verb, Table([found_row(message) for message in messages], empty="no message"))

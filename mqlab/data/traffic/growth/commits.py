"""How far each group was when: the committed offsets of a day, moment by moment, as its trace tells them.

Mirrors: ConsumerOffsetManager, which saves consumerOffset.json every five seconds.

    {"orders@billing": {"0": [[time_ms, time_ms, ...], last offset], ...}, ...}
     offset n + 1 is committed at the n-th time: all messages up to n are finished then

    billing, shipping, notification   a message is finished when its listener has returned (SubAfter in the trace), one
                                      that the group does not read as soon as it is stored, one that hangs never
    warehouse, cancelling             a second after it was stored
    analytics                         counts once an hour, at half past, and takes an hour for it

Left out: offsets that were set back by hand; the committed offset of a day only grows.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

from mqlab.data.traffic.model import GROUPS, ON_REQUEST_GROUPS, Group
from mqlab.rocketmq.wire.names import TRACE_TOPIC, retry_topic
from mqlab.scales import HOUR, MINUTE, SECOND

Commits = dict[str, dict[str, list[int]]]
Finished = dict[tuple[str, str, int], int]  # group, msg_id, tries before -> ms; NEVER: called, and not returned

NEVER = 1 << 62
SAVED_EVERY_MS = 5 * SECOND
_COLUMNS = ("topic", "queue_id", "queue_offset", "store_timestamp", "tags", "msg_id", "reconsume_times")


def commits_of(store: Path) -> Commits:
    """Group and queue -> the moment at which each of its messages was finished, together with all before it."""
    from mqlab.data.arrow import read_table

    # 1. Every queue's messages, in the order of the queue.
    queues: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in read_table(store, _COLUMNS).sort_by("queue_offset").to_pylist():
        row["stored_ms"] = round(row["store_timestamp"].timestamp() * 1000)
        queues.setdefault((row["topic"], row["queue_id"]), []).append(row)
    # 2. For each group and queue that it reads, the times at which its offset moves on.
    finished = _finished(store)
    commits: Commits = {}
    also = [group for group in ON_REQUEST_GROUPS if any(topic == group.topic for topic, _ in queues)]
    for group in (*GROUPS, *also):
        for topic in (group.topic, retry_topic(group.name)):
            own = {str(queue_id): rows for (name, queue_id), rows in sorted(queues.items()) if name == topic}
            commits[f"{topic}@{group.name}"] = {
                queue_id: _times(group, rows, finished) for queue_id, rows in (own or {"0": []}).items()
            }
    return commits


def committed(commits: Commits, now_ms: int) -> dict[str, dict[int, int]]:
    """The offset table of consumerOffset.json as a broker has saved it last.

    >>> committed({"orders@billing": {"0": [1000, 2000, 9000]}}, 7_000)
    {'orders@billing': {0: 2}}
    """
    saved_ms = now_ms - now_ms % SAVED_EVERY_MS
    return {
        key: {int(queue_id): bisect_right(times, saved_ms) for queue_id, times in queues.items()}
        for key, queues in commits.items()
    }


def _times(group: Group, rows: list[dict[str, Any]], finished: Finished) -> list[int]:
    times, latest = [], 0
    for row in rows:
        latest = max(latest, _finished_ms(group, row, finished))
        times.append(latest)
    return times


def _finished_ms(group: Group, row: dict[str, Any], finished: Finished) -> int:
    stored_ms: int = row["stored_ms"]
    if group.traced:
        known = finished.get((group.name, row["msg_id"], row["reconsume_times"]))
        is_read = row["tags"] in group.tags or row["reconsume_times"] > 0
        return max(known, stored_ms) if is_read and known is not None else stored_ms
    if group.tags or group.name != "analytics":
        return stored_ms + SECOND
    half_past = stored_ms - (stored_ms - 30 * MINUTE) % HOUR + HOUR
    return half_past + HOUR


def _finished(store: Path) -> Finished:
    """When the listeners' calls ended, by the trace."""
    from mqlab.data.arrow import read_table
    from mqlab.data.arrow.reading import Selection
    from mqlab.rocketmq.client.sending.trace import CONTENT_SPLITTER, FIELD_SPLITTER

    bodies = read_table(store, ("body",), Selection((TRACE_TOPIC,)))["body"].to_pylist()
    entries = [entry.split(CONTENT_SPLITTER) for body in bodies for entry in body.decode().split(FIELD_SPLITTER)]
    called = {
        (request_id, msg_id): (group, msg_id, int(tries))
        for _, _, _, group, request_id, msg_id, tries, *_ in (entry for entry in entries if entry[0] == "SubBefore")
    }
    finished = dict.fromkeys(called.values(), NEVER)
    # A message that is delivered again has several calls: the first that ended has moved the offset.
    for _, request_id, msg_id, _, _, _, _, time_ms, *_ in (entry for entry in entries if entry[0] == "SubAfter"):
        call = called.get((request_id, msg_id))
        if call is not None:  # the trace may have lost an entry
            finished[call] = min(finished[call], int(time_ms))
    return finished

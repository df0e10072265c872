"""The biography of a message: every unit, call and offset that concerns it, in time order, from the tables of a run.

Mirrors: mqadmin queryMsgTraceById, queryMsgByUniqueKey and consumerProgress, together.

    out/messages ── its units: stored, parked, given back, dead ──┐
    out/deliveries ── calls of listeners with it ─────────────────┼──▶ one Table, in time order
    out/life ── what became of it in each group, and the offset ──┘

    from mqlab.data.spark import pipeline
    pipeline.biography("out", "order-1047")          the key of an order, or the id of a message

The tables are read without Spark, so it answers in a second from a large day as well.
Left out: bodies; the trace of the sender.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.dataset

from mqlab.data.arrow.stores import StorePath
from mqlab.data.spark.pipeline.job import MANIFEST, saved
from mqlab.data.spark.pipeline.steps import STEPS
from mqlab.errors import UsageError
from mqlab.lab.views import Table

COLUMNS = ("time_ms", "what", "group", "topic", "broker", "queue", "offset", "told", "msg_id")
NEEDED = ("messages", "deliveries", "offsets", "life")
KINDS = {"normal": "stored", "retry": "stored for a retry", "dead": "dead letter", "half": "half message stored"}
# Events of one millisecond, in the order in which one follows from the other.
ORDER = ("born", *KINDS.values(), "parked", "called", "returned", "no result", "became")
Rows = Iterable[Mapping[str, Any]]


def biography(out: StorePath, key: str) -> Table:
    """The biography of the message with this key or id: all of them, when several messages have the key.

    One row per event: ``time_ms`` (by the clock of its machine), ``what`` (born, stored, parked, stored for a
    retry, dead letter, called, returned, no result; at the end became, one row per group), the ``group``, the place
    (``topic``, ``broker``, ``queue``, ``offset``), ``told`` (details in words) and ``msg_id``. Rows of became have no
    time. Raises UsageError when the run is not finished or no message has the key.
    """
    folder = Path(out)
    if saved(folder) is None:
        raise UsageError(f"{folder} is not an output of 'mqlab spark run'", hint=f"it has no {MANIFEST}")
    missing = [name for name in NEEDED if not (folder / STEPS[name].folder).is_dir()]
    if missing:
        raise UsageError(f"the run in {folder} is not finished: {', '.join(missing)} are missing")
    # 1. Ids of messages with the key; a retry or a dead letter has the id of its original.
    field = pyarrow.compute.field
    wanted = (field("msg_id") == key) | pyarrow.compute.match_substring(field("keys"), key)
    units = [
        row for row in _rows(folder, "messages", wanted) if row["msg_id"] == key or key in (row["keys"] or "").split()
    ]
    if not units:
        raise UsageError(
            f"no message in {folder} has the key or id {key!r}",
            hint="a key is compared whole, with upper and lower case; the column keys of out/messages has all",
        )
    pairs = {(row["msg_id"], row["keys"]) for row in units}
    # 2. What the other tables have about them.
    of_theirs = field("msg_id").isin([msg_id for msg_id, _ in pairs])

    def theirs(name: str) -> list[dict[str, Any]]:
        return [row for row in _rows(folder, name, of_theirs) if (row["msg_id"], row["keys"]) in pairs]

    return biography_of(units, theirs("deliveries"), theirs("life"), _rows(folder, "offsets", None), title=key)


def biography_of(units: Rows, calls: Rows, lives: Rows, offsets: Rows, title: str = "") -> Table:
    """The biography made of rows of MESSAGES, DELIVERIES, LIFE and OFFSETS that are all about the same messages.

    >>> at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> place = {"broker_name": "broker-a", "topic": "orders", "queue_id": 2, "queue_offset": 7, "msg_id": "0A…01"}
    >>> unit = {**place, "kind": "normal", "parked": False, "born_timestamp": at, "store_timestamp": at,
    ...         "user_topic": "orders", "consumer_group": None, "reconsume_times": 0, "keys": "order-1", "tags": "paid"}
    >>> life = {**place, "consumer_group": "billing", "outcome": "lost", "attempts": 0, "copies": 1, "members": 1}
    >>> offset = {"broker_name": "broker-a", "topic": "orders", "queue_id": 2, "consumer_group": "billing",
    ...           "consumer_offset": 9}
    >>> for row in biography_of([unit], [], [life], [offset]): print(row.what, "-", row.told)
    born - tag paid
    stored - message of a producer
    became - lost after 0 calls; the group's offset 9 is past it
    """
    events = [event for unit in units for event in _of_unit(unit)]
    events += [event for call in calls for event in _of_call(call)]
    # A message that its client stored twice, because it got no answer, was born once.
    born = {(e["time_ms"], e["msg_id"], e["told"]): e for e in events if e["what"] == "born"}
    events = [*born.values(), *(e for e in events if e["what"] != "born")]
    events.sort(key=lambda e: (e["time_ms"], ORDER.index(e["what"])))
    committed = {
        (row["broker_name"], row["topic"], row["queue_id"], row["consumer_group"]): row["consumer_offset"]
        for row in offsets
    }
    ends = sorted(lives, key=lambda life: (life["msg_id"], life["consumer_group"] or ""))
    return Table([*events, *(_end(life, committed) for life in ends)], columns=COLUMNS, title=title)


def _rows(folder: Path, name: str, wanted: Any) -> list[dict[str, Any]]:
    dataset = pyarrow.dataset.dataset(folder / STEPS[name].folder, format="parquet")
    rows: list[dict[str, Any]] = dataset.to_table(filter=wanted).to_pylist()
    return rows


def _ms(time: datetime) -> int:
    """A time of a table in ms; those of Parquet have no zone and are UTC."""
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _of_unit(unit: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    kind = unit["kind"]
    group = unit["consumer_group"]
    position = {
        "topic": unit["topic"],
        "broker": unit["broker_name"],
        "queue": unit["queue_id"],
        "offset": unit["queue_offset"],
        "msg_id": unit["msg_id"],
        "group": group,
    }
    if kind in ("normal", "half"):
        note = f"tag {unit['tags']}" if unit["tags"] else "no tag"
        yield {
            "time_ms": _ms(unit["born_timestamp"]),
            "what": "born",
            "topic": unit["user_topic"],
            "told": note,
            "msg_id": unit["msg_id"],
        }
    stored_ms = _ms(unit["store_timestamp"])
    if unit["parked"]:
        level = unit["queue_id"] + 1
        whose = f"retry {unit['reconsume_times']} of {group}" if kind == "retry" else "a delayed message"
        yield {**position, "time_ms": stored_ms, "what": "parked", "told": f"{whose}, delay level {level}"}
        return
    words = {
        "normal": "message of a producer",
        "half": "waits for the end of its transaction",
        "retry": f"after failure {unit['reconsume_times']}",
        "dead": f"given up after {unit['reconsume_times']} retries",
    }
    yield {**position, "time_ms": stored_ms, "what": KINDS.get(kind, "stored"), "told": words.get(kind, kind)}


def _of_call(call: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    same = {"group": call["consumer_group"], "msg_id": call["msg_id"]}
    with_ = f"{call['client']}, try {(call['retry_times'] or 0) + 1}"
    if call["ended"] is None:
        yield {
            **same,
            "time_ms": _ms(call["started"]),
            "what": "no result",
            "told": f"called at {with_}: killed, still running, or its end is not in the trace",
        }
        return
    yield {**same, "time_ms": _ms(call["started"]), "what": "called", "told": f"at {with_}"}
    took = "" if call["cost_ms"] is None else f" after {call['cost_ms']} ms"
    yield {**same, "time_ms": _ms(call["ended"]), "what": "returned", "told": f"{call['status']}{took}"}


def _end(life: Mapping[str, Any], committed: Mapping[tuple[str, str, int, str], int]) -> dict[str, Any]:
    group = life["consumer_group"]
    position = {
        "topic": life["topic"],
        "broker": life["broker_name"],
        "queue": life["queue_id"],
        "offset": life["queue_offset"],
        "msg_id": life["msg_id"],
        "group": group,
        "time_ms": None,
        "what": "became",
    }
    if group is None:
        return {**position, "told": "no group reads its topic"}
    calls = f"{life['attempts']} call{'s' if life['attempts'] != 1 else ''}"
    offset = committed.get((life["broker_name"], life["topic"], life["queue_id"], group))
    if offset is None:
        return {**position, "told": f"{life['outcome']} after {calls}; no offset of the group is known"}
    where = "past it" if life["queue_offset"] < offset else "not past it"
    return {**position, "told": f"{life['outcome']} after {calls}; the group's offset {offset} is {where}"}

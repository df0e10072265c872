"""The biography board: which rows belong to a message, what the page is given, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqlab.course.given.lab11 import pipeline_rows
from mqlab.course.widgets import BiographyBoard, biography_board
from mqlab.errors import UsageError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)


def unit(keys: str, msg_id: str, after_s: float, **more: Any) -> dict[str, Any]:
    return {
        "broker_name": "broker-a",
        "topic": "orders",
        "queue_id": 2,
        "queue_offset": 7,
        "msg_id": msg_id,
        "keys": keys,
        "kind": "normal",
        "parked": False,
        "born_timestamp": NOON,
        "user_topic": "orders",
        "consumer_group": None,
        "store_timestamp": NOON + timedelta(seconds=after_s),
        "reconsume_times": 0,
        "tags": "paid",
        **more,
    }


RETRY = {"kind": "retry", "consumer_group": "billing", "reconsume_times": 1}
UNITS = [
    unit("k-1", "A", 0.1),
    unit("k-1", "A", 0.3, topic="SCHEDULE_TOPIC_XXXX", parked=True, **RETRY),
    unit("k-1", "A", 10.3, topic="%RETRY%billing", **RETRY),
    unit("k-2 red", "B", 5),
    unit("k-3", "B", 5),  # of one batch with k-2: the same id
    unit("", "C", 6),
    unit("k-1", "T", 7, kind="trace"),
]
TOLD = [
    {
        "group_name": group,
        "msg_id": msg_id,
        "keys": keys,
        "retry_times": retries,
        "started_ms": NOON_MS + at,
        "ended_ms": end and NOON_MS + end,
        "status": status,
    }
    for group, msg_id, keys, retries, at, end, status in [
        ("billing", "A", "k-1", 0, 200, 250, "FAILED"),
        ("audit", "A", "k-1", 0, 210, 211, "SUCCESS"),
        ("billing", "A", "k-1", 1, 10_400, None, "NO_RESULT"),
        ("audit", "B", "k-3", 0, 5_100, 5_110, "SUCCESS"),
    ]
]
COMMITTED = [{"broker_name": "broker-a", "group_name": "billing", "topic": "orders", "queue_id": 2, "committed": 9}]
LIVES: list[dict[str, Any]] = [
    {"group_name": "billing", "msg_id": "A", "keys": "k-1", "calls": 2, "outcome": "pending"},
    {"group_name": "billing", "msg_id": "?", "keys": "k-1", "calls": 2, "outcome": "lost"},  # of no message
    {"group_name": "billing", "msg_id": "A", "keys": "k-1"},  # an answer that is not ready
]


def board(**more: Any) -> BiographyBoard:
    return biography_board(
        UNITS,
        pipeline_rows.deliveries(TOLD),
        pipeline_rows.lives(LIVES, UNITS),
        pipeline_rows.offsets(COMMITTED),
        **more,
    )


def test_a_message_has_its_units_calls_and_ends_in_the_order_of_time() -> None:
    rows = [(row.what, row.group, row.told) for row in board().biography()]
    assert [what for what, _, _ in rows] == [
        "born",
        "stored",
        "called",
        "called",
        "returned",
        "returned",
        "parked",
        "stored for a retry",
        "no result",
        "became",
    ]
    assert rows[4] == ("returned", "audit", "SUCCESS after 1 ms") and rows[5][2] == "FAILED after 50 ms"
    assert rows[-1] == ("became", "billing", "pending after 2 calls; the group's offset 9 is past it")


def test_messages_of_one_batch_are_told_apart_and_each_key_finds_its_message() -> None:
    shown = board()
    assert shown.keys == ["k-1", "k-2", "red", "k-3"]
    assert [row.what for row in shown.biography("k-3")] == ["born", "stored", "called", "returned"]
    assert [row.what for row in shown.biography("red")] == ["born", "stored"]
    assert board(keys=["k-3"]).keys == ["k-3"]


def test_the_page_has_every_event_and_a_cell_reads_what_is_looked_at() -> None:
    shown = board(key="k-3")
    data = shown.data()
    assert set(data["names"]) == {"orders", "broker-a", "billing", "audit", "SCHEDULE_TOPIC_XXXX", "%RETRY%billing"}
    assert [event[1] for event in data["messages"]["k-3"]] == ["born", "stored", "called", "returned"]
    shown.set("event", 2)
    assert shown.show("k-1").state == {"key": "k-1", "event": 0}
    assert shown.table().title == "k-1" and "stored for a retry" in shown.text() and "<table" in shown.html()


def test_a_board_refuses_what_it_cannot_show() -> None:
    with pytest.raises(UsageError, match="no message has the key 'K-1'"):
        board(key="K-1")
    with pytest.raises(UsageError, match="needs a message with a key"):
        biography_board([unit("", "A", 0)], [])
    with pytest.raises(UsageError, match="2,001 messages are too many"):
        biography_board([unit(f"k-{n}", f"{n}", 0) for n in range(2_001)], [])

"""Boards over a day's tables: what they reckon, what their page is given, and what they refuse."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from mqlab.course.widgets import PercentileBoard, echo_chart, percentile_board, watermark_board
from mqlab.course.widgets.boards.percentiles.board import MOST_VALUES
from mqlab.course.widgets.boards.watermark.board import MODES
from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import Ecdf

NINE = 1_731_315_600_000
FAST, SLOW = range(1, 101), range(501, 601)


def board(**chosen: Any) -> PercentileBoard:
    return percentile_board({"fast": FAST, "slow": SLOW, "third": [7]}, **chosen)


@pytest.mark.parametrize(("slow", "together"), [(1, 100), (5, 100), (10, 100), (20, 549), (100, 590), (10_000, 599)])
def test_the_percentile_of_both_goes_from_one_to_the_other_and_the_mean_stays(slow: int, together: int) -> None:
    shown = board(second_size=slow)
    assert shown.together == pytest.approx(together, abs=1)
    assert (shown.alone("fast"), shown.alone("slow"), shown.mean) == (99, 599, 349)


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_counts_as_if_it_were_written_out(seed: int) -> None:
    """Sizes that are multiples of the sample: the same as so many copies of it in one curve."""
    rng = random.Random(seed)
    samples = {name: [rng.randrange(1, 400) for _ in range(rng.randrange(1, 30))] for name in "ab"}
    times = [rng.randrange(1, 5) for _ in samples]
    percent = rng.choice([50, 90, 99])
    sizes = [len(values) * count for values, count in zip(samples.values(), times, strict=True)]
    shown = percentile_board(samples, first_size=sizes[0], second_size=sizes[1], percent=percent)
    every = [value for values, count in zip(samples.values(), times, strict=True) for value in values * count]
    assert shown.together == Ecdf({"all": every}).quantile("all", percent / 100)


def test_what_the_page_sets_is_what_python_reckons_with() -> None:
    shown = board()
    shown.set("second", "third")
    shown.set("percent", 50)
    assert (shown.alone("third"), shown.together) == (7, 49)
    assert [row.p50 for row in shown.table()] == [50, 7, 28.5, 49]
    assert "all messages together" in shown.text() and "<svg" in shown.html()


def test_a_large_sample_is_thinned_and_keeps_its_ends_and_its_shape() -> None:
    values = [n * n for n in range(50_000)]
    shown = percentile_board({"many": values, "few": [1]}, second_size=1)
    kept = shown.data()["samples"]["many"]
    assert len(kept) == MOST_VALUES and (kept[0], kept[-1]) == (values[0], values[-1])
    assert shown.alone("many") == pytest.approx(values[int(0.99 * len(values))], rel=0.01)


@pytest.mark.parametrize(
    ("samples", "chosen", "says"),
    [
        ({"a": [1]}, {}, "two samples"),
        ({"a": [1], "b": []}, {}, "each with a value"),
        ({"a": [1], "b": [2]}, {"first": "c"}, "no sample 'c'"),
        ({"a": [1], "b": [2]}, {"percent": 100}, "percent"),
        ({"a": [1], "b": [2]}, {"second_size": 0}, "1 or more"),
    ],
)
def test_a_percentile_board_refuses(samples: Any, chosen: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        percentile_board(samples, **chosen)


CALLS = [
    {
        "group_name": group,
        "keys": f"k-{n}",
        "stored_ms": 600_000 + stored_s * 1_000,
        "started_ms": 600_000 + s * 1_000,
        "cause": cause,
    }
    for n, (group, stored_s, s, cause) in enumerate(
        [
            ("audit", 0, 0, "first"),
            ("audit", 61, 62, "first"),
            ("audit", 0, 185, "late"),
            ("audit", 61, 186, "late"),
            ("billing", 5, 5, "first"),
            ("billing", 5, 15, "retry"),
            ("billing", 5, 45, None),
        ]
    )
]


def test_calls_are_counted_by_when_they_were_stored_and_called() -> None:
    chart = echo_chart(CALLS, group="audit", stretch_s=60)
    assert chart.cells() == {(0, 0): 1, (0, 3): 1, (1, 1): 1, (1, 3): 1}
    assert chart.echoes() == {(0, 3): 1, (1, 3): 1}
    assert [row.keys for row in chart.calls(0, 3)] == ["k-2"] and len(chart.calls()) == 1
    assert [tuple(row)[:4] for row in chart.table()] == [(0, 1, 1, 3), (1, 1, 1, 3)]


def test_group_cause_and_stretch_are_chosen_in_the_page() -> None:
    chart = echo_chart(CALLS)
    assert chart.causes == ["called", "first", "late", "retry"] and chart.state["group"] == "audit"
    for name, value in {"group": "billing", "cause": "retry", "stretch_s": 10}.items():
        chart.set(name, value)
    assert chart.cells() == {(0, 1): 1} and chart.table().title == "Calls of billing, retry, in stretches of 10 s"
    data = chart.data()
    assert data["groups"]["billing"] == [[5000, 5000, 1, "k-4"], [5000, 15000, 3, "k-5"], [5000, 45000, 0, "k-6"]]
    assert "<svg" in chart.html() and "in stretches of 10 s" in chart.text()


def test_a_call_before_its_message_was_stored_is_in_the_first_stretch() -> None:
    """A client's clock may be behind."""
    early = {**CALLS[0], "started_ms": CALLS[0]["stored_ms"] - 90_000}
    assert echo_chart([*CALLS, early], group="audit", stretch_s=60).cells()[0, 0] == 2


def test_stretches_leave_a_chart_that_can_be_read() -> None:
    day = {**CALLS[0], "started_ms": CALLS[0]["stored_ms"] + 23 * 3_600_000}
    assert echo_chart([*CALLS, day]).stretches == [3_600] and 1 not in echo_chart(CALLS).stretches
    assert max(max(cell) for cell in echo_chart([*CALLS, day]).cells()) < 40


@pytest.mark.parametrize(
    ("calls", "chosen", "says"),
    [
        ([], {}, "needs a call"),
        (CALLS, {"group": "mail"}, "no call of 'mail'"),
        (CALLS, {"stretch_s": 7}, "not a stretch"),
    ],
)
def test_an_echo_chart_refuses(calls: Any, chosen: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        echo_chart(calls, **chosen)


def looks(*minutes: Sequence[int]) -> list[list[dict[str, Any]]]:
    """Looks with a row at each of these minutes after nine: odd ones of broker-b."""
    return [
        [{"store_timestamp": NINE + 60_000 * at, "broker_name": f"broker-{'ab'[at % 2]}"} for at in look]
        for look in minutes
    ]


LATE = looks([0, 2, 20], [30, 52], [60], [5, 21, 41, 70], [90, 91])


@pytest.mark.parametrize(
    ("settings", "dropped", "kept"),
    [
        ({"delay_min": 0}, 3, [2, 3, 2, 2, 3, 2]),
        ({}, 2, [2, 3, 2, 3, 4, 2]),
        ({"delay_min": 60}, 0, [2, 4, 5, 9, 9, 7]),
        ({"mode": "append"}, 2, [2, 3, 2, 3, 4, 2]),
        ({"mode": "complete"}, 0, [2, 4, 5, 9, 11, 11]),
        ({"window_min": 60, "delay_min": 0}, 0, [1, 1, 2, 1, 2, 2]),
    ],
)
def test_a_delay_keeps_and_drops(settings: Any, dropped: int, kept: list[int]) -> None:
    board = watermark_board(LATE, **settings)
    assert board.dropped == dropped and [one.kept for one in board.batches()] == kept
    assert ("✓" in board.ledger) == (dropped == 0)


def test_append_gives_each_group_once_and_complete_gives_all_each_time() -> None:
    given = {mode: [one.given for one in watermark_board(LATE, mode=mode).batches()] for mode in MODES}
    assert given == {"update": [2, 2, 1, 2, 2, 0], "append": [0, 1, 2, 1, 1, 2], "complete": [2, 4, 5, 9, 11, 11]}


def test_the_board_opens_at_the_batch_that_drops_most_and_its_page_has_every_row() -> None:
    board = watermark_board(LATE, delay_min=0)
    assert board.state["batch"] == 3 and watermark_board(LATE, delay_min=60).state["batch"] == 5
    data = board.data()
    assert data["brokers"] == ["broker-a", "broker-b"] and data["looks"][1] == [[1_800_000, 0], [3_120_000, 0]]
    assert board.table().title.endswith("✗ 3 messages are in no count") and "<svg" in board.html()
    board.set("delay_min", 60)
    assert board.dropped == 0 and "✓ each message is counted" in board.text()


@pytest.mark.parametrize(
    ("given", "chosen", "says"),
    [
        ([], {}, "needs a look"),
        (LATE, {"delay_min": 7}, "no delay_min 7"),
        (LATE, {"batch": 6}, "no batch 6"),
        (LATE, {"window_min": 2}, "no window_min 2"),
        (LATE, {"mode": "once"}, "no mode 'once'"),
    ],
)
def test_a_watermark_board_refuses(given: Any, chosen: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        watermark_board(given, **chosen)

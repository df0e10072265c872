"""How long puts took: classes and shares of the last minute.

Mirrors: StoreStatsService.setPutMessageEntireTimeMax.
"""

from __future__ import annotations

import pytest

from mqlab.rocketmq.broker.tables.put_times import BUCKET_ENDS_MS, CLASSES, PutTimes


def times_of(*took_ms: int) -> PutTimes:
    times = PutTimes(1_000)
    for ms in took_ms:
        times.put(1_000)
        times.waited(1_000, 1_000 + ms)
    return times


@pytest.mark.parametrize(
    ("took_ms", "name"),
    [
        (0, "[<=0ms]"),
        (1, "[0~10ms]"),
        (9, "[0~10ms]"),
        (10, "[10~50ms]"),
        (499, "[200~500ms]"),
        (500, "[500ms~1s]"),
        (3_004, "[3~4s]"),
        (9_999, "[5~10s]"),
        (10_000, "[10s~]"),
        (30_000, "[10s~]"),
    ],
)
def test_each_time_has_its_class(took_ms: int, name: str) -> None:
    told = times_of(took_ms).classes(61_000)
    assert told.count(":0 ") == len(CLASSES) - 1 and f"{name}:1 " in told


def test_the_minute_that_runs_is_not_told_and_an_empty_one_is() -> None:
    times = times_of(3)
    assert times.classes(60_999) == "null"
    assert "[0~10ms]:1 " in times.classes(61_000)
    assert times.classes(121_000).count(":0 ") == len(CLASSES)
    times.put(130_000)
    assert times.classes(250_000).count(":0 ") == len(CLASSES)  # the last whole minute had none
    assert times.longest_ms == 3


def test_a_put_that_waits_past_the_minutes_end_counts_in_both() -> None:
    times = PutTimes(0)
    times.put(59_000)
    times.waited(59_000, 62_000)
    assert "[<=0ms]:1 " in times.classes(60_000)
    assert "[3~4s]:1 " in times.classes(120_000)


def test_shares_lie_on_straight_lines_between_the_ends_of_buckets() -> None:
    assert BUCKET_ENDS_MS[:21] == (*range(1, 21), 22)
    assert BUCKET_ENDS_MS[-10:] == (1_000, *range(2_000, 11_000, 1_000))[-10:]
    assert times_of(*range(1, 101)).latency(0.99, 61_000) == pytest.approx(99.0)
    assert times_of(*[0] * 100).latency(0.99, 61_000) == pytest.approx(0.99)
    assert times_of().latency(0.99, 61_000) == 0.0
    assert times_of(30_000).latency(1.0, 61_000) == 10_000

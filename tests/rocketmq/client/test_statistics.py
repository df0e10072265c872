"""The counters: one vector by hand, and equality with a sampler that really ticks.

Mirrors: StatsItem, ConsumerStatsManager.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.client.instance.statistics import (
    CONSUME_FAILED_TPS,
    CONSUME_OK_TPS,
    CONSUME_RT,
    PULL_TPS,
)
from mqlab.rocketmq.stats_item import DAY_MS, HOUR_MS, KEPT, MINUTE_MS, StatsItem
from tests.rocketmq.client.conftest import Recorder, World, send


def test_the_vector_of_the_fact_sheet() -> None:
    item = StatsItem(0, 0)
    rates = {}
    for tick in range(8):
        now_ms = tick * 10_000
        rates[tick] = round(item.snapshot(MINUTE_MS, now_ms).tps, 3)
        item.add(8, 1, now_ms + 1)  # counter = 8k at the tick t = 10k s
    assert rates == {0: 0.0, 1: 0.4, 2: 0.533, 3: 0.6, 4: 0.64, 5: 0.667, 6: 0.8, 7: 0.8}


def test_growth_before_the_first_sample_counts_in_full() -> None:
    item = StatsItem(0, 1_000)
    item.add(30, 1, 3_000)
    assert item.snapshot(MINUTE_MS, 9_999).tps == 0
    assert item.snapshot(MINUTE_MS, 10_000).tps == 3.0


def test_a_young_key_shows_nothing_for_hour_and_day() -> None:
    item = StatsItem(0, 5_000)
    item.add(160, 8, 6_000)
    snapshot = item.snapshot(MINUTE_MS, 20_000)
    assert (snapshot.sum, snapshot.avgpt) == (160, 20.0)
    assert item.snapshot(HOUR_MS, 70_000).sum == item.snapshot(DAY_MS, 70_000).sum == 0


class Ticking:
    """The same by a sampler with real ticks."""

    def __init__(self, first_ms: int) -> None:
        self.value = self.times = 0
        self.points: dict[int, list[tuple[int, int, int]]] = {period: [] for period in KEPT}
        self.next_ms = {period: first_ms + (-first_ms) % period for period in KEPT}

    def run_to(self, now_ms: int, *, inclusive: bool) -> None:
        for period, points in self.points.items():
            while self.next_ms[period] < now_ms or (inclusive and self.next_ms[period] == now_ms):
                due_ms = self.next_ms[period]
                if not points:
                    points.append((due_ms - period, 0, 0))
                points.append((due_ms, self.value, self.times))
                if len(points) > KEPT[period]:
                    del points[0]
                self.next_ms[period] += period


@given(st.lists(st.tuples(st.integers(0, 4_000_000), st.integers(0, 50)), max_size=30), st.integers(0, 20_000))
def test_samples_written_late_equal_samples_taken_in_time(steps: list[tuple[int, int]], first_ms: int) -> None:
    item, ticking, now_ms = StatsItem(0, first_ms), Ticking(first_ms), first_ms
    for pause_ms, value in steps:
        now_ms += pause_ms
        ticking.run_to(now_ms, inclusive=False)
        ticking.value, ticking.times = ticking.value + value, ticking.times + 1
        item.add(value, 1, now_ms)
    now_ms += 7_777
    ticking.run_to(now_ms, inclusive=True)
    for period, points in ticking.points.items():
        snapshot = item.snapshot(period, now_ms)
        expected = points[-1][1] - points[0][1] if points else 0
        assert snapshot.sum == expected
        if points:
            assert snapshot.tps == expected * 1000 / (points[-1][0] - points[0][0])


def test_a_consumers_own_numbers(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world, "CONSUME_SUCCESS", "RECONSUME_LATER", "CONSUME_SUCCESS", takes="40ms")
    consumer = world.consumer(listener=listener)
    world.run_for(25_000)  # from 21 s on a new group reads its retry topic
    send(world.producer(), "orders", *"abcdefgh")
    world.run_for(20_000)
    statistics, group = consumer.client.statistics, "billing"
    assert statistics.snapshot(PULL_TPS, group, "orders").sum == 8
    assert statistics.snapshot(CONSUME_OK_TPS, group, "orders").sum == 7
    assert statistics.snapshot(CONSUME_FAILED_TPS, group, "orders").sum == 1
    assert statistics.snapshot(CONSUME_RT, group, "orders").avgpt == 40
    assert statistics.snapshot(CONSUME_OK_TPS, group, "%RETRY%billing").sum == 1
    status = statistics.consume_status(group, "orders")
    assert (status.consume_rt, status.consume_failed_msgs) == (40, 0)
    world.run_for(600_000)
    later = statistics.consume_status(group, "orders")
    assert (later.consume_ok_tps, later.consume_rt, later.consume_failed_msgs) == (0, 40, 1)

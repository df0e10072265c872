"""Counters over a minute, an hour, a day: the numbers of RocketMQ's StatsItem without its timers."""

from __future__ import annotations

import pytest

from mqlab.broker.stats import DAY_MS, GROUP_GET_NUMS, TOPIC_PUT_NUMS, BrokerStats, DayCount, StatsItem
from mqlab.broker.store_stats import Sampled, StoreStats

S = 1_000


def test_the_fact_sheets_vector_for_the_minute_list() -> None:
    item = StatsItem(0)
    item.add(0, 0)
    expected = {0: 0.0, 10: 0.4, 20: 16 / 30, 50: 40 / 60, 60: 0.8, 70: 0.8, 80: 0.8}
    for tick in range(0, 90, 10):
        if tick:
            item.add(tick * S, 8)
        if tick in expected:
            assert item.snapshot(tick * S + 1, "statsMinute").tps == pytest.approx(expected[tick])


def test_growth_before_the_first_tick_counts_in_full() -> None:
    item = StatsItem(0)
    item.add(3 * S, 160, 8)
    assert item.snapshot(9 * S, "statsMinute") == item.snapshot(9 * S, "statsHour")
    minute = item.snapshot(11 * S, "statsMinute")
    assert (minute.sum, minute.tps, minute.avgpt) == (160, 16.0, 20.0)
    assert item.snapshot(11 * S, "statsHour").sum == 0


def test_a_counter_left_alone_for_a_day_is_empty_again() -> None:
    item = StatsItem(0)
    item.add(1 * S, 5)
    later = 100 * 3_600 * S
    assert [item.snapshot(later, window).sum for window in ("statsMinute", "statsHour", "statsDay")] == [0, 0, 0]
    assert item.value == 5


def test_sampling_late_gives_what_sampling_in_time_gives() -> None:
    early, late = StatsItem(0), StatsItem(0)
    for second in range(0, 7_200, 7):
        early.add(second * S, second % 5)
        late.add(second * S, second % 5)
        for window in ("statsMinute", "statsHour", "statsDay"):
            early.snapshot(second * S, window)
    for window in ("statsMinute", "statsHour", "statsDay"):
        assert early.snapshot(7_300 * S, window) == late.snapshot(7_300 * S, window)


def test_the_brokers_counters_by_name_and_key() -> None:
    now = [0]
    stats = BrokerStats(lambda: now[0], "DefaultCluster", is_system=lambda topic: topic.startswith("rmq_sys_"))
    stats.put("订单", 3, 2, 500)
    stats.got("billing", "订单", 2, 500)
    now[0] = 10 * S + 1
    found = stats.snapshots(TOPIC_PUT_NUMS, "订单")
    assert found is not None and found["statsMinute"].sum == 2
    assert stats.minute_tps(GROUP_GET_NUMS, "订单@billing") == pytest.approx(0.1)
    assert stats.snapshots(TOPIC_PUT_NUMS, "never") is None and stats.minute_tps(TOPIC_PUT_NUMS, "never") == 0.0
    stats.remove_topic("订单")
    assert stats.snapshots(TOPIC_PUT_NUMS, "订单") is None


def test_rates_of_windows_that_are_not_full_are_left_out() -> None:
    puts = Sampled(0)
    puts.add(80, 3_500)
    assert puts.rates(10_999) == "  "  # ten samples: nine seconds between them
    assert puts.rates(11_000) == "8.0  "
    assert puts.rates(61_000) == f"0.0 {80 / 60} "
    assert puts.rates(601_000) == f"0.0 0.0 {80 / 600}"
    assert Sampled(0).rates(5_000, missing="0.0") == "0.0 0.0 0.0"


def test_rates_are_those_of_a_sampler_that_ticks() -> None:
    puts, samples = Sampled(500), [0]
    for ms in range(500, 2_000_500, 250):
        if ms > 500 and (ms - 500) % 1_000 == 0:
            samples.append(puts.total)
        if (ms // 7_000) % 3:
            puts.add(ms % 13, ms)
    now_ms = 2_000_500
    samples.append(puts.total)
    assert puts.rates(now_ms) == " ".join(str((samples[-1] - samples[-1 - w]) / w) for w in (10, 60, 600))


def test_a_store_without_puts_says_it_made_one() -> None:
    table = StoreStats(lambda: 0).table()
    assert (table["putMessageTimesTotal"], table["putTps"], table["getTotalTps"]) == (1, "  ", "0.0 0.0 0.0")


def test_the_days_count_starts_anew_at_midnight() -> None:
    count = DayCount(1_000)
    count.add(5, 2_000)
    assert (count.now - count.look(3_000).today, count.yesterday) == (5, 0)
    count.add(2, DAY_MS + 1)
    assert (count.now, count.today, count.yesterday) == (7, 5, 0)
    count.look(2 * DAY_MS)
    assert (count.now, count.today, count.yesterday) == (7, 7, 5)
    count.look(5 * DAY_MS)
    assert (count.now, count.today, count.yesterday) == (7, 7, 7)

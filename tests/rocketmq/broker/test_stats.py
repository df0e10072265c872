"""Counters over a minute, an hour, a day: the numbers of RocketMQ's StatsItem without its timers."""

from __future__ import annotations

import pytest

from mqlab.rocketmq.broker.tables.stats import (
    BROKER_PUT_NUMS,
    BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC,
    DAY_MS,
    GROUP_GET_LATENCY,
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    QUEUE_GET_NUMS,
    QUEUE_GET_SIZE,
    QUEUE_PUT_NUMS,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_LATENCY,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    BrokerStats,
    DayCount,
)
from mqlab.rocketmq.broker.tables.store_stats import Sampled, StoreStats
from mqlab.rocketmq.stats_item import HOUR_MS, KEPT, MINUTE_MS, StatsItem, StatsSnapshot
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.names import HALF_TOPIC, OP_HALF_TOPIC, SCHEDULE_TOPIC
from tests.rocketmq.broker.world import BareClient, World

S = 1_000


def shown(item: StatsItem, now_ms: int, period_ms: int = MINUTE_MS) -> StatsSnapshot:
    """As the broker shows it: a sample that is due in this very ms is not taken yet."""
    return item.snapshot(period_ms, now_ms, with_now=False)


def test_the_fact_sheets_vector_for_the_minute_list() -> None:
    item = StatsItem(0, 0)
    item.add(0, 1, 0)
    expected = {0: 0.0, 10: 0.4, 20: 16 / 30, 50: 40 / 60, 60: 0.8, 70: 0.8, 80: 0.8}
    for tick in range(0, 90, 10):
        if tick:
            item.add(8, 1, tick * S)
        if tick in expected:
            assert shown(item, tick * S + 1).tps == pytest.approx(expected[tick])


def test_growth_before_the_first_tick_counts_in_full() -> None:
    item = StatsItem(0, 3 * S)
    item.add(160, 8, 3 * S)
    assert shown(item, 9 * S) == shown(item, 9 * S, HOUR_MS)
    minute = shown(item, 11 * S)
    assert (minute.sum, minute.tps, minute.avgpt) == (160, 16.0, 20.0)
    assert shown(item, 11 * S, HOUR_MS).sum == 0


def test_a_sample_of_this_very_ms_can_count_or_not() -> None:
    item = StatsItem(0, 3 * S)
    item.add(160, 8, 3 * S)
    assert shown(item, 10 * S).sum == 0 and item.snapshot(MINUTE_MS, 10 * S).sum == 160


def test_a_counter_left_alone_for_a_day_is_empty_again() -> None:
    item = StatsItem(0, 1 * S)
    item.add(5, 1, 1 * S)
    later = 100 * 3_600 * S
    assert [shown(item, later, period_ms).sum for period_ms in KEPT] == [0, 0, 0]
    assert item.value == 5


def test_sampling_late_gives_what_sampling_in_time_gives() -> None:
    early, late = StatsItem(0, 0), StatsItem(0, 0)
    for second in range(0, 7_200, 7):
        early.add(second % 5, 1, second * S)
        late.add(second % 5, 1, second * S)
        for period_ms in KEPT:
            shown(early, second * S, period_ms)
    for period_ms in KEPT:
        assert shown(early, 7_300 * S, period_ms) == shown(late, 7_300 * S, period_ms)


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


def counted_on_two_topics() -> BrokerStats:
    """Topic orders and topic goods, each read, sent back and delayed by groups orders and billing."""
    stats = BrokerStats(lambda: 0, "orders", is_system=lambda topic: False)
    for topic in ("orders", "goods"):
        stats.put(topic, 0, 1, 100)
        stats.add(TOPIC_PUT_LATENCY, f"0@{topic}", 1)
        for group in ("orders", "billing"):
            stats.got(group, topic, 1, 100)
            stats.add(GROUP_GET_LATENCY, f"0@{topic}@{group}", 1)
            stats.delivered_late(f"{topic}@0@{group}", 1, 100)
            stats.sent_back(group, topic, "SCHEDULE_TOPIC_XXXX", 2, 100)
    return stats


OF_GROUPS = (
    (GROUP_GET_NUMS, "{t}@{g}"),
    (GROUP_GET_SIZE, "{t}@{g}"),
    (GROUP_GET_LATENCY, "0@{t}@{g}"),
    (QUEUE_GET_NUMS, "{t}@0@{g}"),
    (QUEUE_GET_SIZE, "{t}@0@{g}"),
    (SNDBCK_PUT_NUMS, "{t}@{g}"),
)
OF_TOPICS = ((TOPIC_PUT_NUMS, "{t}"), (TOPIC_PUT_SIZE, "{t}"), (QUEUE_PUT_NUMS, "{t}@0"), (TOPIC_PUT_LATENCY, "0@{t}"))


def test_a_deleted_topic_leaves_a_group_of_the_same_name_its_counters_on_other_topics() -> None:
    stats = counted_on_two_topics()
    stats.remove_topic("orders")
    for name, key in OF_GROUPS:
        assert [stats.total(name, key.format(t="orders", g=group)) for group in ("orders", "billing")] == [0, 0], name
        assert all(stats.total(name, key.format(t="goods", g=group)) for group in ("orders", "billing")), name
    for name, key in OF_TOPICS:
        assert (stats.total(name, key.format(t="orders")), stats.total(name, key.format(t="goods")) > 0) == (0, True)
    assert stats.total(BROKER_PUT_NUMS, "orders") == 2  # of the cluster with that name


def test_a_deleted_groups_counters_go_with_it() -> None:
    stats = counted_on_two_topics()
    stats.remove_group("orders")
    for name, key in OF_GROUPS:
        for topic in ("orders", "goods"):
            assert stats.total(name, key.format(t=topic, g="orders")) == 0, name
            assert stats.total(name, key.format(t=topic, g="billing")) > 0, name
    assert all(stats.total(name, key.format(t="orders")) for name, key in OF_TOPICS)


def puts(world: World, *topics: str) -> list[int]:
    """Messages counted on each topic, then on the broker, then without its own topics, then of the day."""
    stats, cluster = world.broker.stats, world.broker.config.broker_cluster_name
    of_broker = [stats.total(name, cluster) for name in (BROKER_PUT_NUMS, BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC)]
    return [*(stats.total(TOPIC_PUT_NUMS, topic) for topic in topics), *of_broker, stats.puts_of_day.now]


def test_a_delayed_message_counts_where_it_waits_and_then_where_it_arrives(world: World, client: BareClient) -> None:
    client.put("orders", DELAY="1")
    assert puts(world, "orders", SCHEDULE_TOPIC) == [0, 1, 1, 0, 0]
    world.run_for(1_500)
    assert puts(world, "orders", SCHEDULE_TOPIC) == [1, 1, 2, 1, 1]
    assert world.broker.stats.total(QUEUE_PUT_NUMS, f"{SCHEDULE_TOPIC}@0") == 1
    assert world.broker.stats.total(GROUP_GET_NUMS, f"{SCHEDULE_TOPIC}@SCHEDULE_CONSUMER") == 1
    assert world.broker.stats.total(TOPIC_PUT_LATENCY, f"0@{SCHEDULE_TOPIC}") == 0
    assert world.broker.stats.snapshots(TOPIC_PUT_LATENCY, "0@orders") is None


def test_a_transaction_counts_as_half_op_and_real_message(world: World, client: BareClient) -> None:
    halves = [client.put("payments", TRAN_MSG="true", PGROUP="pay", UNIQ_KEY=key) for key in ("A", "B")]
    assert puts(world, "payments", HALF_TOPIC) == [0, 2, 2, 0, 0]
    offset = int(halves[0].ext_fields["msgId"][16:], 16)
    ends = {"producerGroup": "pay", "tranStateTableOffset": 0, "commitLogOffset": offset, "commitOrRollback": 8}
    assert client.ask(37, **ends, fromTransactionCheck=False, msgId="A", topic="payments").code == 0
    assert puts(world, "payments", HALF_TOPIC, OP_HALF_TOPIC) == [1, 2, 0, 3, 1, 1]
    world.run_for(32_000)  # the op message is written; a check reads all three and stores the open half again
    assert puts(world, "payments", HALF_TOPIC, OP_HALF_TOPIC) == [1, 3, 1, 5, 1, 1]
    assert world.broker.stats.total(GROUP_GET_NUMS, f"{OP_HALF_TOPIC}@CID_RMQ_SYS_TRANS") == 1
    assert world.broker.stats.total(GROUP_GET_NUMS, f"{HALF_TOPIC}@CID_RMQ_SYS_TRANS") >= 1


def test_a_message_given_back_counts_in_the_schedule_topic_and_for_the_broker_when_it_comes_again(
    world: World, client: BareClient
) -> None:
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders"))
    before = puts(world)
    assert client.ask(36, offset=0, group="billing", delayLevel=1, maxReconsumeTimes=16).code == 0
    assert puts(world, SCHEDULE_TOPIC) == [1, *before]
    assert world.broker.stats.total(QUEUE_PUT_NUMS, f"{SCHEDULE_TOPIC}@0") == 1
    assert world.broker.stats.total(SNDBCK_PUT_NUMS, "orders@billing") == 1
    world.run_for(1_500)
    assert puts(world, "%RETRY%billing") == [1, *(count + 1 for count in before)]


def test_a_group_deleted_by_request_takes_its_counters_along(world: World, client: BareClient) -> None:
    world.broker.stats.got("billing", "orders", 1, 100)
    client.ask(207, groupName="billing")
    assert client.ask(315, statsName=GROUP_GET_NUMS, statsKey="orders@billing").code == 1


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

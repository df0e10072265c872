"""Counters in the client and in the broker, what a consumer tells about itself, how busy a store is.

Mirrors: StatsItem, ConsumerStatsManager, BrokerStatsManager, StoreStatsService, ConsumerRunningInfo.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, Lab, Message
from mqlab.errors import BrokerError
from mqlab.rocketmq.stats_item import MINUTE_MS, StatsItem
from tests.lab.scenarios.stories import Seen, Tool, member, quiet_lab, send, send_many

S = 1_000


def one_queue(**settings: Any) -> Lab:
    lab = quiet_lab(seed=41, **settings)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    return lab


def windows(lab: Lab, name: str, key: str) -> dict[str, tuple[int, float, float]]:
    """A broker's counter: window -> sum, tps, avgpt."""
    found = lab.admin.view_broker_stats_data("broker-a", name, key)
    return {each.window: (each.sum, each.tps, each.avgpt) for each in found.windows}


@pytest.mark.parametrize(("t", "tps"), [(0, 0), (10, 0.4), (20, 0.533), (50, 0.667), (60, 0.8), (120, 0.8)])
def test_the_same_vector_in_client_and_broker(t: int, tps: float) -> None:
    """Counter = 8k at the tick t = 10k s, over the minute's list of 7 points."""
    of_client, of_broker = StatsItem(0, 0), StatsItem(0, 0)
    assert of_broker.snapshot(MINUTE_MS, 0, with_now=False).tps == 0  # made before the first tick
    for k in range(t // 10):
        of_client.add(8, 1, k * 10 * S + 1)
        of_broker.add(8, 1, k * 10 * S + 1)
    assert round(of_client.snapshot(MINUTE_MS, t * S).tps, 3) == tps
    assert round(of_broker.snapshot(MINUTE_MS, t * S + 1, with_now=False).tps, 3) == tps


def test_a_young_counter_shows_its_minute_only_and_avgpt_is_messages_an_answer() -> None:
    lab = one_queue()
    send_many(lab.producer("shop"), 160, queue=0)
    lab.run_for("1s")
    member(lab, "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=20)
    lab.run_for("15s")
    found = windows(lab, "GROUP_GET_NUMS", "orders@billing")
    assert found["statsMinute"][0] == 160 and found["statsMinute"][2] == 20.0
    assert found["statsHour"][:2] == found["statsDay"][:2] == (0, 0.0)
    lab.run_for("11m")
    assert windows(lab, "GROUP_GET_NUMS", "orders@billing")["statsHour"][0] == 160


def test_eighty_messages_over_a_window_of_twenty_seconds() -> None:
    lab = one_queue()
    consumer = member(lab, "billing", Seen(lab, takes="5ms"))
    lab.run_for("31s")
    send(lab.producer("shop"), *["заказ"] * 80)
    lab.run_for("20s")
    (status,) = [each for each in lab.admin.consumer_status("billing") if each.topic == "orders"]
    assert status.client_id == consumer.client_id
    assert (status.pull_tps, status.consume_ok_tps, status.consume_failed_tps) == (4.0, 4.0, 0.0)  # 80 in 20 s
    assert status.consume_rt == 5.0 and status.pull_rt > 0 and status.consume_failed_msgs == 0


def test_failures_are_counted_under_the_topic_of_the_queue_they_came_from() -> None:
    lab = one_queue()
    member(lab, "billing", Seen(lab, RECONSUME_LATER), max_reconsume_times=2)
    lab.run_for("11s")
    send(lab.producer("shop"), *["x"] * 6)
    lab.run_for("12m")
    found = {each.topic: each for each in lab.admin.consumer_status("billing")}
    assert found["orders"].consume_failed_msgs == 6  # the hour's sum
    assert found["%RETRY%billing"].consume_failed_msgs == 12
    assert found["orders"].consume_failed_tps == 0.0  # the minute's rate


def test_lite_consumers_count_nothing() -> None:
    lab = one_queue()
    send(lab.producer("shop"), *["x"] * 6)
    lite = lab.lite_pull_consumer("audit")
    lite.subscribe("orders")
    lite.start()
    assert len(lite.poll()) == 6
    assert lite.client.statistics.consume_status("audit", "orders").pull_tps == 0


def test_what_a_consumer_tells_about_itself() -> None:
    lab = one_queue()
    consumer = member(lab, "billing", Seen(lab, takes="2m"), consume_thread_min=4, consume_thread_max=4)
    lab.run_for("10s")
    send(lab.producer("shop"), *["订单"] * 10)
    lab.run_for("5s")
    info = lab.admin.get_consumer_running_info("billing", consumer.client_id)
    assert {
        "PROP_NAMESERVER_ADDR",
        "PROP_CONSUME_TYPE",
        "PROP_CLIENT_VERSION",
        "PROP_CONSUMER_START_TIMESTAMP",
        "PROP_CONSUMEORDERLY",
        "PROP_THREADPOOL_CORE_SIZE",
        "consumeThreadMin",
    } <= set(info.properties)
    assert info.properties["PROP_THREADPOOL_CORE_SIZE"] == "4" and info.properties["PROP_CONSUMEORDERLY"] == "false"
    assert {each.topic for each in info.subscriptions} == {"orders", "%RETRY%billing"}
    queue = next(each for each in info.queues if each.message_queue.topic == "orders")
    assert (queue.cached_count, queue.cached_min_offset, queue.cached_max_offset) == (10, 0, 9)
    assert queue.locked and not queue.dropped  # concurrent queues say so, too
    with pytest.raises(BrokerError, match=r"not online|not exist"):
        lab.admin.get_consumer_running_info("billing", "nobody")


def test_blocked_threads_other_subscriptions_and_queues_without_a_lock() -> None:
    lab = one_queue()
    consumer = member(lab, "billing", Seen(lab, takes="1h"), consume_thread_min=1, consume_thread_max=1)
    lab.run_for("10s")
    send(lab.producer("shop"), *["x"] * 3)
    lab.run_for("30s")
    assert len(lab.admin.consumer_problems("billing")) == 0
    lab.run_for("1m")
    (blocked,) = lab.admin.consumer_problems("billing")
    assert blocked.client_id == consumer.client_id and "orders" in str(blocked.message_queue)
    assert blocked.problem.startswith("can't consume for a while, maybe blocked, ") and blocked.problem.endswith("ms")
    member(lab, "billing", name="billing-2", tags="paid")
    lab.run_for("1m")
    differ = [each.problem for each in lab.admin.consumer_problems("billing") if each.message_queue is None]
    assert differ == [f"subscriptions differ from {consumer.client_id}'s: orders paid"]


def test_an_orderly_member_that_cannot_lock() -> None:
    lab = one_queue()
    consumer = member(lab, "billing", Seen(lab, SUCCESS), orderly=True)
    lab.run_for("30s")
    assert len(lab.admin.consumer_problems("billing")) == 0
    for held in consumer.process_queues.values():
        held.locked = False
    problems = [each.problem for each in lab.admin.consumer_problems("billing")]
    assert problems and all(each.startswith("can't lock for a while, ") for each in problems)


def test_offsets_in_the_members_memory() -> None:
    lab = one_queue()
    consumer = member(lab, "billing")
    lab.run_for("3s")
    send(lab.producer("shop"), *["x"] * 7)
    lab.run_for("2s")
    (row,) = lab.admin.get_consume_status("orders", "billing")
    assert (row.client_id, row.message_queue.queue_id, row.commit_offset) == (consumer.client_id, 0, 7)
    assert lab.broker().offset_table.query("billing", "orders", 0) < 7  # memory is ahead of the table
    consumer.shutdown()
    assert Tool(lab).ask(223, topic="orders", group="billing", clientAddr="").code == 1


def test_counters_of_topics_queues_groups_and_send_backs() -> None:
    lab = one_queue()
    member(lab, "billing", Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS), max_reconsume_times=3)
    lab.run_for("9s")
    send(lab.producer("shop"), *["x"] * 5)
    lab.run_for("11s")
    assert windows(lab, "TOPIC_PUT_NUMS", "orders")["statsMinute"][0] == 5
    assert windows(lab, "QUEUE_PUT_NUMS", "orders@0")["statsMinute"][0] == 5
    assert windows(lab, "GROUP_GET_NUMS", "orders@billing")["statsMinute"][0] == 5
    assert windows(lab, "SNDBCK_PUT_NUMS", "orders@billing")["statsMinute"][0] == 1
    assert windows(lab, "BROKER_PUT_NUMS", "DefaultCluster")["statsMinute"][0] >= 5
    assert windows(lab, "TOPIC_PUT_SIZE", "orders")["statsMinute"][0] > 500
    with pytest.raises(BrokerError, match="The stats <QUEUE_GET_NUMS> <orders@0@billing> not exist"):
        lab.admin.view_broker_stats_data("broker-a", "QUEUE_GET_NUMS", "orders@0@billing")  # pulls do not count there


def test_counters_are_lost_at_a_restart_and_with_their_topic() -> None:
    lab = one_queue()
    producer = lab.producer("shop")
    send(producer, "x")
    lab.kill("broker-a")
    lab.start("broker-a")
    lab.run_for("15s")
    with pytest.raises(BrokerError, match="The stats <TOPIC_PUT_NUMS> <orders> not exist"):
        lab.admin.view_broker_stats_data("broker-a", "TOPIC_PUT_NUMS", "orders")
    send(producer, "x")
    assert windows(lab, "TOPIC_PUT_NUMS", "orders")["statsMinute"][0] in (0, 1)
    lab.admin.delete_topic("orders")
    with pytest.raises(BrokerError, match="not exist"):
        lab.admin.view_broker_stats_data("broker-a", "TOPIC_PUT_NUMS", "orders")


def test_the_tools_columns() -> None:
    lab = one_queue()
    lab.create_topic("unread")
    consumer = member(lab, "billing")
    producer = lab.producer("shop")
    traffic = lab.traffic(producer, rates=[("0s", 10)], message=lambda i: Message("orders", b"x"))
    send(producer, "x", topic="unread")
    lab.run_for("70s")
    rows = {(each.topic, each.group): each for each in lab.admin.stats_all()}
    orders = rows["orders", "billing"]
    assert orders.in_tps == pytest.approx(10, rel=0.05) and orders.out_tps == pytest.approx(10, rel=0.05)
    assert orders.in_24_hours == orders.out_24_hours == 600  # no hour or day yet: the minute's sum
    assert rows["unread", None].accumulation is None
    cluster = lab.admin.cluster_list()[0]
    assert cluster.in_tps == pytest.approx(10, rel=0.05) and cluster.out_tps == pytest.approx(10, rel=0.05)
    lab.kill(consumer)
    traffic.stop()
    lab.run_for("5s")
    sent = traffic.sent + 0
    send(producer, *["late"] * 4)
    lab.run_for("1s")
    assert {each.topic: each.lag for each in lab.admin.consumer_progress()}["orders"] >= 4
    assert lab.broker().store.max_offset("orders", 0) == sent + 4


def told(lab: Lab) -> dict[str, str]:
    return {each.name: each.value for each in lab.admin.fetch_broker_runtime_stats("broker-a")}


def test_a_rate_whose_window_is_not_full_is_left_out() -> None:
    lab = one_queue()
    assert (told(lab)["putTps"], told(lab)["getTotalTps"]) == ("  ", "0.0 0.0 0.0")
    assert told(lab)["putMessageTimesTotal"] == "1"  # a store without a put says it made one
    lab.run_for("20s")
    send(lab.producer("shop"), *["x"] * 8)
    lab.run_for("45s")
    rates = told(lab)["putTps"]
    assert rates == f"0.0 {8 / 60} " and len(rates.split()) == 2
    assert told(lab)["putMessageTimesTotal"] == "8"
    lab.run_for("540s")
    assert told(lab)["putTps"] == f"0.0 0.0 {8 / 600}"


def test_gets_that_find_nothing_and_messages_handed_out() -> None:
    lab = one_queue()
    member(lab, "billing")
    lab.run_for("50s")
    assert float(told(lab)["getMissTps"].split()[0]) >= 0 and told(lab)["getFoundTps"].split()[0] == "0.0"
    send(lab.producer("shop"), *["x"] * 30)
    lab.run_for("8s")
    found = told(lab)
    assert found["getTransferredTps"].split()[0] == str(30 / 10)
    assert float(found["getTotalTps"].split()[0]) > float(found["getFoundTps"].split()[0]) > 0
    assert found["dispatchBehindBytes"] == "0" and int(found["commitLogMaxOffset"]) > 0


def test_todays_messages_count_from_midnight() -> None:
    lab = one_queue()
    producer = lab.producer("shop")
    send(producer, *["x"] * 3)
    lab.run_for("24h")
    send(producer, *["x"] * 2)
    found = told(lab)
    assert (found["msgPutTotalTodayNow"], found["msgPutTotalTodayMorning"], found["msgPutTotalYesterdayMorning"]) == (
        "5",
        "3",
        "0",
    )
    assert lab.admin.cluster_list()[0].messages_in == 2


def test_how_long_puts_took_is_told_a_minute_later() -> None:
    lab = Lab(seed=7, broker={"flush_disk_type": "SYNC_FLUSH"})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop", send_msg_timeout="20s", enable_trace=False)
    assert (told(lab)["putMessageDistributeTime"], told(lab)["putLatency99"]) == ("null", "0.00")
    send(producer, *["x"] * 8)
    lab.slow_disk("broker-a", "2500ms")
    send(producer, "долго")
    lab.run_for("10s")
    waited = lab.admin.view_broker_stats_data("broker-a", "TOPIC_PUT_LATENCY", "0@orders").windows[0]
    assert 2_450 <= waited.sum <= 2_500 and waited.avgpt == waited.sum / 9
    lab.run_for("50s")
    found = told(lab)
    classes = dict(each.rsplit(":", 1) for each in found["putMessageDistributeTime"].split())
    assert {name: count for name, count in classes.items() if count != "0"} == {"[<=0ms]": "8", "[2~3s]": "1"}
    assert 2_450 <= int(found["putMessageEntireTimeMax"]) <= 2_500
    assert float(found["putLatency99"]) == 1.0  # of 9 puts the first 8
    assert told(lab)["getMessageEntireTimeMax"] == "0"
    lab.run_for("60s")
    assert "[2~3s]:0 " in told(lab)["putMessageDistributeTime"]
    assert 2_450 <= int(told(lab)["putMessageEntireTimeMax"]) <= 2_500

"""Each anomaly by its name, from a story that produces it; and stories in which nothing is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT, Lab, Message
from mqlab.errors import UsageError
from mqlab.lab.views import verify
from tests.lab.scenarios.stories import quiet_lab


def told(lab: Lab, kind: str) -> list[str]:
    return [anomaly.msg_id for anomaly in lab.verify("billing").of(kind)]


def orders(lab: Lab, count: int, **message: Any) -> list[str]:
    """So many orders in one queue; their ids."""
    producer = lab.handles.get("shop-1") or lab.producer("shop")
    return [producer.send(Message("orders", f"заказ 订单 {i} 💳".encode(), **message)).msg_id for i in range(count)]


def billing(lab: Lab, listener: Any = None, *, name: str = "billing-1", tags: str = "*", **settings: Any) -> Any:
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", tags)
    consumer.on_messages(listener or (lambda _, __: CONSUME_SUCCESS))
    consumer.start()
    return consumer


def one_queue(**settings: Any) -> Lab:
    lab = quiet_lab(seed=11, **settings)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    return lab


def test_a_run_in_which_nothing_is_wrong() -> None:
    lab = one_queue()
    billing(lab)
    orders(lab, 30)
    lab.run_for("30s")
    verdict = lab.verify("billing")
    assert verdict.is_clean and verdict.messages == 30 and verdict.first is None
    assert str(verdict) == "billing: 30 messages: nothing is wrong"
    assert "nothing is wrong" in verdict.html()


def test_what_the_subscription_leaves_out_is_no_anomaly() -> None:
    lab = one_queue()
    billing(lab, tags="paid")
    orders(lab, 3, tags="new")
    orders(lab, 3, tags="paid")
    orders(lab, 2)
    lab.run_for("30s")
    assert lab.verify("billing").is_clean


def test_redelivered_and_duplicated_when_killed_before_committing() -> None:
    lab = one_queue()
    billing(lab)
    ids = orders(lab, 5)
    lab.run_for("3s")  # consumed, not yet committed
    lab.kill("billing-1")
    lab.start("billing-1")
    lab.run_for("30s")
    verdict = lab.verify("billing")
    assert [each.msg_id for each in verdict.of("DUPLICATED")] == ids
    first = verdict.first
    assert first is not None and first.kind == "DUPLICATED" and "finished 2 times, by billing-1" in first.why
    told_steps = [row.what for row in first.steps()]
    assert [step.split()[0] for step in told_steps].count("listener.started") == 2
    assert "fault.killed" in told_steps, "why it was given again"
    assert "message.pulled orders broker-a 0 0 to 4" in told_steps


def test_what_led_to_an_anomaly_is_told_without_other_messages() -> None:
    lab = one_queue()
    one_thread: dict[str, Any] = {"consume_thread_min": 1, "consume_thread_max": 1}
    billing(lab, lambda _, context: (context.sleep("1s"), CONSUME_SUCCESS)[1], **one_thread)
    orders(lab, 3)
    lab.run_for("6s")
    lab.kill("billing-1")
    lab.start("billing-1")
    lab.run_for("30s")
    second = next(each for each in lab.verify("billing").of("DUPLICATED") if each.queue_offset == 1)
    told_steps = [row.what for row in second.steps() if row.what.startswith(("listener", "fault"))]
    once = ["listener.started orders broker-a 0", "listener.returned orders broker-a 0 CONSUME_SUCCESS"]
    assert told_steps == [*once, "fault.killed", *once]


def test_redelivered_after_a_failure_and_out_of_order_with_it() -> None:
    lab = one_queue()
    tries: list[str] = []

    def listener(messages: Any, context: Any) -> Any:
        tries.append(messages[0].msg_id)
        first_try = tries.count(messages[0].msg_id) == 1
        return RECONSUME_LATER if messages[0].queue_offset == 1 and first_try else CONSUME_SUCCESS

    billing(lab, listener)
    ids = orders(lab, 4)
    lab.run_for("30s")
    verdict = lab.verify("billing")
    assert verdict.counts() == {"REDELIVERED": 1, "OUT_OF_ORDER": 1}
    assert told(lab, "REDELIVERED") == told(lab, "OUT_OF_ORDER") == [ids[1]]
    assert "redelivered" in verdict.of("REDELIVERED")[0].why
    kinds = [row.what.split()[0] for row in verdict.of("REDELIVERED")[0].steps()]
    assert kinds[0] == "message.stored" and "message.sent_back" in kinds and "listener.started" in kinds[-3:]


def test_stuck_in_a_listener() -> None:
    lab = one_queue()
    billing(lab, lambda messages, context: context.sleep("1h") if messages[0].queue_offset == 2 else CONSUME_SUCCESS)
    ids = orders(lab, 6)
    lab.run_for("2m")
    verdict = lab.verify("billing")
    assert verdict.counts() == {"STUCK": 1}
    assert told(lab, "STUCK") == [ids[2]]
    assert "listener" in verdict.of("STUCK")[0].why
    assert not lab.verify("billing", stuck_after="5m").of("STUCK")


def test_stuck_because_nobody_reads_the_queue() -> None:
    lab = quiet_lab(seed=12)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)

    class OnlyTheFirst:
        name = "FIRST"

        def allocate(self, group: str, client_id: str, queues: list[Any], client_ids: list[str]) -> list[Any]:
            return queues[:1]

    billing(lab, allocate_message_queue_strategy=OnlyTheFirst())
    ids = orders(lab, 4)
    lab.run_for("2m")
    assert len(told(lab, "STUCK")) == 2
    assert set(told(lab, "STUCK")) < set(ids)


def test_skipped_by_an_operator() -> None:
    lab = one_queue()
    billing(lab)
    orders(lab, 2)
    lab.run_for("20s")
    lab.kill("billing-1")
    late = orders(lab, 3)
    lab.admin.skip_accumulated_message("orders", "billing")
    lab.start("billing-1")
    lab.run_for("1m")
    verdict = lab.verify("billing")
    assert told(lab, "SKIPPED") == late
    assert "it had not been pulled" in verdict.of("SKIPPED")[0].why


def test_skipped_by_two_members_that_want_different_tags() -> None:
    lab = quiet_lab(seed=13)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    billing(lab, name="billing-1", tags="paid")
    billing(lab, name="billing-2", tags="new")
    lab.run_for("40s")
    paid, new = orders(lab, 10, tags="paid"), orders(lab, 10, tags="new")
    lab.run_for("1m")
    skipped = told(lab, "SKIPPED")
    delivered = {row.msg_id for row in lab.deliveries("billing") if row.status == CONSUME_SUCCESS}
    assert skipped and set(skipped) == {*paid, *new} - delivered


def test_lost_with_the_broker_that_lost_its_power() -> None:
    lab = one_queue()
    safe = orders(lab, 2)
    lab.run_for("11s")  # the log is flushed thoroughly every 10 s
    lost = orders(lab, 2)  # acknowledged, in memory only
    lab.power_off("broker-a")
    lab.start("broker-a")
    lab.run_for("1m")
    orders(lab, 3)
    billing(lab)
    lab.run_for("1m")
    verdict = lab.verify("billing")
    assert told(lab, "LOST") == lost
    assert not set(told(lab, "LOST")) & set(safe)
    assert "SEND_OK" in verdict.of("LOST")[0].why


def test_broadcasting_gives_everything_to_everybody() -> None:
    lab = one_queue()
    for name in ("billing-1", "billing-2"):
        billing(lab, name=name, message_model="BROADCASTING")
    lab.run_for("5s")
    orders(lab, 4)
    lab.run_for("20s")
    assert lab.verify("billing").is_clean and verify(lab.journal, "billing").is_clean  # the heartbeats say so
    assert len(verify(lab.journal, "billing", broadcasting=False).of("DUPLICATED")) == 4


def test_broadcasting_loses_what_one_member_fails_at_and_skips_nothing() -> None:
    lab = one_queue()
    billing(lab, name="billing-1", message_model="BROADCASTING")

    def fails_at_two(messages: Any, context: Any) -> Any:
        return RECONSUME_LATER if messages[0].queue_offset == 2 else CONSUME_SUCCESS

    billing(lab, fails_at_two, name="billing-2", message_model="BROADCASTING")
    lab.run_for("5s")
    ids = orders(lab, 4)
    lab.run_for("20s")
    verdict = lab.verify("billing")
    assert verdict.counts() == {"LOST": 1}  # nothing is retried when broadcasting
    assert told(lab, "LOST") == [ids[2]]
    assert "billing-2 ended it with RECONSUME_LATER, billing-2's offset" in verdict.of("LOST")[0].why


def test_a_lost_retry() -> None:
    lab = one_queue()
    billing(lab, lambda messages, context: RECONSUME_LATER)
    ids = orders(lab, 1)
    lab.run_for("11s")  # sent back, and the queue's offset committed
    lab.kill("billing-1")
    lab.run_for("1m")
    assert lab.verify("billing").counts() == {}  # its copy waits in the retry topic
    lab.admin.skip_accumulated_message("%RETRY%billing", "billing")
    lab.start("billing-1")
    lab.run_for("1m")
    verdict = lab.verify("billing")
    assert told(lab, "LOST") == ids and "retry topic went past it" in verdict.of("LOST")[0].why


def test_dead_letters_are_counted_and_resent_ones_are_well() -> None:
    lab = one_queue()
    heals: list[bool] = []
    billing(lab, lambda messages, context: CONSUME_SUCCESS if heals else RECONSUME_LATER, max_reconsume_times=1)
    ids = orders(lab, 2)
    lab.run_for("2m")
    verdict = lab.verify("billing")
    assert (verdict.counts(), verdict.dead) == ({"REDELIVERED": 2}, 2) and "2 dead" in str(verdict)
    heals.append(True)
    lab.admin.resend_dlq("billing", ids[0])
    lab.run_for("1m")
    assert lab.verify("billing").counts() == {"REDELIVERED": 2}
    assert {row.status for row in lab.deliveries("billing") if row.msg_id == ids[0]} >= {CONSUME_SUCCESS}


@pytest.mark.parametrize("fails", [False, True])
def test_an_orderly_group_is_given_again_but_never_out_of_order(fails: bool) -> None:
    lab = one_queue()
    tries: list[int] = []
    consumer = lab.push_consumer("billing", suspend_current_queue_time_millis=1_000)
    consumer.subscribe("orders", "*")

    def listener(messages: Any, context: Any) -> str:
        tries.append(messages[0].queue_offset)
        first_try = tries.count(1) == 1 and messages[0].queue_offset == 1
        return SUSPEND_CURRENT_QUEUE_A_MOMENT if fails and first_try else SUCCESS

    consumer.on_messages_orderly(listener)
    consumer.start()
    orders(lab, 6)
    lab.run_for("30s")
    assert lab.verify("billing").counts() == ({"REDELIVERED": 1} if fails else {})
    assert tries == ([0, 1, 1, 2, 3, 4, 5] if fails else [0, 1, 2, 3, 4, 5])


def test_threads_of_one_member_finish_out_of_order_when_one_is_slow() -> None:
    lab = one_queue()

    def listener(messages: Any, context: Any) -> str:
        context.sleep("1s" if messages[0].queue_offset == 0 else "1ms")
        return CONSUME_SUCCESS

    billing(lab, listener)
    ids = orders(lab, 3)
    lab.run_for("30s")
    assert lab.verify("billing").counts() == {"OUT_OF_ORDER": 1}
    assert told(lab, "OUT_OF_ORDER") == ids[:1]


def test_sql_filters_are_evaluated() -> None:
    lab = one_queue(broker={"enable_property_filter": True})
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", sql="amount > 10")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    orders(lab, 3, properties={"amount": "5"})
    orders(lab, 2, properties={"amount": "50"})
    lab.run_for("30s")
    assert lab.verify("billing").is_clean and len(lab.deliveries("billing", absences=False)) == 2


def test_two_members_with_different_sql_skip_what_one_of_them_wants() -> None:
    lab = quiet_lab(seed=13, broker={"enable_property_filter": True})
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    for name, expression in (("billing-1", "amount > 10"), ("billing-2", "amount <= 10")):
        consumer = lab.push_consumer("billing", name=name)
        consumer.subscribe("orders", sql=expression)
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
    lab.run_for("40s")
    small, large = orders(lab, 6, properties={"amount": "5"}), orders(lab, 6, properties={"amount": "50"})
    lab.run_for("1m")
    delivered = {row.msg_id for row in lab.deliveries("billing") if row.status == CONSUME_SUCCESS}
    assert told(lab, "SKIPPED") and set(told(lab, "SKIPPED")) == {*small, *large} - delivered


@pytest.mark.parametrize("tags", ["paid", "new"])
def test_messages_of_a_batch_have_their_own_ids_and_tags(tags: str) -> None:
    lab = one_queue()
    billing(lab, tags=tags)
    producer = lab.producer("shop")
    producer.send_batch([Message("orders", "订单".encode(), tags="paid") for _ in range(4)])
    lab.run_for("20s")
    verdict = lab.verify("billing")
    assert verdict.is_clean and verdict.messages == 4
    assert len(lab.deliveries("billing", absences=False)) == (4 if tags == "paid" else 0)


def test_one_of_a_batch_that_fails_is_the_one_that_is_redelivered_or_dead() -> None:
    lab = one_queue(client={"enable_trace": False})

    def listener(messages: Any, context: Any) -> str:
        (message,) = messages
        fails = message.keys == "order-3" or (message.keys == "order-1" and not message.reconsume_times)
        return RECONSUME_LATER if fails else CONSUME_SUCCESS

    billing(lab, listener, max_reconsume_times=1)
    lab.producer("shop").send_batch([Message("orders", "订单".encode(), keys=f"order-{n}") for n in range(5)])
    lab.run_for("40s")
    verdict = lab.verify("billing")
    assert verdict.messages == 5 and verdict.dead == 1
    assert [(each.kind, each.queue_offset) for each in verdict.of("REDELIVERED")] == [
        ("REDELIVERED", 1),
        ("REDELIVERED", 3),
    ]
    assert "DUPLICATED" not in verdict.counts() and "LOST" not in verdict.counts()


def test_a_bounded_journal_is_judged_from_where_it_begins_and_says_so() -> None:
    lab = one_queue(journal_limit=400)
    tries: list[str] = []

    def listener(messages: Any, context: Any) -> Any:
        tries.append(messages[0].msg_id)
        return RECONSUME_LATER if messages[0].tags == "bad" and tries.count(tries[-1]) == 1 else CONSUME_SUCCESS

    billing(lab, listener)
    orders(lab, 100)
    lab.run_for("1m")
    early = lab.verify("billing")
    assert lab.journal.dropped and early.dropped == lab.journal.dropped and early.messages < 100
    assert f"the first {early.dropped} steps were dropped" in str(early)
    assert early.is_clean
    bad = orders(lab, 1, tags="bad")
    orders(lab, 3)
    lab.run_for("30s")
    assert told(lab, "REDELIVERED") == bad
    assert told(lab, "OUT_OF_ORDER") == bad
    alone = verify(lab.journal, "billing")  # a journal without its Lab: what was subscribed is seen from the pulls
    assert alone.counts() == {"REDELIVERED": 1, "OUT_OF_ORDER": 1}


def test_what_a_producer_stored_more_than_once_is_duplicated() -> None:
    lab = one_queue(broker={"broker_role": "SYNC_MASTER", "in_sync_replicas": 2}, client={"enable_trace": False})
    billing(lab)
    lab.producer("shop", send_msg_timeout="9s", retry_another_broker_when_not_store_ok=True)
    (order,) = orders(lab, 1)  # stored, no second copy in 3 s: sent again, stored again …
    lab.run_for("30s")
    verdict = lab.verify("billing")
    assert [row.status for row in lab.deliveries("billing")] == [CONSUME_SUCCESS] * 3
    assert verdict.counts() == {"DUPLICATED": 2} and told(lab, "DUPLICATED") == [order] * 2
    assert verdict.first is not None and "stored it 3 times, under one unique id" in verdict.first.why
    assert "FLUSH_SLAVE_TIMEOUT" in verdict.first.steps().text() and "None" not in verdict.first.steps().text()
    assert "None" not in lab.timeline(order).text() and "not sent: " in lab.timeline(order).text()


def test_a_program_that_polls_gets_some_again_when_it_dies_before_its_commit() -> None:
    lab = one_queue(client={"enable_trace": False})
    ids = orders(lab, 12)
    lite = lab.lite_pull_consumer(
        "billing", pull_batch_size=4, auto_commit=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    lite.subscribe("orders", "*")
    lite.start()
    lab.run_for("3s")
    assert [message.msg_id for message in lite.poll() + lite.poll()] == ids[:8]
    lite.commit_sync()
    lab.run_for("12s")  # offsets leave every 5 s, the first time after 10 s
    assert [message.msg_id for message in lite.poll()] == ids[8:] and lab.verify("billing").is_clean
    lab.kill(lite)
    lab.start(lite)
    lab.run_for("3s")
    assert [message.msg_id for message in lite.poll()] == ids[8:]
    verdict = lab.verify("billing")
    assert verdict.counts() == {"DUPLICATED": 4} and told(lab, "DUPLICATED") == ids[8:]
    assert verdict.first is not None and "taken 2 times by a program that pulls" in verdict.first.why
    steps = [row.what for row in verdict.first.steps()]
    assert [step.split()[0] for step in steps if step.startswith("message.po")] == ["message.polled"] * 2
    assert [row.status for row in lab.deliveries("billing")] == ["POLLED"] * 16


def test_a_program_that_reads_assigned_queues_is_judged_on_those() -> None:
    lab = quiet_lab(seed=11)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    ids = orders(lab, 6)
    queue = min(message.message_queue for message in lab.admin.query_message_by_time("orders"))
    lite = lab.lite_pull_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lite.assign([queue])
    lite.start()
    mine = [message.msg_id for message in lite.poll()]
    assert len(mine) == 3
    lab.run_for("5m")
    verdict = lab.verify("billing")
    assert verdict.is_clean and verdict.messages == 3
    lab.kill(lite)
    lab.start(lite)
    lab.run_for("90s")
    late = [each for each in orders(lab, 2) if each not in ids]
    lab.run_for("90s")
    stuck = lab.verify("billing").of("STUCK")
    assert lab.verify("billing").messages == 4 and [each.msg_id for each in stuck] <= late


def test_a_program_that_pulls_by_hand_and_skips_some() -> None:
    lab = one_queue()
    ids = orders(lab, 4, tags="paid") + orders(lab, 2, tags="new") + orders(lab, 2, tags="paid")
    puller = lab.pull_consumer("billing")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    assert lab.verify("billing").messages == 0
    first, second = puller.pull(queue, "paid", 2, max_nums=2), puller.pull(queue, "paid", 4, max_nums=1)
    assert [message.msg_id for result in (first, second) for message in result.msg_found_list] == [*ids[2:4], ids[6]]
    puller.update_consume_offset_to_broker(queue, 7)
    lab.run_for("2m")
    assert told(lab, "SKIPPED") == ids[:2], "committed past, never pulled; what the tag left out is none"
    assert told(lab, "STUCK") == ids[7:], "its program is online and does not ask for them"
    puller.pull(queue, "*", 0, max_nums=32)
    assert told(lab, "DUPLICATED") == [*ids[2:4], ids[6]] and told(lab, "SKIPPED") == told(lab, "STUCK") == []


def test_what_was_stored_before_the_journal_is_counted_and_not_judged(tmp_path: Path) -> None:
    with Lab(seed=3, directory=tmp_path / "run") as lab:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        old = orders(lab, 4)
        lab.run_for("1s")
    again = Lab(stores={"broker-a": tmp_path / "run" / "broker-a"})
    billing(again, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    new = orders(again, 2)
    again.run_for("10s")
    verdict = again.verify("billing")
    assert [row.msg_id for row in again.deliveries("billing")] == old + new
    assert verdict.messages == 2 and verdict.is_clean
    assert "not judged: 4 deliveries of messages stored before the journal begins" in str(verdict)
    again.kill("billing-1")
    assert "no message 'nope' in these steps" in str(again.timeline("nope"))


def test_text_html_and_wrong_questions() -> None:
    lab = one_queue()
    billing(lab, lambda messages, context: context.sleep("1h"))
    orders(lab, 1)
    lab.run_for("2m")
    verdict = lab.verify("billing")
    assert "1 STUCK" in str(verdict) and "the first of them:" in str(verdict)
    assert "<table>" in verdict.html() and "<details>" in verdict.html()
    assert len(verdict.table().to_pandas()) == len(list(verdict)) == 1
    with pytest.raises(UsageError, match="LOST, SKIPPED"):
        verdict.of("GONE")

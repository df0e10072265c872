from __future__ import annotations

from itertools import pairwise

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play
from mqlab.lab.views.moments import moments, space_time
from mqlab.lab.views.queue import show_queue
from mqlab.lab.views.timeline import Timeline

KEYS = ("заказ-1", "订单-2", "🎁-3")


def day(lab: Lab) -> None:
    """Three messages, one group that reads them all."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop", enable_trace=False)
    for key in KEYS:
        shop.send(Message("orders", key.encode(), keys=key))
        lab.run_for("20ms")
    billing = lab.push_consumer("billing", enable_trace=False)
    billing.subscribe("orders", "*")
    billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
    billing.start()
    lab.run_for("16s")


@pytest.fixture(scope="module")
def lab() -> Lab:
    return play(day, seed=7)


def ids(lab: Lab) -> list[str]:
    return [values["msg_id"] for _, values in lab.journal.changes("message.stored")]


def test_one_messages_day_from_send_to_commit(lab: Lab) -> None:
    told = moments(lab.journal, ids(lab)[1])
    assert [(m.lane, m.kind) for m in told] == [
        ("shop-1", "frame"),
        ("broker-a", "message.stored"),
        ("broker-a", "message.dispatched"),
        ("broker-a", "frame"),
        ("shop-1", "message.sent"),
        ("billing-1", "frame"),
        ("broker-a", "frame"),
        ("billing-1", "message.pulled"),
        ("billing-1", "listener.started"),
        ("billing-1", "listener.returned"),
        ("billing-1", "offset.updated"),
        ("billing-1", "frame"),
        ("broker-a", "offset.committed"),
    ]
    assert told[3].text == "SUCCESS to SEND_MESSAGE_V2" and told[6].text == "SUCCESS to PULL_MESSAGE"
    assert told[5].text == "PULL_MESSAGE" and told[5].to == "broker-a"  # nothing is pushed: it asked
    assert told[8].text == "listener starts: entry 1"
    assert told[-1].text == "billing: next of orders 0 is 3"  # one commit passes all three


def test_an_arrow_knows_when_it_was_sent_and_when_it_arrived(lab: Lab) -> None:
    arrows = [moment for moment in moments(lab.journal) if moment.is_arrow]
    assert arrows and all(moment.kind == "frame" and len(moment.lane_names) == 2 for moment in arrows)
    for moment in arrows:
        assert moment.sent_ms is not None and moment.arrived_ms - moment.sent_ms == 1  # the network's latency
        assert moment.step is not None and lab.journal[moment.step].cause == moment.sent_step


def waiting(lab: Lab) -> None:
    """A group that asks before there is anything; a message 25 s later."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing = lab.push_consumer("billing", enable_trace=False)
    billing.subscribe("orders", "*")
    billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
    billing.start()
    lab.run_for("25s")
    lab.producer("shop", enable_trace=False).send(Message("orders", "заказ".encode()))
    lab.run_for("10s")


def test_a_pull_that_was_held_is_told_from_its_request_to_its_answer() -> None:
    lab = play(waiting, seed=7)
    (msg_id,) = ids(lab)
    shown = moments(lab.journal, msg_id)
    request, held = shown[0], shown[1]
    assert (request.text, request.to, held.kind, held.look) == ("PULL_MESSAGE", "broker-a", "pull.held", "held")
    answer = next(moment for moment in shown if moment.text == "SUCCESS to PULL_MESSAGE")
    assert held.until_ms == answer.sent_ms and held.until_step == answer.sent_step
    # The message's own story begins at +0; the request came before it.
    assert shown.start_ms == next(moment.now_ms for moment in shown if moment.text == "SEND_MESSAGE_V2")
    lines = str(lab.timeline(msg_id)).splitlines()
    assert lines[1].startswith("  -") and "answered after" in lines[2]
    # In the overview the last pull is still held.
    assert "not answered yet" in str(lab.timeline())
    assert len([moment for moment in moments(lab.journal) if moment.kind == "pull.held"]) == 3


def test_the_answer_of_a_slow_link_is_told_with_its_sending() -> None:
    def slow(lab: Lab) -> None:
        lab.at("24s", lambda: lab.slow("billing-1", "600ms"))
        waiting(lab)

    lab = play(slow, seed=7)
    (told,) = [moment for moment in moments(lab.journal, ids(lab)[0]) if moment.text == "SUCCESS to PULL_MESSAGE"]
    assert told.sent_ms is not None and told.now_ms - told.sent_ms == 601
    assert "SUCCESS to PULL_MESSAGE (sent +" in str(lab.timeline(ids(lab)[0]))


def test_all_messages_and_nothing_twice(lab: Lab) -> None:
    told = moments(lab.journal)
    kinds = [m.kind for m in told]
    assert kinds.count("message.stored") == kinds.count("message.dispatched") == kinds.count("listener.started") == 3
    assert kinds.count("offset.committed") == 1 and kinds.count("pull.held") == 1
    assert all(before.now_ms <= after.now_ms for before, after in pairwise(told))
    assert all(m.step is not None for m in told)


def test_a_timeline_of_the_lab_is_the_same(lab: Lab) -> None:
    assert str(lab.timeline()) == str(Timeline(moments(lab.journal)))
    assert str(lab.timeline(ids(lab)[0])) == str(Timeline(moments(lab.journal, ids(lab)[0])))
    assert lab.timeline().table().column("kind") == [m.kind for m in moments(lab.journal)]


def test_space_time_has_every_frame(lab: Lab) -> None:
    frames = [r for r in lab.journal if r.about is not None and r.cause >= 0]  # the first was sent before step 0
    assert sum(m.kind == "frame" for m in space_time(lab.journal).moments) == len(frames)
    some = space_time(lab.journal, frames[2].step, frames[4].step)
    assert sum(m.kind == "frame" for m in some.moments) == 3


def test_space_time_of_some_requests_has_their_answers_and_no_other_frame(lab: Lab) -> None:
    told = [m.text for m in space_time(lab.journal, only=("HEART_BEAT",)).moments if m.kind == "frame"]
    assert set(told) == {"HEART_BEAT", "SUCCESS to HEART_BEAT"} and told.count("HEART_BEAT") == len(told) / 2


def test_a_failure_and_its_retry_belong_to_the_message() -> None:
    def fails_once(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        lab.producer("shop", enable_trace=False).send(Message("orders", b"x"))
        billing = lab.push_consumer("billing", enable_trace=False)
        billing.subscribe("orders", "*")
        billing.on_messages(lambda m, context: CONSUME_SUCCESS if m[0].reconsume_times else RECONSUME_LATER)
        billing.start()
        lab.run_for("30s")

    lab = play(fails_once, seed=7)
    told = [(m.kind, m.look) for m in moments(lab.journal, ids(lab)[0])]
    assert told.count(("listener.started", "read")) == 2
    assert ("listener.returned", "trouble") in told and ("listener.returned", "read") in told
    assert ("message.sent_back", "trouble") in told


def test_one_messages_day_leaves_out_the_same_place_of_another_broker() -> None:
    def two_brokers(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop", enable_trace=False)
        billing = lab.push_consumer("billing", enable_trace=False)
        billing.subscribe("orders", "*")
        billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
        billing.start()
        lab.run_for("3s")
        for body in ("заказ", "订单"):  # entry 0 of orders 0, at each broker
            shop.send(Message("orders", body.encode()))
        lab.run_for("16s")

    lab = play(two_brokers, seed=7, brokers=2)
    places: list[set[str]] = [set() for _ in ids(lab)]
    for found, msg_id in zip(places, ids(lab), strict=True):
        found.update(moment.lane for moment in moments(lab.journal, msg_id) if moment.lane.startswith("broker"))
    assert sorted(places, key=sorted) == [{"broker-a"}, {"broker-b"}]
    assert len(moments(lab.journal, ids(lab)[0])) == len(moments(lab.journal, ids(lab)[1]))


def test_a_part_of_the_day_between_two_steps(lab: Lab) -> None:
    whole = list(moments(lab.journal))
    middle = whole[len(whole) // 2].step
    assert middle is not None
    first, rest = moments(lab.journal, None, 0, middle - 1), moments(lab.journal, None, middle)
    assert first and rest
    # Nothing is missing; a request stands in both parts if its answer is in the second.
    again = [moment for moment in rest if moment in list(first)]
    assert [*first, *(moment for moment in rest if moment not in again)] == whole
    assert {moment.text for moment in again if moment.is_arrow} <= {"PULL_MESSAGE", "SEND_MESSAGE_V2"}


def test_the_answer_to_a_pull_that_was_held_before_the_first_step_has_its_request() -> None:
    def reset(lab: Lab) -> None:
        waiting(lab)
        lab.run_for("20s")
        lab.admin.reset_offset_by_timestamp("orders", "billing", lab.began_ms)
        lab.run_for("20s")

    lab = play(reset, seed=7)
    first = lab.journal.of("offset.reset")[0].step
    shown = list(moments(lab.journal, None, first))
    asked = [moment for moment in shown if moment.step is not None and moment.step < first]
    assert [moment.text for moment in asked if moment.is_arrow] == ["PULL_MESSAGE"]
    (held,) = (moment for moment in asked if not moment.is_arrow)
    answer = next(moment for moment in shown if moment.text == "PULL_OFFSET_MOVED to PULL_MESSAGE")
    assert (held.look, held.until_step) == ("held", answer.sent_step)
    assert shown[shown.index(answer) + 1].text == "orders 0 continues at entry 0"


def test_faults_are_told() -> None:
    def broken(lab: Lab) -> None:
        day(lab)
        lab.kill("billing-1")
        lab.kill("broker-a")

    told = [m for m in moments(play(broken, seed=7).journal) if m.kind == "fault"]
    assert [(m.lane, m.text, m.look) for m in told] == [
        ("billing-1", "killed", "trouble"),
        ("broker-a", "killed", "trouble"),
    ]


def test_the_end_of_a_fault_is_no_fault() -> None:
    def eases(lab: Lab) -> None:
        day(lab)
        for delay, skew in (("1s", "-50ms"), (0, 0), (0, 0)):
            lab.slow("broker-a", delay)
            lab.skew_clock("billing-1", skew)
        for used, at in ((0.95, "open"), (0.97, "flush"), (0, None)):
            lab.disk_full("broker-a", used)
            lab.disk_fails("broker-a", at)

    shown = [m for m in moments(play(eases, seed=7).journal) if m.kind in ("fault", "mended")]
    assert [(m.lane, m.text, m.look) for m in shown] == [
        ("broker-a", "slow", "trouble"),
        ("billing-1", "skew clock", "trouble"),
        ("broker-a", "slow: over", "other"),
        ("billing-1", "skew clock: over", "other"),
        ("broker-a", "disk full", "trouble"),
        ("broker-a", "disk fails", "trouble"),
        ("broker-a", "disk full", "trouble"),
        ("broker-a", "disk fails", "trouble"),
        ("broker-a", "disk full: over", "other"),
        ("broker-a", "disk fails: over", "other"),
    ]


def test_a_queue_as_its_files_and_tables_say(lab: Lab) -> None:
    view = show_queue(lab, "orders")
    assert str(view).splitlines()[1:] == [
        "0: заказ-1",
        "1: 订单-2",
        "2: 🎁-3",
        "3: (next)  ◀ billing reads this next",
    ]
    assert view.table().column("physical_offset")[0] == 0


def test_the_blocks_of_a_replication_link_are_arrows() -> None:
    lab = Lab(seed=1, replicas=1, broker={"broker_role": "SYNC_MASTER", "in_sync_replicas": 2})
    lab.create_topic("orders")
    first = lab.journal.next_step
    lab.producer("shop").send(Message("orders", "заказ 订单 😀".encode()))
    told = [(moment.lane, moment.text, moment.to) for moment in lab.space_time(first).moments]
    assert ("broker-a", "HA block", "broker-a-s1") in told
    assert ("broker-a-s1", "HA report", "broker-a") in told
    assert any(lane == "broker-a-s1" and text.startswith("copied from byte 0") for lane, text, _ in told)
    assert "copied from byte 0" in lab.timeline().text()


def test_a_timed_message_and_its_lease_have_their_sentences() -> None:
    lab = Lab(seed=7)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.simple_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.start()
    sent = lab.producer("shop").send(Message("orders", b"x", delay="5s"))
    lab.run_for("10s")
    (message,) = consumer.receive()
    consumer.ack(message)
    texts = [moment.text for moment in moments(lab.journal, sent.msg_id)]
    assert "its time has come" in texts
    assert "billing acknowledged entry 0 of orders 0" in texts
    assert "billing pops entries of orders" in [moment.text for moment in moments(lab.journal)]

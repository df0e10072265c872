"""What clients can and cannot do while the master is dead.

Mirrors: DefaultMQProducerImpl, DefaultMQPushConsumerImpl, MQClientInstance.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab import RECONSUME_LATER, Lab, Message, MessageQueue
from mqlab.errors import ClientError, MqlabError
from tests.lab.scenarios.stories import Seen, Tool, changes, frames, member, moments, owned, row, send, send_many
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, ends, fill, pair, queue_range

READING: dict[str, Any] = {"slave_read_enable": True}
FIRST = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}


def ready(**settings: Any) -> Lab:
    """Master and slave that both know topic orders."""
    lab = pair(broker={**READING, **settings.pop("broker", {})}, **settings)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.run_for("65s")
    return lab


def test_sends_fail_three_times_on_the_same_broker_until_the_route_poll_and_then_for_want_of_a_route() -> None:
    lab = ready()
    producer = lab.producer("shop")
    send(producer, "до")
    lab.kill(MASTER)
    began_ms = lab.now_ms
    with pytest.raises(ClientError, match=r"Send \[3\] times.*BrokersSent: \[broker-a, broker-a, broker-a\]"):
        send(producer, "во время")
    assert lab.now_ms - began_ms <= 15
    lab.run_for("31s")
    with pytest.raises(ClientError, match="No route info of this topic: orders"):
        send(producer, "после опроса")
    lab.start(MASTER)
    lab.run_for("500ms")
    assert send(producer, "снова 又")[0].send_status == "SEND_OK"  # each failing call asks the name server again


def test_with_another_broker_sends_move_there() -> None:
    lab = ready(brokers=2)
    producer = lab.producer("shop")
    send(producer, *"1234")
    lab.kill(MASTER)
    during = send(producer, *"56789")
    assert {result.message_queue.broker_name for result in during} == {"broker-b"}
    lab.run_for("31s")
    asked = len(frames(lab, 310))
    after = send(producer, *"abcd")
    assert {result.message_queue.broker_name for result in after} == {"broker-b"}
    assert len(frames(lab, 310)) == asked + 4  # broker-a is not tried any more


def consuming(lab: Lab, **settings: Any) -> tuple[Any, Seen]:
    seen = Seen(lab)
    consumer = member(lab, "billing", seen, **{**FIRST, **settings})
    lab.run_for("3s")
    return consumer, seen


def test_pulls_fail_until_the_route_poll_and_then_go_to_the_slave() -> None:
    lab = ready()
    _, seen = consuming(lab, pull_threshold_for_queue=20, consume_thread_min=1)
    producer = lab.producer("shop")
    seen.takes = "50ms"
    send_many(producer, 800, queue=0)
    lab.run_for("5s")
    assert ends(lab)[0] == ends(lab)[1]
    lab.kill(MASTER)
    killed_ms = lab.now_ms - lab.began_ms
    lab.run_for("90s")
    failed = moments(lab, "pull.failed", group="billing")
    first_at_slave = next(
        r.now_ms - lab.began_ms for r in frames(lab, 11, to=SLAVE) if r.about.ext_fields["topic"] == "orders"
    )
    assert killed_ms < first_at_slave <= killed_ms + 31_000
    assert all(killed_ms <= at <= first_at_slave for at in failed) and failed
    assert sorted(message.queue_offset for message in seen.messages) == list(range(800))  # none lost, none twice


def test_with_the_default_settings_reads_do_not_move() -> None:
    lab = pair()
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.run_for("65s")
    consuming(lab)
    lab.kill(MASTER)
    lab.run_for("40s")  # the route poll is over: the slave is asked
    before_ms = lab.now_ms - lab.began_ms
    lab.run_for("20s")
    refused = [at for at in moments(lab, "pull.failed", group="billing") if at > before_ms]
    assert {later - sooner for sooner, later in pairwise(refused)} == {1_002}  # every second, with no end
    assert "[REJECTREQUEST]" in changes(lab, "pull.failed")[-1]["error"]


def test_offsets_are_asked_of_and_told_to_the_slave() -> None:
    lab = ready()
    consumer, _ = consuming(lab)
    send(lab.producer("shop"), *"abcdef", queue=0)
    lab.run_for("70s")
    assert lab.broker(SLAVE).offset_table["orders@billing"][0] == 6  # copied
    lab.kill(MASTER)
    lab.run_for("35s")
    told_before = len(frames(lab, 15, to=SLAVE))
    lab.run_for("10s")
    assert len(frames(lab, 15, to=SLAVE)) > told_before
    second = member(lab, "billing", name="billing-2", **FIRST)
    lab.run_for("60s")
    assert sorted(owned(consumer) + owned(second)) == [0, 1]
    assert frames(lab, 14, to=SLAVE)
    taken_up = [values for values in changes(lab, "queue.added", client="billing-2") if "orders" in str(values)]
    assert len(taken_up) == 1


def test_a_queue_without_a_stored_offset_cannot_start_without_the_master() -> None:
    lab = ready()
    lab.kill(MASTER)
    lab.run_for("1s")
    seen = Seen(lab)
    late = member(lab, "latecomers", seen)  # CONSUME_FROM_LAST_OFFSET: asks the master for the largest offset
    lab.run_for("70s")
    assert late.process_queues == {} or all(queue.topic != "orders" for queue in late.process_queues)
    assert changes(lab, "queue.no_offset")
    lab.start(MASTER)
    lab.run_for("60s")
    assert owned(late) == [0, 1]


def test_orderly_consumption_stops_for_want_of_a_lock() -> None:
    lab = ready()
    seen = Seen(lab, "SUCCESS")
    member(lab, "billing", seen, orderly=True, **FIRST)
    lab.run_for("3s")
    producer = lab.producer("shop")
    send(producer, *"abc", queue=0)
    lab.run_for("5s")
    assert seen.bodies == ["a", "b", "c"]
    lab.kill(MASTER)
    lab.run_for("2m")
    before = len(seen.bodies)
    lab.start(MASTER)
    lab.run_for("1m")
    send(producer, "d", queue=0)
    lab.run_for("1m")
    assert before == 3 and seen.bodies == ["a", "b", "c", "d"]


def test_a_failed_message_waits_at_the_client_until_it_can_be_sent_back() -> None:
    lab = ready(broker={"message_delay_level": "1s " * 17 + "1s"})
    fails = Seen(lab, RECONSUME_LATER, "CONSUME_SUCCESS", takes="20s")
    member(lab, "billing", fails, **FIRST)
    lab.run_for("3s")
    send(lab.producer("shop"), "трудное 难", queue=0)
    lab.run_for("5s")
    lab.kill(MASTER)
    lab.run_for("2m")
    assert changes(lab, "message.sent_back", way="send_back")[0]["error"]
    assert len(fails.bodies) >= 2  # consumed again here, 5 s after the way back was barred
    assert set(fails.bodies) == {"трудное 难"}


def test_a_failed_message_goes_to_another_broker() -> None:
    lab = ready(brokers=2, broker={"message_delay_level": "1s " * 17 + "1s"})
    fails = Seen(lab, RECONSUME_LATER, "CONSUME_SUCCESS", takes="40s")
    member(lab, "billing", fails, **FIRST)
    lab.run_for("3s")
    producer = lab.producer("shop")
    at_the_master = MessageQueue("orders", MASTER, 0)
    producer.send(Message("orders", "трудное 难".encode()), selector=lambda queues, message, arg: at_the_master)
    lab.run_for("5s")
    lab.kill(MASTER)
    lab.run_for("2m")
    assert [values["error"] for values in changes(lab, "message.sent_back", way="new_message")] == [None]
    assert lab.broker("broker-b").store.max_offset("%RETRY%billing", 0) == 1
    assert fails.bodies == ["трудное 难"] * 2


def test_the_member_list_comes_from_the_slave() -> None:
    lab = ready()
    consumer, _ = consuming(lab)
    lab.kill(MASTER)
    lab.run_for("35s")
    second = member(lab, "billing", name="billing-2", **FIRST)
    lab.run_for("60s")
    assert frames(lab, 38, to=SLAVE)
    assert sorted(owned(consumer) + owned(second)) == [0, 1]


def test_progress_and_absences_are_read_from_the_slave() -> None:
    lab = ready()
    consuming(lab)
    producer = lab.producer("shop")
    send(producer, *"abc", queue=0)
    lab.run_for("70s")
    lab.kill("billing-1")
    send(producer, "d", queue=0)
    lab.run_for("1s")
    before = row(lab, "billing")
    lab.kill(MASTER)
    assert (before.broker_offset, before.consumer_offset) == (4, 3)
    assert (row(lab, "billing").broker_offset, row(lab, "billing").consumer_offset) == (4, 3)
    assert [one.status for one in lab.deliveries("billing")][-1] == "NOT_PULLED"
    lab.kill(SLAVE)
    assert not list(lab.progress("billing"))


def spinning(lab: Lab, key: str) -> int:
    """How many pulls the slave gets in half a second, once the first has come."""
    lab.run_until(lambda: key in lab.broker(SLAVE).offset_table.pull_offset_table, limit="40s")
    before = len(frames(lab, 11, to=SLAVE))
    lab.run_for("500ms")
    return len(frames(lab, 11, to=SLAVE)) - before


def test_trap_1_a_slave_that_joined_late_makes_its_consumers_spin() -> None:
    lab = pair(broker=READING)
    lab.create_topic("T", read_queue_nums=4, write_queue_nums=4)
    lab.kill(SLAVE)
    lab.lose_disk(SLAVE)
    fill(lab, 2348)
    lab.start(SLAVE)
    lab.run_for("70s")
    seen = Seen(lab, takes="1s")
    member(lab, "billing", seen, topic="T", pull_threshold_for_queue=20, consume_thread_min=1, **FIRST)
    lab.run_for("2s")
    lab.kill(MASTER)
    asked = spinning(lab, "T@billing")
    assert asked > 200  # as fast as the network answers, for what the slave never had
    assert {
        record.about.ext_fields["queueOffset"]
        for record in frames(lab, 11, to=SLAVE)
        if record.about.ext_fields["topic"] == "T"
    } <= {str(offset) for offset in range(431)}
    assert queue_range(lab, SLAVE, "T") == (431, 587)


def test_trap_2_an_offset_above_the_slaves_end_spins_as_well() -> None:
    lab = ready()
    seen = Seen(lab)
    member(lab, "billing", seen, **FIRST)
    lab.run_for("3s")
    producer = lab.producer("shop")
    send(producer, *"abc", queue=0)
    lab.run_for("1s")
    lab.partition(MASTER, SLAVE)
    send(producer, *"def", queue=0)
    lab.run_for("6s")
    assert row(lab, "billing").consumer_offset == 6
    lab.kill(MASTER)
    assert spinning(lab, "orders@billing") > 200
    assert seen.bodies == list("abcdef")


def test_when_the_master_is_back_reads_return_with_the_route_poll() -> None:
    lab = ready()
    _, seen = consuming(lab)
    producer = lab.producer("shop")
    lab.kill(MASTER)
    lab.run_for("40s")
    lab.start(MASTER)
    lab.run_for("40s")
    at_slave = len(frames(lab, 11, to=SLAVE))
    send(producer, "снова")
    lab.run_for("1s")
    assert seen.bodies == ["снова"] and len(frames(lab, 11, to=SLAVE)) == at_slave


def test_offsets_committed_to_the_slave_end_with_the_next_copying() -> None:
    lab = ready()
    tool = Tool(lab)
    member(lab, "billing", **FIRST)
    lab.run_for("3s")
    send(lab.producer("shop"), *"abc", queue=0)
    lab.run_for("70s")
    fields = {"consumerGroup": "billing", "topic": "orders", "queueId": 0, "commitOffset": 1}
    lab.kill("billing-1")
    assert tool.ask(15, to=lab.broker(SLAVE).address, **fields).code == 0
    assert lab.broker(SLAVE).offset_table["orders@billing"][0] == 1
    lab.run_for("64s")
    assert lab.broker(SLAVE).offset_table["orders@billing"][0] == 3


def test_nothing_is_raised_by_accident() -> None:
    """Every failure above is one of mqlab's own errors, with a hint what to do."""
    lab = ready()
    lab.kill(MASTER)
    lab.run_for("31s")
    with pytest.raises(MqlabError) as caught:
        send(lab.producer("shop"), "x")
    assert "hint" in str(caught.value)

"""lab.verify of a popping group: what a sound broker does is not blamed, and planted defects get their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from tests.lab.simulation.mutants import of_leases

MUTANTS = {mutant.__name__: mutant for mutant in of_leases.MUTANTS}
Listener = Callable[[Any, Any], str]


def succeeds(messages: Any, context: Any) -> str:
    return CONSUME_SUCCESS


def fails_once(messages: Any, context: Any) -> str:
    return CONSUME_SUCCESS if messages[0].reconsume_times else RECONSUME_LATER


def outlasts_its_lease(messages: Any, context: Any) -> str:
    if not messages[0].reconsume_times:
        context.sleep("13s")
    return CONSUME_SUCCESS


def played(listener: Listener, *, last: str = "2m", lease: str = "10s", **settings: Any) -> Lab:
    lab = Lab(seed=7)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.admin.set_message_request_mode("orders", "billing")
    producer = lab.producer("shop")
    for number in range(2):
        producer.send(Message("orders", b"%d" % number))
    consumer = lab.push_consumer(
        "billing",
        client_rebalance=False,
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        pop_invisible_time=lease,
        **settings,
    )
    consumer.subscribe("orders")
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("2s")
    for number in range(2, 4):
        producer.send(Message("orders", b"%d" % number))
    lab.run_for(last)
    return lab


@pytest.mark.parametrize(
    ("listener", "counts"),
    [(succeeds, {}), (fails_once, {"REDELIVERED": 4}), (outlasts_its_lease, {"DUPLICATED": 4})],
)
def test_what_pop_promises_is_not_blamed(listener: Listener, counts: dict[str, int]) -> None:
    assert played(listener).verify("billing").counts() == counts


@pytest.mark.parametrize("seconds", [3, 9, 11, 13, 20])
def test_a_message_on_its_way_back_is_not_lost(seconds: int) -> None:
    assert set(played(fails_once, last=f"{seconds}s").verify("billing").counts()) <= {"REDELIVERED"}


@pytest.mark.parametrize(
    ("name", "listener", "lease", "kind"),
    [
        ("nothing_is_stored", fails_once, "10s", "STUCK"),
        ("singles_are_not_stored", fails_once, "10s", "STUCK"),
        ("a_short_lease", outlasts_its_lease, "30s", "LEASED_TWICE"),
        ("for_another", succeeds, "10s", "DUPLICATED"),
        ("all_but_the_last", fails_once, "10s", "LOST"),
        ("one_further", succeeds, "10s", "SKIPPED"),
        ("odd_ones_are_forgotten", succeeds, "10s", "DUPLICATED"),
    ],
)
def test_a_defect_gets_its_name(
    name: str, listener: Listener, lease: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS[name](monkeypatch)
    verdict = played(listener, lease=lease).verify("billing")
    assert kind in verdict.counts(), verdict


def test_a_pop_that_begins_one_too_low_leases_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    of_leases.ONE_BACK(monkeypatch)
    verdict = played(succeeds, last="0s").verify("billing")
    assert verdict.of("LEASED_TWICE")[0].why == "broker-a gave it out again while another lease of it ran"


def test_a_message_that_its_client_drops_is_lost() -> None:
    verdict = played(lambda messages, context: RECONSUME_LATER, last="90s", max_reconsume_times=0).verify("billing")
    (first, *_) = verdict.of("LOST")
    assert first.why == "billing-1 dropped it after 1 delivery: POP has no dead letters"
    assert [row["what"].split()[0] for row in first.steps()][-1] == "message.given_up"


def test_messages_of_a_member_that_dies_come_back_and_are_not_skipped() -> None:
    lab = Lab(seed=7)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.simple_consumer("audit", await_duration="2s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    producer = lab.producer("shop")
    for number in range(2):
        producer.send(Message("orders", b"%d" % number))
    first, second = consumer.receive(16, "10s")
    consumer.ack(first)
    lab.run_for("20s")
    assert lab.verify("audit").is_clean
    (again,) = consumer.receive(16, "10s")
    assert lab.verify("audit").counts() == {"REDELIVERED": 1}
    consumer.ack(second)  # late: its program has finished it, and it comes again
    assert lab.verify("audit").is_clean
    consumer.ack(again)
    assert lab.verify("audit").counts() == {"DUPLICATED": 1}


def test_a_broker_that_forgot_what_it_gave_out_leases_twice() -> None:
    """Killed within five seconds of the pop, the offset in its file is older: RocketMQ does it, too."""
    lab = Lab(seed=7, broker={"flush_disk_type": "SYNC_FLUSH"})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.producer("shop").send(Message("orders", b"x"))
    consumer = lab.simple_consumer("audit", await_duration="2s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    consumer.receive(16, "1m")
    lab.kill("broker-a")
    lab.start("broker-a")
    lab.run_for("5s")
    assert len(consumer.receive(16, "1m")) == 1
    assert "LEASED_TWICE" in lab.verify("audit").counts()

"""A change of several steps that fails at one of them: every outcome is told, and a second call goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab import RECONSUME_LATER, Lab, Message
from mqlab.errors import BrokerError, PartlyDone, UsageError
from mqlab.lab.world.handles import NodeHandle
from mqlab.rocketmq.admin import Admin
from mqlab.rocketmq.wire.names import dlq_topic, retry_topic

TOO_LONG = b"x" * 4_000


def dead_letters(bodies: list[bytes], **settings: Any) -> Lab:
    """A Lab in which every message of group billing is dead; its consumer is down."""
    lab = Lab(seed=1, **settings)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", max_reconsume_times=0, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, _: RECONSUME_LATER)
    consumer.start()
    producer = lab.producer("shop")
    for number, body in enumerate(bodies):
        producer.send(Message("orders", body, keys=f"order-{number}"))
    lab.run_for("25s")
    lab.kill("billing-1")
    assert len(lab.admin.query_dlq("billing")) == len(bodies)
    return lab


def allow(lab: Lab, size: int) -> None:
    """Set the size of the largest message that the broker accepts, as a restart with another setting does."""
    lab.broker("broker-a").store._max_body = size


def copies(lab: Lab) -> list[str | None]:
    """The keys of the messages in the retry topic that were sent back by an operator."""
    return [each.keys for each in lab.admin.query_message_by_time(retry_topic("billing")) if not each.reconsume_times]


def test_a_refused_letter_is_told_and_holds_up_none_behind_it() -> None:
    lab = dead_letters([b"0", TOO_LONG, b"2"])
    allow(lab, 1_000)
    with pytest.raises(PartlyDone, match="2 of 3 steps were done") as raised:
        lab.admin.resend_dlq("billing")
    assert [step.done for step in raised.value.steps] == [True, False, True]
    letters = lab.admin.query_dlq("billing")
    assert [step.target for step in raised.value.steps] == [letter.offset_msg_id for letter in letters]
    assert "at most 1000 are allowed" in raised.value.steps[1].outcome and raised.value.steps[1].outcome in str(
        raised.value
    )
    assert copies(lab) == ["order-0", "order-2"]


@pytest.mark.parametrize("asked", ["all", "letters", "ids"])
def test_a_second_call_sends_the_letters_that_are_left_and_none_twice(asked: str) -> None:
    lab = dead_letters([b"0", TOO_LONG, b"2"])
    letters = list(lab.admin.query_dlq("billing"))
    chosen: Any = {"all": None, "letters": letters, "ids": [letter.msg_id for letter in letters]}[asked]
    allow(lab, 1_000)
    with pytest.raises(PartlyDone):
        lab.admin.resend_dlq("billing", chosen)
    allow(lab, 1 << 22)
    again = lab.admin.resend_dlq("billing", chosen)
    new = [row.msg_id for row in again if row.send_status == "SEND_OK"]
    assert new == [letters[1].msg_id] and copies(lab) == ["order-0", "order-2", "order-1"]
    assert [row for row in lab.admin.resend_dlq("billing", chosen) if row.send_status == "SEND_OK"] == []
    assert len(copies(lab)) == 3


def test_a_letter_without_an_answer_that_was_stored_is_not_sent_again() -> None:
    lab = dead_letters([b"0", b"1"])
    admin, ask = lab.admin, lab.admin.ask
    lost: list[bytes] = []

    def losing(address: str, code: int, body: bytes | None = None, **fields: Any) -> Any:
        answer = ask(address, code, body, **fields)
        if "properties" in fields and not lost:
            lost.append(b"")
            raise BrokerError(1, "the answer was lost")
        return answer

    admin.ask = losing  # type: ignore[method-assign]
    with pytest.raises(PartlyDone):
        admin.resend_dlq("billing")
    assert len(admin.resend_dlq("billing")) == 0 and copies(lab) == ["order-0", "order-1"]


def test_a_broker_that_is_down_leaves_its_letters_and_is_asked_once() -> None:
    lab = Lab(seed=1, brokers=2)
    for broker in ("broker-a", "broker-b"):
        lab.create_topic("orders", brokers=broker)
        lab.create_topic(dlq_topic("billing"), read_queue_nums=1, write_queue_nums=1, brokers=broker)
        lab.admin.create_and_update_subscription_group_config("billing", brokers=broker)
        lab.create_topic(retry_topic("billing"), read_queue_nums=1, write_queue_nums=1, brokers=broker)
    for number in range(4):
        queue = next(
            row.message_queue
            for row in lab.admin.examine_topic_stats(dlq_topic("billing"))
            if row.message_queue.broker_name == ("broker-a", "broker-b")[number % 2]
        )
        lab.admin.send_message(Message(dlq_topic("billing"), b"%d" % number, keys=f"order-{number}"), queue=queue)
    letters = list(lab.admin.query_dlq("billing"))
    assert len(letters) == 4
    admin, query = lab.admin, lab.admin.ask

    def cut(address: str, code: int, body: bytes | None = None, **fields: Any) -> Any:
        if "properties" in fields and lab.broker("broker-b").is_up:
            lab.kill("broker-b")  # after the letters were listed
        return query(address, code, body, **fields)

    admin.ask = cut  # type: ignore[method-assign]
    with pytest.raises(PartlyDone) as raised:
        admin.resend_dlq("billing")
    told = [(step.done, "not tried" in step.outcome) for step in raised.value.steps]
    assert told == [(True, False), (False, False), (True, False), (False, True)]
    admin.ask = query  # type: ignore[method-assign]
    lab.start("broker-b")
    lab.run_for("1m")
    assert len(admin.resend_dlq("billing")) == 2 and sorted(map(str, copies(lab))) == [f"order-{n}" for n in range(4)]


CHANGES: dict[str, Callable[[Admin], object]] = {
    "create_topic": lambda admin: admin.create_topic("parcels"),
    "update_topic": lambda admin: admin.update_topic("orders", perm=4),
    "delete_topic": lambda admin: admin.delete_topic("orders"),
    "group": lambda admin: admin.create_and_update_subscription_group_config("audit", retry_max_times=3),
    "delete_group": lambda admin: admin.delete_subscription_group("billing"),
    "clone_group_offset": lambda admin: admin.clone_group_offset("billing", "audit", "orders"),
    "reset": lambda admin: admin.reset_offset_by_timestamp("orders", "billing", 0),
    "delete_expired_commit_log": lambda admin: admin.delete_expired_commit_log(),
    "clean_expired_consumer_queue": lambda admin: admin.clean_expired_consumer_queue(),
    "clean_unused_topic": lambda admin: admin.clean_unused_topic(),
}
AT_NAME_SERVERS: dict[str, Callable[[Admin], object]] = {
    "wipe_write_perm": lambda admin: admin.wipe_write_perm("broker-a"),
    "put_kv_config": lambda admin: admin.put_kv_config("space", "key", "value"),
    "delete_kv_config": lambda admin: admin.delete_kv_config("space", "key"),
}


def refusing(lab: Lab, node: NodeHandle, codes: list[int]) -> Callable[[], None]:
    """Let a server refuse what changes it, and note which codes it refused; the answer undoes it."""
    admin, ask = lab.admin, lab.admin.ask

    def refused(address: str, code: int, body: bytes | None = None, **fields: Any) -> Any:
        if address == node.address and not code.name.startswith(("GET_", "QUERY_", "SEARCH")):  # type: ignore[attr-defined]
            codes.append(code)
            raise BrokerError(1, "the disk is full", address=address)
        return ask(address, code, body, **fields)

    admin.ask = refused  # type: ignore[method-assign]
    return lambda: setattr(admin, "ask", ask)


@pytest.mark.parametrize("verb", CHANGES)
def test_a_broker_that_refuses_keeps_no_other_from_the_change(verb: str) -> None:
    lab = Lab(seed=1, brokers=["a", "b", "c"])
    lab.create_topic("orders")
    for group in ("billing", "audit"):
        lab.admin.create_and_update_subscription_group_config(group)
    codes: list[int] = []
    undo = refusing(lab, lab.broker("b"), codes)
    with pytest.raises(PartlyDone, match="the disk is full") as raised:
        CHANGES[verb](lab.admin)
    told = {step.target: step.done for step in raised.value.steps if "name server" not in step.target}
    assert {target[-1]: done for target, done in told.items()} == {"a": True, "b": False, "c": True}
    assert codes, "the broker was asked"
    undo()
    CHANGES[verb](lab.admin)  # the second call goes on


@pytest.mark.parametrize("verb", AT_NAME_SERVERS)
def test_a_name_server_that_refuses_keeps_no_other_from_the_change(verb: str) -> None:
    lab = Lab(seed=1, name_servers=3)
    lab.admin.put_kv_config("space", "key", "old")
    undo = refusing(lab, lab.name_server("nameserver-2"), [])
    with pytest.raises(PartlyDone) as raised:
        AT_NAME_SERVERS[verb](lab.admin)
    assert [step.done for step in raised.value.steps] == [True, False, True]
    undo()
    AT_NAME_SERVERS[verb](lab.admin)


def test_name_servers_keep_a_topic_that_a_broker_could_not_delete() -> None:
    lab = Lab(seed=1, brokers=2)
    lab.create_topic("orders")
    refusing(lab, lab.broker("broker-b"), [])
    with pytest.raises(PartlyDone, match="not tried: orders at broker-b would be registered again"):
        lab.admin.delete_topic("orders")
    lab.run_for("1m")  # broker-a no longer registers it
    assert "broker-b" in [data.broker_name for data in lab.admin.examine_topic_route_info("orders").queue_datas]


def test_a_change_that_no_broker_takes_raises_the_first_error_with_the_others_as_notes() -> None:
    lab = Lab(seed=1, brokers=2)
    with pytest.raises(BrokerError) as raised:
        lab.admin.create_topic("no/topic")
    notes = raised.value.__notes__
    assert notes[0] == "create_topic: no step was done" and [note.split(":")[0].strip() for note in notes[1:]] == [
        "broker-a",
        "broker-b",
    ]


def test_a_lab_creates_a_topic_at_all_brokers_or_at_none() -> None:
    lab = Lab(seed=1, brokers=2)
    lab.kill("broker-b")
    with pytest.raises(UsageError, match="broker-b is killed"):
        lab.create_topic("orders")
    assert "orders" not in lab.broker("broker-a").topics

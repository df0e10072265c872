"""Transactions from the producer's side.

Mirrors: TransactionMQProducer, DefaultMQProducerImpl.sendMessageInTransaction.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client import TransactionProducer
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message
from tests.rocketmq.client.conftest import Recorder, World
from tests.rocketmq.client.scripted import ScriptedWorld

END = RequestCode.END_TRANSACTION


class Bank:
    """A transaction listener with a script for both questions."""

    def __init__(self, executes: Any = "COMMIT_MESSAGE", checks: Any = "COMMIT_MESSAGE") -> None:
        self.executes, self.checks = executes, checks
        self.executed: list[Any] = []
        self.checked: list[Any] = []

    def execute_local_transaction(self, message: Message, arg: Any) -> Any:
        self.executed.append((message.body.decode(), arg))
        return self._say(self.executes)

    def check_local_transaction(self, message: Any) -> Any:
        self.checked.append(message)
        return self._say(self.checks)

    @staticmethod
    def _say(answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer


def paying(world: World, listener: Any) -> TransactionProducer:
    producer = TransactionProducer(world.ports("pay-1"), "pay", world.name_servers, listener, enable_trace=False)
    producer.start()
    return producer


def transfer(body: str = "перевод 转账") -> Message:
    return Message("transfer", body.encode(), tags="paid", delay_time_level=3)


def test_commit_delivers_the_message(world: World) -> None:
    bank, listener = Bank(), Recorder(world)
    producer = paying(world, bank)
    result = producer.send_message_in_transaction(transfer(), 42)
    assert (result.send_status, result.local_transaction_state) == ("SEND_OK", "COMMIT_MESSAGE")
    assert result.transaction_id == result.msg_id
    assert bank.executed == [("перевод 转账", 42)]
    world.consumer("audit", "transfer", listener)
    world.run_for(5_000)
    assert listener.bodies == ["перевод 转账"]
    assert listener.seen[0].msg_id == result.msg_id
    assert "DELAY" not in listener.seen[0].properties


@pytest.mark.parametrize("answer", ["ROLLBACK_MESSAGE"])
def test_rollback_delivers_nothing(world: World, answer: str) -> None:
    listener = Recorder(world)
    world.consumer("audit", "transfer", listener)
    producer = paying(world, Bank(answer))
    producer.send_message_in_transaction(transfer())
    world.run_for(200_000)
    assert listener.seen == []
    assert [step.about.ext_fields["commitOrRollback"] for step in world.requests(END)] == ["12"]


@pytest.mark.parametrize("answer", ["UNKNOW", None, ValueError("нет"), "maybe"])
def test_unknown_is_asked_again_by_the_broker(world: World, answer: Any) -> None:
    listener, bank = Recorder(world), Bank(answer)
    world.consumer("audit", "transfer", listener)
    producer = paying(world, bank)
    result = producer.send_message_in_transaction(transfer())
    assert result.local_transaction_state == "UNKNOW"
    assert listener.seen == []
    world.run_for(90_000)
    assert listener.bodies == ["перевод 转账"]
    (checked, *_) = bank.checked
    assert (checked.topic, checked.body.decode()) == ("transfer", "перевод 转账")
    first, second = world.requests(END, "broker-a")
    assert first.about.ext_fields["fromTransactionCheck"] == "false"
    assert second.about.ext_fields["fromTransactionCheck"] == "true"
    assert second.about.ext_fields["topic"] == "RMQ_SYS_TRANS_HALF_TOPIC"
    assert second.about.ext_fields["tranStateTableOffset"] != first.about.ext_fields["tranStateTableOffset"]
    if isinstance(answer, Exception):
        assert "ValueError: нет" in first.about.remark


def test_the_half_message_and_the_end_on_the_wire() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = TransactionProducer(
        world.sim.add_node("pay-1", _files()), "pay", world.name_servers, Bank(), enable_trace=False
    )
    producer.start()
    producer.send_message_in_transaction(Message("orders", b"x"))
    world.run_for(100)
    broker = world.brokers["broker-a"]
    (half,) = broker.of(RequestCode.SEND_MESSAGE_V2)
    told = properties.decode(half.ext_fields["i"])
    assert (half.ext_fields["f"], told["TRAN_MSG"], told["PGROUP"]) == ("4", "true", "pay")
    (end,) = broker.of(END)
    assert end.is_oneway
    assert (end.ext_fields["commitOrRollback"], end.ext_fields["tranStateTableOffset"]) == ("8", "7")
    assert (end.ext_fields["commitLogOffset"], end.ext_fields["topic"]) == ("0", "orders")
    assert end.ext_fields["msgId"] == told["UNIQ_KEY"]


def _files() -> Any:
    from mqlab.rocketmq.machine.files import RealFiles

    return RealFiles()


@pytest.mark.parametrize("code", [10, 11, 12])
def test_stored_with_a_warning_is_rolled_back_without_running(code: int) -> None:
    world = ScriptedWorld(["broker-a"])
    world.brokers["broker-a"].script = [code]
    bank = Bank()
    producer = TransactionProducer(
        world.sim.add_node("pay-1", _files()), "pay", world.name_servers, bank, enable_trace=False
    )
    producer.start()
    result = producer.send_message_in_transaction(Message("orders", b"x"))
    world.run_for(100)
    assert bank.executed == []
    assert result.local_transaction_state == "ROLLBACK_MESSAGE"
    assert world.brokers["broker-a"].of(END)[0].ext_fields["commitOrRollback"] == "12"


def test_a_failed_half_message_runs_nothing(world: World) -> None:
    bank = Bank()
    producer = paying(world, bank)
    with pytest.raises(ClientError, match="send message Exception"):
        producer.send_message_in_transaction(Message("bad topic", b"x"))
    assert bank.executed == []


def test_the_listener_needs_both_methods_and_may_be_a_class(world: World) -> None:
    class Half:
        def execute_local_transaction(self, message: Message, arg: Any) -> str:
            return "COMMIT_MESSAGE"

    with pytest.raises(UsageError, match="check_local_transaction"):
        paying(world, Half())
    producer = TransactionProducer(world.ports("pay-2"), "pay", world.name_servers, Bank, enable_trace=False)
    producer.start()
    assert producer.send_message_in_transaction(transfer()).local_transaction_state == "COMMIT_MESSAGE"


def test_a_local_transaction_may_send_and_wait(world: World) -> None:
    class Chained(Bank):
        def execute_local_transaction(self, message: Message, arg: Any) -> str:
            self.executed.append(producer.send(Message("ledger", b"row")).send_status)
            return "COMMIT_MESSAGE"

    bank = Chained()
    producer = paying(world, bank)
    producer.send_message_in_transaction(transfer())
    assert bank.executed == ["SEND_OK"]


@pytest.mark.parametrize("topics", [(), ["transfer"]])
def test_after_a_restart_it_is_asked_back_only_when_brokers_know_of_it(world: World, topics: list[str]) -> None:
    world.create_topic("transfer", 1)
    bank = Bank("UNKNOW")
    first = paying(world, bank)
    first.send_message_in_transaction(Message("transfer", "перевод".encode()), 5)
    first.shutdown()
    again = TransactionProducer(
        world.ports("pay-2"), "pay", world.name_servers, bank, enable_trace=False, topics=topics
    )
    again.start()
    world.run_for(90_000)
    assert world.broker.store.max_offset("transfer", 0) == (1 if topics else 0)
    assert again.sender.publish_topics() == list(topics)


def test_topics_that_do_not_exist_yet_do_no_harm(world: World) -> None:
    producer = world.producer(topics=["later"], create_topic_key="none")
    assert world.notes("route_poll.failed")[0]["error"].startswith("No route info of this topic: later")
    world.create_topic("later", 1)
    assert producer.send(Message("later", "потом".encode())).send_status == "SEND_OK"
    with pytest.raises(UsageError, match="topics is a list of names"):
        world.producer("shop-2", topics="orders")

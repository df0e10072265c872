"""What a broker answers while one of its parts has failed, and that its timers survive an error."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import ClientError, PartFailed, UsageError
from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.broker.transaction_check import TransactionCheck
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import ResponseCode
from tests.rocketmq.broker.world import World

BROKEN = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def failing(tmp_path: Path) -> World:
    """A world whose broker's files can be told to fail."""
    return World(tmp_path, files=CrashFiles())


def test_a_topic_that_cannot_be_saved_is_refused_and_saved_later(failing: World) -> None:
    client, files, broker = failing.client(), failing.files, failing.broker
    assert isinstance(files, CrashFiles)
    files.refuse_open = BROKEN
    answer = client.put("new-topic")  # TBW102 would make it
    assert (answer.code, "topics.json cannot be written" in str(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True)
    assert client.put("new-topic").code == ResponseCode.SERVICE_NOT_AVAILABLE
    files.refuse_open = None
    failing.run_for(1_000)
    assert not broker.store.failures
    assert "new-topic" in json.loads(files.read(f"{broker.store.directory}/config/topics.json"))["topicConfigTable"]
    assert client.put("new-topic").code == ResponseCode.SUCCESS


def test_offsets_that_cannot_be_saved_are_refused_and_saved_later(failing: World) -> None:
    client, files, broker = failing.client(), failing.files, failing.broker
    assert isinstance(files, CrashFiles)
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders", "*"))
    fields = {"consumerGroup": "billing", "topic": "orders", "queueId": 0}
    assert client.ask(15, None, commitOffset=1, **fields).code == ResponseCode.SUCCESS
    files.refuse_open = BROKEN
    failing.run_for(16_000)  # the timer of the file
    assert "consumerOffset.json" in broker.store.failures.reasons
    assert client.ask(15, None, commitOffset=2, **fields).code == ResponseCode.SYSTEM_ERROR
    client.pull("billing", "orders", 1, sysFlag=1, commitOffset=7)
    failing.run_for(100)
    assert broker.offset_table.query("billing", "orders", 0) == 1
    files.refuse_open = None
    failing.run_for(1_000)
    saved = files.read(f"{broker.store.directory}/config/consumerOffset.json").decode()
    assert "orders@billing" in saved
    assert client.ask(15, None, commitOffset=2, **fields).code == ResponseCode.SUCCESS


def test_broker_status_has_a_row_only_while_a_part_has_failed(failing: World) -> None:
    client, files = failing.client(), failing.files
    assert isinstance(files, CrashFiles)

    def row() -> str | None:
        return dict(json.loads(client.ask(28).body or b"{}")["table"]).get("failedParts")

    client.put("orders")
    assert row() is None
    files.refuse_open = BROKEN
    client.put("another")
    assert row() == "topics.json failed: OSError: [Errno 28] No space left on device"
    files.refuse_open = None
    failing.run_for(1_000)
    assert row() is None


def test_a_held_pull_that_cannot_be_read_is_answered_and_dispatch_goes_on(
    failing: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, broker = failing.client(), failing.broker
    client.put("orders")
    client.heartbeat("billing", SubscriptionData("orders", "*"))
    held = client.pull("billing", "orders", 1)
    failing.run_for(10)
    assert not held.done
    monkeypatch.setattr(broker.store.reader, "get", lambda *_: (_ for _ in ()).throw(BROKEN))
    assert client.put("orders").code == ResponseCode.SUCCESS
    failing.run_for(100)
    assert held.value.code == ResponseCode.SYSTEM_ERROR
    assert (broker.store.max_offset("orders", 0), bool(broker.store.failures)) == (2, False)


def test_a_check_round_that_fails_begins_again(failing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = failing.broker
    check: Any = broker._transaction_check
    rounds: list[int] = []

    def round_(self: Any) -> Any:
        from mqlab.rocketmq.promises import Promise

        rounds.append(1)
        return Promise.failed(BROKEN) if len(rounds) == 1 else Promise.of(None)

    monkeypatch.setattr(TransactionCheck, "round", round_)
    check._begin_round()
    assert "transaction.rounds" in broker.store.failures.reasons
    failing.run_for(1_000)
    assert (len(rounds), len(broker.store.failures)) == (2, 0)


def test_delayed_messages_are_delivered_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(seed=1, broker={"message_delay_level": "1s"})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    for body in (b"one", b"two"):
        producer.send(Message("orders", body, delay_time_level=1))
    store: Any = lab.broker("broker-a").store
    read = store.message_at
    monkeypatch.setattr(store, "message_at", lambda place: (_ for _ in ()).throw(BROKEN))
    lab.run_for("2s")
    assert "schedule.deliver" in store.failures.reasons
    assert producer.send(Message("orders", b"now")).send_status == "SEND_OK"  # a message can be kept
    monkeypatch.setattr(store, "message_at", read)
    lab.run_for("3s")
    assert (store.max_offset("orders", 0), len(store.failures)) == (3, 0)


def test_a_lab_lets_a_disk_fail_and_work_again() -> None:
    lab = Lab(seed=2)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    producer.send(Message("orders", b"first"))
    lab.disk_fails("broker-a", at="open")
    with pytest.raises((ClientError, PartFailed)):
        lab.create_topic("more")
    with pytest.raises(ClientError, match="SERVICE_NOT_AVAILABLE"):
        producer.send(Message("orders", b"second"))
    lab.disk_fails("broker-a", None)
    lab.run_for("2s")
    assert producer.send(Message("orders", b"third")).send_status == "SEND_OK"
    with pytest.raises(UsageError, match="at must be one of"):
        lab.disk_fails("broker-a", at="read")


def test_two_defaults_are_rocketmqs(failing: World) -> None:
    settings = dict(line.split("=", 1) for line in (failing.client().ask(26).body or b"").decode().splitlines())
    assert settings["transactionMetricFlushInterval"] == "3000"
    assert settings["haListenPort"] == failing.broker.ha_address.rpartition(":")[2] != "0"

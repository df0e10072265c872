"""A disk that is full, and one that hangs."""

from __future__ import annotations

import shutil

import pytest

from mqlab import Lab, Message
from mqlab.errors import MqlabError, UsageError
from mqlab.rocketmq.machine.files import RealFiles
from tests.lab.scenarios.stories import quiet_lab


def test_a_full_disk_takes_no_messages_until_there_is_room_again() -> None:
    lab = quiet_lab(seed=51)
    lab.create_topic("orders")
    producer = lab.producer("shop", retry_times_when_send_failed=0)
    assert producer.send(Message("orders", "заказ".encode())).send_status == "SEND_OK"
    lab.run_for("2m")
    lab.disk_full("broker-a", 0.95)
    lab.run_for("30s")
    with pytest.raises(MqlabError):
        producer.send(Message("orders", "订单".encode()))
    lab.disk_full("broker-a", 0)
    lab.run_for("30s")
    assert producer.send(Message("orders", "💳".encode())).send_status == "SEND_OK"
    assert [values["used"] for _, values in lab.journal.changes("fault.disk_full")] == [0.95, 0]


@pytest.mark.parametrize("driver", ["sim", "threads"])
def test_how_full_the_disk_of_the_host_is_does_not_change_a_story(monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    nearly_full = shutil.disk_usage("/")._replace(total=1000, used=970, free=30)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: nearly_full)
    assert RealFiles().used_ratio("/") == 0.97
    with Lab(seed=54, driver=driver, broker={"mapped_file_size_commit_log": 8192}) as lab:
        producer = lab.producer("shop", retry_times_when_send_failed=0)
        for _ in range(10):
            producer.send(Message("orders", bytes(2000)))
        store = lab.broker().store
        assert len(store.commit_log.queue.mapped_files) > 2
        store.retention.clean()
        assert store.min_physical_offset == 0
        assert producer.send(Message("orders", b"x")).send_status == "SEND_OK"


def test_a_hanging_disk_makes_sync_sends_time_out_although_the_message_is_stored() -> None:
    lab = quiet_lab(seed=52, broker={"flush_disk_type": "SYNC_FLUSH"})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop", send_msg_timeout=8_000)
    lab.slow_disk("broker-a", "20s")
    result = producer.send(Message("orders", b"x"))
    assert (result.send_status, result.queue_offset) == ("FLUSH_DISK_TIMEOUT", 0)
    lab.run_for("20s")
    assert producer.send(Message("orders", b"y")).send_status == "SEND_OK"


def test_disks_that_cannot_be_broken() -> None:
    lab = quiet_lab(seed=53)
    with pytest.raises(UsageError, match="only a broker's disk"):
        lab.slow_disk("nameserver-1", "1s")
    with pytest.raises(UsageError, match="between 0 and 1"):
        lab.disk_full("broker-a", 95)

"""A disk that is full, and one that hangs."""

from __future__ import annotations

import pytest

from mqlab import Message
from mqlab.errors import MqlabError, UsageError
from tests.scenarios.stories import quiet_lab


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
    with pytest.raises(UsageError, match="0 to 1"):
        lab.disk_full("broker-a", 95)

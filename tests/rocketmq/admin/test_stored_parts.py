"""A message that is sent again is what is stored: compressed as it was, with its flags, properties and born time."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import RECONSUME_LATER, Lab, Message
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.names import dlq_topic, retry_topic
from mqlab.rocketmq.wire.record import Record

TEXT = "заказ 订单 hello rocketmq ".encode() * 300_000  # 10 MB, compressed far less than the limit of 4 MB


def stored(lab: Lab, topic: str) -> list[Record]:
    return [piece.record() for piece in lab.store().pieces(topic)]


def dead(body: bytes, flag: int = 0, **producer: Any) -> Lab:
    lab = Lab(seed=3, client={"enable_trace": False})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", max_reconsume_times=0, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, _: RECONSUME_LATER)
    consumer.start()
    properties = {"colour": "красный"}
    message = Message("orders", body, tags="paid", keys="k1 k2", flag=flag, properties=properties)
    lab.producer("shop", **producer).send(message)
    lab.run_for("25s")
    lab.kill("billing-1")
    return lab


@pytest.mark.parametrize("kind", ["ZLIB", "LZ4", "ZSTD", None])
def test_a_letter_is_sent_back_as_it_is_stored(kind: str | None) -> None:
    body, settings = (TEXT, {"max_message_size": 16 << 20, "compress_type": kind}) if kind else (b"short", {})
    lab = dead(body, flag=7, **settings)
    lab.admin.resend_dlq("billing")
    (letter,), (copy,) = stored(lab, dlq_topic("billing")), stored(lab, retry_topic("billing"))
    assert bool(letter.sys_flag & sys_flag.COMPRESSED) == bool(kind)
    same = ("body", "flag", "sys_flag", "born_timestamp", "body_crc")
    assert {name: getattr(copy, name) for name in same} == {name: getattr(letter, name) for name in same}
    assert copy.flag == 7 and copy.reconsume_times == 0
    gone = {"WAIT", "DELAY", "RECONSUME_TIME", "MAX_RECONSUME_TIMES"}
    kept = {name: value for name, value in letter.property_map.items() if name not in gone}
    assert kept.items() <= copy.property_map.items()


def test_an_operator_sends_a_flag() -> None:
    lab = Lab(seed=3)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.admin.send_message(Message("orders", b"x", flag=9))
    assert [record.flag for record in stored(lab, "orders")] == [9]


@pytest.mark.parametrize("kind", ["ZLIB", "LZ4", "ZSTD"])
def test_a_message_that_was_read_is_sent_again_compressed(kind: str) -> None:
    lab = Lab(seed=3)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop", max_message_size=16 << 20, compress_type=kind)
    first = producer.send(Message("orders", TEXT, flag=5))
    lab.run_for("10s")
    lab.admin.send_message(lab.admin.view_message(first.offset_msg_id))
    one, other = stored(lab, "orders")
    same = ("body", "flag", "sys_flag", "born_timestamp")
    assert {name: getattr(one, name) for name in same} == {name: getattr(other, name) for name in same}

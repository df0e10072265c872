"""A directory that a real broker left is a world of its own: listed, and consumed by mqlab's consumer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab
from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.inspector import StoreInspector

Store = Callable[[str], Path]
Expected = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_its_messages_are_consumed_by_a_new_group_from_the_first_to_the_last(
    name: str, real_store: Store, expected: Expected
) -> None:
    lab = Lab(stores={"broker-a": real_store(name)}, client={"enable_trace": False})
    wanted = sorted(
        (message["topic"], message["queueId"], message["queueOffset"])
        for message in expected(name)["messages"]
        if message["topic"] in ("orders", "tags", "flow", "batch")
    )
    consumer = lab.push_consumer("newcomer", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    for topic in ("orders", "tags", "flow", "batch"):
        consumer.subscribe(topic)
    bodies: dict[str, bytes] = {}

    def listener(messages: Any, context: Any) -> str:
        bodies[messages[0].offset_msg_id] = messages[0].body
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("2m")
    deliveries = list(lab.deliveries("newcomer"))
    seen = sorted((row.topic, row.message_queue.queue_id, row.queue_offset) for row in deliveries)
    assert seen == wanted
    for message in expected(name)["messages"]:
        if message["offsetMsgId"] in bodies and not message["sysFlag"] & 1 and "bodyHex" in message:
            assert bodies[message["offsetMsgId"]].hex() == message["bodyHex"]


def test_its_groups_go_on_where_they_stood(real_store: Store) -> None:
    lab = Lab(stores={"broker-a": real_store("clean")}, client={"enable_trace": False})
    before = {(row.topic, row.queue_id): row.consumer_offset for row in lab.progress("g-flow")}
    assert any(offset > 0 for offset in before.values())
    consumer = lab.push_consumer("g-flow")
    consumer.subscribe("flow")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    lab.run_for("1m")
    assert list(lab.deliveries("g-flow")) == []
    assert {row.lag for row in lab.progress("g-flow") if row.topic == "flow"} == {0}


def test_the_clock_starts_after_the_last_message_and_the_original_is_left_alone(
    real_store: Store, expected: Expected
) -> None:
    path = real_store("clean")
    before = {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    with Lab(stores={"broker-a": path}) as lab:
        assert lab.now_ms > expected("clean")["messages"][-1]["storeTimestamp"]
        lab.run_for("1m")
    assert {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()} == before


def test_a_directory_that_is_no_store_is_refused_with_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory commitlog"):
        Lab(stores={"broker-a": tmp_path})


def test_a_flipped_byte_is_told_with_file_offset_expected_and_found(real_store: Store) -> None:
    path = real_store("clean")
    log = path / "commitlog" / "00000000000000000000"
    data = bytearray(log.read_bytes())
    data[90] ^= 0x40  # in the first message's body
    log.write_bytes(data)
    inspector = StoreInspector(path)
    told = [str(problem) for problem in inspector.problems()]
    assert "commitlog/00000000000000000000 at 0: the body's CRC-32 is 78b9664e, the unit says 7caef7b1" in told
    with pytest.raises(CorruptionError, match=r"offset 5: expected DAA320A7 .* found A320A77C in .*commitlog"):
        inspector.hexdump(1)

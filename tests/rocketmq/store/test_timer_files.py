"""The timer's files byte for byte, from a store that a real 5.3.3 broker wrote with a roll window of 6 s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import StoreError
from mqlab.rocketmq.broker.timed_form import deliver_time, out_time
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.timer import TimerMessageStore
from mqlab.rocketmq.store.timer.delivering import converted
from mqlab.rocketmq.store.timer.enqueuing import enqueue, roll_window
from mqlab.rocketmq.wire.layout import number_fields
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.timer_units import (
    CHECK_FILE_SIZE,
    CHECK_LAYOUT,
    CHECK_SIZE,
    SLOT_LAYOUT,
    TIMER_UNIT_LAYOUT,
    TIMER_UNIT_SIZE,
    WHEEL_FILE_SIZE,
    TimerUnit,
    decode_timer_unit,
)
from tests.rocketmq.broker.fake_clock import FakeClock
from tests.rocketmq.broker.replayed import recorded

VECTOR = recorded("timer_store")
LOG = bytes.fromhex(VECTOR["timerlogHex"])
UNITS = [decode_timer_unit(LOG, at) for at in range(0, len(LOG), TIMER_UNIT_SIZE)]


def _record(unit: dict[str, Any]) -> Record:
    host, port = unit["storeHost"].split(":")
    return Record(
        unit["topic"],
        bytes.fromhex(unit["body"]),
        unit["queueId"],
        properties=unit["propsText"].encode(),
        physical_offset=unit["phy"],
        total_size=unit["size"],
        queue_offset=unit["queueOffset"],
        store_timestamp=unit["store"],
        store_host=(host, int(port)),
    )


@pytest.fixture
def timer(tmp_path: Path) -> TimerMessageStore:
    store = MessageStore.open(str(tmp_path / "store"), timer_roll_window_slot=6, mapped_file_size_commit_log=1 << 16)
    service = TimerMessageStore(store, RealFiles(), FakeClock(VECTOR["base"]))
    service.load()
    yield service
    service.stop()
    store.shutdown()


def test_the_same_messages_make_the_same_timer_log_slots_and_counts(timer: TimerMessageStore, tmp_path: Path) -> None:
    waiting = [_record(unit) for unit in VECTOR["units"] if unit["topic"] == TIMER_TOPIC]
    for record, unit in zip(waiting, UNITS, strict=True):
        out_ms = int(record.property_map["TIMER_OUT_MS"])
        enqueue(timer.state, record, out_ms, unit.write_ms)
    timer.wheel.flush()
    timer.state.log.queue.flush()
    store = tmp_path / "store"
    assert (store / "timerlog" / ("0" * 20)).read_bytes()[: len(LOG)] == LOG
    wheel = (store / "timerwheel").read_bytes()
    assert len(wheel) == WHEEL_FILE_SIZE
    for slot in VECTOR["timerwheelSlots"]:
        assert wheel[slot["index"] * 32 : slot["index"] * 32 + 32].hex() == slot["hex"]
    assert sum(1 for at in range(0, len(wheel), 32) if wheel[at : at + 8] != bytes(8)) == len(VECTOR["timerwheelSlots"])
    # 15 messages count +1, 5 markers -1; the 16 that left count -1 each, which makes the -6 of the real file.
    assert timer.metrics.count("tw") == 10 and timer.metrics.data_version.counter == 20


def test_a_delivered_message_has_the_real_properties_in_the_real_order() -> None:
    waiting = {unit["phy"]: unit for unit in VECTOR["units"] if unit["topic"] == TIMER_TOPIC}
    compared = 0
    for after in VECTOR["units"]:
        properties = _record(after).property_map
        if "TIMER_DEQUEUE_MS" not in properties:
            continue
        rolls = after["topic"] == TIMER_TOPIC
        before = next(
            waiting[unit.physical_offset]
            for unit in UNITS
            if waiting[unit.physical_offset]["body"] == after["body"]
            and unit.write_ms == int(properties["TIMER_ENQUEUE_MS"])
            and _record(waiting[unit.physical_offset]).property_map["UNIQ_KEY"] == properties["UNIQ_KEY"]
        )
        enqueued, dequeued = int(properties["TIMER_ENQUEUE_MS"]), int(properties["TIMER_DEQUEUE_MS"])
        got = converted(_record(before), enqueued, dequeued, rolls=rolls)
        assert (got.topic, got.queue_id, got.properties.decode()) == (
            after["topic"],
            after["queueId"],
            after["propsText"],
        )
        compared += 1
    assert compared == 16


def test_the_check_file_is_read_and_written_again(tmp_path: Path, timer: TimerMessageStore) -> None:
    data = bytes.fromhex(VECTOR["timercheckHex"])[:CHECK_SIZE]
    check = timer.state.checkpoint
    check.decode(data)
    assert check.encode() == data
    assert (check.read_ms, check.log_flushed, check.queue_offset) == (VECTOR["base"] + 65_000, 1040, 20)
    check.flush()
    written = (tmp_path / "store" / "config" / "timercheck").read_bytes()
    assert len(written) == CHECK_FILE_SIZE and written[:CHECK_SIZE] == data
    assert {field.name: field.value for field in number_fields(CHECK_LAYOUT, data)}["queue_offset"] == 20


def test_the_metrics_are_read_and_written_again(timer: TimerMessageStore) -> None:
    timer.metrics.decode(VECTOR["timermetrics"])
    assert timer.metrics.count("tw") == -6 and timer.metrics.encode() == VECTOR["timermetrics"]


def test_tables_of_a_slot_and_a_unit_name_their_fields() -> None:
    slot = VECTOR["timerwheelSlots"][1]
    fields = {field.name: field.value for field in number_fields(SLOT_LAYOUT, bytes.fromhex(slot["hex"]))}
    assert (fields["time"] % 1_209_600, fields["first"], fields["last"], fields["num"]) == (691060, 52, 208, 4)
    unit = {field.name: field.value for field in number_fields(TIMER_UNIT_LAYOUT, LOG, 104)}
    assert (unit["size"], unit["previous"], unit["magic"], unit["delay_ms"], unit["topic_hash"]) == (
        52,
        52,
        1,
        3000,
        3715,
    )


def test_a_full_file_of_the_timer_log_ends_with_a_blank(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store"), mapped_file_size_timer_log=52 * 2 + 30) as store:
        timer = TimerMessageStore(store, RealFiles(), FakeClock())
        timer.load()
        positions = [timer.state.log.append(TimerUnit(52, -1, 1, 0, 0, at, 100, 7)) for at in range(3)]
        assert positions == [0, 52, 134]
        data = (tmp_path / "store" / "timerlog" / ("0" * 20)).read_bytes()
        assert data[104:120].hex(" ", 4) == "0000001e 00000000 00000000 cbd43194"
        # The first file goes when the messages of its units are gone from the commit log, the last never.
        assert timer.state.log.clean_expired(1) == 0
        assert timer.state.log.clean_expired(2) == 1 and len(timer.state.log.queue.mapped_files) == 1
        assert timer.state.log.clean_expired(1000) == 0


def test_a_wheel_of_another_length_is_refused(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store")) as store:
        (tmp_path / "store" / "timerwheel").write_bytes(bytes(32))
        with pytest.raises(StoreError, match=r"Timer wheel length:32 != expected:38707200"):
            TimerMessageStore(store, RealFiles(), FakeClock()).load()


def test_a_slot_of_another_round_counts_as_empty(timer: TimerMessageStore) -> None:
    timer.wheel.put(5_000, 0, 52, 2)
    lap_ms = 1_209_600 * 1000
    assert timer.wheel.slot(5_999).num == 2 and timer.wheel.slot(5_000 + lap_ms).last == -1
    timer.wheel.put(5_000 + lap_ms, 104, 104, 1)
    assert timer.wheel.slot(5_000).last == -1


@pytest.mark.parametrize(
    ("setting", "used"), [(1, 100), (150, 100), (200, 200), (999, 500), (1000, 1000), (5000, 1000)]
)
def test_the_precision_is_one_of_four(setting: int, used: int) -> None:
    assert StoreConfig(timer_precision_ms=setting).timer_precision == used


@pytest.mark.parametrize(("slots", "used"), [(2, 2), (0, 604_740), (604_741, 604_740), (172_800, 172_800)])
def test_a_roll_window_that_the_wheel_cannot_hold_becomes_the_largest(slots: int, used: int) -> None:
    assert roll_window(slots) == used


def test_out_is_before_deliver_and_a_multiple_of_the_precision() -> None:
    for precision_ms in (100, 1000):
        for deliver_ms in range(10_000, 12_100, 7):
            out_ms = out_time(deliver_ms, precision_ms)
            assert out_ms % precision_ms == 0 and deliver_ms <= out_ms + precision_ms < deliver_ms + precision_ms
    ends = [str((1 << 63) - 1), str(1 << 63), "+-1", "１２"]
    moments = [deliver_time({"TIMER_DELIVER_MS": text}, 0) for text in ends]
    assert moments == [(1 << 63) - 1, None, None, 12]

"""The vectorised indexing against the plain one: the same files, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.index_service import IndexService
from mqlab.rocketmq.store.recovery import index_bulk
from mqlab.rocketmq.store.recovery.index_bulk import BulkIndex, Units
from mqlab.rocketmq.wire import properties as property_text

T0 = 1700000000000
TOPICS = ["orders", "%RETRY%group", "t"]


@dataclass
class Config:
    max_hash_slot_num: int = 17
    max_index_num: int = 40
    max_msgs_num_batch: int = 64
    utc_offset_ms: int = 0


class StandingClock:
    def now_ms(self) -> int:
        return T0


Unit = tuple[int, bytes, int, int]  # topic number, properties, sys_flag, ms since the unit before


def both(directory, batches: list[list[Unit]], filler: bytes) -> list[dict[str, bytes]]:
    """The files of an index put one by one and of one made in bulk, after these batches."""
    files = []
    for bulk in (False, True):
        index = IndexService(RealFiles(), f"{directory}/{bulk}", Config(), StandingClock())
        physical_offset, store_timestamp = 0, T0
        for batch in batches:
            log, columns = bytearray(), []
            for topic_number, properties, sys_flag, wait_ms in batch:
                physical_offset += 100
                store_timestamp += wait_ms
                log += filler
                start = len(log)
                log += properties
                columns.append((topic_number, start, len(log), physical_offset, store_timestamp, sys_flag))
                if not bulk:
                    found = property_text.decode(properties)
                    index.put(
                        TOPICS[topic_number],
                        physical_offset,
                        store_timestamp,
                        sys_flag=sys_flag,
                        unique_key=found.get("UNIQ_KEY"),
                        keys=found.get("KEYS"),
                    )
            if bulk and columns:
                arrays = [np.array(column, np.int64) for column in zip(*columns, strict=True)]
                bulk_index = BulkIndex(index)
                bulk_index.add(memoryview(bytes(log + filler)), Units(TOPICS, *arrays))
                bulk_index.finish()
            physical_offset -= 50 if len(batch) % 2 else 0  # what a recovery dispatches a second time
        index.close()
        folder = f"{directory}/{bulk}"
        found_names = RealFiles().list(folder) if RealFiles().is_dir(folder) else []
        files.append({name: RealFiles().read(f"{folder}/{name}") for name in found_names})
    return files


keys = st.text(st.sampled_from("ab1 ключ 订单😀"), max_size=12)
properties = st.lists(
    st.tuples(st.sampled_from(["KEYS", "UNIQ_KEY", "TAGS", "KEY", "KEYSS", "n"]), keys), max_size=4
).map(lambda pairs: b"".join(f"{name}\x01{value}\x02".encode() for name, value in pairs))
damaged = st.lists(st.sampled_from([b"KEYS", b"UNIQ_KEY", b"\x01", b"\x02", b"a b", b"\xff", b" "]), max_size=8).map(
    b"".join
)
units = st.tuples(
    st.integers(0, 2), st.one_of(properties, damaged), st.sampled_from([0, 4, 8, 12, 0x30]), st.integers(0, 3000)
)


@given(st.lists(st.lists(units, max_size=30), max_size=4), st.binary(max_size=9))
def test_the_same_bytes_as_one_by_one(tmp_path_factory, batches, filler):
    one_by_one, at_once = both(tmp_path_factory.mktemp("index"), batches, filler)
    assert one_by_one == at_once


@pytest.mark.parametrize("waiting", [1, 7, 1000])
@pytest.mark.parametrize("chunk", [1, 50, 1000])
def test_chunks_make_no_difference(tmp_path, monkeypatch, chunk, waiting):
    monkeypatch.setattr(index_bulk, "_CHUNK_BYTES", chunk)
    monkeypatch.setattr(index_bulk, "_MOST_WAITING", waiting)
    batch = [
        (n % 3, property_text.encode({"KEYS": f"k{n} common", "UNIQ_KEY": f"7F{n:08d}"}), 0, 700) for n in range(100)
    ]
    one_by_one, at_once = both(tmp_path, [batch], b"\x01\x02 body KEYS\x01x\x02")
    assert len(at_once) > 5
    assert one_by_one == at_once


def test_many_slots_are_written_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(index_bulk, "_SLOTS_PER_WRITE", 4)
    batch = [(0, property_text.encode({"KEYS": f"key-{n}"}), 0, 0) for n in range(39)]
    one_by_one, at_once = both(tmp_path, [batch], b"")
    assert one_by_one == at_once

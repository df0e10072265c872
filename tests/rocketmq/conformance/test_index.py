"""The index of the real broker's stores made again from their logs: the same bytes, one by one and in bulk."""

from __future__ import annotations

import numpy as np
import pytest

from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import StoreConfig
from mqlab.rocketmq.store.index_service import IndexService
from mqlab.rocketmq.store.recovery.index_bulk import BulkIndex, Units


class StandingClock:
    def now_ms(self) -> int:
        return 1700000000456


def fresh(directory) -> IndexService:
    config = StoreConfig(max_hash_slot_num=200, max_index_num=400)
    return IndexService(RealFiles(), str(directory), config, StandingClock())


def files_of(directory) -> list[bytes]:
    return [path.read_bytes() for path in sorted(directory.iterdir())]


@pytest.mark.parametrize("name", ["clean", "edges", "edges-killed"])
def test_one_by_one(unpacked_stores, tmp_path, name):
    index = fresh(tmp_path)
    for piece in StoreInspector(unpacked_stores / name).pieces():
        record = piece.record()
        index.put(
            record.topic,
            record.physical_offset,
            record.store_timestamp,
            sys_flag=record.sys_flag,
            unique_key=record.property_map.get("UNIQ_KEY"),
            keys=record.property_map.get("KEYS"),
        )
    index.close()
    assert files_of(tmp_path) == files_of(unpacked_stores / name / "index")


@pytest.mark.parametrize("name", ["clean", "edges", "edges-killed"])
def test_in_bulk_file_by_file(unpacked_stores, tmp_path, name):
    index, store = fresh(tmp_path), StoreInspector(unpacked_stores / name)
    pieces = list(store.pieces())
    topics = sorted({piece.record().topic for piece in pieces})
    for segment in store.log.segments():
        rows = []
        for piece in pieces:
            if segment.start <= piece.physical_offset < segment.end:
                record, shape = piece.record(), piece.shape
                rows.append(
                    (
                        topics.index(record.topic),
                        shape.properties_at,
                        shape.properties_end,
                        record.physical_offset,
                        record.store_timestamp,
                        record.sys_flag,
                    )
                )
                view = piece.view
        if rows:
            columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
            bulk = BulkIndex(index)
            bulk.add(view, Units(topics, *columns))
            bulk.finish()
    index.close()
    assert files_of(tmp_path) == files_of(unpacked_stores / name / "index")

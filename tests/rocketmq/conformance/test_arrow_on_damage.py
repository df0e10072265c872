"""The 44 damaged copies of a real store as columns: all of it up to a clean end, or an error with file and offset.

A log that ends before its queues do is such an error, and a body that does not fit its check sum; without the column
body, and where losses are allowed, the columns are what a plain reader sees.
After a recovery the columns list exactly what the real store was left with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.arrow.growing import confirmed_end
from mqlab.data.arrow.reading import read_table
from mqlab.errors import CorruptionError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.reading.log_reader import GAP, UNIT
from mqlab.rocketmq.wire.record import check
from tests.rocketmq.conformance.test_damaged_stores import damaged

PLACE_OF = {44382: 44352}  # a flipped bit in a stored physical offset, and where that unit begins
STRANGE_PLACES = {("flip-anywhere-early", 44382)}  # a recovery lets it stand, the columns do not trust the unit
NAMES = ["physical_offset", "topic", "queue_id", "queue_offset", "properties", "body"]


@pytest.mark.parametrize("number", range(44))
def test_a_damaged_copy(
    number: int, real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]]
) -> None:
    case = expected("edges-killed.damaged")["cases"][number]
    directory = real_store("edges-killed")
    damaged(directory, case)
    inspector = StoreInspector(str(directory))
    pieces = list(inspector.log.scan(0, confirmed_end(inspector)))
    gaps = [piece for piece in pieces if piece.kind == GAP or piece.stored_physical_offset != piece.physical_offset]
    plain = [piece.record() for piece in pieces if piece.kind == UNIT]
    units = [unit for queue in inspector.queues() for _, unit in queue.units()]
    promised = max((unit.physical_offset + unit.size for unit in units), default=0)
    end = confirmed_end(inspector)
    bad_bodies = [p for p in pieces if p.kind == UNIT and check(p.raw()).kind != UNIT]
    try:
        rows = read_table(directory, NAMES).to_pylist()
    except CorruptionError as error:
        assert error.where.startswith(str(directory / "commitlog"))
        if error.where == str(directory / "commitlog"):
            assert (error.offset, f"up to {promised} " in str(error)) == (end, True)
            assert promised > end
        else:
            first = min([*gaps, *bad_bodies], key=lambda piece: piece.physical_offset)
            assert error.offset is not None
            assert first.physical_offset <= error.offset < first.physical_offset + first.size
    else:
        assert not gaps and not bad_bodies and promised <= end
        assert [row["body"] for row in rows] == [record.body for record in plain]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rows = read_table(directory, NAMES[:-1], fail_on_data_loss=False).to_pylist()
        except CorruptionError:
            assert gaps
        else:
            assert not gaps
            assert [row["physical_offset"] for row in rows] == [record.physical_offset for record in plain]
            assert [dict(row["properties"]) for row in rows] == [record.property_map for record in plain]
    assert bool(told) == (promised > end)
    with MessageStore.open(str(directory)):
        if (case["damage"], case["at"]) in STRANGE_PLACES:
            with pytest.raises(CorruptionError, match=f"at offset {PLACE_OF[case['at']]}: expected physical offset"):
                read_table(directory, NAMES)
        else:
            assert read_table(directory, NAMES).num_rows == case["messages"]

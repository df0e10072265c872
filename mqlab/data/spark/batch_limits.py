"""A stream's batch made shorter: at most a number of bytes or units of all logs together, but at least one unit.

Mirrors: maxBytesPerTrigger of Spark's file source and maxOffsetsPerTrigger of its source for Kafka.

    backlog    broker-a ████████████  broker-b ████        limit: half of it
    batch      broker-a ██████        broker-b ██          each in proportion, up to a place between two units
               one unit of the longest backlog when the limit is smaller than any: a stream must advance
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.data.arrow.growing import boundary_before, place_after, unit_end
from mqlab.data.spark.log_places import Offsets
from mqlab.rocketmq.store.reading.store_reader import StoreReader


def cut_to_bytes(begins: Offsets, ends: Offsets, limit: int, inspectors: Mapping[str, StoreReader]) -> Offsets:
    """The ends of brokers with something to read, so that together they have ``limit`` bytes or less, or one unit."""
    backlog = backlog_of(begins, ends)
    total = sum(backlog.values())
    if total <= limit:
        return {}
    cut = {
        name: boundary_before(inspectors[name], begins[name], begins[name] + limit * size // total)
        for name, size in backlog.items()
    }
    return _at_least_one(begins, cut, backlog, inspectors)


def cut_to_units(begins: Offsets, ends: Offsets, limit: int, inspectors: Mapping[str, StoreReader]) -> Offsets:
    """The same with ``limit`` units or less; a share that a broker does not use goes to those after it."""
    backlog = backlog_of(begins, ends)
    cut: Offsets = {}
    units_left, bytes_left = limit, sum(backlog.values())
    for name, size in sorted(backlog.items(), key=lambda item: item[1]):
        share = units_left * size // bytes_left
        cut[name], used = place_after(inspectors[name], begins[name], share, ends[name])
        units_left, bytes_left = units_left - used, bytes_left - size
    return _at_least_one(begins, cut, backlog, inspectors)


def backlog_of(begins: Offsets, ends: Offsets) -> dict[str, int]:
    """Bytes that are left to read, for each broker that has some."""
    return {name: ends[name] - begin for name, begin in begins.items() if ends[name] > begin}


def _at_least_one(
    begins: Offsets, cut: Offsets, backlog: Mapping[str, int], inspectors: Mapping[str, StoreReader]
) -> Offsets:
    """The cut, in which the longest backlog gives one unit when no broker gives any."""
    if backlog and all(cut[name] == begins[name] for name in cut):
        name = max(backlog, key=lambda broker: backlog[broker])
        return {**cut, name: unit_end(inspectors[name], begins[name])}
    return cut

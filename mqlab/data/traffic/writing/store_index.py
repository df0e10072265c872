"""The key index of a store, fed slice by slice.

Mirrors: IndexService.buildIndex, many units at a time as mqlab.rocketmq.store.recovery.index_bulk does. Lab 01 follows
a chain.

    slice ─▶ where each unit's properties are ─▶ UNIQ_KEY and KEYS ─▶ entries and slots

A trace message alone has thirty keys: the index of a day is larger than half its log and takes longer to make than
everything else, and no reader of whole stores uses it. It is off unless asked for (``TrafficModel.index``).

Left out: file names by the wall clock; here they are the store time of the first entry.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import TrafficModel
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.index_service import IndexService
from mqlab.rocketmq.store.recovery.index_bulk import BulkIndex, Units


class _StoreClock:
    """A clock that shows the store time of the units being indexed, and has no timers."""

    def __init__(self) -> None:
        self.shown_ms = 0

    def now_ms(self) -> int:
        return self.shown_ms

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        raise NotImplementedError("nothing waits while a store is made")

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> Deadline:
        raise NotImplementedError("nothing waits while a store is made")


class StoreIndex:
    """Index files below ``directory``; ``places``: (topic, queue id) by queue number."""

    def __init__(self, directory: str, model: TrafficModel, places: list[tuple[str, int]]) -> None:
        files = RealFiles()
        config = StoreConfig(max_hash_slot_num=model.hash_slot_num, max_index_num=model.index_num)
        self._clock = _StoreClock()
        self._checkpoint = Checkpoint(files, f"{directory}/checkpoint")
        self._service = IndexService(files, f"{directory}/index", config, self._clock, self._checkpoint)
        self._bulk = BulkIndex(self._service)
        self._topics = [topic for topic, _ in places]

    def add(
        self,
        buffer: Array,
        start: int,
        places: Array,
        sizes: Array,
        property_sizes: Array,
        queues: Array,
        stored_ms: Array,
    ) -> None:
        """Index the units of a slice whose bytes are in ``buffer``, which begins at ``start`` of the log."""
        if not self._clock.shown_ms:
            self._clock.shown_ms = int(stored_ms[0])
        ends = places - start + sizes
        units = Units(self._topics, queues, ends - property_sizes, ends, places, stored_ms, queues * 0)
        self._bulk.add(memoryview(buffer.data), units)

    def close(self) -> int:
        """Write everything; the time up to which full files are known to be on disk, for the checkpoint."""
        self._bulk.finish()
        self._service.close()
        return self._checkpoint.index_msg_timestamp

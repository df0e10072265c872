"""The wheel: a slot per moment, 1,209,600 of them, each the head of a list in the timer log.

Mirrors: org.apache.rocketmq.store.timer.TimerWheel; file ``timerwheel``, 38,707,200 bytes, nearly all of them holes.

    moment 1795737460000 ms, precision 1000        slot 1795737460 mod 1,209,600 = 691060
    a slot whose time is another moment            counts as empty: the wheel has turned since

The slots that were ever used are in memory; those that changed are written when the service flushes, once a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from mqlab.errors import StoreError
from mqlab.rocketmq.ports import Files, Mapping
from mqlab.rocketmq.wire.timer_units import NO_POSITION, SLOT, SLOT_SIZE, WHEEL_FILE_SIZE, WHEEL_SLOTS, Slot, slots_in

EMPTY_SLOT = Slot(-1, NO_POSITION, NO_POSITION)


class TimerWheel:
    """The slots of one store. Moments are ms; ``Slot.time`` counts steps of ``precision_ms``."""

    def __init__(self, files: Files, path: str, precision_ms: int) -> None:
        self._files = files
        self.path = path
        self.precision_ms = precision_ms
        self._slots: dict[int, Slot] = {}
        self._dirty: dict[int, None] = {}
        self._times: list[int] = []  # a heap: the times of slots that were not asked about yet
        self._mapping: Mapping | None = None

    def load(self) -> None:
        """Read the slots of the file, if it is there. Raises StoreError for a file of another length."""
        if not self._files.exists(self.path) or self._files.size(self.path) == 0:
            return
        size = self._files.size(self.path)
        if size != WHEEL_FILE_SIZE:
            raise StoreError(
                f"Timer wheel length:{size} != expected:{WHEEL_FILE_SIZE}",
                hint=f"take {self.path} away: the wheel is built again from the timer log",
            )
        self._slots.update(slots_in(self._map().view))
        self._times = [slot.time for slot in self._slots.values()]
        heapify(self._times)

    def slot(self, moment_ms: int) -> Slot:
        """The slot of a moment; EMPTY_SLOT when nothing waits for it. Mirrors getSlot."""
        time = moment_ms // self.precision_ms
        slot = self._slots.get(time % WHEEL_SLOTS)
        return slot if slot is not None and slot.time == time else EMPTY_SLOT

    def put(self, moment_ms: int, first: int, last: int, num: int) -> None:
        """Write the slot of a moment. Mirrors putSlot."""
        time = moment_ms // self.precision_ms
        index = time % WHEEL_SLOTS
        before = self._slots.get(index)
        if before is None or before.time != time:
            heappush(self._times, time)
        self._slots[index] = Slot(time, first, last, num)
        self._dirty[index] = None

    def revise(self, moment_ms: int, position: int) -> None:
        """Recovery found a unit of this moment: it is the newest, or the first that is known. Mirrors reviseSlot.

        The count stays as it was, even if it counted for another moment.
        """
        time = moment_ms // self.precision_ms
        before = self._slots.get(time % WHEEL_SLOTS)
        first = before.first if before is not None and before.time == time else position
        self.put(moment_ms, first, position, before.num if before is not None else 0)

    def next_ms(self, from_ms: int) -> int | None:
        """The first moment from there on that has a slot, None without one. The next call asks no earlier one."""
        from_time = from_ms // self.precision_ms
        while self._times and self._times[0] < from_time:
            heappop(self._times)
        return self._times[0] * self.precision_ms if self._times else None

    def pending(self, from_ms: int) -> Iterator[Slot]:
        """The slots of this moment and later ones, in no order."""
        from_time = from_ms // self.precision_ms
        return (slot for slot in self._slots.values() if slot.time >= from_time)

    def first_beyond(self, from_ms: int, position: int) -> int | None:
        """The smallest ``first`` of pending slots that point past the end of the timer log. Mirrors checkPhyPos."""
        return min((slot.first for slot in self.pending(from_ms) if slot.last > position), default=None)

    def flush(self) -> None:
        """Write and sync the slots that changed."""
        if not self._dirty:
            return
        mapping = self._map()
        for index in sorted(self._dirty):
            position = index * SLOT_SIZE
            mapping.write(position, SLOT.pack(*self._slots[index]))
            mapping.flush(position, position + SLOT_SIZE)
        self._dirty.clear()

    def close(self) -> None:
        """Close the file."""
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None

    def _map(self) -> Mapping:
        if self._mapping is None:
            is_new = not self._files.exists(self.path)
            self._mapping = self._files.map(self.path, WHEEL_FILE_SIZE)
            if is_new:
                self._files.sync_directory(self.path.rpartition("/")[0])
        return self._mapping

    def __len__(self) -> int:
        return len(self._slots)

    def __repr__(self) -> str:
        return f"<TimerWheel {self.path} {len(self._slots)} slots used, {len(self._dirty)} to be written>"

"""Defects that a store may have: answers before the disk, dispatch, numbers after a restart.

Which one a cluster has is drawn from the cluster's name.
"""

from __future__ import annotations

from typing import Any

from mqlab.lab.simulation.planted.fitting import STORE, Defect
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.put_result import PUT_OK

PAGE = 4_096


def _flusher(node: Any) -> Any:
    return node.store.flusher


def _dispatching(node: Any) -> Any:
    return node.store.dispatching


def _dispatcher(node: Any) -> Any:
    return node.store.dispatcher


def _queues(node: Any) -> Any:
    return node.store.queues


def _at_once(original: Any, self: Any, result: Any) -> Any:
    return Promise.of(PUT_OK)


def _as_far_as_written(original: Any, self: Any) -> int:
    return int(self._state.commit_log.max_offset)


def _not_across_pages(original: Any, self: Any, view: memoryview, at: int, end: int, base: int) -> int:
    size = int.from_bytes(view[at : at + 4], "big")
    if end - at > 4 and at // PAGE != (at + size - 1) // PAGE:
        return size
    return int(original(self, view, at, end, base))


def _one_too_low(original: Any, self: Any, min_physical_offset: int) -> None:
    original(self, min_physical_offset)
    self.next_offsets = {queue: max(0, offset - 1) for queue, offset in self.next_offsets.items()}


def _from_the_beginning(original: Any, self: Any, min_physical_offset: int) -> None:
    original(self, min_physical_offset)
    self.next_offsets = {}


DEFECTS = (
    Defect(STORE, "acknowledged", _flusher, {"wait": _at_once}),
    Defect(STORE, "dispatched", _dispatching, {"confirm_offset": _as_far_as_written}),
    Defect(STORE, "dispatched", _dispatcher, {"dispatch_unit": _not_across_pages}),
    Defect(STORE, "numbered", _queues, {"recover_next_offsets": _one_too_low}),
    Defect(STORE, "numbered", _queues, {"recover_next_offsets": _from_the_beginning}),
)

"""Defects that POP may have in a broker: leases, acks, revival, offsets. mqlab.lab.simulation.leasing hunts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mqlab.lab.simulation.planted.fitting import BROKER, Defect


def _revive_log(node: Any) -> Any:
    return node.pop.revive_log


def _reviving(node: Any) -> Any:
    return node.pop.reviving


def _buffer(node: Any) -> Any:
    return node.pop.buffer


def _held(node: Any) -> Any:
    return node.pop.held


def _popping(node: Any) -> Any:
    return node.pop._popping


def _acking(node: Any) -> Any:
    return node.pop._acking


def _nothing_is_stored(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    return True


def _singles_are_not_stored(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    return True if check_point.count == 1 else bool(original(self, check_point, revive_queue))


def _a_short_lease(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    short = replace(check_point, invisible_time=check_point.invisible_time // 8)
    return bool(original(self, short, revive_queue))


def _for_another(original: Any, self: Any, ack: Any, *rest: Any, **named: Any) -> bool:
    return bool(original(self, replace(ack, start_offset=ack.start_offset + 1), *rest, **named))


def _all_but_the_last(original: Any, self: Any, point: Any, acked: int) -> None:
    original(self, point, acked | 1 << (point.count - 1))


def _not_counted(original: Any, self: Any, point: Any, record: Any, topic: str) -> bool:
    return bool(original(self, point, record.changed(reconsume_times=record.reconsume_times - 1), topic))


def _one_further(original: Any, self: Any, check_point: Any, revive_queue: int, next_begin_offset: int) -> bool:
    return bool(original(self, check_point, revive_queue, next_begin_offset + 1))


def _one_back(original: Any, self: Any, header: Any, topic: str, queue_id: int) -> int:
    first = int(self._state.store.min_offset(topic, queue_id))
    return max(first, int(original(self, header, topic, queue_id)) - 1)


def _odd_ones_are_forgotten(
    original: Any, self: Any, topic: str, group: str, queue_id: int, offset: int, *rest: Any
) -> bool:
    return True if offset % 2 else bool(original(self, topic, group, queue_id, offset, *rest))


def _wakes_nobody(original: Any, self: Any, *message: Any) -> None:
    return None


DEFECTS = (
    Defect(BROKER, "lost", _revive_log, {"put_check_point": _nothing_is_stored}),
    Defect(BROKER, "lost", _revive_log, {"put_check_point": _singles_are_not_stored}),
    Defect(BROKER, "twice", _revive_log, {"put_check_point": _a_short_lease}),
    Defect(BROKER, "twice", _revive_log, {"put_ack": _for_another}),
    Defect(BROKER, "lost", _reviving, {"_settle": _all_but_the_last}),
    Defect(BROKER, "count", _reviving, {"_revive": _not_counted}),
    Defect(BROKER, "lost", _buffer, {"add": _one_further}),
    Defect(BROKER, "held", _popping, {"_offset": _one_back}),
    Defect(BROKER, "twice", _acking, {"_ack": _odd_ones_are_forgotten}),
    Defect(BROKER, "late", _held, {"arrived": _wakes_nobody}),
)

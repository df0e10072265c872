"""Defects of timed messages and of POP: slots, clocks and recovery of the wheel, leases, acks and revival."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mqlab.rocketmq.broker.pop.acking import Acking
from mqlab.rocketmq.broker.pop.buffer import PopBuffer
from mqlab.rocketmq.broker.pop.popping import Popping
from mqlab.rocketmq.broker.pop.revive_log import ReviveLog
from mqlab.rocketmq.broker.pop.reviving import Reviving
from mqlab.rocketmq.store.timer.delivering import Deliverer
from mqlab.rocketmq.store.timer.dequeuing import Dequeuer
from mqlab.rocketmq.store.timer.flushing import TimerFlusher
from mqlab.rocketmq.store.timer.state import TimerState
from mqlab.rocketmq.store.timer.timer_log import TimerLog
from mqlab.rocketmq.store.timer.timer_message_store import TimerMessageStore
from mqlab.rocketmq.store.timer.wheel import TimerWheel
from tests.lab.simulation.mutants.patching import Mutant, Patch, wrapped


def nothing_is_stored(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    return True


def singles_are_not_stored(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    return True if check_point.count == 1 else bool(original(self, check_point, revive_queue))


def a_short_lease(original: Any, self: Any, check_point: Any, revive_queue: int) -> bool:
    short = replace(check_point, invisible_time=check_point.invisible_time // 8)
    return bool(original(self, short, revive_queue))


def for_another(original: Any, self: Any, ack: Any, *rest: Any, **named: Any) -> bool:
    return bool(original(self, replace(ack, start_offset=ack.start_offset + 1), *rest, **named))


def all_but_the_last(original: Any, self: Any, point: Any, acked: int) -> None:
    original(self, point, acked | 1 << (point.count - 1))


def not_counted(original: Any, self: Any, point: Any, record: Any) -> bool:
    return bool(original(self, point, record.changed(reconsume_times=record.reconsume_times - 1)))


def one_further(original: Any, self: Any, check_point: Any, revive_queue: int, next_begin_offset: int) -> bool:
    return bool(original(self, check_point, revive_queue, next_begin_offset + 1))


def one_back(original: Any, self: Any, header: Any, topic: str, queue_id: int) -> int:
    first = int(self._state.store.min_offset(topic, queue_id))
    return max(first, int(original(self, header, topic, queue_id)) - 1)


def odd_ones_are_forgotten(
    original: Any, self: Any, topic: str, group: str, queue_id: int, offset: int, *rest: Any
) -> bool:
    return True if offset % 2 else bool(original(self, topic, group, queue_id, offset, *rest))


def keeps_the_first(original: Any, self: Any, moment_ms: int, first: int, last: int, num: int) -> None:
    original(self, moment_ms, first, first, num)


def all_but_the_oldest(original: Any, self: Any, slot_ms: int) -> Any:
    units = original(self, slot_ms)
    return units[:-1] if len(units) > 1 else units


def all_is_enqueued(original: Any, self: Any) -> None:
    original(self)
    self.state.queue_offset += self.state.enqueue_behind()


def reads_from_now(original: Any, self: Any) -> None:
    original(self)
    self.state.read_ms = self.state.write_ms()


def saved_ahead(original: Any, self: Any) -> None:
    original(self)
    self._state.checkpoint.read_ms += 5_000


def ahead(original: Any, self: Any) -> int:
    return int(original(self)) + 2 * int(self.precision_ms)


def rolls_away(original: Any, self: Any, delivery: Any) -> bool:
    return True if delivery.rolls else bool(original(self, delivery))


def leads_nowhere(original: Any, self: Any, unit: Any) -> int:
    return int(original(self, unit._replace(previous=-1)))


def _mutant(owner: type, method: str, change: Callable[..., Any]) -> Mutant:
    def planted(patch: Patch) -> None:
        wrapped(patch, owner, method, change)

    planted.__name__ = change.__name__
    return planted


MUTANTS: tuple[Mutant, ...] = (
    _mutant(ReviveLog, "put_check_point", nothing_is_stored),
    _mutant(ReviveLog, "put_check_point", singles_are_not_stored),
    _mutant(ReviveLog, "put_check_point", a_short_lease),
    _mutant(ReviveLog, "put_ack", for_another),
    _mutant(Reviving, "_settle", all_but_the_last),
    _mutant(Reviving, "_revive", not_counted),
    _mutant(PopBuffer, "add", one_further),
    _mutant(Acking, "_ack", odd_ones_are_forgotten),
    _mutant(TimerWheel, "put", keeps_the_first),
    _mutant(Dequeuer, "units_of", all_but_the_oldest),
    _mutant(TimerMessageStore, "load", all_is_enqueued),
    _mutant(TimerMessageStore, "load", reads_from_now),
    _mutant(TimerFlusher, "prepare_check_point", saved_ahead),
    _mutant(TimerState, "write_ms", ahead),
    _mutant(Deliverer, "_put", rolls_away),
    _mutant(TimerLog, "append", leads_nowhere),
)
ONE_BACK = _mutant(Popping, "_offset", one_back)
"""What it gives out twice is still handled once: lab.verify tells it in a world of one queue."""

"""Defects that a timer wheel may have: slots, recovery, clocks, rolling. mqlab.lab.simulation.leasing hunts them."""

from __future__ import annotations

from typing import Any

from mqlab.lab.simulation.planted.fitting import BROKER, Defect


def _wheel(node: Any) -> Any:
    return node.state.timer.wheel


def _log(node: Any) -> Any:
    return node.state.timer.state.log


def _timer(node: Any) -> Any:
    return node.state.timer


def _state(node: Any) -> Any:
    return node.state.timer.state


def _dequeuer(node: Any) -> Any:
    return node.state.timer._dequeuer


def _deliverer(node: Any) -> Any:
    return node.state.timer._deliverer


def _flusher(node: Any) -> Any:
    return node.state.timer._flusher


def _keeps_the_first(original: Any, self: Any, moment_ms: int, first: int, last: int, num: int) -> None:
    original(self, moment_ms, first, first, num)


def _all_but_the_oldest(original: Any, self: Any, slot_ms: int) -> Any:
    units = original(self, slot_ms)
    return units[:-1] if len(units) > 1 else units


def _all_is_enqueued(original: Any, self: Any) -> None:
    original(self)
    self.state.queue_offset += self.state.enqueue_behind()


def _reads_from_now(original: Any, self: Any) -> None:
    original(self)
    self.state.read_ms = self.state.write_ms()


def _saved_ahead(original: Any, self: Any) -> None:
    original(self)
    self._state.checkpoint.read_ms += 5_000


def _ahead(original: Any, self: Any) -> int:
    return int(original(self)) + 2 * int(self.precision_ms)


def _rolls_away(original: Any, self: Any, delivery: Any) -> bool:
    return True if delivery.rolls else bool(original(self, delivery))


def _leads_nowhere(original: Any, self: Any, unit: Any) -> int:
    return int(original(self, unit._replace(previous=-1)))


DEFECTS = (
    Defect(BROKER, "lost", _wheel, {"put": _keeps_the_first}),
    Defect(BROKER, "lost", _dequeuer, {"units_of": _all_but_the_oldest}),
    Defect(BROKER, "lost", _timer, {"load": _all_is_enqueued}),
    Defect(BROKER, "lost", _timer, {"load": _reads_from_now}),
    Defect(BROKER, "lost", _flusher, {"prepare_check_point": _saved_ahead}),
    Defect(BROKER, "early", _state, {"write_ms": _ahead}),
    Defect(BROKER, "lost", _deliverer, {"_put": _rolls_away}),
    Defect(BROKER, "lost", _log, {"append": _leads_nowhere}),
)

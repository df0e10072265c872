"""Defects of what a broker does about parts that fail: dispatch, flushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.rocketmq.store.admission import Admission
from mqlab.rocketmq.store.dispatch import Dispatcher
from mqlab.rocketmq.store.failures import Failures
from mqlab.rocketmq.store.mapped_file_queue import MappedFileQueue
from tests.lab.simulation.mutants.patching import Mutant, Patch, does_nothing, wrapped


def a_failed_dispatch_is_nobodys_business(patch: Patch) -> None:
    def attempt(original: Any, self: Any, part: str, action: Callable[[], object], *more: bool) -> bool:
        if part != "store.dispatch":
            return bool(original(self, part, action, *more))
        try:
            action()
        except OSError:
            return False
        return True

    wrapped(patch, Failures, "attempt", attempt)


def a_failed_part_refuses_nothing(patch: Patch) -> None:
    patch.setattr(Admission, "is_writeable", property(lambda self: not self._is_disk_full))


def a_failed_part_is_not_tried_again(patch: Patch) -> None:
    does_nothing(patch, Failures, "_arm")


def dispatch_steps_over_what_failed(patch: Patch) -> None:
    def run(original: Any, self: Any, limit: int, max_units: int | None = None) -> int:
        try:
            return int(original(self, limit, max_units))
        except OSError:
            self.reput_from = limit
            raise

    wrapped(patch, Dispatcher, "run", run)


def a_failed_flush_counts_as_done(patch: Patch) -> None:
    def flush(original: Any, self: Any, *arguments: Any, **named: Any) -> bool:
        try:
            return bool(original(self, *arguments, **named))
        except OSError:
            self.flushed_where = self.max_offset
            return True

    wrapped(patch, MappedFileQueue, "flush", flush)


def a_part_that_works_again_stays_failed(patch: Patch) -> None:
    does_nothing(patch, Failures, "works")


MUTANTS: tuple[Mutant, ...] = (
    a_failed_dispatch_is_nobodys_business,
    a_failed_part_refuses_nothing,
    a_failed_part_is_not_tried_again,
    dispatch_steps_over_what_failed,
    a_failed_flush_counts_as_done,
    a_part_that_works_again_stays_failed,
)

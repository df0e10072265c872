"""Defects of timed messages and of POP, those that clusters of lab 14 and days of leases know too."""

from __future__ import annotations

from typing import Any

from mqlab.lab.simulation.planted import of_pop, of_the_timer
from mqlab.lab.simulation.planted.fitting import Defect
from mqlab.rocketmq.broker.pop.acking import Acking
from mqlab.rocketmq.broker.pop.buffer import PopBuffer
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

OWNERS: dict[str, Any] = {
    "put_check_point": ReviveLog,
    "put_ack": ReviveLog,
    "_settle": Reviving,
    "_revive": Reviving,
    "add": PopBuffer,
    "_ack": Acking,
    "put": TimerWheel,
    "units_of": Dequeuer,
    "load": TimerMessageStore,
    "_put": Deliverer,
    "append": TimerLog,
    "write_ms": TimerState,
    "prepare_check_point": TimerFlusher,
}


def _mutant(defect: Defect) -> Mutant:
    ((method, change),) = defect.changes.items()

    def planted(patch: Patch) -> None:
        wrapped(patch, OWNERS[method], method, change)

    planted.__name__ = change.__name__.strip("_")
    return planted


HUNTED = [defect for defect in (*of_pop.DEFECTS, *of_the_timer.DEFECTS) if not defect.changes.keys().isdisjoint(OWNERS)]
MUTANTS: tuple[Mutant, ...] = tuple(_mutant(defect) for defect in HUNTED)

"""Six reminders, one broker, and its timer wheel every half second: the slots, the timer log, the read clock.

    window_s   how far ahead a slot may be; a reminder that is due later is stored again on its way
    recall     the shop takes auction-3 back: never, in time, or in its last second
    lost       the broker is killed at 6 s, and one of its timer\'s files is gone when it starts again

Left out: a finer precision, a slave, and a timer log of more than one file.
"""

from __future__ import annotations

import functools
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import BrokerError, UsageError
from mqlab.lab.views.rocketmq5.timer_wheel import unit_kind
from mqlab.lab.world.lab import play
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.timer_units import TIMER_UNIT_SIZE, WHEEL_SLOTS

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

TOPIC, SEED = "reminders", 7
LOST = ("nothing", "timerwheel", "timerlog", "timercheck")
PATHS = {"timerwheel": "timerwheel", "timerlog": "timerlog", "timercheck": "config/timercheck"}
RECALLED = "auction-3"
RECALL_MS = {"never": None, "in time": 5_000, "too late": 14_200}
DUE_MS = {
    "auction-0": 3_500,
    "auction-1": 9_900,
    "auction-2": 9_100,
    "auction-3": 14_500,
    "auction-4": 20_500,
    "auction-5": 31_500,
}
WATCHED_MS, STEP_MS, KILLED_MS, STARTS_MS = 40_000, 500, 6_250, 6_750
WINDOWS = (2, 172_800)


@dataclass(frozen=True, slots=True)
class WheelSettings:
    """What the learner may change. Raises UsageError for values out of range."""

    window_s: int = 60
    recall: str = "never"
    lost: str = "nothing"

    def __post_init__(self) -> None:
        must_be_whole("window_s", self.window_s, *WINDOWS)
        for name, value, choices in (("recall", self.recall, RECALL_MS), ("lost", self.lost, LOST)):
            if value not in choices:
                raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


@dataclass(slots=True)
class WheelMoment:
    """The wheel from ``from_ms`` on, until the next moment.

    ``slots``: number, second, first, last, num. ``units`` of the timer log: position, previous, second, kind, reminder.
    Seconds and ``read_s``, up to which slots were read, count from the start of the run; ``up``: the broker runs.
    """

    from_ms: int
    read_s: int
    up: bool = True
    slots: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    units: list[tuple[int, int, int, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class WheelRun:
    """A run: its moments, and when each reminder was stored, in the timer topic and in its own; ms from the start."""

    settings: WheelSettings
    moments: list[WheelMoment] = field(default_factory=list)
    waits: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in DUE_MS})
    came: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in DUE_MS})
    recalled: str = ""

    def at(self, ms: int) -> WheelMoment:
        """The wheel at a moment."""
        return [moment for moment in self.moments if moment.from_ms <= ms][-1]


@functools.lru_cache(maxsize=256)
def play_wheel(settings: WheelSettings) -> WheelRun:
    """Play the story; the same settings give the same run."""
    run = WheelRun(settings)
    broker = {"timer_roll_window_slot": settings.window_s, "recall_message_enable": True}
    play(functools.partial(_story, run=run), seed=SEED, client={"enable_trace": False}, broker=broker)
    return run


def _story(lab: Lab, run: WheelRun) -> None:
    lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
    # The clock of a Lab begins at slot 0: a second of the run and the number of its slot are the same.
    start_ms, shop = lab.now_ms // 1_000 * 1_000, lab.producer("shop")
    handles = {}
    for name, due_ms in DUE_MS.items():
        handles[name] = shop.send(
            Message(TOPIC, b"it ends soon", keys=name, deliver_at=start_ms + due_ms)
        ).recall_handle
    actions = {}
    recall_ms = RECALL_MS[run.settings.recall]
    if recall_ms is not None:
        actions[recall_ms] = lambda: _recall(shop, handles[RECALLED], run)
    if run.settings.lost != "nothing":
        actions[KILLED_MS] = lambda: _lose(lab, run.settings.lost)
        actions[STARTS_MS] = lambda: lab.start("broker-a")
    for ms in sorted({*range(0, WATCHED_MS + 1, STEP_MS), *actions}):
        lab.run_for(max(0, start_ms + ms - lab.now_ms))
        if ms in actions:
            actions[ms]()
        if ms % STEP_MS == 0:
            _look(lab, run, start_ms, ms)
    for message in lab.store().messages():
        name = str(message.keys)
        if name in DUE_MS:
            stored = run.waits if message.topic == TIMER_TOPIC else run.came
            stored[name].append(message.store_timestamp - start_ms)


def _recall(shop: Any, handle: Any, run: WheelRun) -> None:
    try:
        shop.recall(TOPIC, handle)
        run.recalled = "yes"
    except BrokerError:
        run.recalled = "refused"


def _lose(lab: Lab, lost: str) -> None:
    lab.kill("broker-a")
    path = lab.directory / "broker-a" / PATHS[lost]
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _look(lab: Lab, run: WheelRun, start_ms: int, ms: int) -> None:
    """Note the wheel, if it is another than before."""
    if not lab.handles["broker-a"].is_up:
        before = run.moments[-1]
        run.moments.append(WheelMoment(ms, before.read_s, False, before.slots, before.units))
        return
    node = lab.broker()
    timer = node.state.timer.state
    seconds, read_s = start_ms // 1_000, _read_s(timer)
    moment = WheelMoment(ms, read_s - seconds)
    for slot in sorted(timer.wheel.pending(0)):
        if slot.last >= 0:
            moment.slots.append((slot.time % WHEEL_SLOTS, slot.time - seconds, slot.first, slot.last, slot.num))
    for position in range(0, timer.log.queue.max_offset, TIMER_UNIT_SIZE):
        unit = timer.log.unit_at(position)
        record = node.store.message_at(unit.physical_offset) if unit is not None else None
        if unit is not None and record is not None:
            kind = unit_kind(unit, is_over=unit.slot_ms // 1_000 < read_s)
            name = RECALLED if unit.deletes else str(record.property_map.get(p.KEYS, ""))
            moment.units.append((position, unit.previous, unit.slot_ms // 1_000 - seconds, kind, name))
    if not run.moments or replace(moment, from_ms=run.moments[-1].from_ms) != run.moments[-1]:
        run.moments.append(moment)


def _read_s(timer: Any) -> int:
    """The second that is read next. The read clock itself is moved over empty slots only when something is due."""
    due_s = min((slot.time for slot in timer.wheel.pending(timer.read_ms)), default=None)
    write_s = timer.write_ms() // 1_000
    return int(max(timer.read_ms // 1_000, write_s if due_s is None else min(write_s, due_s)))

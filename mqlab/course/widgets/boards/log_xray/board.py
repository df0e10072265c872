"""The log X-ray: a real store, what every action does to its files, and one message lit up wherever it is.

Lab 01 looks at log, queues, index, checkpoint and dirty pages with it, kills the broker and cuts its power.

    xray = log_xray()                          a few actions are done; the page does more, and goes back and forth
    xray.state                                 {"position": 5, "selected": 336}: the step and the message shown
    xray.do("append", keys="order-9")          what a button does          xray.undo()
    xray.table()  xray.units()  xray.code      the steps; the units of the log at this step; the steps as Python
    play(xray.as_story(), **xray.world)        the same world, made again

A page without a kernel shows the steps that were done when the cell ran. Left out: consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

from mqlab.course.widgets.boards.log_xray.actions import (
    LOG_FILE_SIZES,
    MESSAGE,
    POLICIES,
    LogAction,
    XrayLab,
    XraySettings,
    as_code,
    world_of,
)
from mqlab.course.widgets.boards.log_xray.picture import Units, picture
from mqlab.course.widgets.frame.acting import ActingBoard, one_line
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire.units import CQ_LAYOUT, INDEX_ENTRY_LAYOUT

ActionLike = str | tuple[str, Mapping[str, Any]]
FIRST_ACTIONS: tuple[ActionLike, ...] = (
    ("append", {"keys": "order-0"}),
    ("append", {"keys": "order-1", "size": 90}),
    ("append", {"topic": "payments", "tags": "card", "keys": "payment-0"}),
    ("dispatch", {"units": 1}),
)


class LogXray(ActingBoard):
    """The explorer; ``log_xray`` makes one. Steps count from 0, the empty store."""

    module, label, beginning = "log_xray", "Log X-ray", "an empty store"
    state_defaults: ClassVar[Mapping[str, Any]] = {"position": 0, "selected": -1}

    def __init__(self, settings: XraySettings, actions: Sequence[ActionLike] = ()) -> None:
        super().__init__()
        self.settings = settings
        self._units: Units = {}
        self.begin([_action(action) for action in actions])
        self.state["position"] = len(self.steps) - 1

    def do(self, verb: str, **arguments: Any) -> LogXray:
        """Do one action after the step shown; later steps are dropped. Raises MqlabError when it cannot be done."""
        self.act(verb, arguments)
        return self

    def change(self, **settings: Any) -> LogXray:
        """Do all steps again with other settings: ``flush`` or ``file_size``. UsageError for others."""
        unknown = sorted(settings.keys() - {"flush", "file_size"})
        if unknown:
            raise UsageError(f"the log X-ray has no setting {unknown[0]!r}", hint="flush, file_size")
        position = self.position
        actions = self.actions(len(self.steps) - 1)
        self.settings = replace(self.settings, **settings)
        self.begin(actions)
        self.show_step(position)
        return self

    @property
    def code(self) -> str:
        """The steps up to the one shown, as a story to paste into a cell."""
        return as_code(self.settings, [step.code for step in self.steps[: self.position + 1]])

    @property
    def world(self) -> dict[str, Any]:
        """The keywords of ``play`` that give the same world."""
        return world_of(self.settings)

    def as_story(self) -> Callable[[Lab], None]:
        """The steps up to the one shown, as a story: a function of a Lab."""
        actions = self.actions(self.position)

        def story(lab: Lab) -> None:
            done = XrayLab(lab)
            for action in actions:
                done.do(action)

        return story

    def table(self) -> Table:
        """One row per step: what was done, what happened, where the log ends, how much is not on the disk."""
        rows = [
            {
                "step": number,
                "here": "◀" if number == self.position else "",
                "code": one_line(step.code),
                "what happened": step.words,
                "log ends": step.picture["log_end"],
                "dirty pages": sum(len(file["dirty"]) for file in step.picture["pages"]),
                "broker": step.picture["broker"],
            }
            for number, step in enumerate(self.steps)
        ]
        return Table(rows, title=f"Steps: {self.settings.flush}, log files of {self.settings.file_size} bytes")

    def units(self) -> Table:
        """The units of the log at the step shown, and where else each of them is."""
        rows = []
        for file in self.steps[self.position].picture["log"]:
            for kind, physical_offset, size, key, in_queue, in_index, on_disk in file["pieces"]:
                if kind == "UNIT":
                    unit = self._units[key]
                    names = {name: unit[name] for name in ("topic", "queue_id", "queue_offset", "keys", "tags")}
                    where = {"in its queue": in_queue, "in the index": in_index, "on the disk": on_disk}
                    rows.append({"place": physical_offset, "size": size, **names, **where})
        return Table(rows, title=f"Units of the log after step {self.position}", empty="the log is empty")

    def data(self) -> dict[str, Any]:
        """All steps with their pictures, the bytes of all units once, and the names of small entries' fields."""
        steps = [{"code": step.code, "words": step.words, "picture": step.picture} for step in self.steps]
        return {
            "steps": steps,
            "units": self._units,
            "settings": asdict(self.settings),
            "queue_fields": [[spec.name, spec.size, spec.meaning] for spec in CQ_LAYOUT],
            "index_fields": [[spec.name, spec.size, spec.meaning] for spec in INDEX_ENTRY_LAYOUT],
            "choices": {"file_size": LOG_FILE_SIZES, "flush": POLICIES},
            "message": MESSAGE,
            "code": [as_code(self.settings, [step.code for step in self.steps[: n + 1]]) for n in range(len(steps))],
        }

    def readable(self) -> Any:
        """The steps and the units of the step shown."""
        return self.table().html() + self.units().html()

    def new_world(self) -> XrayLab:
        """A Lab with an empty store."""
        return XrayLab(Lab(**world_of(self.settings)))

    def action(self, verb: str, arguments: Mapping[str, Any]) -> LogAction:
        """The action of a verb."""
        return LogAction(verb, arguments)

    def picture_of(self, world: XrayLab) -> dict[str, Any]:
        """Log, queues, index, checkpoint and pages of the store."""
        return picture(world.lab, self._units)


def log_xray(
    actions: Sequence[ActionLike] = FIRST_ACTIONS, *, flush: str = "ASYNC_FLUSH", file_size: int = 16_384
) -> LogXray:
    """A store with every file visible. ``actions`` are done first: a verb, or a verb with its arguments.

    Verbs: append (topic, tags, keys, size, count), dispatch (units; None: all), wait (duration), kill, power_cut (lose:
    pairs of path and page; None: everything that is not synced) and recover. Raises UsageError for what does not exist.

    >>> xray = log_xray([("append", {"keys": "order-0"}), "dispatch", "power_cut", "recover"])
    >>> [len(xray.set("position", step) or xray.units()) for step in range(5)]
    [0, 1, 1, 0, 0]
    >>> log_xray(["append", "power_cut", "recover"], flush="SYNC_FLUSH").units().column("queue_offset")
    [0]
    """
    return LogXray(XraySettings(flush, file_size), actions)


def _action(action: ActionLike) -> LogAction:
    return LogAction(action) if isinstance(action, str) else LogAction(*action)

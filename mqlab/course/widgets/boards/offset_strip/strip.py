"""The offset strip: finish messages in any order, let time pass, crash now, and see where the group's offset is known.

    strip = offset_strip(threads=20, messages=24)       one queue; every call of the listener waits for you
    strip.finish(1, 2, 3).persist().crash("client")     what the buttons do; wait, save, finish_all, undo
    strip.redelivered()                                 finished before the last crash, and read again after it
    strip.offsets, strip.table(), strip.messages()      the offsets now; the steps; the messages and their stages
    strip.code                                          the steps as calls, to do them again

A page without a kernel shows the steps that were done when the cell ran. Left out: several queues, orderly groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.offset_strip.actions import CRASHES, LIMITS, OffsetAction, OffsetLab, OffsetSettings
from mqlab.course.widgets.boards.offset_strip.picture import picture
from mqlab.course.widgets.frame.acting import ActingBoard
from mqlab.durations import exact_text, milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

ActionLike = str | tuple[str, Mapping[str, Any]]
DURATIONS = ("persist", "broker_persist")


class OffsetStripBoard(ActingBoard):
    """The explorer; ``offset_strip`` makes one. Steps count from 0: everything is stored, the first calls run."""

    module, label, beginning = "offset_strip", "Offset strip", "the messages are stored, the first calls run"
    state_defaults: ClassVar[Mapping[str, Any]] = {"position": 0}

    def __init__(self, settings: OffsetSettings, actions: Sequence[ActionLike] = ()) -> None:
        super().__init__()
        self.settings = settings
        self.begin([OffsetAction(action) if isinstance(action, str) else OffsetAction(*action) for action in actions])
        self.state["position"] = len(self.steps) - 1

    def finish(self, *messages: int) -> OffsetStripBoard:
        """End the listener's calls of these messages, each for its whole batch. UsageError for one not in a call."""
        return self._done("finish", messages=messages)

    def finish_all(self, but: Sequence[int] = ()) -> OffsetStripBoard:
        """End all calls, and those that come in their place, except of these messages."""
        return self._done("finish_all", but=but)

    def wait(self, duration: str | int = "1s") -> OffsetStripBoard:
        """Let virtual time pass."""
        return self._done("wait", duration=duration)

    def persist(self) -> OffsetStripBoard:
        """Let time pass until the client has sent its offsets to the broker."""
        return self._done("persist")

    def save(self) -> OffsetStripBoard:
        """Let time pass until the broker has written consumerOffset.json. UsageError if it has nothing to write."""
        return self._done("save")

    def crash(self, who: str = "client") -> OffsetStripBoard:
        """Kill the client, the broker, or both now, and start them again."""
        return self._done("crash", who=who)

    def change(self, **settings: Any) -> OffsetStripBoard:
        """Begin again with other settings: the keywords of ``offset_strip``. The steps are dropped."""
        self.settings = _settings(settings, self.settings)
        self.begin(())
        self.show_step(0)
        return self

    @property
    def offsets(self) -> dict[str, int | None]:
        """The next offset in the client's memory, at the broker and in its file at the step shown; None: none yet."""
        return {name: self.picture[name] for name in ("memory", "broker", "file")}

    @property
    def finished(self) -> list[int]:
        """The messages that are finished at the step shown, in this life of the client or in an earlier one."""
        earlier = set(self.picture["again"])
        stages = self.picture["stages"]
        return [offset for offset, stage in enumerate(stages) if stage in ("finished", "earlier") or offset in earlier]

    @property
    def flow_control(self) -> str:
        """The limit that holds pulling back at the step shown: "count", "size" or "span"; "" while it pulls."""
        return str(self.picture["held_by"])

    def redelivered(self) -> Table:
        """The messages that were finished before the client's last crash and that its new life reads again."""
        rows = [
            {"queue_offset": offset, "key": f"order-{offset}", "stage": self.picture["stages"][offset]}
            for offset in self.picture["again"]
        ]
        return Table(rows, columns=["queue_offset", "key", "stage"], title="Finished, and read again", empty="none")

    def messages(self) -> Table:
        """One row per message: its stage at the step shown, and whether it comes again."""
        again = set(self.picture["again"])
        rows = [
            {"queue_offset": offset, "key": f"order-{offset}", "stage": stage, "comes again": offset in again}
            for offset, stage in enumerate(self.picture["stages"])
        ]
        return Table(rows, title=f"Messages after step {self.position}")

    def table(self) -> Table:
        """One row per step: what was done, what happened, and the three offsets after it."""
        rows = [
            {
                "step": number,
                "here": "◀" if number == self.position else "",
                "code": "".join(step.code),
                "what happened": step.words,
                "in memory": step.picture["memory"],
                "at the broker": step.picture["broker"],
                "in the file": step.picture["file"],
                "cached": step.picture["count"],
                "span": step.picture["span"],
                "read again": len(step.picture["again"]),
            }
            for number, step in enumerate(self.steps)
        ]
        return Table(rows, title=_settings_words(self.settings))

    @property
    def code(self) -> str:
        """The steps up to the one shown as calls, to paste into a cell."""
        return code_of(self.settings, [line for step in self.steps[: self.position + 1] for line in step.code])

    def data(self) -> dict[str, Any]:
        """All steps with their pictures, and the settings."""
        steps = [{"code": "".join(step.code), "words": step.words, "picture": step.picture} for step in self.steps]
        lines = ["".join(step.code) for step in self.steps]
        return {
            "steps": steps,
            "settings": asdict(self.settings),
            "limits": LIMITS,
            "crashes": CRASHES,
            "code": [code_of(self.settings, lines[1 : count + 1]) for count in range(len(steps))],
        }

    def readable(self) -> Any:
        """The steps, and the messages at the step shown."""
        return self.table().html() + self.messages().html()

    def new_world(self) -> OffsetLab:
        """A Lab with the messages stored and the first calls running."""
        return OffsetLab(self.settings)

    def action(self, verb: str, arguments: Mapping[str, Any]) -> OffsetAction:
        """The action of a verb."""
        return OffsetAction(verb, arguments)

    def picture_of(self, world: OffsetLab) -> dict[str, Any]:
        """The messages, the ProcessQueue and the offsets."""
        return picture(world)

    def _done(self, verb: str, **arguments: Any) -> OffsetStripBoard:
        self.act(verb, arguments)
        return self


def offset_strip(
    *,
    threads: int = 20,
    batch: int = 1,
    messages: int = 24,
    persist: str | int = "5s",
    broker_persist: str | int = "5s",
    span: int = 2_000,
    count: int = 1_000,
    size: int = 100,
    pull_batch: int = 32,
    body: int = 100,
    actions: Sequence[ActionLike] | None = None,
) -> OffsetStripBoard:
    """One queue with ``messages`` orders and a consumer whose calls wait until you end them.

    ``threads``, ``batch``, ``persist``, ``broker_persist``, ``span``, ``count`` and ``size`` (MiB) are RocketMQ's
    consumeThreadMin, consumeMessageBatchMaxSize, persistConsumerOffsetInterval, flushConsumerOffsetInterval,
    consumeConcurrentlyMaxSpan, pullThresholdForQueue and pullThresholdSizeForQueue; ``body``: bytes of a message.
    ``actions`` are done first: a verb, or a verb with its arguments; None: a few that end in a crash. Raises UsageError
    for what does not exist.

    >>> strip = offset_strip(messages=6, actions=[]).finish(1, 2)
    >>> strip.offsets, strip.finish(0).offsets["memory"]
    ({'memory': 0, 'broker': None, 'file': None}, 3)
    >>> strip.crash("client").redelivered().column("queue_offset")
    [0, 1, 2]
    """
    choices = {
        "threads": threads,
        "batch": batch,
        "messages": messages,
        "persist": persist,
        "broker_persist": broker_persist,
        "span": span,
        "count": count,
        "size": size,
        "pull_batch": pull_batch,
        "body": body,
    }
    settings = _settings(choices, OffsetSettings())
    return OffsetStripBoard(settings, first_actions(settings) if actions is None else actions)


def first_actions(settings: OffsetSettings) -> list[ActionLike]:
    """A short story that these settings allow: some calls end, the client persists, more calls end, the client dies."""
    later = list(
        range(settings.batch, min(settings.messages, settings.batch * min(settings.threads, 4)), settings.batch)
    )
    if later:
        # The first call is still running when the offset is sent: all that ended meanwhile comes again.
        return [("finish", {"messages": later}), "persist", ("finish", {"messages": [0]}), "crash"]
    return [("finish", {"messages": [0]}), "persist", "crash"]


def code_of(settings: OffsetSettings, lines: Sequence[str]) -> str:
    """A strip with these settings and these calls, as Python."""
    changed = []
    for name, value in asdict(settings).items():
        if value != getattr(OffsetSettings(), name):
            changed.append(f'{name[:-3]}="{value}ms"' if name.endswith("_ms") else f"{name}={value}")
    return "\n".join([f"strip = offset_strip({', '.join([*changed, 'actions=[]'])})", *lines])


def _settings(changes: Mapping[str, Any], before: OffsetSettings) -> OffsetSettings:
    """Settings with some of them replaced; intervals are durations."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name in DURATIONS:
            values[f"{name}_ms"] = milliseconds(value)
        elif name in LIMITS:
            values[name] = value
        else:
            raise UsageError(f"the offset strip has no setting {name!r}", hint=", ".join([*LIMITS, *DURATIONS]))
    return replace(before, **values)


def _settings_words(settings: OffsetSettings) -> str:
    return (
        f"{counted(settings.messages, 'messages')}, {counted(settings.threads, 'threads')}, "
        f"batches of {settings.batch}; the client persists "
        f"every {exact_text(settings.persist_ms)}, the broker every {exact_text(settings.broker_persist_ms)}"
    )

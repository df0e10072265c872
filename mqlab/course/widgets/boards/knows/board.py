"""The knows board: who believes what about two brokers, before and after something happens to one of them.

    board = knows_board(happens="power_off")     a machine falls silent
    board.play(name_servers=2, poll_s=10)        what the controls do
    board.at("30s")                              what each one believes 30 s after it happened
    board.learned()  board.sends()  board.wasted     when each learned of it; sends; those that missed it

An exported page has all runs of the recorded choices (``RECORDED``), a notebook that was saved has the run shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.knows.runs import (
    AFTER_MS,
    BROKERS,
    GROUP,
    HAPPENS,
    SHOP,
    WATCHED_MS,
    Belief,
    KnowsRun,
    KnowsSettings,
    play_knows,
)
from mqlab.course.widgets.frame.recorded_board import Choices, RecordedBoard
from mqlab.durations import milliseconds
from mqlab.lab.views.table import Table

RECORDED: Choices = {"happens": HAPPENS, "name_servers": (1, 2), "poll_s": (10, 30)}
CHOICES: Choices = {
    "happens": HAPPENS,
    "name_servers": (1, 2),
    "poll_s": (5, 10, 30, 60, 120),
    "register_s": (10, 30, 60),
}
TRUTH = {
    "kill": "killed",
    "power_off": "without power",
    "partition": "running; nameserver-1 does not hear from it",
    "wipe": "running",
    "queues": "running, with 8 queues",
    "joins": "running",
}


class KnowsBoard(RecordedBoard[KnowsSettings, KnowsRun]):
    """The explorer; ``knows_board`` makes one. ``run`` is the run shown, ``state["moment_ms"]`` the moment."""

    module, label = "knows", "Who knows what"
    choices: ClassVar[Choices] = CHOICES
    state_defaults: ClassVar[Mapping[str, Any]] = {"moment_ms": 0}

    def played(self, settings: KnowsSettings) -> KnowsRun:
        """The run of some settings."""
        return play_knows(settings)

    def at(self, after: str | int) -> Table:
        """What each one believes so long after it happened, and since when."""
        ms = milliseconds(after)
        rows = [row_of(self.run.believes(observer, ms)) for observer in self.run.observers]
        return Table(rows, title=f"What each one believes {ms / 1000:g} s after it happened")

    def learned(self) -> dict[str, float | None]:
        """Observer -> seconds until it changed its mind; None if it never did while the board watched."""
        since = {observer: self.run.since(observer) for observer in self.run.observers}
        return {observer: None if ms is None else ms / 1000 for observer, ms in since.items()}

    def sends(self) -> Table:
        """Every send of the shop: when, which broker it tried first, which has stored it."""
        rows = [
            {
                "at (s)": send.began_ms / 1000,
                "took (ms)": send.ended_ms - send.began_ms,
                "tried": send.tried,
                "stored": send.stored or "nowhere",
            }
            for send in self.run.sends
        ]
        return Table(rows, title="Sends of the shop, seconds after it happened")

    @property
    def wasted(self) -> int:
        """Sends that tried broker-b after it had happened and were not stored there."""
        return sum(
            send.began_ms >= 0 and send.tried == BROKERS[1] and send.stored != BROKERS[1] for send in self.run.sends
        )

    @property
    def failed(self) -> int:
        """Sends that were not stored anywhere."""
        return sum(not send.stored for send in self.run.sends)

    @property
    def summary(self) -> str:
        """The run in one line."""
        said = [f"{name} {'never' if s is None else f'after {s:g} s'}" for name, s in self.learned().items()]
        return (
            f"{self.settings.happens}: {', '.join(said)}; "
            f"{counted(self.wasted, 'sends')} did not reach it, {self.failed} failed"
        )

    def table(self) -> Table:
        """Each change of a belief: the text twin."""
        rows = [{"after (s)": belief.ms / 1000, **row_of(belief, since=False)} for belief in self.run.beliefs]
        return Table(rows, title=self.summary)

    def shown(self, run: KnowsRun) -> dict[str, Any]:
        """A run as the page gets it."""
        beliefs = [
            [
                belief.ms,
                belief.observer,
                [words(belief.observer, queues) for queues in belief.queues],
                sum(belief.queues[1]),
            ]
            for belief in run.beliefs
        ]
        sends = [[send.began_ms, send.tried, send.stored] for send in run.sends]
        return {"beliefs": beliefs, "sends": sends, "asks": dict(run.asks)}

    def beside(self) -> dict[str, Any]:
        """What the page gets besides the runs."""
        return {
            "brokers": list(BROKERS),
            "from_ms": -WATCHED_MS,
            "until_ms": AFTER_MS,
            "truth": TRUTH,
        }


def knows_board(
    *,
    happens: str = "kill",
    name_servers: int = 1,
    poll_s: int = 30,
    register_s: int = 30,
    recorded: Choices = RECORDED,
) -> KnowsBoard:
    """Two brokers, a shop that sends, billing that reads: what each believes, before and after something happens.

    ``happens``: "kill", "power_off", "partition" (from nameserver-1), "wipe" (its write permission), "queues" (eight of
    four), "joins". ``poll_s``: how often clients ask for routes; ``register_s``: how often brokers register.
    ``recorded`` are the choices that pages without a kernel have, for each setting.

    >>> board = knows_board(recorded={})
    >>> board.learned()
    {'nameserver-1': 0.5, 'shop': 27.0, 'billing': 28.5}
    """
    settings = KnowsSettings(happens, name_servers, poll_s, register_s)
    return KnowsBoard(settings, recorded)


def words(observer: str, queues: tuple[int, int]) -> str:
    """What an observer believes about one broker.

    >>> words("nameserver-1", (4, 0)), words("shop", (0, 4)), words("billing", (0, 0))
    ('4 to read, 0 to write', '4 to write', 'none')
    """
    read, write = queues
    if observer == SHOP:
        return f"{write} to write" if write else "none"
    if observer == GROUP:
        return f"{read} to read" if read else "none"
    return f"{read} to read, {write} to write" if read or write else "not registered"


def row_of(belief: Belief, since: bool = True) -> dict[str, Any]:
    """A belief as a row: who, each broker's queues, since when."""
    row = {"who": belief.observer}
    row |= {broker: words(belief.observer, queues) for broker, queues in zip(BROKERS, belief.queues, strict=True)}
    if not since:
        return row
    return row | {"since": f"{belief.ms / 1000:g} s after it" if belief.ms > 0 else "before it happened"}

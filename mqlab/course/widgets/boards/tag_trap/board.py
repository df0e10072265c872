"""The tag-trap board: which orders two members with different tags receive, and where the others end.

Lab 06 predicts with it what is lost. Every order is a lane through the broker's filter and the client's.

    board = tag_trap_board(billing="paid", shipping="shipped")      one group, defaults: what happens
    board.lanes()  board.members()  board.nobody()  board.lag       what the page shows, as tables
    board.play(post_subscription_when_pull=True)                    what its controls do
    tag_trap_board(parts=mybroker.parts(pulls=MyPulls))             on a learner's own parts of a broker

An exported page shows the recorded runs: the tags of ``RECORDED_TAGS`` with every choice of who subscribes last,
the setting and the number of groups; no clock is ahead in them. Left out: more members, SQL expressions, retries.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.tag_trap.runs import (
    MEMBERS,
    NOBODY,
    TagTrapRun,
    TagTrapSettings,
    play_tags,
    play_tags_on,
)
from mqlab.course.widgets.frame.board import Board
from mqlab.durations import exact_text
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.rocketmq.filter import tags

if TYPE_CHECKING:
    from mqlab.lab.parts import OwnParts

RECORDED_TAGS = (("paid", "shipped"), ("Aa", "BB"))
DROPPED_BY_BROKER, DROPPED_BY_CLIENT, DELIVERED = "dropped by the broker", "dropped by the client", "delivered"
NOT_PULLED = "not pulled"


def every_choice(pairs: Sequence[tuple[str, str]] = RECORDED_TAGS) -> tuple[TagTrapSettings, ...]:
    """The settings of all recorded runs for these pairs of tag expressions."""
    choices = itertools.product(pairs, (NOBODY, *MEMBERS), (False, True), (1, 2))
    return tuple(
        TagTrapSettings(billing, shipping, last=last, post_subscription_when_pull=post, groups=groups)
        for (billing, shipping), last, post, groups in choices
    )


class TagTrapBoard(Board):
    """The explorer; ``tag_trap_board`` makes one. ``run`` is the run shown now.

    ``state``: ``lane`` (the order looked at, from 1) and ``compare`` (whether the popular picture is shown next to it).
    """

    module, label = "tag_trap", "Tag-trap board"
    state_defaults: ClassVar[Mapping[str, Any]] = {"lane": 1, "compare": False}

    def __init__(
        self,
        settings: TagTrapSettings,
        recorded: Sequence[TagTrapSettings],
        *,
        compare: bool,
        parts: OwnParts | None = None,
    ) -> None:
        super().__init__(compare=compare)
        self._recorded = recorded
        self._played = play_tags if parts is None else functools.partial(play_tags_on, parts)
        self.run: TagTrapRun = self._played(settings)

    @property
    def settings(self) -> TagTrapSettings:
        """The settings of the run shown now."""
        return self.run.settings

    def play(self, **changes: Any) -> TagTrapBoard:
        """Play again with some settings changed: the keywords of ``tag_trap_board``."""
        self.run = self._played(_changed(self.settings, changes))
        self.set("lane", 1)
        self.renew()
        return self

    def lanes(self) -> Table:
        """Every order's way: its tag and code, queue and offset, both filters, the outcome, when the offset moved on.

        ``moved_ms`` is the time from storing the order until the group's committed offset was past it.
        """
        rows = [
            {
                "message": lane["message"],
                "tag": lane["tag"],
                "code": lane["code"],
                "queue": lane["queue"],
                "offset": lane["offset"],
                "group": lane["group"],
                "member": lane["member"],
                "broker filter": lane["filter"],
                "whose": lane["whose"],
                "outcome": outcome(lane),
                "moved_ms": lane["moved_ms"],
            }
            for lane in self.run.lanes
        ]
        return Table(rows, title="The way of each order")

    def members(self) -> Table:
        """Each member: its group, tags, its version (ms after the Lab began), its queues, how many orders it got."""
        return Table(self.run.members, title="Members")

    def heartbeats(self) -> Table:
        """The heartbeats before the orders were sent, and whose subscription the broker kept after each."""
        return Table(self.run.heartbeats, title="Heartbeats, ms after the Lab began")

    def nobody(self) -> list[str]:
        """The orders that no member received, by key."""
        received = {lane["message"] for lane in self.run.lanes if lane["received"]}
        return list(dict.fromkeys(lane["message"] for lane in self.run.lanes if lane["message"] not in received))

    @property
    def lag(self) -> int:
        """The lag that monitoring shows, over all queues and groups, 30 s after the last order."""
        return self.run.lag

    @property
    def summary(self) -> str:
        """The run in one line: what each member received, what none did, and the lag."""
        every = len(dict.fromkeys(lane["message"] for lane in self.run.lanes))
        got = ", ".join(f"{member['member']} received {member['received']}" for member in self.run.members)
        return f"{counted(every, 'orders')}: {got}; nobody received {len(self.nobody())}; lag {self.lag}"

    def table(self) -> Table:
        """The lanes with the summary as title: the text twin."""
        rows = []
        for lane in self.run.lanes:
            moved = "no" if lane["moved_ms"] is None else f"after {exact_text(lane['moved_ms'])}"
            rows.append(
                {
                    "order": lane["message"],
                    "in queue": f"{lane['queue']} at {lane['offset']}",
                    "pulled by": lane["member"],
                    "broker filters by": f"{lane['filter']} ({lane['whose']})",
                    "outcome": outcome(lane),
                    "offset moved on": moved,
                }
            )
        return Table(rows, title=self.summary)

    def data(self) -> dict[str, Any]:
        """The current run and the recorded ones; each is played when the page is first made."""
        recorded = () if self.plays_later else self._recorded
        return {"now": _shown(self.run), "recorded": [_shown(self._played(settings)) for settings in recorded]}

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``play`` with the settings of the page's controls; its answer is the run."""
        if name != "play":
            return super().asked(name, arguments)
        self.run = self._played(_changed(TagTrapSettings(), arguments))
        return _shown(self.run)


def tag_trap_board(
    *,
    billing: str = "paid",
    shipping: str = "shipped",
    sent: Sequence[str] = (),
    last: str = NOBODY,
    ahead: str = NOBODY,
    post_subscription_when_pull: bool = False,
    groups: int = 1,
    compare: bool = False,
    recorded: Sequence[TagTrapSettings] | None = None,
    parts: OwnParts | None = None,
) -> TagTrapBoard:
    """Two members and their tags, played in a Lab: every order's way through both filters.

    ``billing`` and ``shipping`` are tag expressions, ``sent`` the tags of the orders (each queue gets one of each;
    empty: the tags that the expressions name). ``last`` names the member that subscribes once more after both have
    joined, ``ahead`` the one whose clock is a minute ahead. ``groups`` is 1 or 2. ``compare`` shows the popular picture
    next to what happened. ``recorded`` are the runs of a page without a kernel: ``every_choice`` of the given tags and
    of two that collide, none with ``parts``: a learner's own parts of the broker, as ``mybroker.parts()`` gives them.
    Raises UsageError or FilterError for settings that do not exist.

    >>> board = tag_trap_board(last="shipping", recorded=())
    >>> print(board.summary)
    8 orders: billing received 0, shipping received 2; nobody received 6; lag 0
    >>> board.play(post_subscription_when_pull=True).nobody()
    ['shipped-0', 'shipped-1', 'paid-2', 'paid-3']
    """
    settings = TagTrapSettings(billing, shipping, _listed(sent), last, ahead, post_subscription_when_pull, groups)
    if recorded is None and parts is not None:
        recorded = ()
    elif recorded is None:
        pairs = dict.fromkeys([(billing, shipping), *RECORDED_TAGS[1:]])
        recorded = tuple(replace(choice, sent=settings.sent) for choice in every_choice(tuple(pairs)))
    return TagTrapBoard(settings, recorded, compare=compare, parts=parts)


def outcome(lane: Mapping[str, Any]) -> str:
    """How a lane ends, in words."""
    if lane["received"]:
        return DELIVERED
    if lane["broker"] is None:
        return NOT_PULLED
    return DROPPED_BY_CLIENT if lane["broker"] else DROPPED_BY_BROKER


def _listed(sent: Any) -> tuple[Any, ...]:
    if not isinstance(sent, list | tuple):
        raise UsageError(f"sent is a list of tags, got {sent!r}", hint='sent=("paid", "shipped")')
    return tuple(sent)


def _changed(before: TagTrapSettings, changes: Mapping[str, Any]) -> TagTrapSettings:
    """Settings with some of them replaced."""
    known = list(before.as_json())
    for name in changes:
        if name not in known:
            raise UsageError(f"the tag-trap board has no setting {name!r}", hint=", ".join(known))
    values: dict[str, Any] = {name: _listed(value) if name == "sent" else value for name, value in changes.items()}
    return replace(before, **values)


def _shown(run: TagTrapRun) -> dict[str, Any]:
    """A run as the page gets it, with what the popular picture claims for each lane.

    The picture: who owns a queue gets what its own tags name, and both filters know only those tags.
    """
    wants = {member: tags.parse(getattr(run.settings, member)) for member in MEMBERS}
    owners = {(member["group"], queue): member["member"] for member in run.members for queue in member["queues"]}
    lanes = []
    for lane in run.lanes:
        owner = owners.get((lane["group"], lane["queue"]), lane["member"])
        lanes.append(
            [
                lane["message"],
                lane["tag"],
                lane["code"],
                lane["queue"],
                lane["offset"],
                lane["group"],
                owner,
                lane["filter"],
                lane["whose"],
                outcome(lane),
                lane["moved_ms"],
                owner in wants and wants[owner].matches_text(lane["tag"]),
            ]
        )
    codes = {text: list(tags.parse(text).code_set) for text in {lane["filter"] for lane in run.lanes if lane["filter"]}}
    return {
        "settings": run.settings.as_json(),
        "lanes": lanes,
        "codes": dict(sorted(codes.items())),
        "members": [list(member.values()) for member in run.members],
        "kept": run.kept,
        "lag": run.lag,
        "heartbeats": [list(beat.values()) for beat in run.heartbeats],
    }

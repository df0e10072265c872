"""The allocation board: queues and members, six strategies, a history of joins and leaves, the ring, a running group.

    board = allocation_board(members=3, queues=8, history=[("join", "billing-4"), ("leave", "billing-2")])
    board.table()  board.owners()  board.compare()    every moment; who has what; all strategies over this history
    board.join("billing-5")  board.change(queues=16)  what the buttons do
    board.fairness  board.churn                       largest difference; queues moved / fewest moves
    board.play(call="3s", told=False)                 the running group: board.run, board.overlaps()

The page holds the divisions of every set of members that it knows, made by mqlab.rocketmq.client.allocate; with up to
six names it can join, leave and rename them in any order without a kernel. Other numbers of queues and new names ask
the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mqlab.counts import counted
from mqlab.course.widgets.boards.allocation.division import (
    HIGHEST,
    MOST_VIRTUAL_NODES,
    BoardQueues,
    Dividing,
    Rooms,
    broker_names,
    hashed,
    own_name,
    own_strategy,
)
from mqlab.course.widgets.boards.allocation.handover import (
    CHANGES,
    KEPT,
    RECORDED,
    HandoverRun,
    HandoverSettings,
    play_handover,
    shown_run,
)
from mqlab.course.widgets.boards.allocation.history import (
    Change,
    History,
    changes_of,
    member_names,
    next_names,
)
from mqlab.course.widgets.boards.allocation.moments import Moments, moments_of
from mqlab.course.widgets.boards.allocation.page_data import EVERY_SET_OF, division_data
from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.rocketmq.client.allocate import STRATEGY_NAMES

IN_A_GROUP = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")


class AllocationBoard(Board):
    """The explorer; ``allocation_board`` makes one. Moments count from 0, the members at the beginning."""

    module, label = "allocation", "Allocation board"
    state_defaults: ClassVar[Mapping[str, Any]] = {
        "strategy": "AVG",
        "virtual_nodes": 10,
        "position": 0,
        "history": [],
        "queue": -1,
    }

    def __init__(
        self,
        queues: BoardQueues,
        first_members: Sequence[str],
        history: Sequence[Change],
        own: Any,
        rooms: Mapping[str, str],
        config: Mapping[str, Sequence[int]] | None,
        consumeridcs: Sequence[str] | None,
        recorded: Mapping[str, HandoverSettings],
        **state: Any,
    ) -> None:
        super().__init__(history=[list(change) for change in history], position=len(history), **state)
        self.queues = queues
        self.first_members = tuple(first_members)
        self._own = None if own is None else own_strategy(own)
        self._rooms, self._config, self._consumeridcs = rooms, config, consumeridcs
        self._recorded = recorded
        self._seen: list[str] = []  # the names that the page knows
        self._ever: dict[str, None] = {}  # all names so far: a member keeps its room
        self.run: HandoverRun | None = None
        self._renewed()
        self._check(self.state["strategy"], self.state["virtual_nodes"])
        self.owners_at(len(history))  # an unusable strategy of the learner's own is refused here

    @property
    def history(self) -> History:
        """The members at every moment of ``state["history"]``."""
        return History(self.first_members, self.state["history"])

    @property
    def position(self) -> int:
        """The moment shown: 0 is the beginning."""
        return min(max(int(self.state["position"]), 0), len(self.state["history"]))

    @property
    def members(self) -> list[str]:
        """The members at the moment shown, in the order in which every client sorts them."""
        return self.history.members[self.position]

    def owners_at(self, moment: int, strategy: str | None = None) -> list[tuple[str, ...]]:
        """The owners of every queue at a moment, by the strategy shown or another one."""
        name = self.state["strategy"] if strategy is None else strategy
        self._check(name, self.state["virtual_nodes"])
        members = self.history.members
        if not 0 <= moment < len(members):
            raise UsageError(f"there is no moment {moment}", hint=f"moments 0 to {len(members) - 1}")
        return self._dividing.owners(name, self.state["virtual_nodes"], members[moment])

    def owners(self) -> Table:
        """One row per queue: who has it at the moment shown, and who had it at the moment before."""
        now = self.owners_at(self.position)
        before = self.owners_at(self.position - 1) if self.position else [()] * len(now)
        rows = [
            {
                "topic": queue.topic,
                "broker": queue.broker_name,
                "queue_id": queue.queue_id,
                "owner": ", ".join(names),
                "before": ", ".join(old),
                "moved": bool(self.position) and names != old,
            }
            for queue, names, old in zip(self._queues, now, before, strict=True)
        ]
        return Table(rows, title=f"Owners by {self.state['strategy']} at moment {self.position}")

    def table(self) -> Table:
        """One row per moment: members, queues of each, difference, moves, and the fewest moves to a fair division."""
        return Table(self._shown.rows(), title=self.summary)

    def compare(self) -> Table:
        """All strategies over this history: fairness, queues moved, churn, queues without a reader at the end."""
        rows = [{"strategy": name, **self._moments(name).figures()} for name in self._dividing.names]
        changes = len(self.state["history"])
        return Table(rows, title=f"All strategies over this history of {changes} change{'s' * (changes != 1)}")

    def ring(self) -> Table:
        """The points of the hash ring at the moment shown and the queues between them, in ring order."""
        nodes = self.state["virtual_nodes"]
        points = {hashed(f"{member}-{n}"): member for member in self.members for n in range(nodes)}
        rows = [{"hash": hash_value, "what": "member", "name": member} for hash_value, member in points.items()]
        rows += [{"hash": hashed(str(queue)), "what": "queue", "name": str(queue)} for queue in self._queues]
        return Table(sorted(rows, key=lambda row: (row["hash"], row["what"] != "queue")), title="The hash ring")

    @property
    def fairness(self) -> int:
        """The largest difference of queue counts over all moments; members without queues count with 0."""
        return self._shown.fairness

    @property
    def moved(self) -> int:
        """Queues whose owner changed, over all moments."""
        return self._shown.moved

    @property
    def churn(self) -> float | None:
        """Queues moved divided by the fewest moves to fair divisions, over all moments; None if none had to move."""
        return self._shown.churn

    @property
    def summary(self) -> str:
        """The history in one line: strategy, fairness, moves."""
        nodes = f", {self.state['virtual_nodes']} virtual nodes" if self.state["strategy"] == "CONSISTENT_HASH" else ""
        churn = self.churn
        return (
            f"{self.state['strategy']}{nodes}: largest difference {self.fairness}, "
            f"{counted(self.moved, 'queues moved')}" + (f", {churn:.2f} times the fewest" if churn is not None else "")
        )

    def overlaps(self) -> Table:
        """When a queue of the running group had two owners, two members at work on it, or no owner; ms after."""
        return Table(self._handover().overlaps, title="Two owners, two at work, no owner", empty="none")

    def twice(self) -> Table:
        """The messages of the running group that two members were given."""
        return Table(self._handover().twice, title="Messages given to two members", empty="none")

    def spans(self) -> Table:
        """The members that had each queue of the running group in their tables, ms after the change."""
        return Table(self._handover().spans, title="Owners over time, ms after the change")

    def join(self, name: str) -> AllocationBoard:
        """A member joins after the moment shown; later changes are dropped."""
        return self._then(("join", name))

    def leave(self, name: str) -> AllocationBoard:
        """A member leaves after the moment shown."""
        return self._then(("leave", name))

    def rename(self, name: str, new: str) -> AllocationBoard:
        """A member comes back under another id, as a restarted process does with RocketMQ's default instance name."""
        return self._then(("rename", name, new))

    def undo(self) -> AllocationBoard:
        """Drop the last change up to the moment shown. UsageError at the beginning."""
        if self.position == 0:
            raise UsageError("nothing to undo: this is the beginning")
        return self._show(self.state["history"][: self.position - 1])

    def change(self, **settings: Any) -> AllocationBoard:
        """Other settings, the same history: strategy, virtual_nodes, queues, brokers, topics."""
        wish = {name: settings.pop(name) for name in ("strategy", "virtual_nodes") if name in settings}
        numbers: dict[str, Any] = {name: settings.pop(name) for name in ("queues", "topics") if name in settings}
        if "brokers" in settings:
            numbers["brokers"] = broker_names(settings.pop("brokers"))
        if settings:
            raise UsageError(
                f"the allocation board has no setting {next(iter(settings))!r}",
                hint="strategy, virtual_nodes, queues, brokers, topics",
            )
        if callable(getattr(wish.get("strategy"), "allocate", None)) or callable(wish.get("strategy")):
            self._own = own_strategy(wish["strategy"])
            wish["strategy"] = own_name(self._own)
        before = self.queues
        self.queues = replace(self.queues, **numbers)
        try:
            self._renewed()
            self._check(wish.get("strategy", self.state["strategy"]), wish.get("virtual_nodes", 1))
        except UsageError:
            self.queues = before
            self._renewed()
            raise
        for name, value in wish.items():
            self.set(name, value)
        if numbers:
            self.set("queue", -1)
        self.renew()
        return self

    def play(
        self,
        *,
        change: str = "join",
        call: str | int = "3s",
        told: bool = True,
        orderly: bool = False,
        queues: int | None = None,
    ) -> AllocationBoard:
        """Play the running group: billing-3 joins, or billing-2 leaves or is killed, under the strategy shown.

        ``call``: how long a listener's call takes; ``told``: the broker notifies the members at once.
        """
        count = min(self.queues.queues, 16) if queues is None else queues
        strategy = self.state["strategy"]
        own = self._dividing.own if strategy not in IN_A_GROUP else None
        if strategy not in IN_A_GROUP and (own is None or strategy != own_name(own)):
            raise UsageError(f"{strategy} is not played in the running group", hint=f"choose {', '.join(IN_A_GROUP)}")
        wish = HandoverSettings(strategy, self.state["virtual_nodes"], change, milliseconds(call), told, orderly, count)
        self.run = play_handover(wish, own)
        self.renew()
        return self

    def data(self) -> dict[str, Any]:
        """Queues, names, the owners of each queue for every set of members the page may need, the ring, the runs."""
        runs = [{"name": name, **KEPT.shown_with(settings)} for name, settings in self._recorded.items()]
        if self.run is not None:
            runs.insert(0, {"name": "as played", **shown_run(self.run)})
        own = [name for name in self._dividing.names if name not in STRATEGY_NAMES]
        return {
            **division_data(self._dividing, self._seen, self.history.members, self.state["virtual_nodes"]),
            "first": list(self.first_members),
            "highest": HIGHEST,
            "runs": runs,
            "changes": CHANGES,
            "in_a_group": [*IN_A_GROUP, *own],
        }

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``history`` (changes), ``change`` (settings) or ``play`` (of the running group); the data are made again."""
        if name == "history":
            self._show([tuple(change) for change in arguments["changes"]])
        elif name == "change":
            self.change(**arguments)
        elif name == "play":
            self.play(**arguments)
        else:
            return super().asked(name, arguments)
        return {}

    def readable(self) -> Any:
        """The history, the owners at the moment shown and all strategies."""
        return self.table().html() + self.owners().html() + self.compare().html()

    def _renewed(self) -> None:
        """What depends on queues and names: made again after either has changed."""
        used = self.history.names
        count = max(EVERY_SET_OF, len(used))
        kept = [*used, *(name for name in self._seen if name not in used)][:count]
        self._seen = next_names(kept, count)
        self._ever.update(dict.fromkeys(self._seen))
        self._division_rooms = Rooms(self.queues.brokers, self._rooms, list(self._ever))
        self._queues = self.queues.all()
        plain = Dividing(self.queues, self._division_rooms, {})
        if self._config is None:
            # By hand, once, as an operator would have done it for the members of the first day.
            share = plain.owners("AVG", 1, self.first_members)
            config = {
                name: [queue for queue, names in zip(self._queues, share, strict=True) if name in names]
                for name in self.first_members
            }
        else:
            config = {
                name: [queue for queue in self._queues if queue.queue_id in numbers]
                for name, numbers in self._config.items()
            }
        self._dividing = Dividing(self.queues, self._division_rooms, config, self._own, self._consumeridcs)

    def _check(self, strategy: str, virtual_nodes: int) -> None:
        if strategy not in self._dividing.names:
            raise UsageError(f"no strategy {strategy!r} on this board", hint=", ".join(self._dividing.names))
        must_be_whole("virtual_nodes", virtual_nodes, 1, MOST_VIRTUAL_NODES)

    def _then(self, change: Change) -> AllocationBoard:
        return self._show([*self.state["history"][: self.position], change])

    def _show(self, changes: Sequence[Sequence[str]]) -> AllocationBoard:
        """Another history, its last moment shown."""
        history = History(self.first_members, changes)  # refuses what cannot happen
        known = set(self._seen)
        self.set("history", [list(change) for change in changes])
        if not known.issuperset(history.names) or len(self._seen) > EVERY_SET_OF:
            self._renewed()
        self.set("position", len(changes))
        self.renew()
        return self

    def _moments(self, strategy: str) -> Moments:
        owners = [self.owners_at(number, strategy) for number in range(len(self.history.members))]
        per_topic = len(self._queues) // self.queues.topics
        return Moments(moments_of(self.state["history"], self.history.members, owners, per_topic))

    @property
    def _shown(self) -> Moments:
        return self._moments(self.state["strategy"])

    def _handover(self) -> HandoverRun:
        if self.run is None:
            self.play()
        assert self.run is not None
        return self.run


def allocation_board(
    strategy: Any = "AVG",
    *,
    queues: int = 8,
    brokers: int | Sequence[str] = 1,
    topics: int = 1,
    members: int | Sequence[str] = 3,
    virtual_nodes: int = 10,
    history: Sequence[Any] = (),
    rooms: Mapping[str, str] | None = None,
    config: Mapping[str, Sequence[int]] | None = None,
    consumeridcs: Sequence[str] | None = None,
    recorded: Mapping[str, HandoverSettings] = RECORDED,
) -> AllocationBoard:
    """The readers of each queue, with ``queues`` on each broker, for each topic, over a history of joins and leaves.

    ``strategy`` is one of RocketMQ's names, an object with ``allocate``, or a function of the learner. ``members`` are
    client ids, or how many. ``history``: ``("join", name)``, ``("leave", name)``, ``("rename", name, new)``. ``rooms``:
    member to room, for MACHINE_ROOM_NEARBY; ``consumeridcs``: the rooms that MACHINE_ROOM serves; ``config``: member to
    queue ids, for CONFIG (default: AVG's division of the first members, for ever). ``recorded`` names the running
    groups of pages without a kernel. Raises UsageError for settings that do not exist.

    >>> board = allocation_board(queues=8, members=3, history=[("join", "billing-4")], recorded={})
    >>> board.owners().column("owner")[:3], board.moved, board.fairness
    (['billing-1', 'billing-1', 'billing-2'], 5, 1)
    >>> board.undo().owners().column("owner")[:3]
    ['billing-1', 'billing-1', 'billing-1']
    """
    own = None
    if not isinstance(strategy, str):
        own = own_strategy(strategy)
        strategy = own_name(own)
    return AllocationBoard(
        BoardQueues(queues, broker_names(brokers), topics),
        member_names(members),
        changes_of(history),
        own,
        rooms or {},
        config,
        consumeridcs,
        recorded,
        strategy=strategy,
        virtual_nodes=virtual_nodes,
    )

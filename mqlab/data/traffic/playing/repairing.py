"""A plan that repairs a day: what it would deliver, and what it does deliver in a Lab on a copy of the day's stores.

Mirrors: an operator's night: resetOffsetByTime, resends of dead letters, and a list of ids that listeners pass over.

    Plan      offsets   of a group's queues, set before any read          billing broker-a 3 -> 412
              again     dead letters that are sent back to their group, in this order, after everything else
              skip      messages that the group's listener acknowledges without doing anything

    preview   group, queue by queue: what would be delivered for the first time, a second time, or passed over; no Lab
    carry_out  Lab(stores=copy) ─ offsets ─ the traced groups start ─ they read to the end ─ dead letters ─ Done

Messages whose cause lives on fail at every try, as on the day. Each group has one process with one thread, so that a
queue is read in its order.

Left out: producers; groups without a trace.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.arrow import find_stores
from mqlab.data.traffic.day_facts import DayFacts
from mqlab.data.traffic.model import ORDERS, TRACED, Group
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER

if TYPE_CHECKING:
    import pandas

Pair = tuple[str, str]  # group, msg_id
_READS_TO_THE_END = "4h"
_NO_TRIES_LEFT = 0


@dataclass(frozen=True)
class Plan:
    """What is to be done about a day; see the head of this file. Each pair is (group, msg_id)."""

    offsets: Mapping[tuple[str, str, int], int] = field(default_factory=dict)  # (group, broker, queue_id) -> offset
    again: tuple[Pair, ...] = ()
    skip: frozenset[Pair] = frozenset()

    @classmethod
    def of(cls, value: Mapping[str, Iterable[Any]]) -> Plan:
        """A plan from the lists of an answer: offsets (group, broker, queue_id, offset), again and skip (pairs)."""
        offsets = {(group, broker, queue): offset for group, broker, queue, offset in value.get("offsets", ())}
        again, skip = (tuple((group, key) for group, key in value.get(name, ())) for name in ("again", "skip"))
        return cls(offsets, again, frozenset(skip))


@dataclass(frozen=True, slots=True)
class RepairCalls:
    """What listeners did while a plan was carried out, in order: calls that succeeded and were not passed over, and
    calls that failed.
    """

    done: tuple[Pair, ...]
    failed: tuple[Pair, ...]

    def times(self) -> Counter[Pair]:
        """How often each pair was done."""
        return Counter(self.done)


def check_plan(plan: Plan, facts: DayFacts) -> str:
    """A sentence about the first part of a plan that cannot be carried out; empty if all of it can."""
    ends = _of_queues(facts, "end")
    traced = {group.name for group in TRACED}
    for (group, broker, queue), offset in plan.offsets.items():
        if group not in traced or (group, broker, queue) not in ends:
            return f"{group} has no queue {queue} of {ORDERS} at {broker}"
        if not 0 <= offset <= ends[group, broker, queue]:
            return f"queue {queue} of {broker} goes from 0 to {ends[group, broker, queue]}, and not to {offset}"
    dead = set(zip(*(facts.life.loc[facts.life["dead"], name] for name in ("group", "msg_id")), strict=True))
    others = [pair for pair in plan.again if pair not in dead]
    return f"{others[0][1]} is not a dead letter of {others[0][0]}" if others else ""


def _of_queues(facts: DayFacts, column: str) -> dict[tuple[str, str, int], int]:
    """A column of the offsets, by group, broker and queue of the orders."""
    orders = facts.offsets[facts.offsets["topic"] == ORDERS]
    places = (orders[name].tolist() for name in ("group", "broker", "queue_id"))
    return dict(zip(zip(*places, strict=True), orders[column].tolist(), strict=True))


def preview(facts: DayFacts, plan: Plan) -> pandas.DataFrame:
    """What a plan would deliver: per group, broker and queue the messages ``first``, ``again`` and ``skipped``.

    ``first`` were never consumed, ``again`` were; dead letters that are sent again have the queue -1.
    """
    import pandas

    # 1. From which offset on each group reads each queue.
    begins = {**_of_queues(facts, "committed"), **plan.offsets}
    places = pandas.DataFrame(list(begins), columns=["group", "broker", "queue_id"]).assign(begin=list(begins.values()))
    life = facts.life[facts.life["reads"]].merge(places, "left", ["group", "broker", "queue_id"])
    read = life[life["queue_offset"] >= life["begin"]]
    # 2. Dead letters come on top of that.
    sent = pandas.MultiIndex.from_tuples(list(plan.again) or [("", "")])
    dead = life[pandas.MultiIndex.from_frame(life[["group", "msg_id"]]).isin(sent)].assign(queue_id=-1)
    both = pandas.concat([read, dead])
    # 3. What of it is done, and for the first time or again.
    skip = pandas.MultiIndex.from_tuples(list(plan.skip) or [("", "")])
    skipped = pandas.MultiIndex.from_frame(both[["group", "msg_id"]]).isin(skip)
    consumed = (both["successes"] > 0).to_numpy()
    both = both.assign(first=~skipped & ~consumed, again=~skipped & consumed, skipped=skipped)
    by = ["group", "broker", "queue_id"]
    return both.groupby(by)[["first", "again", "skipped"]].sum().astype("int64").reset_index()


def carry_out(stores: str | Path, plan: Plan, living: Collection[Pair] = ()) -> RepairCalls:
    """Carry out a plan in a Lab on a copy of the stores. ``living``: pairs whose call fails at every try.

    Raises UsageError for an offset outside its queue.
    """
    folders = find_stores(str(stores))
    with tempfile.TemporaryDirectory(prefix="mqlab-repair-") as folder:
        lab = Lab(stores={store.broker_name: store.directory for store in folders}, directory=folder)
        try:
            return _Night(lab, plan, frozenset(living)).run()
        finally:
            lab.close()


@dataclass(slots=True)
class _Night:
    """One plan on its way."""

    lab: Lab
    plan: Plan
    living: frozenset[Pair]
    done: list[Pair] = field(default_factory=list)
    failed: list[Pair] = field(default_factory=list)

    def run(self) -> RepairCalls:
        # 1. No member reads while offsets are set.
        for queue, offset in self.plan.offsets.items():
            self._set(*queue, offset)
        # 2. The groups read to the end of their queues.
        for group in TRACED:
            self._start(group)
        self.lab.run_until_quiet(_READS_TO_THE_END)
        # 3. Dead letters go back to their groups one after the other: their order is the plan's.
        for name, msg_id in self.plan.again:
            self.lab.admin.resend_dlq(name, msg_id)
        self.lab.run_until_quiet(_READS_TO_THE_END)
        return RepairCalls(tuple(self.done), tuple(self.failed))

    def _set(self, group: str, broker: str, queue: int, offset: int) -> None:
        end = next(
            (q.max_offset for q in self.lab.store(broker).queues() if (q.topic, q.queue_id) == (ORDERS, queue)), 0
        )
        if not 0 <= offset <= end:
            raise UsageError(f"queue {queue} of {broker} goes from 0 to {end}, and not to {offset}")
        self.lab.admin.reset_offset_of_queue(ORDERS, group, broker, queue, offset)

    def _start(self, group: Group) -> None:
        consumer = self.lab.push_consumer(
            group.name,
            name=f"{group.name}-1",
            consume_thread_min=1,
            consume_thread_max=1,
            max_reconsume_times=_NO_TRIES_LEFT,
        )
        consumer.subscribe(group.topic, group.expression)
        consumer.on_messages(self._listener(group.name))
        consumer.start()

    def _listener(self, group: str) -> Callable[[Any, Any], str]:
        def listener(messages: Any, context: Any) -> str:
            pair = (group, messages[0].msg_id)
            if pair in self.plan.skip:
                return CONSUME_SUCCESS
            if pair in self.living:
                self.failed.append(pair)
                return RECONSUME_LATER
            self.done.append(pair)
            return CONSUME_SUCCESS

        return listener

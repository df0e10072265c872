"""A member joins, leaves or dies in a running group: who owned each queue when, and who worked on it when.

    HandoverSettings     strategy, what happens, how long a call takes, told or not, in order or not
    play_handover        the story in a Lab ─▶ HandoverRun: spans, calls, overlaps, messages given twice
    RECORDED             the runs of a page without a kernel

    queue 3  billing-1  ━━━━━━━━━━━━━━━┥             owned: from queue.added to queue.dropped in the journal
                             ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆         at work: a call of the listener, its end after the queue was lost
             billing-2                  ┝━━━━━━━━━
                                           ▆▆▆▆▆▆    the same message

Nothing is computed by a formula: times are those of the journal. Left out: two groups, several topics.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.frame.kept_runs import KeptRuns
from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import UsageError
from mqlab.lab.runtime.journal import StepRecord
from mqlab.lab.views.timeline import after
from mqlab.lab.world.lab import play
from mqlab.rocketmq.client.allocate import AllocateStrategy, ConsistentHash, strategy
from mqlab.rocketmq.wire.message import Message, MessageQueue

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

GROUP, TOPIC = "billing", "orders"
MEMBERS, JOINER = ("billing-1", "billing-2"), "billing-3"
CHANGES = ("join", "leave", "kill")
BEFORE_MS, AFTER_MS = 10_000, 30_000
MESSAGES_PER_SECOND = 4
MOST_QUEUES, LONGEST_CALL_MS = 16, 10_000
CALM_CLIENT = {"enable_trace": False, "heartbeat_broker_interval": "1m", "poll_name_server_interval": "10m"}


@dataclass(frozen=True, slots=True)
class HandoverSettings:
    """What the learner may change. Raises UsageError for values that are not offered.

    ``change``: billing-3 joins, or billing-2 leaves (shutdown) or is killed. ``call_ms``: how long a listener's call
    takes. ``told``: the broker tells the members at once; else each finds out at its next round, every 20 s.
    """

    strategy: str = "AVG"
    virtual_nodes: int = 10
    change: str = "join"
    call_ms: int = 3_000
    told: bool = True
    orderly: bool = False
    queues: int = 8

    def __post_init__(self) -> None:
        if self.change not in CHANGES:
            raise UsageError(f"change must be one of {', '.join(CHANGES)}, got {self.change!r}")
        for name, value, highest in (("call_ms", self.call_ms, LONGEST_CALL_MS), ("queues", self.queues, MOST_QUEUES)):
            must_be_whole(name, value, 1, highest)


@dataclass(frozen=True, slots=True)
class HandoverRun:
    """What happened. All times are ms after the member joined, left or died; ``None``: until the end.

    ``spans``: queue, member, from_ms, to_ms: the queue was in the member's table. ``calls``: queue, member, from_ms,
    to_ms, queue_offset, status. ``overlaps``: queue, members, from_ms, to_ms, what ("two owners", "two at work", "no
    owner"). ``twice``: queue, queue_offset, members: messages that two members were given.
    """

    settings: HandoverSettings
    spans: tuple[dict[str, Any], ...]
    calls: tuple[dict[str, Any], ...]
    overlaps: tuple[dict[str, Any], ...]
    twice: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """The run as plain values."""
        return asdict(self)


RECORDED: Mapping[str, HandoverSettings] = {
    "a member joins": HandoverSettings(),
    "a member joins, none is notified": HandoverSettings(told=False),
    "a member joins, in order": HandoverSettings(orderly=True),
    "a member is killed, none is notified": HandoverSettings(change="kill", told=False),
}


def play_handover(settings: HandoverSettings, own: AllocateStrategy | None = None) -> HandoverRun:
    """Play the story with these settings; the same settings are played once. ``own`` takes the strategy's place."""
    return _played(settings) if own is None else _run(settings, own)


@functools.lru_cache(maxsize=64)
def _played(settings: HandoverSettings) -> HandoverRun:
    if settings.strategy == "CONSISTENT_HASH":
        return _run(settings, ConsistentHash(settings.virtual_nodes))
    if settings.strategy not in ("AVG", "AVG_BY_CIRCLE"):
        raise UsageError(
            f"the running group does not know how to set up {settings.strategy}",
            hint="AVG, AVG_BY_CIRCLE, CONSISTENT_HASH or a strategy of your own",
        )
    return _run(settings, strategy(settings.strategy))


def _run(settings: HandoverSettings, strategy: AllocateStrategy) -> HandoverRun:
    broker = {"notify_consumer_ids_changed_enable": settings.told}
    happened: list[int] = []
    story = functools.partial(_changing_group, settings=settings, strategy=strategy, happened=happened)
    lab = play(story, seed=7, client=CALM_CLIENT, broker=broker)
    return _what_happened(lab, settings, happened[0])


def _changing_group(lab: Lab, settings: HandoverSettings, strategy: AllocateStrategy, happened: list[int]) -> None:
    """Two members at work; then one comes or goes."""
    lab.create_topic(TOPIC, read_queue_nums=settings.queues, write_queue_nums=settings.queues)

    def listener(messages: Any, context: Any) -> str:
        context.sleep(settings.call_ms)
        return "SUCCESS" if settings.orderly else "CONSUME_SUCCESS"

    def member(name: str) -> Any:
        consumer = lab.push_consumer(GROUP, name=name, allocate_message_queue_strategy=strategy)
        consumer.subscribe(TOPIC, "*")
        (consumer.on_messages_orderly if settings.orderly else consumer.on_messages)(listener)
        consumer.start()
        return consumer

    # 1. Two members share the queues, and orders arrive on all of them in turn.
    members = [member(name) for name in MEMBERS]
    shop = lab.producer("shop")
    lab.traffic(shop, rates=[("0s", MESSAGES_PER_SECOND)], message=lambda n: Message(TOPIC, b"a book", keys=f"o-{n}"))
    lab.run_for(BEFORE_MS)
    # 2. The change, and time for each member's next round.
    happened.append(lab.now_ms)
    if settings.change == "join":
        member(JOINER)
    elif settings.change == "leave":
        members[1].shutdown()
    else:
        lab.kill(members[1])
    lab.run_for(AFTER_MS)


def _what_happened(lab: Lab, settings: HandoverSettings, changed_ms: int) -> HandoverRun:
    # 1. The owners of a queue, from the journal. A process that ends drops nothing: its end ends its spans.
    spans: list[dict[str, Any]] = []
    open_spans: dict[tuple[str, MessageQueue], dict[str, Any]] = {}

    def close(key: tuple[str, MessageQueue], now_ms: int) -> None:
        if key in open_spans:
            open_spans.pop(key)["to_ms"] = now_ms - changed_ms

    for record, change in _changes(lab):
        values, at_ms = change.values, record.now_ms
        if change.kind == "queue.added" and values["queue"].topic == TOPIC:
            key = (values["client"], values["queue"])
            open_spans[key] = {
                "queue": values["queue"].queue_id,
                "member": key[0],
                "from_ms": at_ms - changed_ms,
                "to_ms": None,
            }
            spans.append(open_spans[key])
        elif change.kind == "queue.dropped":
            close((values["client"], values["queue"]), at_ms)
    if settings.change != "join":
        for key in [key for key in open_spans if key[0] == MEMBERS[1]]:
            close(key, changed_ms)
    # 2. The calls at work on it. A call that its process did not survive has no end of its own.
    calls: list[dict[str, Any]] = []
    for row in lab.deliveries(GROUP, absences=False):
        if row.message_queue.topic != TOPIC:
            continue
        killed = settings.change == "kill" and row.client == MEMBERS[1]
        ended_ms = changed_ms if row.ended_ms is None and killed else row.ended_ms
        calls.append(
            {
                "queue": row.message_queue.queue_id,
                "member": row.client,
                "from_ms": row.started_ms - changed_ms,
                "to_ms": None if ended_ms is None else ended_ms - changed_ms,
                "queue_offset": row.queue_offset,
                "status": row.status,
            }
        )
    in_order = sorted(spans, key=lambda span: (span["queue"], span["from_ms"]))
    overlaps = _both(spans, "two owners") + _both(calls, "two at work") + _nobody(in_order)
    overlaps.sort(key=lambda row: (row["queue"], row["from_ms"], row["what"]))
    return HandoverRun(settings, tuple(in_order), tuple(calls), tuple(overlaps), tuple(_given_twice(calls)))


def _changes(lab: Lab) -> list[tuple[StepRecord, Any]]:
    return [(record, change) for record in lab.journal for change in record.changes]


def _end(row: dict[str, Any]) -> float:
    return float("inf") if row["to_ms"] is None else row["to_ms"]


def _both(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """The times at which two members are on one queue; stretches that touch are one."""
    by_pair: dict[tuple[int, str, str], list[list[float]]] = {}
    for row, other in combinations(sorted(rows, key=lambda row: row["from_ms"]), 2):
        if row["queue"] != other["queue"] or row["member"] == other["member"]:
            continue
        start, end = other["from_ms"], min(_end(row), _end(other))
        if start < end:
            first, second = sorted((row["member"], other["member"]))
            stretches = by_pair.setdefault((row["queue"], first, second), [])
            if stretches and start <= stretches[-1][1]:
                stretches[-1][1] = max(end, stretches[-1][1])
            else:
                stretches.append([start, end])
    return [
        {
            "queue": queue,
            "members": [first, second],
            "from_ms": start,
            "to_ms": None if end == float("inf") else end,
            "what": what,
        }
        for (queue, first, second), stretches in by_pair.items()
        for start, end in stretches
    ]


def _nobody(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The times after its first owner at which a queue has none; spans are sorted by queue and begin."""
    gaps: list[dict[str, Any]] = []
    until: dict[int, float] = {}
    for span in spans:
        queue = span["queue"]
        if queue in until and span["from_ms"] > until[queue]:
            gap = {"queue": queue, "members": [], "from_ms": int(until[queue]), "to_ms": span["from_ms"]}
            gaps.append({**gap, "what": "no owner"})
        until[queue] = max(until.get(queue, _end(span)), _end(span))
    return gaps


def _given_twice(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages that two members were given, in the order of their queues."""
    receivers: dict[tuple[int, int], list[str]] = {}
    for call in calls:
        members = receivers.setdefault((call["queue"], call["queue_offset"]), [])
        if call["member"] not in members:
            members.append(call["member"])
    return [
        {"queue": queue, "queue_offset": offset, "members": members}
        for (queue, offset), members in sorted(receivers.items())
        if len(members) > 1
    ]


def shown_run(run: HandoverRun) -> dict[str, Any]:
    """A run as the page gets it: lists instead of many equal names."""
    return {
        "settings": asdict(run.settings),
        "words": run_words(run),
        "spans": [[s["queue"], s["member"], s["from_ms"], s["to_ms"]] for s in run.spans],
        "calls": [[c["queue"], c["member"], c["from_ms"], c["to_ms"], c["queue_offset"]] for c in run.calls],
        "overlaps": [[o["queue"], o["members"], o["from_ms"], o["to_ms"], o["what"]] for o in run.overlaps],
        "twice": [[t["queue"], t["queue_offset"]] for t in run.twice],
    }


def run_words(run: HandoverRun) -> str:
    """A run in one sentence."""
    times: dict[str, int] = {}
    for overlap in run.overlaps:
        if overlap["to_ms"] is not None:
            times[overlap["what"]] = max(times.get(overlap["what"], 0), overlap["to_ms"] - overlap["from_ms"])
    longest = ", ".join(f"{what} for up to {after(ms).lstrip('+')}" for what, ms in sorted(times.items()))
    count = len(run.twice)
    return f"{longest or 'no overlap'}; {count} message{'s' * (count != 1)} given to two members"


KEPT = KeptRuns("allocation", RECORDED, lambda settings: shown_run(play_handover(settings)))

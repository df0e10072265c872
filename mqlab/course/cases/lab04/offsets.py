"""Lab 04's first exercise about one number: what the broker holds after a history.

    committed     pulled, done, report, in any order      ─▶ the offset that the broker holds

A real consumer has the history; the broker's table says what is right. What a crash costs is in crash_cost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.story_parts import one_queue
from mqlab.course.kit import Pure, Slip
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message, MessageExt

GROUP, TOPIC = "billing", "orders"
NODE, BROKER = "billing-1", "broker-a"
PULLED, DONE, REPORT = "pulled", "done", "report"
TAG, OTHER_TAG, GAP = "paid", "created", -1
FOR_EVER_MS = 36_000_000
SETTLED = "27s"  # after it every finished order is reported, and the report is in the broker's file
MORE_AFTER_MS = 8_000
UNFINISHED_TICK_MS = 37  # no order ends in the same millisecond as a report

SMALLEST_RULE = (
    "The offset is the smallest that was pulled and is not done: whatever is done after it does not count yet"
)
AFTER_RULE = "When everything pulled is done, the offset is one past the largest that was pulled: the next to read"
REPORT_RULE = "The broker knows only the last report: what is done after it changes the consumer's memory only"
COUNT_RULE = "An offset is a position in the queue, not a number of finished messages"

Event = tuple[str, int]


def work(messages: Sequence[MessageExt], context: Any) -> str:
    """The case's listener: an order says how long it takes."""
    context.sleep(int(messages[0].properties.get("takes", "20")))
    return CONSUME_SUCCESS


def start_billing(lab: Lab, name: str = NODE, tags: str = "*", **settings: Any) -> Any:
    """A started member of billing that has subscribed to these tags."""
    consumer = lab.push_consumer(GROUP, name=name, **settings)
    consumer.subscribe(TOPIC, tags)
    consumer.on_messages(work)
    consumer.start()
    return consumer


def send(lab: Lab, shop: Any, takes: Iterable[int]) -> None:
    """Orders that take so many ms each; an order that takes GAP has a tag of its own."""
    for number, duration in enumerate(takes):
        tag = OTHER_TAG if duration == GAP else TAG
        shop.send(Message(TOPIC, b"a book", tags=tag, keys=f"order-{number}", properties={"takes": str(duration)}))


def read_before(lab: Lab, count: int) -> None:
    """Some orders of an earlier day, read by a member that has left: the group's offset is ``count``."""
    one_queue(lab, TOPIC)
    shop = lab.producer("shop")
    send(lab, shop, [20] * count)
    yesterday = start_billing(lab, "billing-0")
    lab.run_for(SETTLED)
    yesterday.shutdown()
    lab.run_for("6s")


def quiet(story: Callable[[Lab], None], seed: int, **broker: Any) -> Lab:
    """The played story, without message trace."""
    return play(story, seed=seed, broker=broker, client={"enable_trace": False})


def reports(lab: Lab, first_step: int) -> list[int]:
    """The steps in which billing-1 sent its offset to the broker: by its timer, or with a pull."""
    steps = {record.step for record in lab.journal.of("client.offset_persist") if record.node == NODE}
    for record, values in lab.journal.changes("offset.committed"):
        # An offset that came with a pull: its cause is the step that sent the request.
        if values["topic"] == TOPIC and values["group"] == GROUP and record.node == BROKER:
            steps.add(record.cause)
    return sorted(step for step in steps if step >= first_step)


def history_of(lab: Lab, first_step: int) -> list[Event]:
    """What was pulled, done and reported from a step on, in order."""
    report_steps = set(reports(lab, first_step))
    events: list[Event] = []
    for record in lab.journal[first_step:]:
        if record.node != NODE:
            continue
        for change in record.changes:
            if change.kind == "message.pulled" and change.values["queue"].topic == TOPIC:
                events += [(PULLED, offset) for offset in change.values["queue_offsets"]]
            if change.kind == "listener.returned":
                events += [(DONE, message["queue_offset"]) for message in change.values["messages"]]
        if record.step in report_steps:
            events.append((REPORT, 0))
    return events


def histories(seed: int) -> list[Call]:
    """Four histories: one order holds the others, all are done, all are done since the last report, and a lottery.

    In the last three, billing's filter leaves gaps between the offsets that it pulls.
    """
    rng = random.Random(f"lab04.committed {seed}")
    return [
        lived(rng, "one order takes for ever", _one_hangs(rng), rng.randint(11_500, 14_500)),
        lived(rng, "all are done and reported", with_gaps(rng, _one_after_a_report(rng)), 21_500),
        lived(rng, "the last ones are done after the last report", with_gaps(rng, _late(rng)), 14_800),
        lived(
            rng, "any order", with_gaps(rng, [_any(rng) for _ in range(rng.randint(5, 9))]), rng.randint(11_000, 24_000)
        ),
        *nothing_reported(seed),
    ]


def _one_after_a_report(rng: random.Random) -> list[int]:
    """One order ends after the first report, all others before it."""
    takes = [soon(rng) for _ in range(rng.randint(3, 6))]
    takes[rng.randrange(1, len(takes))] = 100 * rng.randint(105, 140) + UNFINISHED_TICK_MS
    return takes


def with_gaps(rng: random.Random, takes: Sequence[int]) -> list[int]:
    """The orders with others between them that billing's filter leaves out, one at least."""
    gapped, chosen = list(takes), rng.randrange(1, len(takes))
    for index in range(len(takes) - 1, 0, -1):
        if index == chosen or rng.random() < 0.2:
            gapped.insert(index, GAP)
    return gapped


def soon(rng: random.Random) -> int:
    """How long an order takes that is done before the first report."""
    return 100 * rng.randint(2, 60) + UNFINISHED_TICK_MS


def _any(rng: random.Random) -> int:
    return 100 * rng.randint(2, 230) + UNFINISHED_TICK_MS


def _one_hangs(rng: random.Random) -> list[int]:
    takes = [soon(rng) for _ in range(rng.randint(4, 8))]
    takes[rng.randrange(len(takes) - 2)] = FOR_EVER_MS
    return takes


def _late(rng: random.Random) -> list[int]:
    """Some orders end before the first report, 10 s after the start; the others between it and the second."""
    early = [soon(rng) for _ in range(rng.randint(2, 4))]
    return [*early, *(100 * rng.randint(108, 128) + UNFINISHED_TICK_MS for _ in range(rng.randint(2, 3)))]


def nothing_reported(seed: int) -> list[Call]:
    """A history that ends before the first report."""
    rng = random.Random(f"lab04.committed early {seed}")
    return [lived(rng, "nothing is reported yet", [soon(rng) for _ in range(5)], rng.randint(5_000, 9_000))]


def two_pulls(seed: int) -> list[Call]:
    """More orders come when the first ones are done, or nearly."""
    rng = random.Random(f"lab04.committed pulls {seed}")
    more = [soon(rng) for _ in range(rng.randint(3, 5))]
    first = [*[soon(rng) for _ in range(4)], 100 * rng.randint(90, 180) + UNFINISHED_TICK_MS]
    return [lived(rng, "a second pull", first, rng.randint(21_000, 24_500), more)]


def lived(rng: random.Random, about: str, takes: Sequence[int], until_ms: int, more: Sequence[int] = ()) -> Call:
    """The history of a consumer that runs so long, and what the broker holds at its end.

    ``more``: orders that are sent when it has worked for a while.
    """
    before = rng.randint(3, 40)
    begins: list[int] = []

    def story(lab: Lab) -> None:
        read_before(lab, before)
        send(lab, lab.node_handle("shop-1"), takes)
        begins.append(lab.journal.next_step)
        start_billing(lab, tags=TAG)
        if more:
            lab.run_for(MORE_AFTER_MS)
            send(lab, lab.node_handle("shop-1"), more)
        lab.run_for(until_ms - (MORE_AFTER_MS if more else 0))

    lab = quiet(story, rng.randrange(1_000))
    held = lab.broker().offset_table.query(GROUP, TOPIC, 0)
    return Call(start=before, history=history_of(lab, begins[0]), right=held, about=about)


def _at(call: Call, until: int | None = None) -> tuple[list[int], list[int]]:
    """What was pulled and what was done before an event."""
    events = call["history"][:until]
    return [offset for what, offset in events if what == PULLED], [offset for what, offset in events if what == DONE]


def _last_report(call: Call) -> int:
    return max((n for n, event in enumerate(call["history"]) if event[0] == REPORT), default=0)


def _smallest_left(call: Call, until: int | None, past: int = 1) -> int:
    pulled, done = _at(call, until)
    left = [offset for offset in pulled if offset not in done]
    return int(min(left)) if left else int(max(pulled, default=call["start"] - past)) + past


def _last_consumed(call: Call) -> int:
    _, done = _at(call, _last_report(call))
    return max(done, default=call["start"] - 1) + 1


def _counted(call: Call) -> int:
    _, done = _at(call, _last_report(call))
    return int(call["start"]) + len(done)


def _one_by_one(call: Call) -> int:
    """The first offset from the start on that was not done at the last report, pulled or not."""
    _, done = _at(call, _last_report(call))
    offset = int(call["start"])
    while offset in done:
        offset += 1
    return offset


COMMITTED = Pure(
    "lab04.committed",
    "committed(start, history)",
    points=3,
    about="a consumer's history",
    calls=histories,
    returns=int,
    rules=SMALLEST_RULE,
    slips=[
        Slip("the last consumed", _last_consumed, SMALLEST_RULE, belief="lab04.last_consumed"),
        Slip("the last consumed itself", lambda call: max(_last_consumed(call) - 1, call["start"]), SMALLEST_RULE),
        Slip("known at once", lambda call: _smallest_left(call, None), REPORT_RULE, belief="lab04.known_at_once"),
        Slip("not one past", lambda call: _smallest_left(call, _last_report(call), past=0), AFTER_RULE),
        Slip("counted", _counted, COUNT_RULE),
        Slip("one by one", _one_by_one, belief="lab04.without_gaps"),
        Slip("never moves", lambda call: call["start"], SMALLEST_RULE),
    ],
    weights={"": 1, "nothing reported yet": 1, "two pulls": 1},
    forbids=FORBIDS["lab04.committed"],
)

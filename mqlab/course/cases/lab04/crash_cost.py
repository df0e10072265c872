"""Lab 04's second exercise about one number: what a crash costs.

    crash_cost    when what was done, reported, written   ─▶ the finished orders that billing gets again

A real consumer has the afternoon; the deliveries after the restart say what is right.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab04.offsets import (
    BROKER,
    FOR_EVER_MS,
    GROUP,
    NODE,
    TAG,
    TOPIC,
    UNFINISHED_TICK_MS,
    quiet,
    read_before,
    reports,
    send,
    soon,
    start_billing,
    with_gaps,
)
from mqlab.course.kit import Pure, Slip
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab

FILE_EVERY_MS = 5_000
BEFORE_A_REPORT_MS = (7_000, 9_500)
CONSUMER_DIES, BROKER_DIES, BOTH_DIE = "consumer", "broker", "both"

AGAIN_RULE = (
    "After a restart the consumer begins at the offset that the broker holds, and gets everything from there on"
)
REPORTED_RULE = "The consumer's memory dies with it: the broker holds what the last report before the crash told it"
UNREPORTED_RULE = (
    "Billing died before its first report, so table and file still have the offset that they had before its start: the "
    "smallest of pulled"
)
WRITTEN_RULE = (
    "When both die, the broker's table dies as well: what is left is its file, and the file holds what had been "
    "reported when it was last written"
)
STILL_KNOWS_RULE = (
    "When the broker alone dies, the consumer is still there with its memory: it continues where it was, and its "
    "next report corrects the broker"
)
SORTED_RULE = "These are the right orders: give them in the order of their offsets, each once"
FINISHED_RULE = "Only orders that were finished before the crash count: an unfinished one is not paid twice"


def crashes(seed: int) -> list[Call]:
    """The same kind of afternoon with three ends: the consumer dies, the broker dies, both die.

    Once all was done, and once the crash comes before the first report.
    """
    rng = random.Random(f"lab04.crash_cost {seed}")
    ends = [crashed(rng, dies) for dies in (CONSUMER_DIES, BROKER_DIES, BOTH_DIE)]
    early = crashed(rng, CONSUMER_DIES, BEFORE_A_REPORT_MS)
    return [*ends, crashed(rng, CONSUMER_DIES, all_done=True), early]


def afternoon(rng: random.Random, all_done: bool = False) -> list[int]:
    """How long the orders take: one holds the offset until the second report, one until the third, one until after it.

    Reports come 10, 15 and 20 s after the consumer's start, the crash soon after the last one.
    """

    def early() -> list[int]:
        return [soon(rng) for _ in range(rng.randint(1, 2))]

    holds = [100 * rng.randint(*seconds) + UNFINISHED_TICK_MS for seconds in ((103, 134), (151, 160), (196, 197))]
    takes: list[int] = []
    for held in holds if all_done else (*holds, FOR_EVER_MS):
        takes += [*early(), held]
    return with_gaps(rng, [*takes, *early()])


def crashed(
    rng: random.Random, dies: str, crash_ms: tuple[int, int] = (21_300, 22_400), all_done: bool = False
) -> Call:
    """Orders, a crash at some moment after billing's start, a restart; right is what the second life was given."""
    takes, before = afternoon(rng, all_done), rng.randint(3, 30)
    # The broker writes its file so long after a report: the last report before the crash is not in it yet.
    written_after_ms, at_ms = rng.randint(2_600, 4_600), rng.randint(*crash_ms)
    marks: dict[str, int] = {}

    def story(lab: Lab) -> None:
        # 1. Billing takes all orders in one pull, and works on all of them at once.
        read_before(lab, before)
        send(lab, lab.node_handle("shop-1"), takes)
        lab.run_for(FILE_EVERY_MS - (lab.now_ms - lab.began_ms + written_after_ms) % FILE_EVERY_MS)
        marks["step"], marks["start"] = lab.journal.next_step, lab.now_ms
        start_billing(lab, tags=TAG)
        lab.run_for(at_ms - (lab.now_ms - marks["start"]))
        # 2. The crash, and everything is started again.
        marks["crash"] = lab.now_ms
        dead = {CONSUMER_DIES: [NODE], BROKER_DIES: [BROKER], BOTH_DIE: [NODE, BROKER]}[dies]
        for node in dead:
            lab.kill(node)
        lab.run_for("2s")
        for node in reversed(dead):
            lab.start(node)
        lab.run_for("40s")

    lab = quiet(story, rng.randrange(1_000))
    rows = [row for row in lab.deliveries(GROUP, absences=False) if row.client == NODE and row.topic == TOPIC]
    first = [row for row in rows if row.started_ms < marks["crash"]]
    ended = sorted((row for row in first if (row.ended_ms or 0) in _before(marks)), key=lambda row: row.ended_ms)
    done = {row.queue_offset: row.ended_ms - marks["start"] for row in ended}
    again = {row.queue_offset for row in rows if row.started_ms > marks["crash"]}
    report_times = [lab.journal[step].now_ms - marks["start"] for step in reports(lab, marks["step"])]
    written = [
        record.now_ms - marks["start"]
        for record, values in lab.journal.changes("offset.persisted")
        if record.node == BROKER and values["file"] == "consumerOffset.json" and record.step >= marks["step"]
    ]
    died_ms = marks["crash"] - marks["start"]
    return Call(
        pulled=sorted(row.queue_offset for row in first),
        done=done,
        reports=[ms for ms in report_times if ms < died_ms],
        writes=[ms for ms in written if ms < died_ms],
        dies=dies,
        right=sorted(offset for offset in done if offset in again),
        about=f"{dies} dies" if dies != BOTH_DIE else "both die",
    )


def _before(marks: dict[str, int]) -> range:
    return range(marks["start"], marks["crash"])


def _known(call: Call, until_ms: int) -> int:
    """The offset in the consumer's memory at a moment."""
    left = [offset for offset in call["pulled"] if call["done"].get(offset, until_ms + 1) > until_ms]
    return int(min(left)) if left else int(max(call["pulled"])) + 1


def _last(times: Sequence[int], until_ms: int) -> int:
    return max((ms for ms in times if ms <= until_ms), default=0)


def _from(call: Call, offset: int) -> list[int]:
    return sorted(done for done in call["done"] if done >= offset)


def _told(call: Call, until_ms: int = FOR_EVER_MS) -> int:
    return _known(call, _last(call["reports"], until_ms))


def _filed(call: Call) -> int:
    return _told(call, _last(call["writes"], FOR_EVER_MS))


def _broker_forgets(call: Call) -> list[int]:
    return _from(call, _told(call) if call["dies"] == CONSUMER_DIES else _filed(call))


def _file_at_once(call: Call) -> list[int]:
    return [] if call["dies"] == BROKER_DIES else _from(call, _told(call))


def _with_unfinished(call: Call) -> list[int]:
    if call["dies"] == BROKER_DIES:
        return []
    offset = _told(call) if call["dies"] == CONSUMER_DIES else _filed(call)
    return [pulled for pulled in call["pulled"] if pulled >= offset]


def _memory_survives(call: Call) -> list[int]:
    return [] if call["dies"] == BROKER_DIES else _from(call, _known(call, FOR_EVER_MS))


def _newest_report_in_the_file(call: Call) -> list[int]:
    """What an answer gets that takes the file's time as the time of the offset in it."""
    if call["dies"] == BOTH_DIE:
        return _from(call, _known(call, _last(call["writes"], FOR_EVER_MS)))
    return list(call.right)


def _wrong_orders(call: Call, answer: Any, seen: Any) -> str:
    """The rule for the orders that are missing, or too many."""
    if sorted(answer) == call.right:
        return SORTED_RULE
    if not call["reports"]:
        return UNREPORTED_RULE
    if any(offset not in call["done"] for offset in answer):
        return FINISHED_RULE
    return {CONSUMER_DIES: REPORTED_RULE, BROKER_DIES: STILL_KNOWS_RULE, BOTH_DIE: WRITTEN_RULE}[call["dies"]]


CRASH_COST = Pure(
    "lab04.crash_cost",
    "crash_cost(pulled, done, reports, writes, dies)",
    points=4,
    about="an afternoon with a crash",
    calls=crashes,
    returns=[int],
    rules=AGAIN_RULE,
    explain=_wrong_orders,
    slips=[
        Slip("the broker forgets", _broker_forgets, STILL_KNOWS_RULE, belief="lab04.broker_forgets"),
        Slip("in the file at once", _file_at_once, WRITTEN_RULE, belief="lab04.file_at_once"),
        Slip("with the unfinished", _with_unfinished, FINISHED_RULE),
        Slip("memory survives", _memory_survives, REPORTED_RULE),
        Slip("the newest report is in the file", _newest_report_in_the_file, WRITTEN_RULE),
    ],
    weights={"": 1, "the consumer dies": 1, "the broker dies": 1, "both die": 2},
    forbids=FORBIDS["lab04.crash_cost"],
)

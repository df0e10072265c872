"""lab15.lease_table: a lease table that keeps what it must know in a log, and is killed between any two calls.

    LeaseTable(write, read)     write(record) appends to a log that survives, read() gives its records
        lease(queue, offsets, now_ms, invisible_ms)
        ack(queue, offset, popped_ms)
        expired(now_ms)         ─▶ [(queue, offset)], in the order in which their leases ended, each once

The calls are those of a group's day. They are made in one life, then with a crash before each call, then with a crash
before every call.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit.form import exercise_of
from mqlab.course.teach.exercises import Answers, Call, Finding
from mqlab.course.words import refutation
from mqlab.errors import UsageError

NAME = "LeaseTable"
MOST_RECORDS = 400
Step = tuple[Any, ...]

EXPIRED_RULE = (
    "expired returns the messages whose lease is over and that were not acknowledged: (queue, offset), in the order in "
    "which the leases ended, then by queue and offset, each lease once"
)
LIST_RULE = "expired returns a list of (queue, offset)"
DUE_RULE = "A lease of invisible_ms that began at now_ms is over at now_ms + invisible_ms, and not before"


def steps_of(rng: random.Random) -> list[Step]:
    """Pops, acks and rounds of revival as a broker would see them."""
    now_ms, first = rng.randint(1, 9) * 1_000, rng.randint(0, 90)
    queue, other = "orders 0", "orders 1"
    offsets = [first + step for step in sorted(rng.sample(range(7), 4))]
    steps: list[Step] = [("lease", queue, offsets, now_ms, 10_000), ("lease", other, offsets[:2], now_ms + 500, 6_000)]
    # 1. One is acknowledged, the others of its pop are not.
    steps.append(("ack", queue, offsets[1], now_ms))
    steps.append(("expired", now_ms + 6_499))
    # 2. A longer lease: the new one first, then the ack of the old one; an ack with the old handle comes later.
    again_ms = now_ms + 7_000
    steps += [("lease", queue, [offsets[0]], again_ms, 20_000), ("ack", queue, offsets[0], now_ms)]
    steps.append(("expired", now_ms + 6_500))
    # 3. At the end of the first lease; then what was already returned must not come again.
    steps += [("expired", now_ms + 9_999), ("expired", now_ms + 10_000), ("expired", now_ms + 10_001)]
    # 4. What came back is popped again in its place, and acknowledged too late, with the handle of the lost lease.
    more_ms = now_ms + 12_000
    steps += [("lease", queue, [offsets[2]], more_ms, 5_000), ("ack", queue, offsets[2], now_ms)]
    steps += [("lease", other, [offsets[3], offsets[0]], more_ms, 4_000), ("ack", other, offsets[3], more_ms)]
    steps += [("expired", more_ms + 5_000), ("expired", again_ms + 20_000), ("expired", again_ms + 90_000)]
    # 5. Two leases of one message, and neither is acknowledged; others end at the same moment, the later offset first.
    both_ms = again_ms + 91_000
    steps += [("lease", other, [100, 99], both_ms, 9_000), ("lease", queue, [100, 9], both_ms + 1_000, 8_000)]
    steps += [
        ("lease", other, [99], both_ms + 2_000, 6_000),
        ("expired", both_ms + 8_500),
        ("expired", both_ms + 9_000),
    ]
    steps += [("lease", queue, [7, 8], both_ms + 9_500, 900), ("lease", queue, [7], both_ms + 9_600, 700)]
    steps.append(("expired", both_ms + 20_000))
    return steps


class RightTable:
    """What a lease table does, in memory."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, int, int], int] = {}

    def lease(self, queue: str, offsets: Sequence[int], now_ms: int, invisible_ms: int) -> None:
        """Messages are out from now on."""
        self._leases.update({(queue, offset, now_ms): now_ms + invisible_ms for offset in offsets})

    def ack(self, queue: str, offset: int, popped_ms: int) -> None:
        """The lease that began at popped_ms is done."""
        self._leases.pop((queue, offset, popped_ms), None)

    def expired(self, now_ms: int) -> list[tuple[str, int]]:
        """What is over, each lease once."""
        over = sorted((until_ms, *key) for key, until_ms in self._leases.items() if until_ms <= now_ms)
        for _, *key in over:
            del self._leases[tuple(key)]  # type: ignore[arg-type]
        return [(queue, offset) for _, queue, offset, _ in over]


@dataclass(frozen=True)
class CrashingTable:
    """The form of this exercise: the same calls, with crashes at each place."""

    id: str
    name: str
    about: str
    weights: Mapping[str, float]

    def make(self, seed: int) -> list[Step]:
        """The calls of a seed."""
        return steps_of(random.Random(f"{self.id} {seed}"))

    def judge(self, answers: Answers, steps: list[Step]) -> Finding | None:
        """Make the calls in one life, then with each crash; the first answer that is wrong."""
        for crashes in _crashes(len(steps)):
            finding = self._played(answers, steps, crashes)
            if finding is not None:
                return finding
        return None

    def _played(self, answers: Answers, steps: list[Step], crashes: Collection[int]) -> Finding | None:
        log: list[Any] = []
        right = RightTable()
        table = self._opened(answers, log)
        for number, (verb, *arguments) in enumerate(steps):
            if number in crashes:
                table = self._opened(answers, log)
            expected = getattr(right, verb)(*copy.deepcopy(arguments))
            answer = getattr(table, verb)(*copy.deepcopy(arguments))
            if verb != "expired":
                continue
            rows = _rows(answer)
            if rows != expected:
                return self._finding(steps, number, crashes, expected, answer if rows is None else rows)
        return None

    def _opened(self, answers: Answers, log: list[Any]) -> Any:
        def write(record: Any) -> None:
            if len(log) >= MOST_RECORDS:
                raise UsageError(f"the log has {MOST_RECORDS} records", hint="write one record per call, not all again")
            log.append(copy.deepcopy(record))

        def read() -> list[Any]:
            return copy.deepcopy(log)

        return answers[self.name](write, read)

    def _finding(self, steps: list[Step], number: int, crashes: Collection[int], expected: Any, found: Any) -> Finding:
        when = f"killed before call {min(crashes)}" if len(crashes) == 1 else "killed before every call"
        where = f"{spelled(steps[number])}, call {number}" + (f", {when}" if crashes else ", never killed")
        belief, rule = _blamed(steps[: number + 1], crashes, expected, found)
        before = [f"{place_in_day}: {spelled(step)}" for place_in_day, step in enumerate(steps[: number + 1])]
        call = Call(to=self.name, calls=before, right=expected, about=where)
        return Finding(rule, where, expected, found, call=call, belief=belief)


def _crashes(count: int) -> Iterator[Collection[int]]:
    yield ()
    yield from ((number,) for number in range(1, count))
    yield range(1, count)


def _rows(answer: Any) -> list[tuple[str, int]] | None:
    try:
        rows = [(queue, offset) for queue, offset in answer]
    except (TypeError, ValueError):
        return None
    return rows if all(isinstance(queue, str) and isinstance(offset, int) for queue, offset in rows) else None


def _blamed(steps: Sequence[Step], crashes: Collection[int], expected: Any, found: Any) -> tuple[str, str]:
    """The belief that a wrong list shows, "" if it may be any, and the rule."""
    if not isinstance(found, list):
        return "", LIST_RULE
    belief = _belief(steps, crashes, expected, found)
    if belief:
        return belief, refutation(belief)
    ends_now = _over(steps, steps[-1][1]) - _over(steps, steps[-1][1] - 1)
    missing = [row for row in expected if row not in found]
    return "", DUE_RULE if missing and ends_now.issuperset(missing) else EXPIRED_RULE


def _belief(steps: Sequence[Step], crashes: Collection[int], expected: Any, found: Any) -> str:
    missing, extra = [row for row in expected if row not in found], [row for row in found if row not in expected]
    now_ms = steps[-1][1]
    acked = {(queue, offset) for verb, queue, offset, *_ in (step for step in steps if step[0] == "ack")}
    returned = [step[1] for step in steps[:-1] if step[0] == "expired"]
    if crashes and missing and not found:
        return "lab15.lease_in_memory"
    if extra and all(row in _over(steps, returned[-1] if returned else -1) for row in extra):
        return "lab15.revived_again"
    if extra and all(row in acked for row in extra):
        return "lab15.ack_in_memory" if crashes else ""
    if extra and any(row in _over(steps, now_ms + 1, acked_too=True) for row in extra):
        return "lab15.over_before_its_end"
    if missing and all(row in acked for row in missing):
        return "lab15.any_handle"
    leased = Counter((step[1], offset) for step in steps if step[0] == "lease" for offset in step[2])
    lacking = Counter(expected) - Counter(found)
    if lacking and not extra and all(leased[row] > 1 for row in lacking):
        return "lab15.one_lease"
    of_an_acked_pop = {
        (step[1], offset)
        for step in steps
        if step[0] == "lease"
        for offset in step[2]
        if any(ack[0] == "ack" and (ack[1], ack[3]) == (step[1], step[3]) and ack[2] in step[2] for ack in steps)
    }
    return "lab15.ack_ends_the_pop" if missing and not crashes and of_an_acked_pop.issuperset(missing) else ""


def _over(steps: Sequence[Step], now_ms: int, *, acked_too: bool = False) -> set[tuple[str, int]]:
    """What some lease of the steps would have given back until a moment."""
    acked = {step[1:] for step in steps if step[0] == "ack"} if not acked_too else set()
    return {
        (step[1], offset)
        for step in steps
        if step[0] == "lease"
        for offset in step[2]
        if step[3] + step[4] <= now_ms and (step[1], offset, step[3]) not in acked
    }


def spelled(step: Step) -> str:
    """A step as a call."""
    verb, *arguments = step
    return f"{verb}({', '.join(map(repr, arguments))})"


LEASE_TABLE = exercise_of(
    CrashingTable("lab15.lease_table", NAME, "a group's leases, with a crash before each call", {}),
    points=5,
    seeds=(1, 2),
    forbids=FORBIDS["lab15.lease_table"],
)

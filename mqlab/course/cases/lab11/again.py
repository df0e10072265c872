"""lab11.why_again: each call after the first one with a message, and its cause.

    call   retry_times   status      cause
    1      0             FAILED                    the first
    2      1             NO_RESULT   retry         a copy of it was delivered
    3      1             SUCCESS     no_result     the one before did not come back
    4      1             SUCCESS     soon          a minute or less after a success: a member took the queue over
    5      1             SUCCESS     late          an operator set the offset back

A message that was stored twice in orders is called with twice: resend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab11.days import day
from mqlab.course.cases.lab11.life import ORDERS, Same, StoreFacts, facts, same_message
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import Rows, Slip
from mqlab.course.teach.exercises import Call
from mqlab.scales import MINUTE

COLUMNS = ("group_name", "request_id", "msg_id", "keys", "cause")
FIRST = "first"


@dataclass(frozen=True, slots=True)
class Before:
    """A call, those before it with the same message in the same group, and how often the message is in orders."""

    call: Row
    earlier: Sequence[Row]
    units: int


def cause_of(before: Before) -> str:
    """The first that is true."""
    if not before.earlier:
        return FIRST
    if before.call["retry_times"] > max(call["retry_times"] for call in before.earlier):
        return "retry"
    if len(before.earlier) < before.units:
        return "resend"
    return "no_result" if before.earlier[-1]["ended_ms"] is None else by_time(before)


def by_time(before: Before) -> str:
    """As if time alone decided."""
    if not before.earlier:
        return FIRST
    ended_ms = before.earlier[-1]["ended_ms"] or before.earlier[-1]["started_ms"]
    return "soon" if before.call["started_ms"] - ended_ms <= MINUTE else "late"


def no_units(before: Before) -> str:
    """As if a message were stored once."""
    return cause_of(Before(before.call, before.earlier, 1))


def no_ends(before: Before) -> str:
    """As if every call came back."""
    cause = cause_of(before)
    return by_time(before) if cause == "no_result" else cause


def only_retries(before: Before) -> str:
    """As if nothing but a retry could come again."""
    return "retry" if before.call["retry_times"] else FIRST


def any_retry(before: Before) -> str:
    """As if every call with retry_times above 0 were a retry of its own."""
    return "retry" if before.call["retry_times"] and before.earlier else cause_of(before)


def why_again(
    known: StoreFacts,
    cause: Callable[[Before], str] = cause_of,
    of: Callable[[Row], tuple[str, ...]] = lambda call: (call["group_name"], *same_message(call)),
) -> list[Row]:
    """The rows; the arguments are where an answer may err."""
    units = Counter(same_message(unit) for unit in known.units if unit["topic"] == ORDERS)
    earlier: dict[tuple[str, ...], list[Row]] = {}
    rows: list[Row] = []
    for call in sorted(known.calls, key=lambda call: (call["started_ms"], call["request_id"])):
        if not call["keys"]:
            continue
        before = earlier.setdefault(of(call), [])
        answer = cause(Before(call, tuple(before), units[same_message(call)]))
        rows.append({name: call[name] for name in COLUMNS[:-1]} | {"cause": answer})
        before.append(call)
    return rows


def _without_group(call: Row) -> Same:
    return same_message(call)


def _wrongly(*how: Callable[..., object], **more: Callable[..., object]) -> Callable[[Call], list[Row]]:
    return lambda call: why_again(facts(call["messages"]), *how, **more)  # type: ignore[arg-type]


def asked(seed: int) -> list[Call]:
    """One day."""
    stores = day(seed)
    return [Call(messages=stores, calls=stores, right=why_again(facts(stores)), about=stores.about)]


WHY_AGAIN = Rows(
    "lab11.why_again",
    "why_again(messages, calls)",
    points=5,
    about="a day",
    through="rows_with_calls",
    forbids=FORBIDS["lab11.why_again"],
    calls=asked,
    columns=COLUMNS,
    by=("request_id", "msg_id", "keys"),
    seeds=(1,),
    slips=[
        Slip("only retries", _wrongly(only_retries), belief="lab11.again_is_retry"),
        Slip("every call of a copy", _wrongly(any_retry), belief="lab11.again_is_retry"),
        Slip("time alone", _wrongly(by_time), belief="lab11.time_tells"),
        Slip("stored once", _wrongly(no_units), belief="lab11.sent_once"),
        Slip("every call ends", _wrongly(no_ends), belief="lab11.died_is_soon"),
        Slip("without the group", _wrongly(of=_without_group), belief="lab11.groups_repeat"),
    ],
    rules={
        "missing": "Each call with a message that has keys has a row, including the first: its cause is 'first'",
        "extra": "Calls with messages that have no keys are left out: two of them may look alike",
        "cause": "The first that is true: first, retry if retry_times is larger than in all calls before, resend if "
        "there were fewer calls before than units in orders, no_result if the call before did not return, "
        "soon if it began 60 s or less after the end of the call before, late",
    },
)

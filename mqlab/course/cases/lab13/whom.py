"""lab13.whom: exactly whom a day harmed: lost, late or twice.

    facts, calendar ─▶ {group: [msg_id]}      next to the truth: common over all, at least 0.99

Whatever is too much or missing is sorted by the reason, and the largest reason is told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab13.days import MIDNIGHT, JudgedDay, Pairs, by_group, days_of
from mqlab.course.kit import Store
from mqlab.course.kit.scored import Scored
from mqlab.course.kit.scores import jaccard
from mqlab.course.kit.stores import shared_folder
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.words import refutation
from mqlab.data.traffic.day_facts import DayFacts
from mqlab.scales import MINUTE

ENOUGH = 0.99
EVENING = (
    (6, None, False, True),
    (6, None, False, True),
    (4, None, False, False),
    (4, None, False, False),
    (4, None, False, False),
    (3, None, True, True),
    (20, 10, False, True),
    (20, 17, False, False),
)
"""Minutes before midnight at which a message was stored and done, whether it died, and whether that is harm."""
LATE_MS = 300_000
NOBODY_HARMED = "Consumed within five minutes, or stored less than five minutes before midnight: no harm was done"
Reason = tuple[Pairs, str, str]  # what is wrong, the belief behind it, or a rule

BELIEVED_HARMED: tuple[tuple[str, Callable[[JudgedDay, Any], bool]], ...] = (
    ("lab13.filtered_is_lost", lambda day, row: not row.reads),
    ("lab13.tests_count", lambda day, row: (row.group, row.msg_id) in day.meant),
    (
        "lab13.retry_is_harm",
        lambda day, row: row.calls > 1 and row.successes and row.done_ms - row.stored_ms <= LATE_MS,
    ),
)
BELIEVED_WELL: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("lab13.consumed_is_well", lambda row: row.successes > 0),
    ("lab13.lag_zero", lambda row: not row.successes and not row.calls),
    ("lab13.dead_is_done", lambda row: not row.successes and row.calls > 0),
)


@functools.cache
def evening(seed: int) -> JudgedDay:
    """A few messages of the last half hour: on whole days, those of the last five minutes are too few to count.

    Of the first day's messages that were consumed in time: two are still called six minutes later, three four minutes
    later, one has died three minutes before midnight, one came ten minutes late, one in time.
    """
    facts = days_of(seed)[0].facts
    life, calls = facts.life, facts.calls
    well = life[life["reads"] & ~life["dead"] & (life["calls"] == 1) & (life["done_ms"] - life["stored_ms"] < LATE_MS)]
    rows = well[~well["msg_id"].duplicated(keep=False)].head(len(EVENING)).reset_index(drop=True)
    rows["stored_ms"] = [MIDNIGHT - before * MINUTE for before, _, _, _ in EVENING]
    rows["done_ms"] = [float("nan") if done is None else MIDNIGHT - done * MINUTE for _, done, _, _ in EVENING]
    rows["first_ms"] = rows["last_ms"] = rows["done_ms"]
    rows["successes"] = rows["done_ms"].notna().astype(int)
    rows["dead"] = [dead for _, _, dead, _ in EVENING]
    done = rows.loc[rows["done_ms"].notna(), "msg_id"]
    ids = set(rows["msg_id"])
    folder = shared_folder("lab13-evening")
    DayFacts(
        facts.messages[facts.messages["msg_id"].isin(ids)].reset_index(drop=True),
        calls[calls["msg_id"].isin(set(done))].reset_index(drop=True),
        rows,
        facts.offsets,
        facts.damaged,
    ).save(folder)
    pairs = zip(rows["group"], rows["msg_id"], EVENING, strict=True)
    harmed = [[group, msg_id] for group, msg_id, (*_, is_harmed) in pairs if is_harmed]
    return JudgedDay(Store(str(folder), "the last half hour of a day"), (), ({"harmed": harmed},), ())


def calls(seed: int) -> Iterator[Call]:
    """The days of a seed, and an evening."""
    yield from calls_of(days_of(seed))
    yield from calls_of([evening(seed)])


def calls_of(days: Iterable[JudgedDay]) -> Iterator[Call]:
    """A call for each of some days."""
    for day in days:
        yield Call(facts=day.store, calendar=list(day.calendar), given=day, right=by_group(day.harmed), about=day.name)


def exact(call: Call, value: Mapping[str, list[str]]) -> Finding | None:
    """The pairs that are too many or missing, by their reason."""
    day: JudgedDay = call.given
    answered = frozenset((group, msg_id) for group, ids in value.items() for msg_id in ids)
    score = jaccard(answered, day.harmed)
    if score >= ENOUGH:
        return None
    reasons = [*_too_many(day, answered - day.harmed), *_missing(day, answered)]
    pairs, belief, rule = max(reasons, key=lambda reason: len(reason[0]))
    group, msg_id = min(pairs)
    wrong = pairs <= answered
    where = f"{call.about}, {group}: {msg_id}"
    expected, got = ("not harmed", "harmed") if wrong else ("harmed", "not harmed")
    counts = f"{len(pairs)} such messages"
    return Finding(
        rule or refutation(belief), where, expected, f"{got}, and {counts}", call=call, belief=belief, share=score / 2
    )


def _too_many(day: JudgedDay, extra: Pairs) -> Iterator[Reason]:
    rows = _rows(day)
    unknown = frozenset(pair for pair in extra if pair not in rows)
    if unknown:
        yield unknown, "", "A group and an id of the day belong together: {group: [msg_id]}"
    left = set(extra - unknown)
    for belief, fits in BELIEVED_HARMED:
        mine = frozenset(pair for pair in left if fits(day, rows[pair]))
        left -= mine
        if mine:
            yield mine, belief, ""
    if left:
        yield frozenset(left), "", NOBODY_HARMED


def _missing(day: JudgedDay, answered: Pairs) -> Iterator[tuple[Pairs, str, str]]:
    rows, missing = _rows(day), set(day.harmed - answered)
    # 1. Everything of a broker, and nothing of the others.
    brokers = sorted({rows[pair].broker for pair in day.harmed})
    for broker in brokers if len(brokers) > 1 else ():
        mine = frozenset(pair for pair in missing if rows[pair].broker == broker)
        if mine == missing and not any(pair in rows and rows[pair].broker == broker for pair in answered):
            yield mine, "lab13.one_broker", ""
            return
    # 2. A way of being harmed.
    for belief, fits in BELIEVED_WELL:
        mine = frozenset(pair for pair in missing if fits(rows[pair]))
        if mine:
            yield mine, belief, ""


def _rows(day: JudgedDay) -> dict[tuple[str, str], Any]:
    rows = day.facts.life
    pairs = zip(rows["group"].tolist(), rows["msg_id"].tolist(), strict=True)
    return dict(zip(pairs, rows.itertuples(), strict=True))


WHOM = Scored(
    "lab13.whom",
    "whom(facts, calendar)",
    points=5,
    about="whole days",
    opens="with_day",
    calls=calls,
    returns={str: [str]},
    judges=(exact,),
    forbids=FORBIDS["lab13.whom"],
    limits={"seconds": 120, "total_seconds": 600},
)

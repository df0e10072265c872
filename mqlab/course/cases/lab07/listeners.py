"""Lab 07's exercises with a listener: it gives up in time, holds no other message up, survives what kills it.

The days are in bank; what a listener promises in them is here, in the order in which a shop would notice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mqlab.course.cases.lab07 import bank
from mqlab.course.cases.lab07.days import GROUP
from mqlab.course.kit import World
from mqlab.course.kit.promises import (
    at_most_retries,
    ends_with,
    finding_at,
    no_call_longer_than,
    no_surprise,
    place,
    replays_at_most,
    success_means,
    took_ms,
    writes_committed,
)
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS

HUMAN_BELIEF = "lab07.human_is_failure"
EXPECTED_ERRORS = ("BankError", "TimeoutError")
NOT_PAID_RULE = "CONSUME_SUCCESS means that the order is done: return it only when the bank has paid, or a human has it"
DONE_RULE = "CONSUME_SUCCESS means that the order is done: return it only when the bank has paid"
FOURTH_RULE = (
    "reconsume_times counts the retries before this delivery: 2 means that this is the third, and it is the last"
)
TOO_EARLY_RULE = "An order gets three deliveries before it is given up, and the bank is asked at each"
STORED_RULE = "An order that failed three times is stored for a human, with its body, under its msg_id"
BYTES_RULE = "A human gets the body as it came: store message.body itself, bytes, not a text made of it"
NOT_STORED_RULE = "Only what failed three times is for a human"
PAID_RULE = "When the bank has paid, the order is done: return CONSUME_SUCCESS. Returning nothing sends the order back"
SLOW_RULE = "The bank takes up to 3 seconds: a shorter time limit fails orders that are only slow"
LONG_RULE = "Whenever billing crashes, only the last 15 seconds may be redelivered: no call may take longer than 10"
REPLAY_RULE = (
    "A message without a result holds the offset of its queue: after a restart everything after it is delivered again"
)
BACK_RULE = "An order that the bank did not answer must be redelivered and paid in the end"
ENDLESS_RULE = (
    "A delivery that kills its process leaves no result, so reconsume_times stays as it is: only what is written and "
    "committed before the bank is asked survives. After three such deliveries the bank must not be asked again"
)
KNOWN_RULE = (
    "An order that a human has is not tried again, even if it is delivered again: billing may crash before "
    "the broker knows of the success"
)
LATE_RULE = (
    "Three deliveries that began and did not end are enough: the fourth stores the order and does not ask the bank"
)
HARMLESS_RULE = "Only deliveries without a result count: a refusal is a result, and so is success"
KILLER_STORED_RULE = "The order that ended three processes is stored for a human, with its body, under its msg_id"


def _was_paid(day: bank.BadDay, row: Any) -> bool:
    order = day.sent[row.msg_id]
    asked = order.pays(row.reconsume_times) and took_ms(row) >= order.answer_ms(row.reconsume_times)
    return bool(asked and row.status == CONSUME_SUCCESS)


def _not_with_a_human(day: bank.BadDay, row: Any) -> str | None:
    human = day.for_a_human()
    return None if row.msg_id in human else f"; rows committed in for_a_human: {', '.join(human) or 'none'}"


def _readable(body: object) -> object:
    """A body as text; anything that is not bytes stays as it is."""
    return body.decode("utf-8", "backslashreplace") if isinstance(body, bytes) else body


def _body_stored(rule: str, body: bytes, stored: object) -> tuple[str, object, object] | None:
    """Rule, expected and found when a human has not got this body; None when all is well."""
    if stored == body:
        return None
    if isinstance(stored, str):
        return BYTES_RULE, body, stored
    return rule, _readable(body), _readable(stored)


def _paid_is_done(day: bank.BadDay) -> Finding | None:
    """A call in which the bank has paid returns success."""
    for row in day.deliveries(GROUP):
        order = day.sent[row.msg_id]
        answer_ms = order.answer_ms(row.reconsume_times)
        paid = order.pays(row.reconsume_times) and row.ended_ms is not None and took_ms(row) >= answer_ms
        if paid and row.status != CONSUME_SUCCESS:
            where = f"{place(day, row)}: the bank paid after {answer_ms} ms"
            return finding_at(day, row, PAID_RULE, CONSUME_SUCCESS, row.status, where)
    return None


NO_SURPRISE = no_surprise(GROUP, EXPECTED_ERRORS)
COMMITTED = writes_committed(GROUP, belief="lab07.executed_is_stored")
PAID_OR_WITH_A_HUMAN = success_means(
    GROUP,
    _was_paid,
    NOT_PAID_RULE,
    "asked, and paid by the bank; or a row with its msg_id in for_a_human",
    _not_with_a_human,
)


def _three_tries_each(day: bank.BadDay) -> Finding | None:
    """Nothing is given up early, and exactly the hopeless orders are stored."""
    rows, human = day.deliveries(GROUP), day.for_a_human()
    for msg_id, order in day.sent.items():
        # 1. A call of the bank takes at least 40 ms; a shorter delivery did not ask it. A delivery may come twice.
        asked = {row.reconsume_times for row in rows if row.msg_id == msg_id and took_ms(row) >= 40}
        wanted = {"no": 3}.get(order.bank, len(order.bank.split()))
        if len(asked) < wanted:
            return Finding(TOO_EARLY_RULE, f"{order.key}: deliveries in which the bank was asked", wanted, len(asked))
        # 2. Only hopeless orders are for a human.
        where = f"{order.key}: table for_a_human"
        if order.bank == "no" and (wrong := _body_stored(STORED_RULE, order.body, human.get(msg_id))):
            rule, expected, actual = wrong
            return Finding(rule, where, expected, actual)
        if order.bank != "no" and msg_id in human:
            return Finding(NOT_STORED_RULE, where, None, _readable(human[msg_id]))
    return None


THREE = World(
    "lab07.three",
    "three_times(lab)",
    points=4,
    about="a bank that refuses",
    day=bank.three_tries,
    promises=[
        NO_SURPRISE,
        COMMITTED,
        _paid_is_done,
        at_most_retries(GROUP, 2, FOURTH_RULE),
        PAID_OR_WITH_A_HUMAN,
        _three_tries_each,
    ],
    weights={"": 1, "nobody dies": 2, "billing dies twice": 2},
)


def _patient(day: bank.BadDay) -> Finding | None:
    """An order that the bank pays succeeds; one that hangs is given as long as a slow one."""
    for row in day.deliveries(GROUP):
        order = day.sent[row.msg_id]
        pays, answer_ms = order.pays(row.reconsume_times), order.answer_ms(row.reconsume_times)
        if pays and row.status != CONSUME_SUCCESS and row.ended_ms is not None:
            where = f"{place(day, row)}: the bank answers after {answer_ms} ms"
            rule = SLOW_RULE if took_ms(row) < answer_ms else PAID_RULE
            return finding_at(day, row, rule, CONSUME_SUCCESS, f"{row.status} after {took_ms(row)} ms", where)
        if not pays and took_ms(row) < 3_000 and row.reconsume_times == 0:
            return finding_at(day, row, SLOW_RULE, "3 seconds for the bank", f"{took_ms(row)} ms")
    return None


STUCK = World(
    "lab07.stuck",
    "pay(messages, context)",
    points=4,
    about="a bank that hangs, and a restart",
    day=bank.stuck,
    promises=[
        NO_SURPRISE,
        success_means(GROUP, _was_paid, DONE_RULE, "asked, and paid by the bank"),
        _patient,
        replays_at_most(GROUP, "15s", _was_paid, REPLAY_RULE, "orders paid twice"),
        no_call_longer_than(GROUP, "10s", LONG_RULE),
        ends_with(GROUP, _was_paid, BACK_RULE, "one that is paid"),
    ],
)


def _killer_tries(day: bank.BadDay) -> list[Any]:
    """The killer's calls of the bank: the process dies 100 ms or more after one began."""
    rows = day.deliveries(GROUP)
    return [row for row in rows if day.sent[row.msg_id].bank == bank.KILLER and took_ms(row) >= 100]


def _three_lives(day: bank.BadDay) -> Finding | None:
    """The bank is asked for the killer three times, and no more."""
    tries, (killer_id,) = _killer_tries(day), [i for i, order in day.sent.items() if order.bank == bank.KILLER]
    if len(tries) < 3:
        return Finding(TOO_EARLY_RULE, f"{day.sent[killer_id].key}: times the bank was asked", 3, len(tries))
    if len(tries) == 3:
        return None
    if killer_id in day.for_a_human():
        # A delivery that only stores ends at once. If none asks after it, the order was stored too late, once for all.
        rows = [row for row in day.deliveries(GROUP) if row.msg_id == killer_id and row.ended_ms is not None]
        stored = next((row for row in rows if took_ms(row) < 100 and row.status == CONSUME_SUCCESS), None)
        if stored is not None and tries[-1].started_ms < stored.started_ms:
            where = f"{place(day, tries[3])}: the bank asked a fourth time"
            return finding_at(day, tries[3], LATE_RULE, 3, len(tries), where)
        where = f"{place(day, tries[3])}: the bank asked again"
        return finding_at(day, tries[3], KNOWN_RULE, 3, len(tries), where)
    kept = day.kept[2] if len(day.kept) > 2 else None
    row = "no row of it" if kept is None else f"times {kept}"
    where = f"{place(day, tries[3])}: the bank asked again; after the third crash the table started held {row}"
    return finding_at(day, tries[3], ENDLESS_RULE, 3, len(tries), where)


def _nobody_else_suffers(day: bank.BadDay) -> Finding | None:
    human = day.for_a_human()
    for msg_id, order in day.sent.items():
        if order.bank != bank.KILLER and msg_id in human:
            where = f"{order.key} ({order.bank}): table for_a_human"
            return Finding(HARMLESS_RULE, where, None, _readable(human[msg_id]))
    return None


def _stored_is_done(day: bank.BadDay) -> Finding | None:
    """What a human has does not come again, unless billing died before the broker knew of it."""
    human = day.for_a_human()
    for row in day.deliveries(GROUP):
        if row.msg_id in human and row.ended_ms is not None and took_ms(row) < 40 and row.status != CONSUME_SUCCESS:
            finding = finding_at(day, row, refutation(HUMAN_BELIEF), CONSUME_SUCCESS, row.status)
            return replace(finding, belief=HUMAN_BELIEF)
    return None


def _killer_with_a_human(day: bank.BadDay) -> Finding | None:
    row, human = _killer_tries(day)[2], day.for_a_human()
    wrong = _body_stored(KILLER_STORED_RULE, day.sent[row.msg_id].body, human.get(row.msg_id))
    if wrong is None:
        return None
    rule, expected, actual = wrong
    return finding_at(day, row, rule, expected, actual, f"{place(day, row)}: table for_a_human")


KILLER = World(
    "lab07.killer",
    "never_again(lab)",
    points=5,
    about="an order that kills",
    day=bank.killer,
    promises=[
        NO_SURPRISE,
        COMMITTED,
        PAID_OR_WITH_A_HUMAN,
        _three_lives,
        _nobody_else_suffers,
        ends_with(GROUP, _was_paid, BACK_RULE, "one that is paid", but=lambda order: order.bank == bank.KILLER),
        _killer_with_a_human,
        _stored_is_done,
    ],
)

"""Lab 07's replies to an answer: the rule that it breaks, and the first property, retry or delivery that shows it.

    answer ─▶ judge ─┬─ None
                     └─ Finding   rule (what the broker does, or what billing promises)   first wrong   expected   found

The days themselves are in days and bank.
"""

from __future__ import annotations

import re
from typing import Any

from mqlab.client.statuses import CONSUME_SUCCESS
from mqlab.teach.cases.lab07 import bank, days
from mqlab.teach.exercises import Finding
from mqlab.views.table import calendar
from mqlab.wire import property_names as p

# lab07.redrive ---------------------------------------------------------------------------------------------------

OTHER_GROUPS_RULE = (
    "A dead letter belongs to one group, so it goes back to %RETRY%group. A message sent to the topic reaches every "
    "group again"
)
DEAD_AGAIN_RULE = (
    "A dead letter must start from zero: with its old RECONSUME_TIME and MAX_RECONSUME_TIMES the broker takes it for "
    "tried too often, and it is dead again at once"
)
NOBODY_RULE = (
    "A message sent to %DLQ%group is one more dead letter: billing reads %RETRY%group, and nobody reads %DLQ%group"
)
MISSING_RULE = "Every message among the dead letters is given back"
ONCE_RULE = "A message is given back once, however often it has died: %DLQ%group keeps a copy of each death"
ID_RULE = "A message keeps its UNIQ_KEY: traces, and code that remembers what is paid, must see the same message"
TOPIC_RULE = "RETRY_TOPIC has to stay: without it the listener sees %RETRY%billing where it expects orders"
KEPT_RULE = "A message keeps its body, its tags, its keys and the sender's own properties"


def judge_redrive(day: days.RedriveDay) -> Finding | None:
    """First whatever must not happen, then each dead letter."""
    # 1. Other groups must not get the message again.
    lab, keys = day.lab, {message.msg_id: message.keys for message in day.dead}
    for row in lab.deliveries("audit", absences=False):
        if row.started_ms >= day.began_ms:
            where = f"{keys.get(row.msg_id, 'an order')}, delivered to audit at {calendar(row.started_ms)}"
            return Finding(OTHER_GROUPS_RULE, where, "no delivery to audit", row.status)
    # 2. Nothing may end among the dead letters again: either the counts were kept, or it was sent there directly.
    for message in lab.store().messages(days.DEAD):
        if message.store_timestamp >= day.began_ms:
            where = f"{message.keys}, back in {days.DEAD} at {calendar(message.store_timestamp)}"
            kept = _bookkeeping(message)
            return Finding(
                DEAD_AGAIN_RULE if kept else NOBODY_RULE, where, "a delivery to billing", kept or message.topic
            )
    # 3. Each dead letter must be in the retry topic once. A count above 0 is a later retry, not what the answer sent.
    back = [
        message
        for message in lab.store().messages(days.RETRY)
        if message.store_timestamp >= day.began_ms and message.reconsume_times == 0
    ]
    for dead in {message.msg_id: message for message in day.dead}.values():
        finding = _judge_letter(dead, [message for message in back if message.body == dead.body])
        if finding is not None:
            return finding
    return None


def _judge_letter(dead: Any, copies: list[Any]) -> Finding | None:
    if len(copies) != 1:
        rule = ONCE_RULE if copies else MISSING_RULE
        return Finding(rule, f"{dead.keys}: its new copies in {days.RETRY}", 1, len(copies))
    copy = copies[0]
    if p.RETRY_TOPIC not in copy.properties:
        return Finding(TOPIC_RULE, f"{dead.keys}: property RETRY_TOPIC", dead.properties[p.RETRY_TOPIC], None)
    if copy.msg_id != dead.msg_id:
        return Finding(ID_RULE, f"{dead.keys}: its id", dead.msg_id, copy.msg_id)
    for name in (p.RETRY_TOPIC, p.TAGS, p.KEYS, "region"):
        if copy.properties.get(name) != dead.properties[name]:
            where = f"{dead.keys}: property {name}"
            return Finding(KEPT_RULE, where, dead.properties[name], copy.properties.get(name))
    return None


def _bookkeeping(message: Any) -> dict[str, str]:
    wanted = (p.RECONSUME_TIME, p.MAX_RECONSUME_TIMES)
    return {name: message.properties[name] for name in wanted if name in message.properties}


# lab07.three, lab07.stuck, lab07.killer --------------------------------------------------------------------------

RAISED_RULE = "An exception in a listener counts as RECONSUME_LATER: catch what you expect"
NOT_PAID_RULE = "CONSUME_SUCCESS means that the order is done: return it only when the bank has paid, or a human has it"
DONE_RULE = "CONSUME_SUCCESS means that the order is done: return it only when the bank has paid"
EXPECTED_ERRORS = ("BankError", "TimeoutError")
FOURTH_RULE = (
    "reconsume_times counts the retries before this delivery: 2 means that this is the third, and it is the last"
)
TOO_EARLY_RULE = "An order gets three deliveries before it is given up, and the bank is asked at each"
STORED_RULE = "An order that failed three times is stored for a human, with its body, under its msg_id"
NOT_STORED_RULE = "Only what failed three times is for a human"


ERROR_RULES = {  # part of an error's text -> the rule that the answer breaks
    "IntegrityError": "Billing may die after it has stored an order and before the broker knows: then the order is "
    "delivered again, and storing it twice has to be harmless",
    "database is locked": "Commit what you write, or nobody else can write: with connection: ... commits",
    "one of CONSUME_SUCCESS": "A listener returns CONSUME_SUCCESS or RECONSUME_LATER; anything else counts as "
    "RECONSUME_LATER",
}


def not_a_listener(name: str, found: object) -> Finding:
    """The finding for a function that should have returned a listener."""
    return Finding(f"{name} returns a listener: the inner function", "its result", "a function", found)


def _first_slip(day: bank.BadDay, most_retries: int | None = None) -> Finding | None:
    """The first delivery that raised an unexpected exception, or that is one too many."""
    for row in day.lab.delivery_book.of(days.GROUP):
        if most_retries is not None and row.reconsume_times > most_retries:
            expected = f"no delivery with reconsume_times {row.reconsume_times}"
            return Finding(FOURTH_RULE, _place(day, row), expected, row.status)
        if row.error is not None and not any(name in row.error for name in EXPECTED_ERRORS):
            rule = next((rule for words, rule in ERROR_RULES.items() if words in row.error), RAISED_RULE)
            return Finding(rule, _place(day, row), "a status", _raised(row.error))
    return None


def _raised(told: str) -> str:
    """The last part of a traceback, and the learner's line if the traceback shows one."""
    words = [line for line in told.splitlines() if line[:1].strip() and not line.startswith("Traceback")]
    lines = re.findall(r", line (\d+), in (\S+)\n {4}(.+)", told)
    return words[0] + (" (line {} of {}: {})".format(*lines[-1]) if lines else "")


def _place(day: bank.BadDay, row: Any) -> str:
    order = day.orders[row.msg_id]
    return f"{order.key}, reconsume_times {row.reconsume_times}, at {calendar(row.started_ms)}"


def _readable(body: object) -> object:
    """A body as text; anything that is not bytes stays as it is."""
    return body.decode("utf-8", "backslashreplace") if isinstance(body, bytes) else body


def _took_ms(row: Any) -> int:
    return row.ended_ms - row.started_ms if row.ended_ms is not None else bank.HANG_MS


def _was_paid(day: bank.BadDay, row: Any) -> bool:
    order = day.orders[row.msg_id]
    asked = order.pays(row.reconsume_times) and _took_ms(row) >= order.answer_ms(row.reconsume_times)
    return bool(asked and row.status == CONSUME_SUCCESS)


def _lost(day: bank.BadDay, rows: list[Any], human: dict[str, bytes] | None = None) -> Finding | None:
    """The first order that was reported as a success and is neither paid nor with a human; None without one."""
    paid = {row.msg_id for row in rows if _was_paid(day, row)}
    for row in rows:
        if row.status != CONSUME_SUCCESS or row.msg_id in paid or row.msg_id in (human or ()):
            continue
        expected, found = "asked, and paid by the bank", f"a call of {_took_ms(row)} ms"
        if human is not None:
            expected += f"; or a row {row.msg_id} in for_a_human"
            found += f"; rows committed in for_a_human: {', '.join(human) or 'none'}"
        return Finding(NOT_PAID_RULE if human is not None else DONE_RULE, _place(day, row), expected, found)
    return None


def judge_three(day: bank.BadDay) -> Finding | None:
    """Nothing lost, nothing tried a fourth time, nothing given up early, all hopeless orders stored."""
    # 1. Lost orders and surplus deliveries come first: they are what a shop would notice first.
    rows, human = day.deliveries(), day.for_a_human()
    finding = _first_slip(day, most_retries=2) or _lost(day, rows, human)
    if finding is not None:
        return finding
    for msg_id, order in day.orders.items():
        # 2. A call of the bank takes at least 40 ms; a shorter delivery did not ask it. A delivery may come twice.
        asked = [row.reconsume_times for row in rows if row.msg_id == msg_id and _took_ms(row) >= 40]
        wanted = {"no": 3}.get(order.bank, len(order.bank.split()))
        if len(set(asked)) < wanted:
            return Finding(
                TOO_EARLY_RULE, f"{order.key}: deliveries in which the bank was asked", wanted, len(set(asked))
            )
        # 3. Only hopeless orders are for a human.
        if order.bank == "no" and human.get(msg_id) != order.body:
            where = f"{order.key}: table for_a_human"
            return Finding(STORED_RULE, where, _readable(order.body), _readable(human.get(msg_id)))
        if order.bank != "no" and msg_id in human:
            return Finding(NOT_STORED_RULE, f"{order.key}: table for_a_human", None, _readable(human[msg_id]))
    return None


PAID_RULE = "When the bank has paid, the order is done: return CONSUME_SUCCESS. Returning nothing gives the order back"
SLOW_RULE = "The bank takes up to 3 seconds: a shorter time limit fails orders that are only slow"
LONG_RULE = "Whenever billing dies, only the last 15 seconds come again: no call may take longer than 10"
REPLAY_RULE = (
    "A message without a result holds the offset of its queue: after a restart everything after it is delivered again"
)
BACK_RULE = "An order that the bank did not answer must come back and be paid in the end"


def judge_stuck(day: bank.BadDay) -> Finding | None:
    """Losses, patience, replays, and at last the order that hung."""
    rows = day.deliveries()
    finding = _first_slip(day) or _lost(day, rows)
    if finding is not None:
        return finding
    for row in rows:
        # An order that the bank pays must succeed; on one that hangs, the answer must wait as long as for a slow one.
        first_try_pays = day.orders[row.msg_id].pays(row.reconsume_times)
        if first_try_pays and row.status != CONSUME_SUCCESS and row.ended_ms is not None:
            answer_ms = day.orders[row.msg_id].answer_ms(row.reconsume_times)
            where = f"{_place(day, row)}: the bank answers after {answer_ms} ms"
            rule = SLOW_RULE if _took_ms(row) < answer_ms else PAID_RULE
            return Finding(rule, where, CONSUME_SUCCESS, f"{row.status} after {_took_ms(row)} ms")
        if not first_try_pays and _took_ms(row) < 3_000 and row.reconsume_times == 0:
            return Finding(SLOW_RULE, _place(day, row), "3 seconds for the bank", f"{_took_ms(row)} ms")
    return _replayed(day, rows) or _never_back(day, rows)


def _replayed(day: bank.BadDay, rows: list[Any]) -> Finding | None:
    # 1. What was running at the death, what the first life had paid, and what the second life got of it.
    (died_ms,) = day.deaths_ms
    running = [row for row in rows if row.started_ms < died_ms and (row.ended_ms is None or row.ended_ms > died_ms)]
    first_life = {row.msg_id: row for row in rows if row.started_ms < died_ms and _was_paid(day, row)}
    again = [row for row in rows if row.started_ms > died_ms and row.msg_id in first_life]
    held = [row for row in running if died_ms - row.started_ms > 15_000]
    # 2. A call that ran for long held the offset back; the queue's later orders came again because of it.
    if again and held:
        where = (
            f"{_place(day, held[0])}: still running when billing died, {(died_ms - held[0].started_ms) // 1000} s later"
        )
        return Finding(REPLAY_RULE, where, "0 orders paid twice", f"{len(again)} orders paid twice")
    # 3. The client reports offsets every 5 s, so what ended 15 s before the death must not come again.
    if again and first_life[again[0].msg_id].ended_ms < died_ms - 15_000:
        return Finding(REPLAY_RULE, _place(day, again[0]), "not delivered again", again[0].status)
    # 4. Nothing was replayed on this day, but a long call would have caused it on another.
    long = next((row for row in rows if _took_ms(row) > 10_000 and row.started_ms < died_ms - 10_000), None)
    if long is not None:
        return Finding(LONG_RULE, _place(day, long), "at most 10,000 ms", f"{_took_ms(long):,} ms")
    return None


def _never_back(day: bank.BadDay, rows: list[Any]) -> Finding | None:
    paid = {row.msg_id for row in rows if _was_paid(day, row)}
    for msg_id, order in day.orders.items():
        if msg_id not in paid:
            counts = [row.reconsume_times for row in rows if row.msg_id == msg_id]
            return Finding(BACK_RULE, f"{order.key}: its deliveries' reconsume_times", "one that is paid", counts)
    return None


ENDLESS_RULE = (
    "A delivery that kills its process leaves no result, so reconsume_times stays as it is: only what is written and "
    "committed before the bank is asked survives. After three such deliveries the bank must not be asked again"
)
KNOWN_RULE = (
    "An order that a human has is not tried again, even if it is delivered again: billing may die before the "
    "broker knows of the success"
)
HARMLESS_RULE = "Only deliveries without a result count: a refusal is a result, and so is success"
KILLER_STORED_RULE = "The order that ended three processes is stored for a human, with its body, under its msg_id"


def judge_killer(day: bank.BadDay) -> Finding | None:
    """How often the killer was tried, who is with a human, who is paid."""
    rows, human = day.deliveries(), day.for_a_human()
    finding = _first_slip(day) or _lost(day, rows, human)
    if finding is not None:
        return finding
    # 1. How often was the killer's bank call begun? The process dies 100 ms or more after the call began.
    ids = {order.bank: msg_id for msg_id, order in day.orders.items()}
    tries = [row for row in rows if row.msg_id == ids[bank.KILLER] and _took_ms(row) >= 100]
    if len(tries) > 3:
        kept = day.kept[2] if len(day.kept) > 2 else None
        if ids[bank.KILLER] in human:
            return Finding(KNOWN_RULE, f"{_place(day, tries[3])}: the bank asked again", 3, len(tries))
        row = "no row of it" if kept is None else f"times {kept}"
        where = f"{_place(day, tries[3])}: the bank asked again; after the third death the table started held {row}"
        return Finding(ENDLESS_RULE, where, 3, len(tries))
    if len(tries) < 3:
        return Finding(TOO_EARLY_RULE, f"{day.orders[ids[bank.KILLER]].key}: times the bank was asked", 3, len(tries))
    # 2. No other order may suffer: refused ones are paid in the end, and none is with a human.
    for msg_id, order in day.orders.items():
        if msg_id != ids[bank.KILLER] and msg_id in human:
            where = f"{order.key} ({order.bank}): table for_a_human"
            return Finding(HARMLESS_RULE, where, None, _readable(human[msg_id]))
        if msg_id != ids[bank.KILLER] and not any(row.msg_id == msg_id and _was_paid(day, row) for row in rows):
            counts = [row.reconsume_times for row in rows if row.msg_id == msg_id]
            return Finding(BACK_RULE, f"{order.key}: its deliveries' reconsume_times", "one that is paid", counts)
    # 3. The killer itself is with a human.
    body, stored = day.orders[ids[bank.KILLER]].body, human.get(ids[bank.KILLER])
    if stored != body:
        where = f"{_place(day, tries[2])}: table for_a_human"
        return Finding(KILLER_STORED_RULE, where, _readable(body), _readable(stored))
    return None

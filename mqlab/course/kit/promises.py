"""What a World exercise promises: rules over deliveries, offsets and tables; each gives the first thing that breaks it.

    promises=[
        no_surprise("billing", expected=("BankError",)),           a listener raises nothing but what it expects
        success_means("billing", was_paid, "CONSUME_SUCCESS …"),   nothing lost
        no_call_longer_than("billing", "10s", "Whenever …"),
        ends_with("billing", was_paid, "An order that …"),
    ]

A promise is a function Played -> Finding or None, so a lab may write its own next to these. Those over ``lab.verify``
name the step at which the anomaly began.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mqlab.course.kit.days import Played
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.durations import calendar, milliseconds
from mqlab.lab.views.verdict import LOST, SKIPPED
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS

Promise = Callable[[Any], Finding | None]
Done = Callable[[Any, Any], bool]  # the day, a delivery -> whether the work was really done in it

RAISED_RULE = "An exception in a listener counts as RECONSUME_LATER: catch what you expect"
COMMIT_RULE = "Commit what you write, or no other can write: with connection: ... commits"
LISTENER_ERRORS = {
    "IntegrityError": "A consumer may crash after it has stored something and before the broker knows: then the "
    "message is redelivered, and storing it twice must be harmless",
    "database is locked": COMMIT_RULE,
    "one of CONSUME_SUCCESS": "A listener returns CONSUME_SUCCESS or RECONSUME_LATER; anything else counts as "
    "RECONSUME_LATER",
}
"""Part of an error's text -> the rule that was broken."""


def place(played: Played, row: Any) -> str:
    """A delivery in words: which message, how often it was given before, when."""
    sent = played.sent.get(row.msg_id)
    return f"{getattr(sent, 'key', row.msg_id)}, reconsume_times {row.reconsume_times}, at {calendar(row.started_ms)}"


def step_of(played: Played, row: Any) -> int | None:
    """The step of the journal at which a delivery began."""
    for record, values in played.lab.journal.changes("listener.started"):
        if record.now_ms == row.started_ms and any(message["msg_id"] == row.msg_id for message in values["messages"]):
            return int(record.step)
    return None


def finding_at(played: Played, row: Any, rule: str, expected: object, found: object, where: str = "") -> Finding:
    """A finding about one delivery, with its step and its Lab."""
    return Finding(rule, where or place(played, row), expected, found, step=step_of(played, row), lab=played.lab)


def broken(played: Played, where: str, expected: object, found: object, *, rule: str = "", belief: str = "") -> Finding:
    """A finding of a day: its rule, or what is said about this belief."""
    return Finding(refutation(belief) if belief else rule, where, expected, found, lab=played.lab, belief=belief)


def took_ms(row: Any) -> int:
    """How long a delivery took; one that never ended took ten hours."""
    return row.ended_ms - row.started_ms if row.ended_ms is not None else 36_000_000


def no_surprise(group: str, expected: Sequence[str] = (), rules: Mapping[str, str] = LISTENER_ERRORS) -> Promise:
    """A listener raises nothing but exceptions of these names."""

    def first(played: Played) -> Finding | None:
        for row in played.deliveries(group):
            if row.error is not None and not any(name in row.error for name in expected):
                rule = next((rule for words, rule in rules.items() if words in row.error), RAISED_RULE)
                return finding_at(played, row, rule, "a status", _raised(row.error))
        return None

    return first


def writes_committed(group: str, belief: str = "") -> Promise:
    """What a listener writes into a database it has committed when it returns: the rest is rolled back."""

    def first(played: Played) -> Finding | None:
        for record, _ in played.lab.journal.changes("database.rolled_back"):
            for row in played.deliveries(group):
                if row.ended_ms == record.now_ms and row.client == record.node:
                    finding = finding_at(
                        played, row, COMMIT_RULE, "a commit before it returns", "a transaction left open"
                    )
                    return replace(finding, belief=belief)
        return None

    return first


def _raised(text: str) -> str:
    """The last part of a traceback, and the learner's line if the traceback shows one."""
    words = [line for line in text.splitlines() if line[:1].strip() and not line.startswith("Traceback")]
    lines = re.findall(r", line (\d+), in (\S+)\n {4}(.+)", text)
    return words[0] + (" (line {} of {}: {})".format(*lines[-1]) if lines else "")


def at_most_retries(group: str, most: int, rule: str) -> Promise:
    """No message is given to a listener with a greater reconsume_times."""

    def first(played: Played) -> Finding | None:
        for row in played.deliveries(group):
            if row.reconsume_times > most:
                expected = f"no delivery with reconsume_times {row.reconsume_times}"
                return finding_at(played, row, rule, expected, row.status)
        return None

    return first


def success_means(
    group: str, done: Done, rule: str, expected: str, or_else: Callable[[Any, Any], str | None] = lambda day, row: ""
) -> Promise:
    """Nothing is lost: a message that a listener reports as a success was done in one of its deliveries.

    ``or_else(day, row)``: None if the message is safe in another way, else what is to be said along with the duration.
    """

    def first(played: Played) -> Finding | None:
        rows = played.deliveries(group)
        finished = {row.msg_id for row in rows if done(played, row)}
        for row in rows:
            if row.status == CONSUME_SUCCESS and row.msg_id not in finished:
                also = or_else(played, row)
                if also is not None:
                    return finding_at(played, row, rule, expected, f"a call of {took_ms(row)} ms{also}")
        return None

    return first


def ends_with(
    group: str, done: Done, rule: str, expected: str, but: Callable[[Any], bool] = lambda sent: False
) -> Promise:
    """Every message that was sent is done in the end, except those for which ``but`` is true."""

    def first(played: Played) -> Finding | None:
        rows = played.deliveries(group)
        finished = {row.msg_id for row in rows if done(played, row)}
        for msg_id, sent in played.sent.items():
            if msg_id not in finished and not but(sent):
                counts = [row.reconsume_times for row in rows if row.msg_id == msg_id]
                where = f"{getattr(sent, 'key', msg_id)}: its deliveries' reconsume_times"
                return Finding(rule, where, expected, counts, lab=played.lab)
        return None

    return first


def no_call_longer_than(group: str, longest: str, rule: str) -> Promise:
    """No call of a listener takes longer; those that began less than that before the first death are not judged."""
    most = milliseconds(longest)

    def first(played: Played) -> Finding | None:
        until_ms = (played.deaths_ms[0] if played.deaths_ms else played.lab.now_ms) - most
        for row in played.deliveries(group):
            if took_ms(row) > most and row.started_ms < until_ms:
                return finding_at(played, row, rule, f"at most {most:,} ms", f"{took_ms(row):,} ms")
        return None

    return first


def replays_at_most(group: str, span: str, done: Done, rule: str, twice: str = "messages done twice") -> Promise:
    """After each death, only what was done within ``span`` before it comes again.

    A call that was still running after that span held the offset back: then the finding is about that call.
    """
    within_ms = milliseconds(span)

    def first(played: Played) -> Finding | None:
        rows = played.deliveries(group)
        for died_ms in played.deaths_ms:
            before = {row.msg_id: row for row in rows if row.started_ms < died_ms and done(played, row)}
            again = [row for row in rows if row.started_ms > died_ms and row.msg_id in before]
            held = [
                row
                for row in rows
                if row.started_ms < died_ms - within_ms and (row.ended_ms is None or row.ended_ms > died_ms)
            ]
            if again and held:
                running_s = (died_ms - held[0].started_ms) // 1000
                where = f"{place(played, held[0])}: still running when {group} was killed, {running_s} s later"
                return finding_at(played, held[0], rule, f"0 {twice}", f"{len(again)} {twice}", where)
            early = [row for row in again if before[row.msg_id].ended_ms < died_ms - within_ms]
            if early:
                return finding_at(played, early[0], rule, "not delivered again", early[0].status)
        return None

    return first


def nothing_lost(group: str, rule: str) -> Promise:
    """No offset passes a message that no listener has finished, or that none ever got, as ``lab.verify`` tells."""

    def first(played: Played) -> Finding | None:
        for anomaly in played.lab.verify(group):
            if anomaly.kind in (LOST, SKIPPED):
                sent = played.sent.get(anomaly.msg_id)
                key = getattr(sent, "key", anomaly.msg_id)
                where = f"{key}, entry {anomaly.queue_offset} of {anomaly.message_queue}"
                return Finding(rule, where, f"not {anomaly.kind}", anomaly.why, step=anomaly.step, lab=played.lab)
        return None

    return first

"""Lab 05: invoices whose lines are booked as a whole, with commits by hand.

    1/3, 2/3, 3/3     three messages, one invoice; the group's offset may rest between two invoices only

The ledger is the judge's: it opens a page at line 1, and a line that fails makes the page void. Then the invoice has to
come again from its first line, which is what ROLLBACK does. Judged by the ledger and by the offsets in the journal.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.lab05.events import (
    GROUP,
    NODE,
    ORDERLY_ERRORS,
    TOPIC,
    EventDay,
    MadeWith,
    OrderEvent,
    ReadsInOrder,
    SendsEvents,
    WarehouseCall,
    moment,
    not_done,
)
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Restarts, Topics, Waits
from mqlab.course.kit.promises import broken, finding_at, no_surprise
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.rocketmq.wire.message import Message

END_RULE = (
    "An invoice that is booked as a whole is committed, so that no rollback and no crash redelivers it: the last "
    "line of each commits"
)
TWICE_RULE = (
    "Each delivery books its own line, once: a line is booked again only when its invoice comes again, after a failure "
    "or a crash"
)
BOOKED_RULE = "Every line of every invoice is booked in the end: book(message, context) once in each delivery"


@dataclass(frozen=True, slots=True)
class InvoiceLine(OrderEvent):
    """A line of an invoice; its step is "2/3"."""

    def message(self) -> Message:
        """The message that the shop sends."""
        line, _, of = self.step.partition("/")
        return Message(
            TOPIC,
            f"{self.order} {self.step}".encode(),
            tags=self.step,
            keys=self.order,
            properties={"line": line, "of": of},
        )

    @property
    def number(self) -> int:
        """1 for the first line."""
        return int(self.step.partition("/")[0])


class LedgerDay(EventDay):
    """A day with a ledger: no line is known before its invoice is whole, so lines that come again are booked again."""

    __slots__ = ()


def day(seed: int) -> Day:
    """Five invoices, two of which fail in the middle once or twice; a death before the last ones come.

    The first has ten lines or more: as text, "2" is larger than "10". The last has one line only.
    """
    rng = random.Random(f"lab05.manual {seed}")
    first = rng.randint(100, 900)
    lines: list[OrderEvent] = []
    failing = set(rng.sample(range(1, 4), 2))
    for invoice in range(5):
        count = {0: rng.randint(10, 12), 4: 1}.get(invoice) or rng.randint(3, 4)
        fails_at = rng.randint(2, count) if invoice in failing else 0
        for number in range(1, count + 1):
            fails = rng.choice((1, 2)) if number == fails_at else 0
            lines.append(
                InvoiceLine(f"invoice-{first + invoice}", f"{number}/{count}", rng.choice((40, 60, 80)), fails)
            )
    half = next(index for index, line in enumerate(lines) if line.order == f"invoice-{first + 3}") + 1
    acts = (
        Topics((TOPIC,)),
        ReadsInOrder(MadeWith("manual", lambda today, _: (today.handle,), "(book)")),
        Waits("2s"),
        SendsEvents(lines[:half]),  # the first line of an invoice whose other lines are late
        Restarts(NODE, when=lambda today: len(_works(today)) >= half, after="16s", within="1m"),
        Waits("10s"),
        SendsEvents(lines[half:]),
        Waits("30s"),
    )
    return Day(acts, kind=LedgerDay)


def _works(today: Any) -> list[WarehouseCall]:
    works: list[WarehouseCall] = today.works
    return works


def _borders(today: EventDay) -> dict[int, OrderEvent]:
    """Each queue offset with the line that lies there."""
    return {message.queue_offset: today.event_of(message) for message in today.stored()}


def _rests_between_invoices(today: EventDay) -> Finding | None:
    lines = _borders(today)
    for record, values in today.lab.journal.changes("offset.updated"):
        offset = values["commit_offset"]
        if values["queue"].topic != TOPIC or offset not in lines or lines[offset].number == 1:  # type: ignore[attr-defined]
            continue
        belief = "lab05.numbers_as_text" if _compares_texts(today) else "lab05.success_commits"
        belief = "lab05.commit_by_default" if _never_by_hand(today) else belief
        where = f"the offset of {GROUP} moved to entry {offset}, {lines[offset].key}, at {calendar(record.now_ms)}"
        return Finding(
            refutation(belief),
            where,
            "an entry at which an invoice begins",
            f"{lines[offset].key} is not the first",
            step=record.step,
            lab=today.lab,
            belief=belief,
        )
    return None


def _never_by_hand(today: EventDay) -> bool:
    return all(row.status not in ("COMMIT", "ROLLBACK") for row in today.deliveries(GROUP))


def _compares_texts(today: EventDay) -> bool:
    """Whether every line that was committed too early is a late one only as text, such as "2" of "10"."""
    committed = [today.sent[row.msg_id].step for row in today.deliveries(GROUP) if row.status == "COMMIT"]
    early = [(line, of) for line, _, of in (step.partition("/") for step in committed) if line != of]
    return bool(early) and all(line > of for line, of in early)


def _whole_again(today: EventDay) -> Finding | None:
    """After a line that failed the next one booked is the first of its invoice."""
    for work, then in zip(today.works, today.works[1:], strict=False):
        line: InvoiceLine = then.event  # type: ignore[assignment]
        if work.ended_ms is None or work.succeeded or (line.order == work.event.order and line.number == 1):
            continue
        said = _status_of(today, work)
        belief = _AFTER_A_FAILURE.get(said, "lab05.failure_commits")
        expected = f"{work.event.order} 1/{work.event.step.partition('/')[2]}, after {work.event.key} failed"
        rule = refutation(belief) if belief else END_RULE
        return Finding(rule, moment(today, then), expected, line.key, lab=today.lab, belief=belief)
    return None


# A rollback that brings an earlier invoice back: that one was whole, and its last line has not committed it.
_AFTER_A_FAILURE = {"SUSPEND_CURRENT_QUEUE_A_MOMENT": "lab05.suspend_is_enough", "ROLLBACK": ""}


def _status_of(today: EventDay, work: WarehouseCall) -> str:
    """What the delivery said in which a line was booked."""
    for row in today.deliveries(GROUP):
        if today.sent.get(row.msg_id) is work.event and row.started_ms <= work.began_ms <= (row.ended_ms or 0):
            return str(row.status)
    return ""


def _booked_once(today: EventDay) -> Finding | None:
    """A line is booked again only after a failure or a death."""
    booked: list[object] = []
    for work, then in zip([None, *today.works], today.works, strict=False):
        if work is not None and any(work.began_ms <= died_ms <= then.began_ms for died_ms in today.deaths_ms):
            booked = []
        if any(event is then.event for event in booked):
            return Finding(TWICE_RULE, moment(today, then), "booked once", "booked again", lab=today.lab)
        booked = [*booked, then.event] if then.succeeded else []
    return None


def _booked_to_the_end(today: EventDay) -> Finding | None:
    missing = not_done(today)
    if missing is not None:
        return Finding(BOOKED_RULE, f"{missing.key} at the end of the day", "booked", "not booked", lab=today.lab)
    held = today.lab.broker().offset_table.query(GROUP, TOPIC, 0)
    end = len(today.events)
    if held == end:
        return None
    rows = [row for row in today.deliveries(GROUP) if row.queue_offset == end - 1]
    finding = Finding(END_RULE, f"the offset of {GROUP} at the broker", end, held, lab=today.lab)
    return (
        finding_at(today, rows[-1], END_RULE, f"{GROUP} at {end}", f"{rows[-1].status}, and {GROUP} at {held}")
        if (rows and rows[-1].msg_id in today.sent)
        else finding
    )


def _no_page_is_torn(today: EventDay) -> Finding | None:
    """After a death an invoice that was not committed comes again from its first line."""
    for died_ms in today.deaths_ms:
        after: list[WarehouseCall] = [work for work in today.works if work.began_ms > died_ms]
        if after and after[0].event.number != 1:  # type: ignore[attr-defined]
            belief = "lab05.success_commits"
            return broken(
                today,
                f"the first line after the restart: {moment(today, after[0])}",
                "the first line of an invoice",
                after[0].event.key,
                belief=belief,
            )
    return None


MANUAL = World(
    "lab05.manual",
    "manual(book)",
    points=4,
    about="five invoices and a crash",
    day=day,
    promises=[
        no_surprise(GROUP, ("ConnectionError",), ORDERLY_ERRORS),
        _rests_between_invoices,
        _whole_again,
        _no_page_is_torn,
        _booked_once,
        _booked_to_the_end,
    ],
)

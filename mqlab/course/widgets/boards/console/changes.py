"""The console's changes, each in two steps: a preview that changes nothing, and its confirmation.

    reset_of(admin, "orders", "billing", "first")       the dry run of the reset
    resend_of(admin, "billing", ["0A00…"])              the letters that would be sent back
    change.do()                                         what the verb of lab.admin answers

RocketMQ Dashboard asks "are you sure?" without a preview. What is confirmed is what was previewed: the same time, the
same letters. The world goes on between the two, so the answer to the confirmation has the numbers that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlab.course.widgets.boards.console.section import PageSection, found_row
from mqlab.durations import moment_ms
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.rocketmq.admin.dead_letters import letters_left
from mqlab.rocketmq.answers import Shown

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin

FIRST_MESSAGE, THE_END = "first", "end"


@dataclass(frozen=True, slots=True)
class PreviewedChange:
    """A change that was previewed: its question, the call that does it, the preview, and the function that does it."""

    question: str
    call: str
    preview: PageSection
    do: Callable[[], PageSection]


def reset_of(admin: Admin, topic: str, group: str, to: str | int) -> PreviewedChange:
    """A reset of a group's offsets: ``to`` is "first", "end", "now", ms since the epoch, or a time in UTC.

    UsageError for another text; BrokerError for an unknown topic or group.
    """
    at_ms = _moment(admin, to)
    call = f"reset_offset_by_timestamp({topic!r}, {group!r}, {at_ms})"
    plan = admin.reset_offset_by_timestamp(topic, group, at_ms, dry_run=True)

    def do() -> PageSection:
        return _shown("Answer", call, admin.reset_offset_by_timestamp(topic, group, at_ms))

    question = f"Reset {group} on {topic}? Messages read again: {plan.again}; skipped: {plan.skipped}."
    return PreviewedChange(question, call, _shown("Preview (dry run)", f"{call[:-1]}, dry_run=True)", plan), do)


def resend_of(admin: Admin, group: str, letters: Sequence[str] | None) -> PreviewedChange:
    """Sending dead letters back to their group: those with these ids, or (None) the newest letter of each message
    that is still dead.

    UsageError when there is none, or when an id is not that of a dead letter of the group.
    """
    if letters is None:
        chosen = letters_left(admin, group)
    else:
        chosen = [letter for letter in admin.query_dlq(group) if letter.offset_msg_id in letters]
    ids = [letter.offset_msg_id for letter in chosen]
    missing = [letter_id for letter_id in letters or () if letter_id not in ids]
    if missing:
        raise UsageError(f"no dead letter of {group} has the offset id {missing[0]!r}")
    if not chosen:
        raise UsageError(f"{group} has no dead letters that were not sent back")
    call = f"resend_dlq({group!r}, {ids!r})"

    def do() -> PageSection:
        return _shown("Answer", call, admin.resend_dlq(group, ids))

    count = f"{len(chosen)} dead letter{'s' * (len(chosen) > 1)}"
    question = f"Send {count} back to {group}? Each becomes a new message in its retry topic, with 0 retries."
    preview = Table([found_row(letter) for letter in chosen])
    return PreviewedChange(question, call, PageSection("Preview", f"query_dlq({group!r})", preview), do)


def _moment(admin: Admin, to: str | int) -> int:
    if to == FIRST_MESSAGE:
        return 0
    if to == THE_END:
        return -1
    if to == "now":
        return admin.ports.clock.now_ms()
    return to if isinstance(to, int) else moment_ms(to.strip())


def _shown(title: str, verb: str, answer: Shown) -> PageSection:
    return PageSection(title, verb, answer.table(), notes=tuple(answer.shown_notes()))

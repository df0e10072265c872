"""Dead letters: reading them and sending them back to their group, one, some or all.

Mirrors: the DLQ page of RocketMQ Dashboard.

    %DLQ%billing  ──resend──▶  %RETRY%billing   a new message with the same unique id, tried from the start (0 retries)

The dead letter stays in its topic until its log file is deleted, so a message that failed again has two dead letters.
Its unique id (or no argument, for all) selects the newest of them, an offset id selects that copy. All messages of a
batch have the batch's unique id, which selects each of them. A letter is sent back once: a message whose new copy has
not died again is no longer dead, so a call that was interrupted is simply made again. The copy is what is stored: body
as compressed as it was, flags, properties and born time; its born host is the operator's. Dashboard sends a letter to
one online member instead (consume_message_directly), where a failure leaves no trace; the retry topic also works
without online members.
Left out: exporting to a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mqlab.errors import UsageError
from mqlab.rocketmq.admin.groups import check_group_exists
from mqlab.rocketmq.admin.messages import END_OF_TIME_MS, put_message, query_message_by_time, stored_unit
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.steps import Steps
from mqlab.rocketmq.admin.topics import readable_queues
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

NOT_FOR_A_NEW_LIFE = (
    p.DELAY,
    p.REAL_TOPIC,
    p.REAL_QID,
    p.RECONSUME_TIME,
    p.MAX_RECONSUME_TIMES,
    p.MIN_OFFSET,
    p.MAX_OFFSET,
    p.WAIT,
)
Origin = tuple[str, bytes]
ALREADY_SENT = "ALREADY_SENT"


@dataclass(frozen=True, slots=True)
class Resent:
    """One dead letter that was sent back; the offset id is that of the new message.

    ``send_status`` ALREADY_SENT: it was sent back earlier as that message, which has not died again.
    """

    msg_id: str
    topic: str
    send_status: str
    offset_msg_id: str


def query_dlq(admin: AdminNode, group: str, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS) -> Rows[MessageExt]:
    """The dead letters of a group stored between two times; none when it has no dead letter topic.

    BrokerError with code 26 for a group that no broker has.
    """
    title, topic = f"dead letters of {group}", names.dlq_topic(group)
    if readable_queues(admin, topic):
        return Rows(list(query_message_by_time(admin, topic, begin_ms, end_ms)), title)
    check_group_exists(admin, group)
    return Rows([], title)


def resend_dlq(
    admin: AdminNode, group: str, letters: MessageExt | str | Iterable[MessageExt | str] | None = None
) -> Rows[Resent]:
    """Send dead letters back to their group, each message once: one, some (a list) or all (None), oldest first.

    A letter is a message of query_dlq, its offset id (that copy) or its unique id (the newest copy of each message
    of that id). UsageError, with nothing sent, when one is not a dead letter of the group. PartlyDone when some
    letters were refused; the others are sent, and a second call sends those that are left.
    """
    # 1. The letters that are there, and which of them count.
    dead = query_dlq(admin, group)
    newest = newest_letters(dead)
    sent = _sent_back(admin, group, newest)
    if letters is None:
        chosen = [letter for letter in newest if _origin(letter) not in sent]
    else:
        wanted = [letters] if isinstance(letters, str | MessageExt) else letters
        chosen = [letter for choice in wanted for letter in _meant(choice, group, dead, newest)]
    # 2. Send each chosen letter once, in the order in which the letters were stored.
    ids = {letter.offset_msg_id for letter in chosen}
    masters, steps, rows = dict(admin.brokers()), Steps("resend_dlq"), []
    for letter in [letter for letter in dead if letter.offset_msg_id in ids]:
        address = masters.get(letter.broker_name, "")
        row = steps.take(
            letter.offset_msg_id,
            partial(_resend, admin, address, group, letter, sent),
            at=address,
            outcome=lambda resent: f"{resent.send_status} as {resent.offset_msg_id}",
        )
        rows += [row] if row is not None else []
    steps.finish()
    return Rows(rows, f"sent back to {group}")


def newest_letters(dead: Iterable[MessageExt]) -> list[MessageExt]:
    """Of letters in the order of storing, the newest of each message: one that failed again has several."""
    return list({_origin(letter): letter for letter in dead}.values())


def letters_left(admin: AdminNode, group: str) -> list[MessageExt]:
    """The newest letters of the messages that are dead now: those that resend_dlq sends when it is told none."""
    newest = newest_letters(query_dlq(admin, group))
    sent = _sent_back(admin, group, newest)
    return [letter for letter in newest if _origin(letter) not in sent]


def _sent_back(admin: AdminNode, group: str, newest: Sequence[MessageExt]) -> dict[Origin, MessageExt]:
    """Of the messages of these letters, the copies that were sent back and have not died again.

    The cluster is asked, not our memory: a send without an answer may have been stored.
    """
    retry_topic = names.retry_topic(group)
    if not newest or not readable_queues(admin, retry_topic):
        return {}
    letters = {_origin(letter): letter for letter in newest}
    copies = {}
    for copy in query_message_by_time(admin, retry_topic, min(letter.store_timestamp for letter in newest)):
        letter = letters.get(_origin(copy))
        # A retry of the consumers counts its tries; only what was sent back begins with 0.
        if letter is None or copy.reconsume_times or copy.broker_name != letter.broker_name:
            continue
        if copy.physical_offset > letter.physical_offset:
            copies[_origin(copy)] = copy
    return copies


def _resend(
    admin: AdminNode, address: str, group: str, letter: MessageExt, sent: Mapping[Origin, MessageExt]
) -> Resent:
    topic = letter.properties.get(p.RETRY_TOPIC, letter.topic)
    if _origin(letter) in sent:
        return Resent(letter.msg_id, topic, ALREADY_SENT, sent[_origin(letter)].offset_msg_id)
    if not address:
        raise UsageError(f"{letter.broker_name} has no master")
    unit = stored_unit(admin, address, letter.physical_offset)
    kept = {name: value for name, value in unit.property_map.items() if name not in NOT_FOR_A_NEW_LIFE}
    kept.setdefault(p.ORIGIN_MESSAGE_ID, letter.offset_msg_id)
    result = put_message(
        admin,
        address,
        MessageQueue(names.retry_topic(group), letter.broker_name, 0),
        unit.body,
        kept,
        flag=unit.flag,
        system_flag=unit.sys_flag,
        born_timestamp=unit.born_timestamp,
    )
    return Resent(letter.msg_id, topic, result.send_status, result.offset_msg_id)


def _origin(letter: MessageExt) -> Origin:
    """What all dead letters of one message, and its copies that were sent back, have in common."""
    return letter.properties.get(p.ORIGIN_MESSAGE_ID, letter.offset_msg_id), letter.body


def _meant(
    wanted: MessageExt | str, group: str, dead: Sequence[MessageExt], newest: Sequence[MessageExt]
) -> list[MessageExt]:
    """The dead letters that an id or a message selects."""
    letter_id = wanted if isinstance(wanted, str) else wanted.offset_msg_id
    letters = [letter for letter in dead if letter.offset_msg_id == letter_id]
    # An offset id names one copy; only a unique id selects by message.
    letters = letters or [letter for letter in newest if letter.msg_id == letter_id]
    if not letters:
        raise UsageError(
            f"no dead letter of {group} has the id {letter_id!r}", hint=f"query_dlq({group!r}) shows {len(dead)}"
        )
    return letters

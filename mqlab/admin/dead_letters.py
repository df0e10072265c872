"""Dead letters: looking at them and giving them back to their group, one, some or all.

Mirrors: the DLQ page of RocketMQ Dashboard. Lab 07 sends them again.

    %DLQ%billing  ──resend──▶  %RETRY%billing   a new message with the same unique id, tried from the start (0 retries)

The dead letter itself stays where it is until its log file goes. Dashboard hands it to one online member instead
(consume_message_directly), which leaves no trace when it fails; the retry topic works for a group that is offline, too.
Left out: exporting to a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqlab.admin.answers import Rows
from mqlab.admin.messages import END_OF_TIME_MS, MessageVerbs
from mqlab.errors import UsageError
from mqlab.wire import names
from mqlab.wire import property_names as p
from mqlab.wire.message import MessageExt, MessageQueue

NOT_FOR_A_NEW_LIFE = (p.DELAY, p.REAL_TOPIC, p.REAL_QID, p.RECONSUME_TIME, p.MAX_RECONSUME_TIMES, p.MIN_OFFSET,
                      p.MAX_OFFSET, p.WAIT)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resent:
    """One dead letter that was given back; the offset id is the new message's."""

    msg_id: str
    topic: str
    send_status: str
    offset_msg_id: str


class DeadLetterVerbs(MessageVerbs):
    """Verbs about dead letters."""

    def query_dlq(self, group: str, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS) -> Rows[MessageExt]:
        """The dead letters of a group stored between two times; none when it has no dead letter topic."""
        found = self.query_message_by_time(names.dlq_topic(group), begin_ms, end_ms)
        return Rows(list(found), f"dead letters of {group}")

    def resend_dlq(self, group: str, msg_ids: Sequence[str] | str | None = None) -> Rows[Resent]:
        """Give dead letters back to their group: one (its msg_id), some (a list) or all (nothing).

        UsageError, with nothing sent, when an id is not among them.
        """
        dead = self.query_dlq(group)
        wanted = [msg_ids] if isinstance(msg_ids, str) else msg_ids
        if wanted is not None:
            known = {message.msg_id for message in dead}
            missing = [msg_id for msg_id in wanted if msg_id not in known]
            if missing:
                raise UsageError(
                    f"no dead letter of {group} has the id {missing[0]!r}",
                    hint=f"query_dlq({group!r}) shows {len(dead)}",
                )
        chosen = [message for message in dead if wanted is None or message.msg_id in wanted]
        return Rows([self._resend(group, message) for message in chosen], f"sent back to {group}")

    def _resend(self, group: str, message: MessageExt) -> Resent:
        address = dict(self.brokers(message.broker_name))[message.broker_name]
        kept = {name: value for name, value in message.properties.items() if name not in NOT_FOR_A_NEW_LIFE}
        queue = MessageQueue(names.retry_topic(group), message.broker_name, 0)
        result = self.put(address, queue, message.body, kept)
        topic = message.properties.get(p.RETRY_TOPIC, message.topic)
        return Resent(message.msg_id, topic, result.send_status, result.offset_msg_id)

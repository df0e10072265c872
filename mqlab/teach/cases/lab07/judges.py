"""lab07.redrive's replies to an answer: what must not happen to dead letters, then what must happen to each."""

from __future__ import annotations

from typing import Any

from mqlab.teach.cases.lab07 import days
from mqlab.teach.exercises import Finding
from mqlab.views.table import calendar
from mqlab.wire import property_names as p

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

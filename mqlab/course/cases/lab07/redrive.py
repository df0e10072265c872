"""lab07.redrive: dead letters of several kinds, given back to a repaired group; judged by what the groups then got.

Two events of one order have the same key, two orders the same body; what died in order came from another topic.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.course.cases.lab07.days import BODIES, GROUP, QUICK_LEVELS
from mqlab.course.cases.story_parts import reader
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played, Reads, Stops, Topics, Waits
from mqlab.course.kit.promises import finding_at
from mqlab.course.teach.exercises import Finding
from mqlab.course.words import refutation
from mqlab.durations import calendar
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import Message, MessageExt

OTHER_GROUPS_RULE = (
    "A dead letter belongs to one group, so it goes back to %RETRY%group. A message sent to the topic reaches every "
    "group again"
)
DEAD_AGAIN_RULE = (
    "A dead letter must start from zero: with its old RECONSUME_TIME and MAX_RECONSUME_TIMES the broker takes it for "
    "tried too often, and it is dead again at once"
)
NOBODY_RULE = (
    "A message sent to %DLQ%group is one more dead letter: the group reads %RETRY%group, and no group reads %DLQ%group"
)
MISSING_RULE = "Every message among the dead letters is given back"
ONCE_RULE = "A message is given back once, however often it has died: %DLQ%group keeps a copy of each death"
ID_RULE = "A message keeps its UNIQ_KEY: traces, and code that remembers what is paid, must see the same message"
TOPIC_RULE = "RETRY_TOPIC has to stay: without it the listener sees %RETRY%group where it expects the message's topic"
KEPT_RULE = "A message keeps its body, its tags, its keys and the sender's own properties"


@dataclass(slots=True)
class RedriveDay(Played):
    """The day, its group, the dead letters as they were given to the learner, and when that was."""

    group: str = ""
    dead: list[MessageExt] = field(default_factory=list)
    began_ms: int = 0


def day(seed: int) -> Day:
    """Orders die of a bug, some of them twice, some in an orderly life; it is repaired, the letters given back."""
    rng = random.Random(f"lab07.redrive {seed}")
    group = (GROUP, "shipping")[seed % 2]
    count = rng.randint(5, 7)
    doomed = {f"order-{number}" for number in rng.sample(range(count), 3)} | {f"order-{count}", f"order-{count + 1}"}
    shaky = rng.choice(sorted(doomed))

    def broken(messages: Sequence[MessageExt], context: Any) -> str:
        return RECONSUME_LATER if messages[0].keys in doomed else CONSUME_SUCCESS

    def broken_orderly(messages: Sequence[MessageExt], context: Any) -> str:
        return SUSPEND_CURRENT_QUEUE_A_MOMENT if messages[0].keys in doomed else "SUCCESS"

    def repaired(messages: Sequence[MessageExt], context: Any) -> str:
        return RECONSUME_LATER if messages[0].keys == shaky and messages[0].reconsume_times == 0 else CONSUME_SUCCESS

    def sends(topic: str, numbers: Sequence[int]) -> Does:
        def send(played: RedriveDay) -> None:
            played.group = group
            gift = rng.choice(BODIES).encode() + b"\x00\xff"  # a body need not be a text
            for number in numbers:
                key, own = f"order-{number}", {"region": rng.choice(("Сибирь", "华东"))}
                bodies = [f"{rng.choice(BODIES)} {number}".encode(), *[gift] * (key in doomed)]
                for body in bodies:
                    played.producer("shop").send(Message(topic, body, tags="paid", keys=key, properties=own))

        return Does(send)

    def again(played: RedriveDay) -> None:
        letters = [message.msg_id for message in played.lab.admin.query_dlq(group)]
        played.lab.admin.resend_dlq(group, letters[: rng.randint(1, 2)])

    once = {"max_reconsume_times": 1}
    return Day(
        (
            # 1. Orders fail at a concurrent member; one or two of them are given back by hand and die again.
            Topics(("orders", "refunds")),
            Does(lambda played: reader(played.lab, "audit", "orders", lambda: 5)),
            Reads(group, "orders", broken, settings=once),
            sends("orders", range(count)),
            Waits("5s"),
            Does(again),
            Waits("5s"),
            # 2. Two more fail at an orderly one, whose dead letters have other properties.
            Stops(f"{group}-1"),
            Reads(group, "refunds", broken_orderly, name=f"{group}-2", orderly=True, settings=once),
            sends("refunds", (count, count + 1)),
            Waits("10s"),
            Stops(f"{group}-2"),
            # 3. The group is repaired, and the learner's function gets all dead letters.
            Reads(group, "orders", repaired, name=f"{group}-3"),
            Does(_given_back),
            Waits("20s"),
        ),
        broker={"message_delay_level": QUICK_LEVELS},
        kind=RedriveDay,
    )


def _given_back(today: RedriveDay) -> None:
    today.dead = list(today.lab.admin.query_dlq(today.group))
    operator = today.producer("operator")
    today.began_ms = today.lab.now_ms
    today.answers["redrive"](list(today.dead), operator, today.group)


def _other_groups_get_nothing(today: RedriveDay) -> Finding | None:
    keys = {message.msg_id: message.keys for message in today.dead}
    for row in today.deliveries("audit"):
        if row.started_ms >= today.began_ms:
            where = f"{keys.get(row.msg_id, 'an order')}, delivered to audit at {calendar(row.started_ms)}"
            return finding_at(today, row, OTHER_GROUPS_RULE, "no delivery to audit", row.status, where)
    return None


def _nothing_is_dead_again(today: RedriveDay) -> Finding | None:
    """Either the counts were kept, or it was sent to the dead letters directly."""
    dead = names.dlq_topic(today.group)
    for message in today.lab.store().messages(dead):
        if message.store_timestamp >= today.began_ms:
            where = f"{message.keys}, back in {dead} at {calendar(message.store_timestamp)}"
            kept = _bookkeeping(message)
            rule = DEAD_AGAIN_RULE if kept else NOBODY_RULE
            return Finding(rule, where, f"a delivery to {today.group}", kept or message.topic)
    return None


def _each_is_back_once(today: RedriveDay) -> Finding | None:
    """Each dead letter is in the retry topic once. A count above 0 is a later retry, not what the answer sent."""
    retry = names.retry_topic(today.group)
    back = [message for message in today.lab.store().messages(retry) if message.store_timestamp >= today.began_ms]
    letters = {message.msg_id: message for message in today.dead}
    for dead in letters.values():
        for message in back:
            if message.msg_id == dead.msg_id and message.body != dead.body:
                return Finding(KEPT_RULE, f"{dead.keys}: its body", dead.body, message.body)
        # An answer may have lost the id or the key: then its body tells what it was.
        mine = [message for message in back if (message.keys, message.body) == (dead.keys, dead.body)]
        lost = [message for message in back if message.msg_id not in letters and message.body == dead.body]
        same_body = sum(letter.body == dead.body for letter in letters.values())
        finding = _letter(dead, mine or lost[: 1 if len(lost) <= same_body else None], retry)
        if finding is not None and finding.rule == MISSING_RULE:
            belief = _sent_elsewhere(today, dead) or _taken_for_another(dead, back)
            return replace(finding, rule=refutation(belief), belief=belief) if belief else finding
        if finding is not None:
            return finding
    return None


def _sent_elsewhere(today: RedriveDay, dead: Any) -> str:
    """Whether a missing letter was given back to the group that the lab's own cells have."""
    other = names.retry_topic(GROUP)
    there = [message for message in today.lab.store().messages(other) if message.store_timestamp >= today.began_ms]
    is_there = today.group != GROUP and any(message.body == dead.body for message in there)
    return "lab07.group_is_billing" if is_there else ""


def _taken_for_another(dead: Any, back: Sequence[Any]) -> str:
    """Why a letter is missing: another one with its key, or with its body, was given back in its place."""
    if any(other.body == dead.body for other in back):
        return "lab07.body_is_message"
    return "lab07.key_is_message" if any(other.keys == dead.keys for other in back) else ""


def _letter(dead: Any, back: list[Any], retry: str) -> Finding | None:
    copies = [message for message in back if message.reconsume_times == 0]
    if back and not copies:
        where = f"{dead.keys}, back in {retry}: its reconsume_times"
        return Finding(DEAD_AGAIN_RULE, where, 0, back[0].reconsume_times)
    if len(copies) != 1:
        rule = ONCE_RULE if copies else MISSING_RULE
        return Finding(rule, f"{dead.keys} with the id {dead.msg_id}: its new copies in {retry}", 1, len(copies))
    copy = copies[0]
    if p.RETRY_TOPIC not in copy.properties:
        return Finding(TOPIC_RULE, f"{dead.keys}: property RETRY_TOPIC", dead.properties[p.RETRY_TOPIC], None)
    if copy.msg_id != dead.msg_id:
        return Finding(ID_RULE, f"{dead.keys}: its id", dead.msg_id, copy.msg_id)
    for name in (p.RETRY_TOPIC, p.TAGS, p.KEYS, "region"):
        if copy.properties.get(name) != dead.properties[name]:
            where = f"{dead.keys}: property {name}"
            belief = "lab07.letters_are_orders" if name == p.RETRY_TOPIC else ""
            rule = refutation(belief) if belief else KEPT_RULE
            return Finding(rule, where, dead.properties[name], copy.properties.get(name), belief=belief)
    return None


def _bookkeeping(message: Any) -> dict[str, str]:
    wanted = (p.RECONSUME_TIME, p.MAX_RECONSUME_TIMES)
    return {name: message.properties[name] for name in wanted if name in message.properties}


REDRIVE = World(
    "lab07.redrive",
    "redrive(dead, producer, group)",
    points=4,
    about="dead letters of a bad day",
    day=day,
    promises=[_other_groups_get_nothing, _nothing_is_dead_again, _each_is_back_once],
)

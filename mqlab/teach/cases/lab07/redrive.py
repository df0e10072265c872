"""lab07.redrive: dead letters of three kinds, given back to a repaired billing; judged by what the groups then got."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER, SUSPEND_CURRENT_QUEUE_A_MOMENT
from mqlab.durations import calendar
from mqlab.teach.cases.lab07.days import BODIES, DEAD, GROUP, QUICK_LEVELS, RETRY
from mqlab.teach.cases.story_parts import reader
from mqlab.teach.exercises import Finding
from mqlab.teach.kit import World
from mqlab.teach.kit.days import Day, Does, Played, Reads, Stops, Topics, Waits
from mqlab.teach.kit.promises import finding_at
from mqlab.wire import property_names as p
from mqlab.wire.message import Message, MessageExt

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


@dataclass(slots=True)
class RedriveDay(Played):
    """The day, the dead letters as they were given to the learner, and when that was."""

    dead: list[MessageExt] = field(default_factory=list)
    began_ms: int = 0


def day(seed: int) -> Day:
    """Orders die of a bug, some of them twice, some in an orderly life; billing is repaired, the letters given back."""
    rng = random.Random(f"lab07.redrive {seed}")
    count = rng.randint(5, 7)
    doomed = {f"order-{number}" for number in rng.sample(range(count), 3)} | {f"order-{count}", f"order-{count + 1}"}
    shaky = rng.choice(sorted(doomed))

    def broken(messages: Sequence[MessageExt], context: Any) -> str:
        return RECONSUME_LATER if messages[0].keys in doomed else CONSUME_SUCCESS

    def broken_orderly(messages: Sequence[MessageExt], context: Any) -> str:
        return SUSPEND_CURRENT_QUEUE_A_MOMENT if messages[0].keys in doomed else "SUCCESS"

    def repaired(messages: Sequence[MessageExt], context: Any) -> str:
        return RECONSUME_LATER if messages[0].keys == shaky and messages[0].reconsume_times == 0 else CONSUME_SUCCESS

    def sends(numbers: Sequence[int]) -> Does:
        def send(played: Played) -> None:
            for number in numbers:
                own = {"region": rng.choice(("Сибирь", "华东"))}
                body = f"{rng.choice(BODIES)} {number}".encode()
                message = Message("orders", body, tags="paid", keys=f"order-{number}", properties=own)
                played.producer("shop").send(message)

        return Does(send)

    def again(played: Played) -> None:
        letters = [message.msg_id for message in played.lab.admin.query_dlq(GROUP)]
        played.lab.admin.resend_dlq(GROUP, letters[: rng.randint(1, 2)])

    once = {"max_reconsume_times": 1}
    return Day(
        (
            # 1. Orders fail at a concurrent billing; one or two of them are given back by hand and die again.
            Topics(("orders",)),
            Does(lambda played: reader(played.lab, "audit", "orders", lambda: 5)),
            Reads(GROUP, "orders", broken, settings=once),
            sends(range(count)),
            Waits("5s"),
            Does(again),
            Waits("5s"),
            # 2. Two more fail at an orderly billing, whose dead letters have other properties.
            Stops("billing-1"),
            Reads(GROUP, "orders", broken_orderly, name="billing-2", orderly=True, settings=once),
            sends((count, count + 1)),
            Waits("10s"),
            Stops("billing-2"),
            # 3. Billing is repaired, and the learner's function gets all dead letters.
            Reads(GROUP, "orders", repaired, name="billing-3"),
            Does(_given_back),
            Waits("20s"),
        ),
        broker={"message_delay_level": QUICK_LEVELS},
        kind=RedriveDay,
    )


def _given_back(today: RedriveDay) -> None:
    today.dead = list(today.lab.admin.query_dlq(GROUP))
    operator = today.producer("operator")
    today.began_ms = today.lab.now_ms
    today.answers["redrive"](list(today.dead), operator, GROUP)


def _other_groups_get_nothing(today: RedriveDay) -> Finding | None:
    keys = {message.msg_id: message.keys for message in today.dead}
    for row in today.deliveries("audit"):
        if row.started_ms >= today.began_ms:
            where = f"{keys.get(row.msg_id, 'an order')}, delivered to audit at {calendar(row.started_ms)}"
            return finding_at(today, row, OTHER_GROUPS_RULE, "no delivery to audit", row.status, where)
    return None


def _nothing_is_dead_again(today: RedriveDay) -> Finding | None:
    """Either the counts were kept, or it was sent to the dead letters directly."""
    for message in today.lab.store().messages(DEAD):
        if message.store_timestamp >= today.began_ms:
            where = f"{message.keys}, back in {DEAD} at {calendar(message.store_timestamp)}"
            kept = _bookkeeping(message)
            rule = DEAD_AGAIN_RULE if kept else NOBODY_RULE
            return Finding(rule, where, "a delivery to billing", kept or message.topic)
    return None


def _each_is_back_once(today: RedriveDay) -> Finding | None:
    """Each dead letter is in the retry topic once. A count above 0 is a later retry, not what the answer sent."""
    back = [message for message in today.lab.store().messages(RETRY) if message.store_timestamp >= today.began_ms]
    for dead in {message.msg_id: message for message in today.dead}.values():
        finding = _letter(dead, [message for message in back if message.body == dead.body])
        if finding is not None:
            return finding
    return None


def _letter(dead: Any, back: list[Any]) -> Finding | None:
    copies = [message for message in back if message.reconsume_times == 0]
    if back and not copies:
        where = f"{dead.keys}, back in {RETRY}: its reconsume_times"
        return Finding(DEAD_AGAIN_RULE, where, 0, back[0].reconsume_times)
    if len(copies) != 1:
        rule = ONCE_RULE if copies else MISSING_RULE
        return Finding(rule, f"{dead.keys}: its new copies in {RETRY}", 1, len(copies))
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


REDRIVE = World(
    "lab07.redrive", "redrive(dead, producer, group)", points=4, about="dead letters of a bad day", day=day,
    promises=[_other_groups_get_nothing, _nothing_is_dead_again, _each_is_back_once],
)  # fmt: skip

"""Lab 05's first exercise: what a listener says about a batch of which a part was charged.

the bank    charges the orders of a batch one by one, and tells for each whether it did
partial     (list of bools)  ─▶  (status, ack_index): what the listener returns and sets
judged by   the deliveries: nothing that was not charged is lost, nothing is charged again without need
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.cases.lab05.events import GROUP, NODE, TOPIC
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played, Topics
from mqlab.course.teach.exercises import Answers, Call, Finding
from mqlab.course.words import refutation
from mqlab.rocketmq.client.statuses import CONCURRENT_STATUSES, CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message

BATCH = 8
FORM_RULE = "partial returns a pair: the status, and the index of the last message that RocketMQ may take as good"
STATUS_RULE = "The first of the pair is CONSUME_SUCCESS or RECONSUME_LATER: a text, not True or False"
INDEX_RULE = "The second of the pair, ack_index, is a whole number"


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order; ``refused``: how often the bank refuses it before it charges."""

    key: str
    refused: int

    def message(self) -> Message:
        """The message that the shop sends."""
        return Message(TOPIC, "книга 书".encode(), keys=self.key)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was charged of a batch, and what the answer said about it."""

    keys: tuple[str, ...]
    charged: tuple[bool, ...]
    said: Any
    at_ms: int


@dataclass(slots=True)
class Bank(Played):
    """A day at the bank."""

    decisions: list[Decision] = field(default_factory=list)
    charges: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    raised: Exception | None = None

    def listen(self, messages: Sequence[Any], context: Any) -> Any:
        """Billing's listener: charges each order, then does what the answer says."""
        charged = []
        for message in messages:
            order = self.sent[message.msg_id]
            self.asked[order.key] = self.asked.get(order.key, 0) + 1
            charged.append(self.asked[order.key] > order.refused)
            context.sleep("20ms")
            if charged[-1]:
                self.charges[order.key] = self.charges.get(order.key, 0) + 1
        try:
            said = self.answers["partial"](list(charged))
        except Exception as error:
            self.raised = self.raised or error
            raise
        keys = tuple(self.sent[message.msg_id].key for message in messages)
        self.decisions.append(Decision(keys, tuple(charged), said, self.lab.now_ms))
        if misfit(said) is not None:
            return "RECONSUME_LATER"
        status, context.ack_index = said
        return status


def misfit(said: Any) -> tuple[str, object] | None:
    """The rule that something that is not a decision breaks, and what was expected; None for a decision."""
    expected = (CONSUME_SUCCESS, 3)
    if not isinstance(said, tuple | list) or len(said) != 2:
        return FORM_RULE, expected
    if said[0] not in CONCURRENT_STATUSES:
        return STATUS_RULE, expected
    if isinstance(said[1], bool) or not isinstance(said[1], int):
        return INDEX_RULE, expected
    return None


def sent_back(charged: Sequence[bool], said: Any) -> list[bool]:
    """For each message of a batch whether RocketMQ sends it back after a decision."""
    status, ack_index = said
    ack = min(ack_index, len(charged) - 1) if status == CONSUME_SUCCESS else -1
    return [index > ack for index in range(len(charged))]


def right(charged: Sequence[bool]) -> tuple[str, int]:
    """The decision that loses nothing and repeats no more than it must."""
    return CONSUME_SUCCESS, next(
        (index for index, is_charged in enumerate(charged) if not is_charged), len(charged)
    ) - 1


def day(seed: int) -> Day:
    """Three batches: all charged, refusals in the middle and at the end, a refusal at the front; what comes back."""
    rng = random.Random(f"lab05.partial {seed}")
    middle, last, front = rng.randint(2, BATCH - 3), BATCH - 1, BATCH + BATCH
    first = rng.randint(100, 900)
    refused = {BATCH + middle: 1, BATCH + last: 1, front: rng.choice((1, 2))}
    orders = [RefusedOrder(f"order-{first + number}", refused.get(number, 0)) for number in range(3 * BATCH)]

    def opens(today: Bank) -> None:
        shop = today.producer("shop")
        for order in orders:
            today.sent[shop.send(order.message()).msg_id] = order
        # The orders wait already, so that a pull brings whole batches.
        consumer = today.lab.push_consumer(
            GROUP, name=NODE, consume_message_batch_max_size=BATCH, consume_thread_min=1, consume_thread_max=1
        )
        consumer.subscribe(TOPIC, "*")
        consumer.on_messages(today.listen)
        consumer.start()
        today.lab.run_for("3m")
        if today.raised is not None:
            raise today.raised

    return Day((Topics((TOPIC,)), Does(opens)), kind=Bank)


def _where(decision: Decision) -> str:
    words = ["charged" if is_charged else "refused" for is_charged in decision.charged]
    return (
        f"the batch {decision.keys[0]} … {decision.keys[-1]} ({', '.join(words)})"
        if len(words) > 1
        else (f"{decision.keys[0]} alone ({words[0]})")
    )


def _call(decision: Decision) -> Call:
    return Call(charged=list(decision.charged), right=right(decision.charged), about=_where(decision))


def _decided(today: Bank) -> Finding | None:
    for decision in today.decisions:
        wrong = misfit(decision.said)
        if wrong is not None:
            rule, expected = wrong
            if decision.said is None:
                rule = "partial returned nothing: end it with return and the pair"
            return Finding(rule, _where(decision), expected, decision.said, call=_call(decision), lab=today.lab)
    return None


def _nothing_lost(today: Bank) -> Finding | None:
    for decision in today.decisions:
        back = sent_back(decision.charged, decision.said)
        lost = [index for index, charged in enumerate(decision.charged) if not charged and not back[index]]
        if not lost:
            continue
        belief = "lab05.no_exception" if decision.said[1] >= len(decision.charged) - 1 else "lab05.ack_counts"
        return _message_finding(today, decision, lost[0], belief, "it is taken as good, and never redelivered")
    return None


def _nothing_again_without_need(today: Bank) -> Finding | None:
    for decision in today.decisions:
        back, needed = sent_back(decision.charged, decision.said), sent_back(decision.charged, right(decision.charged))
        more = [index for index in range(len(back)) if back[index] and not needed[index]]
        if not more:
            continue
        belief = (
            "lab05.all_or_nothing" if decision.said[0] != CONSUME_SUCCESS or decision.said[1] < 0 else "lab05.one_less"
        )
        return _message_finding(
            today, decision, more[0], belief, "it was charged, and is sent back to be charged again"
        )
    return None


def _message_finding(today: Bank, decision: Decision, index: int, belief: str, happened: str) -> Finding:
    """What happened to one message of a batch, against what should have."""
    where = f"{_where(decision)}: message {index}, {decision.keys[index]}"
    expected, actual = right(decision.charged), f"{tuple(decision.said)}: {happened}"
    return Finding(refutation(belief), where, expected, actual, call=_call(decision), lab=today.lab, belief=belief)


def _all_charged(today: Bank) -> Finding | None:
    for order in today.sent.values():
        if order.key not in today.charges:
            where = f"{order.key} at the end of the day"
            return Finding(refutation("lab05.no_exception"), where, "charged", "never charged", lab=today.lab)
    return None


def decisions(answers: Answers, seed: int) -> list[Decision]:
    """The decisions of a day, for tests and pictures."""
    played: Bank = day(seed).play(answers, seed)
    return played.decisions


PARTIAL = World(
    "lab05.partial",
    "partial(charged)",
    points=3,
    about="three batches at the bank",
    day=day,
    promises=[_decided, _nothing_lost, _nothing_again_without_need, _all_charged],
)

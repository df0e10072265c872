"""The messages that a group's members subscribed to, according to their heartbeats: by tag expression or SQL.

Mirrors: SubscriptionData as a heartbeat carries it. Used by deliveries, absences and verify.

    subscription.changed {"orders": "paid || new"}     Wish("paid || new", is_sql=False)
      about: the heartbeat, which knows TAG from SQL92 and CLUSTERING from BROADCASTING

Left out: subscriptions inside a pull request (such pulls are judged by the group's subscription).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.errors import FilterError
from mqlab.rocketmq.filter import compile_sql, tags
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.bodies import ConsumerData, HeartbeatData
from mqlab.rocketmq.wire.codes import RequestCode

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord


@dataclass(frozen=True, slots=True)
class Wish:
    """One expression of a member for a topic."""

    expression: str
    is_sql: bool

    def wants(self, properties: Mapping[str, str]) -> bool | None:
        """Whether a message with these properties is wanted; None for an expression that cannot be read.

        >>> Wish("paid || new", False).wants({"TAGS": "new"}), Wish("amount > 10", True).wants({"amount": "9"})
        (True, False)
        """
        try:
            if self.is_sql:
                return compile_sql(self.expression).evaluate(properties) is True
            return tags.parse(self.expression).matches_text(properties.get(property_names.TAGS))
        except FilterError:
            return None


def wishes_of(record: StepRecord, values: Mapping[str, Any]) -> dict[str, Wish]:
    """Topic -> wish, of a subscription.changed change."""
    consumer = _consumer(record, values["group"])
    kinds = (
        {subscription.topic: subscription.expression_type for subscription in consumer.subscription_data_set}
        if consumer
        else {}
    )
    expressions: dict[str, str] = values["subscriptions"]
    return {topic: Wish(expression, kinds.get(topic, "TAG") != "TAG") for topic, expression in expressions.items()}


def is_broadcasting(record: StepRecord, group: str) -> bool:
    """Whether the heartbeat that caused a subscription.changed change is of a broadcasting group."""
    consumer = _consumer(record, group)
    return consumer is not None and consumer.message_model == "BROADCASTING"


def is_wanted(wishes: Iterable[Wish], properties: Mapping[str, str] | None) -> bool | None:
    """Whether one of the wishes is for a message; None when the journal does not show it."""
    answers = [None if properties is None else wish.wants(properties) for wish in wishes]
    return True if True in answers else None if None in answers else False


def _consumer(record: StepRecord, group: str) -> ConsumerData | None:
    if record.about is None or record.about.code != RequestCode.HEART_BEAT or not record.about.body:
        return None
    consumers = HeartbeatData.from_json(record.about.body).consumer_data_set
    return next((data for data in consumers if data.group_name == group), None)

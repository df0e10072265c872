"""A consumer's subscription to a topic, as brokers get it: tags or an SQL expression, with a version.

Mirrors: FilterAPI, SubscriptionData. When members disagree, a broker keeps the subscription with the newest version.

    "*"               everything               tags_set empty
    "paid || shipped" two tags                 code_set: their Java hashes, by which the broker filters
    sql="a > 10"      an SQL92 expression      checked by the broker when the consumer starts

The version is the client's clock at the time of subscribing, and again at every change of the topic's allocation.

Left out: class filters.
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.client.sending.send_request import check_topic
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.names import RETRY_PREFIX

TAG, SQL92 = "TAG", "SQL92"


def tag_subscription(topic: str, expression: str | None, now_ms: int) -> SubscriptionData:
    """A subscription by tags; None, "" and "*" mean all. FilterError for an expression without a tag ("||")."""
    if not (isinstance(topic, str) and topic.startswith(RETRY_PREFIX)):  # of a long group it is longer than others
        check_topic(topic)
    parsed = tags.parse(expression)
    return SubscriptionData(
        topic=topic,
        sub_string=parsed.sub_string,
        tags_set=sorted(parsed.tags_set),
        code_set=sorted(parsed.code_set),
        sub_version=now_ms,
        expression_type=TAG,
    )


def subscription(topic: str, expression: str | None, sql: str | None, now_ms: int) -> SubscriptionData:
    """A subscription by tags or by SQL. UsageError when both are given. An SQL text is read by the broker, at start."""
    for text in (expression, sql):
        if text is not None and not isinstance(text, str):
            raise UsageError(f"{text!r} is not an expression", hint='tags: "paid || shipped", or sql="amount > 10"')
    if sql is None:
        return tag_subscription(topic, expression, now_ms)
    if expression not in (None, "*"):
        raise UsageError(f"subscribe takes tags or sql, not both: {expression!r} and {sql!r}")
    check_topic(topic)
    return SubscriptionData(topic=topic, sub_string=sql, sub_version=now_ms, expression_type=SQL92)

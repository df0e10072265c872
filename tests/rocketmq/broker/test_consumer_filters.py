"""SQL filter data: made by heartbeats, dead and alive, cleaned after a day, kept in a file; what a pull lets pass."""

from __future__ import annotations

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.consumer_filters import ConsumerFilterTable, PullFilter
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.java_hash import string_hash

HOUR = 3_600_000


class Filters:
    def __init__(self) -> None:
        self.now_ms = 100 * HOUR
        self.changes = 0
        self.table = ConsumerFilterTable(lambda: self.now_ms)
        self.table.changed.subscribe(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def heartbeat(self, *subscriptions: SubscriptionData, group: str = "audit") -> None:
        self.table.register(group, subscriptions)


def sql(topic: str, text: str, version: int) -> SubscriptionData:
    return SubscriptionData(topic, text, sub_version=version, expression_type="SQL92")


def test_a_higher_version_replaces_and_a_lower_one_does_not() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    filters.heartbeat(sql("orders", "a > 9", 9))
    assert filters.table.get("orders", "audit").expression == "a > 5"  # type: ignore[union-attr]
    filters.heartbeat(sql("orders", "a > 9", 11))
    known = filters.table.get("orders", "audit")
    assert known is not None and (known.expression, known.client_version) == ("a > 9", 11)
    assert filters.changes == 2 and filters.table.get("orders", "other") is None


def test_the_same_expression_only_moves_its_version() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    born_ms = filters.table.get("orders", "audit").born_ms  # type: ignore[union-attr]
    filters.now_ms += 1_000
    filters.heartbeat(sql("orders", "a > 5", 12))
    known = filters.table.get("orders", "audit")
    assert known is not None and (known.born_ms, known.client_version) == (born_ms, 12)


def test_an_expression_that_does_not_parse_removes_the_old_one() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    filters.heartbeat(sql("orders", "a >", 11))
    assert filters.table.get("orders", "audit") is None


def test_a_filter_dies_with_its_topic_or_group_and_comes_back() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    filters.heartbeat(SubscriptionData("payments"))
    known = filters.table.get("orders", "audit")
    assert known is not None and known.is_dead
    filters.heartbeat(sql("orders", "a > 5", 10))
    assert not known.is_dead
    filters.table.unregister("audit")
    assert known.is_dead


def test_dead_filters_leave_the_file_after_a_day() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    filters.table.unregister("audit")
    filters.now_ms += 24 * HOUR - 1
    assert '"audit"' in filters.table.encode()
    filters.now_ms += 1
    assert filters.table.encode() == '{\n\t"filterDataByTopic":{}\n}' and len(filters.table) == 0


def test_the_file_comes_back_with_everybody_dead_since_half_a_minute() -> None:
    filters = Filters()
    filters.heartbeat(sql("订单", "a BETWEEN 2 AND 8 AND name <> 'боб'", 10))
    filters.now_ms += HOUR
    again = Filters()
    again.now_ms = filters.now_ms
    again.table.decode(filters.table.encode())
    known = again.table.get("订单", "audit")
    assert known is not None and known.is_dead and known.dead_ms == filters.now_ms - 30_000
    assert known.bloom_positions == filters.table.get("订单", "audit").bloom_positions  # type: ignore[union-attr]
    assert known.compiled is not None and known.compiled.evaluate({"a": "3", "name": "x"}) is True


@pytest.mark.parametrize("text", ["{", "7", '{"filterDataByTopic":{"a":7}}', '{"filterDataByTopic":[]}'])
def test_a_damaged_file_is_said_to_be_one(text: str) -> None:
    with pytest.raises(CorruptionError):
        Filters().table.decode(text)


def test_a_file_made_for_other_bitmaps_is_not_used() -> None:
    filters = Filters()
    filters.heartbeat(sql("orders", "a > 5", 10))
    other = ConsumerFilterTable(lambda: 7, expect_groups=64)
    other.decode(filters.table.encode())
    assert len(other) == 0


def test_what_a_tag_filter_lets_through() -> None:
    passes_all = PullFilter(SubscriptionData("t"), None)
    assert passes_all.matches_code(12345) and not passes_all.needs_properties
    one = PullFilter(SubscriptionData("t", "标签", ["标签"], [string_hash("标签")]), None)
    assert one.matches_code(string_hash("标签")) and one.matches_code(string_hash("标签") + (7 << 32))
    assert not one.matches_code(0) and one.matches_properties({})
    nothing = PullFilter(SubscriptionData("t", "|| ||"), None)
    assert not nothing.matches_code(0) and not nothing.matches_code(42)


def test_what_an_sql_filter_lets_through() -> None:
    table = Filters().table
    subscription = sql("t", "amount > 5", 1)
    chosen = PullFilter(subscription, table.build("t", "g", "amount > 5", "SQL92", 1))
    assert chosen.needs_properties and chosen.matches_code(0)
    verdicts = [chosen.matches_properties(p) for p in ({"amount": "6"}, {"amount": "5"}, {}, {"amount": "x"})]
    assert verdicts == [True, False, False, False]


def test_the_retry_switch_asks_the_first_topics_filter() -> None:
    table = Filters().table
    original = table.build("orders", "g", "amount > 5", "SQL92", 1)
    retried = PullFilter(sql("%RETRY%g", "TRUE", 1), None, lambda topic: original if topic == "orders" else None)
    assert not retried.matches_properties({"RETRY_TOPIC": "orders", "amount": "1"})
    assert retried.matches_properties({"RETRY_TOPIC": "orders", "amount": "9"})
    assert retried.matches_properties({"RETRY_TOPIC": "other", "amount": "1"})
    by_tag = PullFilter(SubscriptionData("%RETRY%g"), None, lambda topic: original)
    assert by_tag.matches_properties({"RETRY_TOPIC": "orders", "amount": "1"})

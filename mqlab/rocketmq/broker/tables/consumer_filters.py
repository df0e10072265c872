"""The SQL expressions the broker filters with, per topic and group, and the filter one pull runs.

Mirrors: ConsumerFilterManager, ConsumerFilterData, ExpressionMessageFilter; config/consumerFilter.json.

    topic    group     expression      clientVersion   state
    orders   audit     amount > 100    1795…446        alive
    orders   old       a > 5           1795…101        dead since 12:00:01, removed from the file after 24 h

    a message      by its index entry               by its properties
    TAG filter     tag hash in the set, or "*"      -
    SQL92 filter   always                           TRUE passes; FALSE, unknown and errors do not

Left out: the bitmap pre-check of the extended consume queue (off by default); its positions are kept for the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.errors import CorruptionError, FilterError
from mqlab.rocketmq.broker.tables import bloom_filter
from mqlab.rocketmq.filter import compile_sql
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json, names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import SubscriptionData

if TYPE_CHECKING:
    from mqlab.rocketmq.filter.sql import Expression

ALL = "*"
TAG, SQL92 = "TAG", "SQL92"


TAG_TYPES = (TAG, "", None)
"""The expression types that mean a tag expression: TAG, or no type at all. Mirrors ExpressionType.isTagType."""


@dataclass(slots=True)
class ConsumerFilter:
    """The SQL expression of one group on a topic. ``dead_ms`` is 0 while it is alive. Mirrors ConsumerFilterData."""

    topic: str
    group: str
    expression: str
    expression_type: str
    client_version: int
    born_ms: int
    bloom_bits: int
    bloom_positions: list[int]
    dead_ms: int = 0
    compiled: Expression | None = field(default=None, repr=False)

    @property
    def is_dead(self) -> bool:
        return self.dead_ms >= self.born_ms

    def to_value(self) -> dict[str, Any]:
        """Its entry in the file, members in Java's order."""
        return {
            "bloomFilterData": {"bitNum": self.bloom_bits, "bitPos": self.bloom_positions},
            "bornTime": self.born_ms,
            "clientVersion": self.client_version,
            "consumerGroup": self.group,
            "dead": self.is_dead,
            "deadTime": self.dead_ms,
            "expression": self.expression,
            "expressionType": self.expression_type,
            "topic": self.topic,
        }


class ConsumerFilterTable:
    """topic -> group -> SQL filter. Mirrors ConsumerFilterManager."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        expect_groups: int = 32,
        error_rate: int = 20,
        clean_after_ms: int = 24 * 3_600_000,
    ) -> None:
        self._now_ms = now_ms
        self._hashes = bloom_filter.hash_count(error_rate)
        self._bits = bloom_filter.bit_count(error_rate, expect_groups)
        self._clean_after_ms = clean_after_ms
        self.changed: Signal[[]] = Signal()
        self._topics: dict[str, dict[str, ConsumerFilter]] = {}

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """The group's filter on the topic, dead or alive."""
        return self._topics.get(topic, {}).get(group)

    def build(self, topic: str, group: str, expression: str, expression_type: str, version: int) -> ConsumerFilter:
        """A filter that is not kept, for a request with its own expression. Raises FilterError. Mirrors build."""
        if expression_type != SQL92:
            raise FilterError(f"unknown expression type {expression_type!r}", hint=f"write {TAG} or {SQL92}")
        positions = bloom_filter.bit_positions(f"{group}#{topic}", hashes=self._hashes, bits=self._bits)
        consumer_filter = ConsumerFilter(
            topic, group, expression, expression_type, version, self._now_ms(), self._bits, positions
        )
        consumer_filter.compiled = compile_sql(expression)
        return consumer_filter

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Register the SQL subscriptions of a heartbeat; filters on other topics become dead. Mirrors register."""
        by_topic = {subscription.topic: subscription for subscription in subscriptions}
        for topic, subscription in by_topic.items():
            if subscription.expression_type not in TAG_TYPES and subscription.sub_string:
                self._register(topic, group, subscription)
        for consumer_filter in self._of_group(group):
            if consumer_filter.topic not in by_topic and not consumer_filter.is_dead:
                self._die(consumer_filter)

    def unregister(self, group: str) -> None:
        """The last member of the group has left: its filters become dead. Mirrors unRegister."""
        for consumer_filter in self._of_group(group):
            if not consumer_filter.is_dead:
                self._die(consumer_filter)

    def _register(self, topic: str, group: str, subscription: SubscriptionData) -> None:
        groups = self._topics.setdefault(topic, {})
        current = groups.get(group)
        version = subscription.sub_version
        if current is not None and version <= current.client_version:
            if version == current.client_version and current.is_dead:
                current.dead_ms = 0
                self.changed()
            return
        if current is not None and current.expression == subscription.sub_string:
            current.client_version = version
            current.dead_ms = 0
            self.changed()
            return
        try:
            groups[group] = self.build(topic, group, subscription.sub_string, subscription.expression_type, version)
        except FilterError:
            groups.pop(group, None)  # the next pull of the client is answered with FILTER_DATA_NOT_EXIST
        self.changed()

    def _die(self, consumer_filter: ConsumerFilter) -> None:
        consumer_filter.dead_ms = self._now_ms()
        self.changed()

    def _of_group(self, group: str) -> list[ConsumerFilter]:
        return [groups[group] for groups in self._topics.values() if group in groups]

    def _clean(self) -> None:
        now_ms = self._now_ms()
        for topic, groups in list(self._topics.items()):
            for group, consumer_filter in list(groups.items()):
                if consumer_filter.is_dead and now_ms - consumer_filter.dead_ms >= self._clean_after_ms:
                    del groups[group]
            if not groups:
                del self._topics[topic]

    def encode(self) -> str:
        """The text of consumerFilter.json; filters that have been dead for 24 h are removed now."""
        self._clean()
        return java_json.pretty(
            {
                "filterDataByTopic": {
                    topic: {
                        "groupFilterData": {
                            group: consumer_filter.to_value() for group, consumer_filter in groups.items()
                        },
                        "topic": topic,
                    }
                    for topic, groups in self._topics.items()
                }
            }
        )

    def decode(self, text: str) -> None:
        """Use the filters of a file; those that were alive count as dead for 30 s. Raises CorruptionError."""
        try:
            value = java_json.loads(text)
            loaded = [
                self._from_value(entry)
                for groups in java_json.table(value, "filterDataByTopic").values()
                for entry in java_json.table(groups, "groupFilterData").values()
            ]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "consumer filters cannot be read", expected='{"filterDataByTopic":{…}}', found=error
            ) from error
        if any(consumer_filter.bloom_bits != self._bits for consumer_filter in loaded):
            return  # they were written for bitmaps of another length: RocketMQ ignores the whole file
        self._topics = {}
        for consumer_filter in loaded:
            self._topics.setdefault(consumer_filter.topic, {})[consumer_filter.group] = consumer_filter

    def _from_value(self, value: Mapping[str, Any]) -> ConsumerFilter:
        bloom = value.get("bloomFilterData") or {"bitNum": self._bits, "bitPos": []}
        loaded = ConsumerFilter(
            value["topic"],
            value["consumerGroup"],
            value["expression"],
            value["expressionType"],
            java_json.to_long(value["clientVersion"]),
            java_json.to_long(value["bornTime"]),
            java_json.to_int(bloom["bitNum"]),
            [java_json.to_int(position) for position in bloom["bitPos"]],
            java_json.to_long(value["deadTime"]),
        )
        if loaded.dead_ms == 0:
            loaded.dead_ms = max(self._now_ms() - 30_000, loaded.born_ms)
        try:
            loaded.compiled = compile_sql(loaded.expression)
        except FilterError:
            loaded.compiled = None
        return loaded

    def __len__(self) -> int:
        return sum(len(groups) for groups in self._topics.values())

    def __repr__(self) -> str:
        return f"<ConsumerFilterTable: {len(self)} filters on {len(self._topics)} topics>"


class PullFilter:
    """The filter of one pull. Mirrors ExpressionMessageFilter and, with ``of_retried``, its form for retry topics.

    ``of_retried(topic)`` finds the SQL filter of a retried message's first topic (filterSupportRetry). As in RocketMQ
    it is used only if the retry topic itself is subscribed with SQL, which its clients never do.
    """

    __slots__ = ("_codes", "_compiled", "_is_tag", "_of_retried", "passes_all")

    def __init__(
        self,
        subscription: SubscriptionData,
        consumer_filter: ConsumerFilter | None,
        of_retried: Callable[[str], ConsumerFilter | None] | None = None,
    ) -> None:
        self._is_tag = subscription.expression_type in TAG_TYPES
        self.passes_all = subscription.class_filter_mode or (self._is_tag and subscription.sub_string == ALL)
        self._codes = frozenset(subscription.code_set)
        self._compiled = None if consumer_filter is None else consumer_filter.compiled
        retried = subscription.topic.startswith(names.RETRY_PREFIX)
        self._of_retried = of_retried if retried and not self._is_tag and not self.passes_all else None

    @property
    def needs_properties(self) -> bool:
        """True if ``matches_properties`` can be False."""
        return not self._is_tag and not self.passes_all

    def matches_code(self, tags_code: int) -> bool:
        """Test an index entry's tag hash (its low 32 bits)."""
        if self.passes_all or not self._is_tag:
            return True
        return ((tags_code + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) in self._codes

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        """Test the properties of a message; unknown and errors count as False."""
        if not self.needs_properties:
            return True
        compiled = self._compiled
        if self._of_retried is not None:
            consumer_filter = self._of_retried(properties.get(p.RETRY_TOPIC, ""))
            compiled = None if consumer_filter is None else consumer_filter.compiled
        if compiled is None:
            return True
        try:
            return compiled.evaluate(properties) is True
        except FilterError:
            return False

"""How each consumer group may consume on this broker.

Mirrors: SubscriptionGroupManager; file config/subscriptionGroup.json.

    group      retryQueueNums  retryMaxTimes  consumeEnable  made
    billing    1               16             true           by its first heartbeat, pull or send-back
    TOOLS_…    1               16             true           at start

Left out: POP's retry policies (written to the file with their default, as RocketMQ does).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.broker.tables.topic_attributes import KNOWN_OF_GROUPS, altered_attributes
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json, names
from mqlab.rocketmq.wire.bodies import DataVersion, SubscriptionGroupConfig

READ_BIT = 2  # PermName.INDEX_PERM_READ: the bit of reading among those that a group can lose


class GroupTable(BrokerTable[str, SubscriptionGroupConfig]):
    """group -> its configuration. Mirrors SubscriptionGroupManager."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        auto_create: bool = True,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._now_ms = now_ms
        self.auto_create = auto_create
        self.changed: Signal[[]] = Signal()
        self._note = note
        self.data_version = DataVersion.at(now_ms())
        predefined = {name: SubscriptionGroupConfig(group_name=name) for name in names.PREDEFINED_GROUPS}
        self._entries: dict[str, SubscriptionGroupConfig] = predefined
        self.forbidden: dict[str, dict[str, int]] = {}

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """The configuration of the group, created with defaults if that is allowed; None if it is not.

        Mirrors findSubscriptionGroupConfig.
        """
        current = self._entries.get(group)
        if current is not None:
            return current
        if not (self.auto_create or group in names.PREDEFINED_GROUPS) or names.group_problem(group):
            return None
        self._entries[group] = SubscriptionGroupConfig(group_name=group)
        self._note("group.created", group=group, by="use")
        self._advance()
        return self._entries[group]

    def update(self, config: SubscriptionGroupConfig) -> None:
        """Create or replace a group; its ``attributes`` are changes: ``{"+name": value, "-name": ""}``.

        Raises UsageError for attributes that groups do not have. Mirrors updateSubscriptionGroupConfig.
        """
        current = self._entries.get(config.group_name)
        kind = "group.created" if current is None else "group.updated"
        attributes = altered_attributes(
            {} if current is None else current.attributes,
            config.attributes,
            create=current is None,
            known=KNOWN_OF_GROUPS,
            of="group",
        )
        self._entries[config.group_name] = dataclasses.replace(config, attributes=attributes)
        self._note(kind, group=config.group_name, by="admin")
        self._advance()

    def delete(self, group: str) -> bool:
        """Remove a group; False if there is none. Mirrors deleteSubscriptionGroupConfig."""
        if self._entries.pop(group, None) is None:
            return False
        self.forbidden.pop(group, None)
        self._note("group.deleted", group=group)
        self._advance()
        return True

    def is_forbidden(self, group: str, topic: str, bit: int) -> bool:
        """True if this permission of the group on the topic was taken away. Mirrors getForbidden."""
        return bool(self.forbidden) and bool(self.forbidden.get(group, {}).get(topic, 0) >> bit & 1)

    def forbid(self, group: str, topic: str, bit: int, *, taken: bool) -> None:
        """Take a permission of the group on the topic away, or give it back. Mirrors updateForbidden.

        As in RocketMQ a group that gets its last permission on one topic back gets those on all topics back, and
        the file is not written for that.
        """
        bits = self.forbidden.get(group, {}).get(topic, 0)
        bits = bits | 1 << bit if taken else bits & ~(1 << bit)
        if bits:
            self.forbidden.setdefault(group, {})[topic] = bits
            self._advance()
        else:
            self.forbidden.pop(group, None)

    def to_value(self) -> dict[str, Any]:
        """The content of the file and of the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""
        return {
            "dataVersion": self.data_version.to_value(),
            "forbiddenTable": {group: dict(topics) for group, topics in self.forbidden.items()},
            "subscriptionGroupTable": {name: group.to_value() for name, group in self._entries.items()},
        }

    def encode(self) -> str:
        """The text of subscriptionGroup.json."""
        return java_json.pretty(self.to_value())

    def decode(self, text: str) -> None:
        """Add the groups of a file to the predefined ones. Raises CorruptionError."""
        version, loaded, forbidden = _parsed(text)
        self.data_version = version or self.data_version
        self._entries.update(loaded)
        self.forbidden = forbidden

    def take_over(self, text: str) -> bool:
        """A slave uses its master's groups (GET_ALL_SUBSCRIPTIONGROUP_CONFIG); False if it has them already.

        Its own forbidden bits stay. Raises CorruptionError. Mirrors syncSubscriptionGroupConfig.
        """
        version, groups, _ = _parsed(text)
        if version == self.data_version:
            return False
        self._entries = groups
        self.data_version = version or self.data_version
        self.changed()
        return True

    def _advance(self) -> None:
        self.data_version = self.data_version.next(self._now_ms())
        self.changed()

    def __repr__(self) -> str:
        return f"<GroupTable: {len(self._entries)} groups, version {self.data_version.counter}>"


def _parsed(
    text: str,
) -> tuple[DataVersion | None, dict[str, SubscriptionGroupConfig], dict[str, dict[str, int]]]:
    """Version, groups and forbidden bits of a file's or an answer's text. Raises CorruptionError."""
    try:
        value = java_json.loads(text)
        groups = {
            name: SubscriptionGroupConfig.from_value(group)
            for name, group in java_json.table(value, "subscriptionGroupTable").items()
        }
        forbidden = {
            group: {topic: java_json.to_int(bits) for topic, bits in topics.items()}
            for group, topics in (java_json.data_of(value, "forbiddenTable") or {}).items()
        }
        version = java_json.data_of(value, "dataVersion")
        return (DataVersion.from_value(version) if version else None), groups, forbidden
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptionError(
            "groups cannot be read", expected='{"subscriptionGroupTable":{"billing":{…}}}', found=error
        ) from error

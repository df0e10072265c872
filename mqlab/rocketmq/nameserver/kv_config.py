"""The key-value configuration: short values by namespace and key, for every client and broker.

Mirrors: KVConfigManager; file kvConfig.json when a path is set.

    namespace             key       value
    ORDER_TOPIC_CONFIG    orders    broker-a:4;broker-b:4
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.errors import CorruptionError
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"


class KvConfig:
    """namespace -> key -> value. Mirrors KVConfigManager."""

    def __init__(self) -> None:
        self.changed: Signal[[]] = Signal()
        self._table: dict[str, dict[str, str]] = {}

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set one value."""
        self._table.setdefault(namespace, {})[key] = value
        self.changed()

    def delete(self, namespace: str, key: str) -> None:
        """Remove one value, if there is one."""
        self._table.get(namespace, {}).pop(key, None)
        self.changed()

    def get(self, namespace: str, key: str) -> str | None:
        """A value, None if there is none."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> Mapping[str, str] | None:
        """All values of a namespace, None if it was never used."""
        return self._table.get(namespace)

    def encode(self) -> str:
        """The text of kvConfig.json."""
        return java_json.pretty({"configTable": self._table})

    def decode(self, text: str) -> None:
        """Use the text of a file. Raises CorruptionError."""
        try:
            loaded = java_json.table(java_json.loads(text), "configTable")
            self._table = {str(name): {str(k): str(v) for k, v in values.items()} for name, values in loaded.items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "the key-value configuration cannot be read", expected='{"configTable":{…}}', found=error
            ) from error

    def __repr__(self) -> str:
        return f"<KvConfig: {sum(map(len, self._table.values()))} values in {len(self._table)} namespaces>"

"""The store: a directory of mapped files that a broker appends to and reads from, byte for byte RocketMQ's.

Mirrors: the store module of RocketMQ (org.apache.rocketmq.store). Lab 01 takes a store apart.

    MessageStore     put, dispatch, get, query, search, recover        one writer, with a lock
    StoreInspector   the same directory, open or not, for reading only; see mqlab.lab.inspector
    StoreConfig      every setting

Left out: timer wheel, compaction, batch and light queues, tiered store.
"""

from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.message_store import MessageStore

if TYPE_CHECKING:
    from mqlab.lab.inspector.inspector import StoreInspector

__all__ = ["MessageStore", "StoreConfig", "StoreInspector"]


def __getattr__(name: str) -> Any:
    """The inspector is loaded when it is first asked for: a broker does not need it."""
    if name == "StoreInspector":
        from mqlab.lab.inspector.inspector import StoreInspector

        return StoreInspector
    raise AttributeError(name)

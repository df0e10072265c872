"""The store: a directory of mapped files that a broker appends to and reads from, byte for byte RocketMQ's.

Mirrors: the store module of RocketMQ (org.apache.rocketmq.store). Lab 01 takes a store apart.

    MessageStore     put, dispatch, get, query, search, recover        one writer, with a lock
    StoreConfig      every setting
    reading          the same directory, open or not, for reading only

Left out: compaction, batch and light queues, tiered store.
"""

from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.message_store import MessageStore

__all__ = ["MessageStore", "StoreConfig"]

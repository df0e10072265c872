"""The parts of a unit that repeat from message to message, hosts and topics: each is encoded once, and kept.

Mirrors: MessageExtEncoder.
"""

from __future__ import annotations

import struct

from mqlab.rocketmq.wire.host import Host, encode_host
from mqlab.rocketmq.wire.record_layout import MAGIC_V1, MAGIC_V2, MAX_TOPIC_V1

_I8, _I16 = struct.Struct(">b"), struct.Struct(">h")

CACHE_LIMIT = 4096
KNOWN_HOSTS: dict[Host, bytes] = {}
KNOWN_TOPICS: dict[str, tuple[int, bytes]] = {}


def known_host(host: Host) -> bytes:
    """A host as stored, kept from now on."""
    if len(KNOWN_HOSTS) >= CACHE_LIMIT:
        KNOWN_HOSTS.clear()
    encoded = KNOWN_HOSTS[host] = encode_host(host)
    return encoded


def known_topic(topic: str) -> tuple[int, bytes]:
    """The magic that RocketMQ would choose for a topic, and the topic as stored."""
    if len(KNOWN_TOPICS) >= CACHE_LIMIT:
        KNOWN_TOPICS.clear()
    magic = version_for(topic)
    known = KNOWN_TOPICS[topic] = (magic, topic_part(topic, magic))
    return known


def topic_part(topic: str, magic: int) -> bytes:
    """A topic after its length, as stored; struct.error when it is too long for that layout."""
    encoded = topic.encode("utf-8", "replace")
    return (_I8.pack(len(encoded)) if magic == MAGIC_V1 else _I16.pack(len(encoded))) + encoded


def version_for(topic: str) -> int:
    """The magic that RocketMQ would choose: V2 for a topic of more than 127 characters."""
    return MAGIC_V2 if len(topic.encode("utf-16-le", "surrogatepass")) // 2 > MAX_TOPIC_V1 else MAGIC_V1

"""Order and stock messages as stretches of bytes: head, body, topic and properties, in the broker's layout.

Mirrors: MessageExtEncoder; bodies are the platform's JSON. Lab 10 reads them, ``mqlab cat`` prints them.

    stretch     0 head, order, event, customer    1 name, town     2 amount, articles, time    3 topic and properties
    classes     5 (tags)                          33 (people)      9 (digits x articles)       tags; of retries more

    {"order":"731100000042","event":"paid","customer":{"id":"C00001234","name":"王芳","city":"上海"},"currency":"CNY",
     "amount":128.50,"items":[{"sku":"S0042","qty":2}],"at":1731290000123}

Left out: compressed bodies (these are shorter than 4 KiB).
"""

from __future__ import annotations

import functools
import struct

import numpy as np

from mqlab.data.traffic.clients import Clients
from mqlab.data.traffic.deliveries import FIRST_RETRY_LEVEL
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import ORDERS, PEOPLE, STOCK, TAGS, TESTER, TRACED, WAREHOUSES
from mqlab.data.traffic.writing.columns.byte_templates import Stretch, TemplateShape, slot
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.host import encode_host
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record_layout import FIXED_PARTS, LAYOUT, MAGIC_V1, fixed_offset

HEAD_SIZE = FIXED_PARTS[0].size
REGION = "DefaultRegion"
_KINDS = {"i32": ">i4", "i64": ">i8", "host": "V8"}
_VARIABLE = (
    "total_size",
    "body_crc",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "born_timestamp",
    "born_host",
    "store_timestamp",
    "reconsume_times",
    "body_length",
)
HEAD = {spec.name: (_KINDS[spec.kind], fixed_offset(spec.name)) for spec in LAYOUT if spec.name in _VARIABLE}
BODY_CRC_AT = fixed_offset("body_crc")

SCHEDULED, RETRIED, DEAD = range(3)  # the three copies of a failed message
TRIES = 17  # tries are 0 to 16
DIGIT_CLASSES, MOST_ARTICLES = 3, 3


def head_bytes(broker: int) -> bytes:
    """The 88 bytes before a body, filled as far as they are the same in all units of a broker."""
    start = bytearray(HEAD_SIZE)
    struct.pack_into(">i", start, fixed_offset("magic"), MAGIC_V1)
    position = fixed_offset("store_host")
    host = encode_host(Clients.broker_host(broker))
    start[position : position + len(host)] = host
    return bytes(start)


def ending(topic: str, properties: dict[str, str]) -> bytes:
    """Topic and properties as they end a unit; slots in values keep their place."""
    named, encoded = topic.encode(), encode_as_java(properties)
    pieces = encoded.split(b"\x03")
    length = sum(int(piece.partition(b":")[2]) if n % 2 else len(piece) for n, piece in enumerate(pieces))
    return bytes([len(named)]) + named + _length(length) + encoded


def _length(length: int) -> bytes:
    """A length as two bytes, neither of which may be the mark of a slot."""
    packed = struct.pack(">h", length)
    return packed.replace(b"\x03", slot_byte(3))


def slot_byte(value: int) -> bytes:
    """A byte that would be read as a mark, written as a slot for the column ``byte<value>``."""
    return slot(f"byte{value}", 1).encode()


def common(cluster: str) -> dict[str, str]:
    """The properties that a broker adds to every message, and those that every client sends."""
    return {
        p.WAIT: "true",
        p.MSG_REGION: REGION,
        p.TRACE_ON: "true",
        p.CLUSTER: cluster,
        p.UNIQ_KEY: slot("unique", 32),
    }


def order_keys() -> str:
    """KEYS of an order message: the order and the customer."""
    return f"O{slot('order', 12)} C{slot('customer', 8)}"


class OrderShapes:
    """The stretches of order messages at one broker, and of their retries."""

    def __init__(self, broker: int, cluster: str) -> None:
        start = head_bytes(broker)
        self.beginnings = Stretch([TemplateShape(_beginning(tag), start, HEAD) for tag in TAGS])
        self.people = Stretch([TemplateShape(_person(*person)) for person in (*PEOPLE, TESTER)])
        self.contents = Stretch(
            [TemplateShape(_content(n, m)) for n in range(DIGIT_CLASSES) for m in range(MOST_ARTICLES)]
        )
        self.endings = Stretch([TemplateShape(ending(ORDERS, _sent(cluster, tag))) for tag in TAGS])
        self.retry_endings, self.retry_topic_sizes = _retries(cluster)

    def body_sizes(self, kind: Array, person: Array, content: Array) -> Array:
        """Bytes of bodies, by tag, person and content class."""
        sizes: Array = self.beginnings.sizes[kind] - HEAD_SIZE
        return sizes + self.people.sizes[person] + self.contents.sizes[content]


@functools.lru_cache(maxsize=4)
def _retries(cluster: str) -> tuple[Stretch, Array]:
    """The endings of all copies, and the sizes of their topics. They are the same for all brokers of a cluster."""
    # The order of these loops is the numbering that ``retry_class`` computes.
    numbered = [
        (what, group, tries, tag)
        for what in (SCHEDULED, RETRIED, DEAD)
        for group in range(len(TRACED))
        for tries in range(TRIES)
        for tag in TAGS
    ]
    endings = Stretch([TemplateShape(_given_back(cluster, *retry)) for retry in numbered])
    return endings, np.array([3 + len(_topic_of(what, group)) for what, group, _, _ in numbered])


def _sent(cluster: str, tag: str) -> dict[str, str]:
    return {p.KEYS: order_keys(), p.TAGS: tag, **common(cluster)}


def _given_back(cluster: str, what: int, group_number: int, tries: int, tag: str) -> bytes:
    """Properties of a copy made by CONSUMER_SEND_MSG_BACK after ``tries`` earlier ones."""
    group = TRACED[group_number]
    named = _sent(cluster, tag) | {p.WAIT: "false", p.RETRY_TOPIC: ORDERS, p.ORIGIN_MESSAGE_ID: slot("origin", 32)}
    real = {p.REAL_TOPIC: names.retry_topic(group.name), p.REAL_QID: "0"}
    topic = _topic_of(what, group_number)
    if what == DEAD:
        return ending(topic, named | {p.DELAY: "0"} | (real if tries else {}))
    return ending(topic, named | real | {p.DELAY: str(FIRST_RETRY_LEVEL + tries)})


def _topic_of(what: int, group_number: int) -> str:
    group = TRACED[group_number].name
    return (names.SCHEDULE_TOPIC, names.retry_topic(group), names.dlq_topic(group))[what]


def retry_class(what: Array, group: Array, tries: Array, kind: Array) -> Array:
    """The number of a copy's ending in ``retry_endings``."""
    ending_class: Array = ((what * len(TRACED) + group) * TRIES + tries) * len(TAGS) + kind
    return ending_class


def _beginning(tag: str) -> bytes:
    return f'{{"order":"{slot("order", 12)}","event":"{tag}","customer":{{"id":"C{slot("customer", 8)}",'.encode()


def _person(name: str, town: str, currency: str) -> bytes:
    return f'"name":"{name}","city":"{town}"}},"currency":"{currency}",'.encode()


def _content(digit_class: int, more_articles: int) -> bytes:
    articles = ",".join(
        f'{{"sku":"S{slot(f"article{n}", 4)}","qty":{slot(f"quantity{n}", 1)}}}' for n in range(more_articles + 1)
    )
    amount = f"{slot(f'whole{digit_class + 2}', digit_class + 2)}.{slot('cents', 2)}"
    return f'"amount":{amount},"items":[{articles}],"at":{slot("at", 13)}}}'.encode()


def stock_stretch(broker: int, cluster: str) -> Stretch:
    """The stretch of stock messages, one class per warehouse; they are not traced."""
    named = {p.KEYS: f"S{slot('article0', 4)}", **common(cluster)}
    start = head_bytes(broker)
    return Stretch(
        [TemplateShape(_stock_body(warehouse) + ending(STOCK, named), start, HEAD) for warehouse in WAREHOUSES]
    )


def _stock_body(warehouse: str) -> bytes:
    return (
        f'{{"sku":"S{slot("article0", 4)}","warehouse":"{warehouse}","change":-{slot("quantity0", 1)},'
        f'"left":{slot("left", 4)},"at":{slot("at", 13)}}}'
    ).encode()


def stock_ending_size(cluster: str) -> int:
    """Bytes of topic and properties of a stock message."""
    return TemplateShape(ending(STOCK, {p.KEYS: f"S{slot('article0', 4)}", **common(cluster)})).size

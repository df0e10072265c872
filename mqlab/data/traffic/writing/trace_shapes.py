"""Trace messages as stretches of bytes: the entries of producers and consumers about messages, up to ten per message.

Mirrors: AsyncTraceDispatcher and TraceDataEncoder, as mqlab.rocketmq.client.sending.trace does
message by message.

    message   head | entry entry entry ...                          | topic, properties up to KEYS | keys | the rest
    entry     Pub, by tag | SubBefore, by group | SubAfter, by group, digits of its time, and outcome
    keys      "<id> O<order> C<customer>" of each entry, each key once in a message

Left out: the order of a Java HashSet among the keys; here it is that of the entries.
"""

from __future__ import annotations

import numpy as np

from mqlab.data.traffic.clients import Clients
from mqlab.data.traffic.deliveries import EXCEPTION, FAILED, SUCCESS
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import ORDERS, PRODUCER_OF, PRODUCERS, TAGS, TRACED
from mqlab.data.traffic.writing.columns.byte_templates import Stretch, TemplateShape, slot
from mqlab.data.traffic.writing.message_shapes import HEAD, REGION, common, head_bytes, order_keys
from mqlab.rocketmq.client.sending.trace import CONTENT_SPLITTER, FIELD_SPLITTER, NORMAL_MSG
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.names import TRACE_TOPIC
from mqlab.rocketmq.wire.properties import encode_as_java

PUB, BEFORE, AFTER = range(3)
CODES = (SUCCESS, EXCEPTION, FAILED)
COST_DIGITS = 5
_BEFORES = len(TAGS)
_AFTERS = _BEFORES + 2 * len(TRACED)
KEYED_FIRST = 8  # class of a message's first entry; of the others: 1 for the id + 2 for the order + 4 for the customer
_CODE_NUMBER = np.array([CODES.index(code) if code in CODES else 0 for code in range(max(CODES) + 1)])


class TraceShapes:
    """The stretches of trace messages at one broker."""

    def __init__(self, broker: int, cluster: str) -> None:
        host = ":".join(str(part) for part in Clients.broker_host(broker))
        self.head = Stretch([TemplateShape(b"", head_bytes(broker), HEAD)])
        pubs = [_pub(tag, number, host) for number, tag in enumerate(TAGS)]
        befores = [_before(group.name, width) for group in TRACED for width in (1, 2)]
        afters = [
            _after(group.name, width + 1, code) for group in TRACED for width in range(COST_DIGITS) for code in CODES
        ]
        self.entries = Stretch([TemplateShape(text.encode()) for text in (*pubs, *befores, *afters)])
        pieces = (f" {slot('unique', 32)}", f" O{slot('order', 12)}", f" C{slot('customer', 8)}")
        keys = ["".join(piece for bit, piece in enumerate(pieces) if chosen >> bit & 1) for chosen in range(8)]
        self.keys = Stretch([TemplateShape(text.encode()) for text in (*keys, keys[-1].lstrip())])
        before, _, after = encode_as_java({p.KEYS: "KEYS!", **common(cluster)}).partition(b"KEYS!")
        self.before_keys = Stretch(
            [TemplateShape(before, _TOPIC + bytes(2), {"properties_length": (">i2", len(_TOPIC))})]
        )
        self.after_keys = Stretch([TemplateShape(after)])
        self.fixed_properties = int(self.before_keys.sizes[0]) - TOPIC_SIZE - 2 + int(self.after_keys.sizes[0])


TOPIC_SIZE = 1 + len(TRACE_TOPIC)
_TOPIC = bytes([len(TRACE_TOPIC)]) + TRACE_TOPIC.encode()


def entry_class(what: Array, kind: Array, group: Array, tries: Array, cost_ms: Array, code: Array) -> Array:
    """The number of each entry's shape."""
    width = np.searchsorted(np.array([10, 100, 1_000, 10_000]), cost_ms, side="right")
    before = _BEFORES + 2 * group + (tries > 9)
    after = _AFTERS + (group * COST_DIGITS + width) * len(CODES) + _CODE_NUMBER[code]
    return np.where(what == PUB, kind, np.where(what == BEFORE, before, after))


def _entry(*fields: object) -> str:
    return CONTENT_SPLITTER.join(str(field) for field in fields) + FIELD_SPLITTER


def _pub(tag: str, kind: int, host: str) -> str:
    producer = PRODUCERS[PRODUCER_OF[kind]]
    return _entry(
        "Pub",
        slot("time", 13),
        REGION,
        producer,
        ORDERS,
        slot("unique", 32),
        tag,
        order_keys(),
        host,
        slot("body3", 3),
        slot("cost1", 1),
        NORMAL_MSG,
        slot("offset_id", 32),
        "true",
    )


def _before(group: str, width: int) -> str:
    return _entry(
        "SubBefore",
        slot("time", 13),
        REGION,
        group,
        slot("request", 32),
        slot("unique", 32),
        slot(f"tries{width}", width),
        order_keys(),
    )


def _after(group: str, width: int, code: int) -> str:
    success = "true" if code == SUCCESS else "false"
    return _entry(
        "SubAfter",
        slot("request", 32),
        slot("unique", 32),
        slot(f"cost{width}", width),
        success,
        order_keys(),
        code,
        slot("time", 13),
        group,
    )

"""Every reader of bytes that come from elsewhere: how it is called, bytes that it reads, and what it may refuse with.

    for any bytes a reader returns, or raises one of ``refuses``; nothing else, and it ends

Readers of a whole store get the store with one of its files replaced. Left out: the network below the frames.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlab.course.grading.sandbox.values import Codec, Malformed, NotPlain, dump_line, load_line
from mqlab.course.grading.submissions.notebook_file import NotANotebook, parse_notebook
from mqlab.errors import MqlabError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.broker.sending import LETTERS
from mqlab.rocketmq.filter import sql, tags
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.config_texts import decode as decode_config
from mqlab.rocketmq.store.put_result import PUT_OK
from mqlab.rocketmq.store.reading import checkpoint_format
from mqlab.rocketmq.wire import batch, bodies, command, ha, ids, java_json, properties, record, units
from mqlab.rocketmq.wire.framing import FrameReader
from mqlab.rocketmq.wire.message import Message, decode_messages

SIZES = {
    "mapped_file_size_commit_log": 16_384,
    "mapped_file_size_consume_queue": 2_000,
    "max_hash_slot_num": 20,
    "max_index_num": 80,
}


@dataclass(frozen=True)
class Reader:
    """A reader with samples that it accepts; ``slow``: so many inputs of the others stand for one of its own."""

    name: str
    samples: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    refuses: tuple[type[BaseException], ...] = (MqlabError,)
    slow: int = 1


@functools.cache
def _folder() -> Path:
    """A store in which each file that a broker writes has something in it."""
    folder = Path(tempfile.mkdtemp(prefix="mqlab-fuzz-"))
    with MessageStore.open(str(folder / "store"), **SIZES) as store:
        for number in range(40):
            text = f"заказ 订单 {number}".encode() * (1 + number % 7)
            store.put(Message("orders", text, tags="TagA" if number % 3 else "TagB", keys=f"order-{number}"))
    return folder / "store"


def _files(pattern: str) -> list[Path]:
    return sorted(path for path in _folder().rglob(pattern) if path.is_file())


def log_units() -> list[bytes]:
    (log,) = StoreInspector(str(_folder())).log.segments()[:1]
    data = Path(log.path).read_bytes()
    first = record.decode(data)
    return [data[: first.total_size], data[: 3 * first.total_size], data[:4_096]]


def _frames() -> list[bytes]:
    made = [
        command.request(310, b"body", **{LETTERS["topic"]: "orders", LETTERS["queueId"]: 0}),
        command.request(11, None, consumerGroup="billing", topic="orders", queueId=0, queueOffset=7, subscription="*"),
        command.RemotingCommand(34, {}, heartbeat(), opaque=7, serialize_type=1),
        command.RemotingCommand(0, {"queueOffset": "12"}, opaque=9, remark="конец", flag=1),
    ]
    return [command.encode(one) for one in made]


def heartbeat() -> bytes:
    wanted = bodies.SubscriptionData("orders", "TagA || TagB", ["TagA", "TagB"], [2_598_919, 2_598_920], 17)
    data = bodies.HeartbeatData(
        "10.0.0.1@1", [bodies.ProducerData("shop")], [bodies.ConsumerData("billing", subscription_data_set=[wanted])]
    )
    return data.to_json()


def _stream(data: bytes) -> list[Any]:
    reader, found = FrameReader(), []
    for start in range(0, len(data), 7):
        reader.feed(data[start : start + 7])
        while (one := reader.next_command()) is not None:
            found.append(one)
    return found


def _blocks(data: bytes) -> object:
    reader = ha.BlockReader()
    reader.feed(data)
    while reader.take() is not None:
        pass
    return reader.header


CONFIGS = {
    "consumerOffset.json": b'{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1767225600000},"offsetTable":'
    b'{"orders@billing":{0:5,"1":7}}}',
    "delayOffset.json": b'{"offsetTable":{1:10,2:20}}',
    "topics.json": b'{"topicConfigTable":{"orders":{"topicName":"orders","readQueueNums":4,"perm":6}}}',
}


def _notebooks() -> list[bytes]:
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Lab\n", "text"]},
        {"cell_type": "code", "id": "b", "metadata": {}, "source": "# exercise: lab01.tags\n1", "outputs": []},
    ]
    return [json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()]


def _lines() -> list[bytes]:
    values: Any = {"id": (1, b"ab"), "rows": [{"k": {1, 2}}, None, 2.5, "текст"]}
    return [dump_line({"op": "return", "call": 1, "value": Codec().encode(values)})]


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


def _replaced(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Reads a copy of the store in which this file has other bytes."""

    def reads(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="mqlab-fuzz-") as folder:
            copy = Path(folder) / "store"
            shutil.copytree(_folder(), copy)
            (copy / path.relative_to(_folder())).write_bytes(data)
            return read(copy)

    return reads


def _opened(copy: Path) -> object:
    """What a broker does when it starts on the store after a crash, and then writes."""
    (copy / "abort").touch()
    with MessageStore.open(str(copy), **SIZES) as store:
        put = store.put(Message("orders", b"after", keys="after"), queue_id=0)
        store.dispatch()
        # Whatever is left of the rest: what is put now is read at the place that was answered.
        if put.status == PUT_OK:
            (after,) = store.get("orders", 0, put.queue_offset, 1).records()
            assert (after.body, after.queue_offset) == (b"after", put.queue_offset)
        return store.get("orders", 0, store.min_offset("orders", 0), 1_000).records()


def _inspected(copy: Path) -> object:
    inspector = StoreInspector(str(copy))
    shown = [str(inspector), str(inspector.log), [str(queue) for queue in inspector.queues()]]
    return shown, list(inspector.messages()), inspector.index.summaries()


@functools.cache
def store_readers() -> tuple[Reader, ...]:
    """One reader for opening and one for looking, for each kind of file."""
    kinds = {
        "commit log": _files("commitlog/*")[0],
        "consume queue": _files("consumequeue/orders/0/*")[0],
        "index": _files("index/*")[0],
        "checkpoint": _files("checkpoint")[0],
    }
    made = []
    for name, path in kinds.items():
        samples = functools.partial(lambda where: [where.read_bytes()], path)
        made.append(Reader(f"store with another {name}, opened", samples, _replaced(path, _opened), slow=100))
        made.append(Reader(f"store with another {name}, looked at", samples, _replaced(path, _inspected), slow=100))
    return tuple(made)


READERS: tuple[Reader, ...] = (
    Reader("frame", _frames, command.decode),
    Reader("stream of frames", lambda: [b"".join(_frames())], _stream),
    Reader("unit of the log", log_units, lambda data: record.decode(data, check_crc=True)),
    Reader("units of the log", log_units, record.decode_all),
    Reader("field map of a unit", log_units, record.field_map),
    Reader("messages of a pull", log_units, decode_messages),
    Reader("unit of a queue", lambda: [units.encode_cq(4_096, 200, 2_598_919)], units.decode_cq),
    Reader("properties", lambda: [properties.encode({"KEYS": "a b", "TAGS": "TagA", "订单": "x"})], properties.decode),
    Reader(
        "batch",
        lambda: [batch.encode([batch.BatchItem(0, b"body", properties.encode({"KEYS": "k"}))] * 3)],
        batch.decode,
    ),
    Reader("JSON of a body", lambda: [heartbeat(), *CONFIGS.values()], java_json.loads, (MqlabError, ValueError)),
    Reader("heartbeat", lambda: [heartbeat()], bodies.HeartbeatData.from_json),
    Reader("topic config", lambda: [bodies.TopicConfig("orders", 4, 4).to_json()], bodies.TopicConfig.from_json),
    Reader("offset message id", lambda: [b"0A00000100002A9F0000000000001000"], _text(ids.parse_offset_msg_id)),
    Reader("block of replication", lambda: [ha.HaBlock(4_096, bytes(300)).encode()], _blocks),
    Reader("checkpoint", lambda: [bytes(range(40))], checkpoint_format.decode),
    *(
        Reader(name, functools.partial(lambda text: [text], text), _text(functools.partial(decode_config, name)))
        for name, text in CONFIGS.items()
    ),
    Reader("tag expression", lambda: [b"TagA || TagB", b"*"], _text(tags.parse)),
    Reader(
        "SQL expression",
        lambda: [b"a > 5 AND (b BETWEEN 1 AND 3.5 OR NOT (c IN ('x', 'y'))) AND d IS NOT NULL", b"TRUE <> FALSE"],
        _text(lambda text: sql.compile(text)),
    ),
    Reader("notebook", _notebooks, parse_notebook, (NotANotebook,)),
    Reader(
        "line of an answer", _lines, lambda data: Codec().decode(load_line(data).get("value")), (Malformed, NotPlain)
    ),
)

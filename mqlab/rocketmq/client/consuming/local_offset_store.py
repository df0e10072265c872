"""Broadcasting: each member keeps its own offsets in a file.

Mirrors: LocalFileOffsetStore.

    <local_offset_store_dir>/<client_id>/<group>/offsets.json      .bak: what it held before

    {
        "offsetTable":{{
                        "brokerName":"broker-a",
                        "queueId":1,
                        "topic":"tags"
                }:15,{ … }:15
        }
    }                                   fastjson's pretty text, with an object as a key: no other JSON reader takes it
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.client.consuming.offset_store import NOT_FOUND, OffsetMemory
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.reading.config_backups import short
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.message import MessageQueue

_ENTRY = '{{\n\t\t\t"brokerName":{broker},\n\t\t\t"queueId":{queue},\n\t\t\t"topic":{topic}\n\t\t}}:{offset}'


class LocalOffsetStore(OffsetMemory):
    """The offsets of one broadcasting member, in memory and in its file."""

    def __init__(self, cluster: ClusterAccess, group: str, directory: str) -> None:
        super().__init__(cluster, group)
        self.path = f"{directory}/{folder_name(cluster.client_id)}/{folder_name(group)}/offsets.json"
        ports = cluster.ports
        self._file = ConfigFile(ports.files, self.path, clock=ports.clock, note=ports.note)

    def load(self) -> None:
        """Read the file into memory. CorruptionError when neither it nor its backup can be read."""
        for queue, offset in self._read_file().items():
            self.update_offset(queue, offset)

    def read_store(self, queue: MessageQueue) -> Promise[int]:
        """The offset in the file, which also goes into memory; -1 when it has none."""
        try:
            offset = self._read_file().get(queue, NOT_FOUND)
        except CorruptionError as error:
            self._cluster.ports.note("config.damaged", file=short(self.path), reason=error.what, taken=None)
            return Promise.of(NOT_FOUND)
        if offset != NOT_FOUND:
            self.update_offset(queue, offset)
        return Promise.of(offset)

    def persist(self, queue: MessageQueue) -> None:
        """Write one queue's offset into the file."""
        if queue in self._offsets:
            self._merge({queue: self._offsets[queue]})

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Write the owned queues' offsets into the file; what else it holds stays."""
        self._merge({queue: offset for queue, offset in self._offsets.items() if queue in queues})

    def _merge(self, offsets: dict[MessageQueue, int]) -> None:
        if not offsets:
            return
        before = self._read_file()
        merged = {**before, **offsets}
        if merged != before:
            self._file.save(offsets_text(merged))
            self._cluster.ports.note("offset.persisted", group=self.group, path=self.path, queues=len(offsets))

    def _read_file(self) -> dict[MessageQueue, int]:
        return self._file.load_as(parse_offsets) or {}


def folder_name(name: str) -> str:
    """The name, if it can be that of one folder; UsageError if it leads to another place.

    A client id holds the instance name and the unit name, which are settings: RocketMQ follows them wherever they lead.
    """
    if name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f]", name):
        raise UsageError(
            f"{name!r} cannot name the folder of a broadcasting consumer's offsets",
            hint="instance_name and unit_name without '/', '\\\\' and control characters",
        )
    return name


def offsets_text(offsets: dict[MessageQueue, int]) -> str:
    """The file's text, as fastjson writes it.

    >>> print(offsets_text({MessageQueue("tags", "broker-a", 1): 15}).replace(chr(9), "  "))
    {
      "offsetTable":{{
          "brokerName":"broker-a",
          "queueId":1,
          "topic":"tags"
        }:15
      }
    }
    """
    entries = ",".join(
        _ENTRY.format(broker=_text(queue.broker_name), queue=queue.queue_id, topic=_text(queue.topic), offset=offset)
        for queue, offset in in_java_order(offsets)
    )
    return '{\n\t"offsetTable":{' + entries + "\n\t}\n}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse_offsets(text: str) -> dict[MessageQueue, int]:
    """The offsets in the text of such a file. CorruptionError for anything else."""
    try:
        table = java_json.table(java_json.loads(text), "offsetTable")
    except (ValueError, AttributeError) as problem:
        raise CorruptionError(
            "a local offset file has no offsetTable", expected="an object", found=problem
        ) from problem
    return {_queue_of(key): _offset_of(value) for key, value in table.items()}


def _queue_of(key: Any) -> MessageQueue:
    fields = java_json.loads(key) if isinstance(key, str) else dict(key)
    try:
        return MessageQueue(str(fields["topic"]), str(fields["brokerName"]), java_json.to_int(fields["queueId"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise CorruptionError(
            "a key of offsetTable is not a message queue", expected="topic, brokerName, queueId", found=key
        ) from problem


def _offset_of(value: Any) -> int:
    try:
        return java_json.to_long(value)
    except ValueError as problem:
        raise CorruptionError("an offset is not a number", expected="a whole number", found=value) from problem


def in_java_order(offsets: dict[MessageQueue, int]) -> list[tuple[MessageQueue, int]]:
    """The entries in the order in which a java.util.concurrent.ConcurrentHashMap gives them."""
    size = 16
    while len(offsets) > size * 3 // 4:
        size *= 2

    def bucket(entry: tuple[MessageQueue, int]) -> int:
        value = queue_hash(entry[0])
        return (value ^ value >> 16) & (size - 1)

    return sorted(offsets.items(), key=bucket)


def queue_hash(queue: MessageQueue) -> int:
    """MessageQueue.hashCode as 32 bits, unsigned."""
    value = 1
    for part in _hashed(queue):
        value = (31 * value + part) & 0xFFFFFFFF
    return value


def _hashed(queue: MessageQueue) -> Iterable[int]:
    return string_hash(queue.broker_name), queue.queue_id, string_hash(queue.topic)

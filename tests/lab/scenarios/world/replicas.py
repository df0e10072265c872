"""What the stories about masters and slaves are told with: messages of an exact size, and questions to both."""

from __future__ import annotations

from typing import Any

from mqlab import Lab
from mqlab.rocketmq.wire.command import RemotingCommand, request
from mqlab.rocketmq.wire.record import Record
from tests.lab.scenarios.stories import Tool, quiet_lab

MASTER, SLAVE = "broker-a", "broker-a-s1"
UNIT = 1217
TWO_COPIES: dict[str, Any] = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2}
TEXT = "сообщение 你好 🚀".encode()


def pair(seed: int = 7, **settings: Any) -> Lab:
    """A master and a slave that are linked; ``broker`` and ``replica`` hold settings."""
    return quiet_lab(seed=seed, **{"replicas": 1, **settings})


def unit_of(size: int, topic: str, queue_id: int) -> Record:
    """A message whose stored unit has exactly so many bytes."""
    body = TEXT + b"x" * (size - 91 - len(topic) - len(TEXT))
    return Record(topic, body, queue_id)


def fill(lab: Lab, count: int, *, topic: str = "T", queues: int = 4, size: int = UNIT) -> None:
    """Store messages at the master, over the queues in turn; then time for copying and dispatching."""
    store = lab.broker(MASTER).store
    for number in range(count):
        result = store.put(unit_of(size, topic, number % queues))
        assert result.is_ok and result.size == size
    lab.run_for("1s")


def ends(lab: Lab) -> tuple[int, int]:
    """Where the logs of master and slave end."""
    return lab.broker(MASTER).store.max_physical_offset, lab.broker(SLAVE).store.max_physical_offset


def log_bytes(lab: Lab, broker: str, start: int = 0) -> bytes:
    """A log from an offset to its end."""
    log, found = lab.broker(broker).store.commit_log, b""
    while block := log.block_from(start + len(found), 1 << 20):
        found += block
    return found


def queue_range(lab: Lab, broker: str, topic: str = "T", queue_id: int = 0) -> tuple[int, int]:
    """Smallest and next offset of a queue."""
    store = lab.broker(broker).store
    return store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)


def pull(tool: Tool, broker: str, offset: int, **more: Any) -> RemotingCommand:
    """One pull of group g on queue 0 of T, not held unless told so; it brings its subscription along."""
    fields = {
        "consumerGroup": "g",
        "topic": "T",
        "queueId": 0,
        "queueOffset": offset,
        "maxMsgNums": 32,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subVersion": 0,
        "subscription": "*",
        "expressionType": "TAG",
    }
    address, command = tool.lab.broker(broker).address, request(11, None, **{**fields, **more})
    return tool.ports.workers.call(lambda: tool.remoting.invoke(address, command, timeout_ms=30_000))

"""The fixture ``rocketmq`` on a real broker and proxy, for the tests of the order service; loaded with -p.

Its addresses are in MQLAB_GRPC and MQLAB_NAMESRV. Time cannot jump here, so ``advance`` waits.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import pytest

import mqlab
from mqlab.cluster.connected.cluster import Cluster
from mqlab.durations import milliseconds
from mqlab.errors import MqlabError
from mqlab.rocketmq.wire.message import MessageExt

_NUMBERS = itertools.count(1)


class RealRocketMQ:
    """What the order service uses of the fixture."""

    def __init__(self, cluster: Cluster) -> None:
        self.grpc = os.environ["MQLAB_GRPC"]
        self._cluster = cluster
        self._number = next(_NUMBERS)

    def topic(self, name: str, kind: str = "NORMAL", queues: int = 4) -> str:
        real = f"{name}-{self._number}"
        self._cluster.admin.create_topic(real, read_queue_nums=queues, write_queue_nums=queues, confirm=True)
        self._cluster.admin.update_topic(real, attributes=f"+message.type={kind}", confirm=True)
        time.sleep(2)
        return real

    def group(self, name: str, *, fifo: bool = False, max_attempts: int = 17) -> str:
        real = f"{name}-{self._number}"
        self._cluster.admin.create_and_update_subscription_group_config(
            real, consume_message_orderly=fifo, retry_max_times=max_attempts - 1, confirm=True
        )
        return real

    def dead_letters(self, group: str) -> list[MessageExt]:
        topic = f"%DLQ%{group}"
        try:
            reader = self._cluster.lite_pull_consumer(f"reader-of-{group}")
            reader.start()
            try:
                queues = reader.fetch_message_queues(topic)
                reader.assign(queues)
                for queue in queues:
                    reader.seek_to_begin(queue)
                return list(reader.poll(1_000))
            finally:
                reader.shutdown()
        except MqlabError:
            return []  # the topic comes with the first dead letter

    def advance(self, duration: str) -> None:
        time.sleep(milliseconds(duration) / 1_000)


@pytest.fixture
def rocketmq() -> Iterator[RealRocketMQ]:
    """A real RocketMQ with topics and groups of the test's own."""
    with mqlab.connect(os.environ["MQLAB_NAMESRV"]) as cluster:
        yield RealRocketMQ(cluster)

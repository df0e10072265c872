"""The connections of one process of Spark to a cluster, and what it asks there.

Mirrors: the requests of DefaultMQPullConsumer and DefaultMQAdminExt that rocketmq-spark makes.

    with Link(servers) as link:
        bounds = link.bounds(["orders"])                   routes, and the first and the next offset of every queue
        answer = link.pull(queue, 17, 32, group, tags)     stored units, as they came

Left out: waiting at the broker; Spark asks again at its trigger. Pulls go to masters, to a slave when there is none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mqlab.cluster.connected import Cluster, connect
from mqlab.data.spark.live.options import Servers
from mqlab.data.spark.live.places import Offsets
from mqlab.errors import BrokerError, RemotingError, UsageError, did_you_mean
from mqlab.rocketmq.admin.requests import value_of
from mqlab.rocketmq.client.instance.broker_calls import PullAnswer, PullCall, pull_answer_of
from mqlab.rocketmq.filter.tags import TagFilter
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.body import queue_from_key
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import MASTER_ID

ATTEMPTS, PAUSE_SECONDS = 3, 0.3


def connected(servers: Servers) -> Cluster:
    """The cluster that the options name."""
    return connect(servers.name_servers, access_key=servers.access_key, secret_key=servers.secret_key)


class ClusterLink:
    """A cluster as a reader sees it. Close it, or use it as a context manager."""

    def __init__(self, servers: Servers) -> None:
        self._cluster = connected(servers)
        self._admin = self._cluster.operator
        self._addresses: dict[str, str] = {}

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def __enter__(self) -> ClusterLink:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def bounds(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        """The readable queues of the topics, each with its first offset and that of its next message.

        Raises UsageError for a topic that no broker has.
        """
        ranges: dict[MessageQueue, tuple[int, int]] = {}
        for topic in topics:
            readable = self._readable(topic)
            for broker_name in dict.fromkeys(queue.broker_name for queue in readable):
                answer = self._admin.ask(self._addresses[broker_name], RequestCode.GET_TOPIC_STATS_INFO, topic=topic)
                table: dict[Any, Any] = value_of(answer).get("offsetTable") or {}
                by_queue = {queue_from_key(key): bounds for key, bounds in table.items()}
                of_broker = [queue for queue in readable if queue.broker_name == broker_name]
                # A broker whose name in its own tables differs does not lose its queues.
                by_id = {queue.queue_id: bounds for queue, bounds in by_queue.items()}
                for queue in of_broker:
                    bounds = by_id.get(queue.queue_id, {"minOffset": 0, "maxOffset": 0})
                    ranges[queue] = int(bounds["minOffset"]), int(bounds["maxOffset"])
        return ranges

    def _readable(self, topic: str) -> list[MessageQueue]:
        """The queues that consumers of the topic may read; learns where their brokers are."""
        try:
            route = self._admin.route(topic)
        except BrokerError as error:
            if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            known = [row.topic for row in self._admin.fetch_all_topic_list() if row.kind != "SYSTEM"]
            raise UsageError(
                f"there is no topic {topic!r} at {', '.join(self._cluster.name_servers)}",
                hint=did_you_mean(topic, known, "mqlab admin topicList -n HOST:PORT lists them"),
            ) from error
        for data in route.broker_datas:
            addresses = data.broker_addrs
            if addresses:
                self._addresses[data.broker_name] = addresses.get(MASTER_ID) or addresses[min(addresses)]
        return [queue for queue in route.readable_queues(topic) if queue.broker_name in self._addresses]

    def search(self, queues: Sequence[MessageQueue], at_ms: int) -> Offsets:
        """The offset of the first message of each queue that was stored at or after a time; its end without one."""

        def ask(queue: MessageQueue) -> int:
            address = self._addresses[queue.broker_name]
            return self._admin.wait(
                lambda: self._admin.calls.search_offset(address, queue, at_ms, self._admin.timeout_ms)
            )

        return {queue: ask(queue) for queue in queues}

    def pull(self, queue: MessageQueue, offset: int, count: int, group: str, tags: TagFilter) -> PullAnswer:
        """One pull. A broker that cannot be reached is asked again, where the name server then says it is."""
        call = PullCall(
            group=group,
            queue=queue,
            queue_offset=offset,
            max_nums=count,
            sys_flag=sys_flag.PULL_SUBSCRIPTION,
            commit_offset=0,
            suspend_ms=0,
            sub_version=0,
            subscription=tags.sub_string,
        )
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if queue.broker_name not in self._addresses:
                    self._readable(queue.topic)
                address = self._addresses[queue.broker_name]
                answer = self._admin.wait(lambda: self._admin.calls.pull(address, call, self._admin.timeout_ms))  # noqa: B023
                return pull_answer_of(answer, address)
            except RemotingError:
                if attempt == ATTEMPTS:
                    raise
                time.sleep(PAUSE_SECONDS * attempt)
                self._addresses.pop(queue.broker_name, None)
            except KeyError:
                raise RemotingError(
                    f"no name server knows the broker {queue.broker_name} of {queue!r}", code="connect"
                ) from None
        raise AssertionError("unreachable")

"""The server behind the fixture ``rocketmq``, and what one test sees of it.

Mirrors: a broker and its proxy on free ports, with a store that ends with the session.

    rocketmq.topic("orders", "FIFO")     a topic of this test's own; its real name
    rocketmq.group("billing")            a consumer group of its own
    rocketmq.messages("orders")          what is stored there now
    rocketmq.fail_next("SendMessage")    the next call of an RPC is answered with an error
    rocketmq.kill()                      the server ends as by SIGKILL and starts again on its store, at the same ports
    rocketmq.advance("10m")              the server's time jumps: delayed messages and retries come now

Messages that failed are delivered as soon as they may be: the broker has retry topics v2 and no others, which is not
RocketMQ's default. It asks about a transaction after a few seconds instead of half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.cluster.runtime.loop_clock import AdvancingClock
from mqlab.cluster.serving.planning import Wanted, plan_of
from mqlab.cluster.serving.server import Server
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.names import dlq_topic

if TYPE_CHECKING:
    from mqlab.cluster.grpc.service import GrpcService
    from mqlab.rocketmq.broker import Broker

FREE = "127.0.0.1:0"
SETTINGS = (
    "mappedFileSizeCommitLog=16777216",
    "mappedFileSizeConsumeQueue=60000",
    "maxHashSlotNum=10000",
    "maxIndexNum=40000",
    "enableRetryTopicV2=true",
    "retrieveMessageFromPopRetryTopicV1=false",
    "recallMessageEnable=true",
    "enableMixedMessageType=true",
    "transactionTimeOut=1000",
    "transactionCheckInterval=5000",
    "transactionOpBatchInterval=200",
)
JUMP_MS = 20_000  # at a time, so that the broker says in between that it is still there
SMALL_JUMP_MS, SMALL_JUMPS_FOR_MS = 500, 20_000  # the last ones: a retry waits for one thing after the other
PAUSE_SECONDS = 0.002
ROUTE_SECONDS = 5.0
LOOK_SECONDS = 0.000_5


class ServerOfTests:
    """A name server, a broker and a gRPC front in this process."""

    def __init__(self, directory: Path, settings: Sequence[str] = ()) -> None:
        wanted = Wanted(store=directory, namesrv=FREE, broker=FREE, grpc=FREE, settings=(*SETTINGS, *settings))
        self._plan, _ = plan_of(wanted)
        self._tests = 0
        self.server = self._started()

    def _started(self) -> Server:
        server = Server(self._plan, can_advance=True)
        server.start()
        server.wait_until_registered()
        return server

    @property
    def broker(self) -> Broker:
        """The broker that runs now."""
        return self.server.brokers[0]

    @property
    def front(self) -> GrpcService:
        """The gRPC front that runs now."""
        assert self.server.grpc is not None
        return self.server.grpc

    def for_a_test(self) -> RocketMQ:
        """What the next test gets."""
        self._tests += 1
        return RocketMQ(self, self._tests)

    def restart(self) -> None:
        """Kill it, and start it again."""
        ahead_ms = self.front.front.state.ahead_ms
        self.server.kill()
        self.server = self._started()
        self.server.on_loop(lambda: self._put_ahead(ahead_ms))

    def _put_ahead(self, ms: int) -> None:
        """Time does not go back for clients: the new process is as far ahead of them as the one before."""
        clock, front = self.server.loop.clock, self.front.front.state
        assert isinstance(clock, AdvancingClock)
        is_ahead_ms = clock.now_ms() - time.time_ns() // 1_000_000
        clock.advance(max(0, ms - is_ahead_ms))
        front.ahead_ms = ms

    def close(self) -> None:
        """End it."""
        self.server.close()


class RocketMQ:
    """A RocketMQ for one test. ``grpc``, ``namesrv``: "host:port" for 5.x clients, and for others."""

    def __init__(self, server: ServerOfTests, number: int) -> None:
        self._server = server
        self._number = number
        addresses = server.server.addresses()
        self.grpc: str = addresses["grpc"]
        self.namesrv: str = addresses["namesrv"]

    def name(self, short: str) -> str:
        """The name that a topic or a group of this test really has."""
        ending = f"-{self._number}"
        return short if short.endswith(ending) else short + ending

    def topic(self, name: str, kind: str = "NORMAL", queues: int = 4) -> str:
        """Create a topic for NORMAL, FIFO, DELAY, TRANSACTION or MIXED messages; its real name."""
        config = TopicConfig(self.name(name), queues, queues)
        self._on_loop(lambda: self._server.broker.topics.update(config, {"+message.type": kind}))
        self._wait_for_route(config.topic_name)
        return config.topic_name

    def group(self, name: str, *, fifo: bool = False, max_attempts: int = 17) -> str:
        """Create a consumer group; its real name. ``max_attempts``: deliveries until a message is dead."""
        config = SubscriptionGroupConfig(
            self.name(name), consume_message_orderly=fifo, retry_max_times=max_attempts - 1
        )
        self._on_loop(lambda: self._server.broker.groups.update(config))
        return config.group_name

    def messages(self, topic: str) -> list[MessageExt]:
        """The messages that are stored in a topic, queue by queue."""
        return self._stored(self.name(topic))

    def dead_letters(self, group: str) -> list[MessageExt]:
        """The messages that were delivered to a group too often."""
        return self._stored(dlq_topic(self.name(group)))

    def fail_next(self, rpc: str, times: int = 1) -> None:
        """Answer the next calls of an RPC of the gRPC protocol with 50001. UsageError for a name that is none."""
        front = self._server.front
        if rpc not in front.front.rpcs:
            raise UsageError(f"there is no RPC {rpc!r}", hint=f"one of {', '.join(sorted(front.front.rpcs))}")
        self._on_loop(lambda: front.fails.update({rpc: times}))

    def kill(self) -> None:
        """End the server as SIGKILL would, and start it again. Clients connect again by themselves."""
        self._server.restart()

    def advance(self, duration: str | int) -> None:
        """Let the server's time jump. Clients' own time goes on as it does."""
        left_ms = milliseconds(duration)
        while left_ms > 0:
            longest_ms = SMALL_JUMP_MS if left_ms <= SMALL_JUMPS_FOR_MS else min(JUMP_MS, left_ms - SMALL_JUMPS_FOR_MS)
            step_ms = min(left_ms, longest_ms)
            self._on_loop(lambda: self._jump(step_ms))  # noqa: B023 - called before the next step
            left_ms -= step_ms
            time.sleep(PAUSE_SECONDS)

    def end(self) -> None:
        """The test is over: what was to fail fails no more."""
        self._on_loop(self._server.front.fails.clear)

    def _jump(self, ms: int) -> None:
        clock, broker = self._server.server.loop.clock, self._server.broker
        assert isinstance(clock, AdvancingClock)
        # Clients cannot say that they are there while time jumps; nobody is silent because of it.
        members = [member for group in broker.consumers.values() for member in group.members.values()]
        members += [member for group in broker.producers.values() for member in group.values()]
        for member in members:
            member.last_update_ms += ms
        front = self._server.front.front.state
        front.ahead_ms += ms  # a delivery time of a client is meant by its own clock
        for client in front.clients:
            client.last_heard_ms += ms
        clock.advance(ms)

    def _stored(self, topic: str) -> list[MessageExt]:
        broker = self._server.broker

        def read() -> list[MessageExt]:
            broker.store.dispatch()  # what was acknowledged a moment ago
            config = broker.topics.get(topic)
            queues = 0 if config is None else max(config.read_queue_nums, config.write_queue_nums)
            units = [
                broker.store.consume_queue_unit(topic, queue_id, offset)
                for queue_id in range(queues)
                for offset in range(broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id))
            ]
            records = [broker.store.message_at(unit.physical_offset) for unit in units if unit is not None]
            return [
                MessageExt.from_record(record, broker.config.broker_name) for record in records if record is not None
            ]

        messages: list[MessageExt] = self._on_loop(read)
        return messages

    def _wait_for_route(self, topic: str) -> None:
        """A topic is found when the name server knows it."""
        name_server = self._server.server.name_server
        assert name_server is not None
        end = time.monotonic() + ROUTE_SECONDS
        while not self._on_loop(lambda: name_server.routes.route(topic) is not None) and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)

    def _on_loop(self, action: Callable[[], Any]) -> Any:
        return self._server.server.on_loop(action)

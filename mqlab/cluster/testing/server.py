"""The server behind the fixture ``rocketmq``, and what one test sees of it.

Mirrors: a broker and its proxy on free ports, with a store that ends with the session.

    rocketmq.topic("orders", "FIFO")     a topic of this test's own; its real name
    rocketmq.group("billing")            a consumer group of its own
    rocketmq.messages("orders")          what is stored there now
    rocketmq.fail_next("SendMessage")    the next send is answered with an error, over gRPC or remoting
    rocketmq.kill()                      the server ends as by SIGKILL and starts again on its store, at the same ports
    rocketmq.advance("10m")              the server's time jumps: delayed messages and retries come now
    rocketmq.until(lambda: bank.paid)    its time passes until something is true
    rocketmq.freeze()                    virtual time alone: it moves with the two verbs above, and not else

Messages that failed are delivered as soon as they may be: the broker has retry topics v2 and no others, which is not
RocketMQ's default. It asks about a transaction after a few seconds instead of half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mqlab.cluster.runtime.loop_clock import AdvancingClock
from mqlab.cluster.serving.planning import Wanted, plan_of
from mqlab.cluster.serving.server import Server
from mqlab.cluster.testing.failing import Failing
from mqlab.durations import milliseconds
from mqlab.errors import LimitReached
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig, TopicConfig
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.names import dlq_topic, retry_topic

if TYPE_CHECKING:
    from mqlab.cluster.grpc.service import GrpcService
    from mqlab.rocketmq.broker import Broker

T = TypeVar("T")

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
REACTION_SECONDS = 0.02  # of clients to what came with a jump
PATIENCE_SECONDS = 5.0  # with clients on a busy machine, when all the server's time is over
ROUTE_SECONDS = 5.0
LOOK_SECONDS = 0.000_5


class ServerOfTests:
    """A name server, a broker and a gRPC front in this process."""

    def __init__(self, directory: Path, settings: Sequence[str] = ()) -> None:
        wanted = Wanted(store=directory, namesrv=FREE, broker=FREE, grpc=FREE, settings=(*SETTINGS, *settings))
        self._plan, _ = plan_of(wanted)
        self._tests = 0
        self.failing = Failing()
        self.server = self._started()

    def _started(self) -> Server:
        server = Server(self._plan, can_advance=True, plug_in=lambda: self.failing)
        server.start()
        server.wait_until_registered()
        assert server.grpc is not None
        assert isinstance(server.loop.clock, AdvancingClock)
        server.grpc.fails = self.failing.takes
        server.grpc.front.state.ahead_ms = server.loop.clock.ahead_ms
        return server

    @property
    def clock(self) -> AdvancingClock:
        """The time of the server that runs now."""
        clock = self.server.loop.clock
        assert isinstance(clock, AdvancingClock)
        return clock

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
        before_ms, stands_still = self.clock.now_ms(), self.clock.stands_still
        self.server.kill()
        self.server = self._started()
        # In one jump the name server would find that the broker was silent for too long, and forget it.
        while before_ms - self.clock.now_ms() > JUMP_MS:
            self.server.on_loop(lambda: self.clock.advance(JUMP_MS))
            time.sleep(PAUSE_SECONDS)
        self.server.on_loop(lambda: self._put_ahead(before_ms, stands_still))

    def _put_ahead(self, before_ms: int, stands_still: bool) -> None:
        """Time does not go back for clients: it is not earlier than in the process before, and stands if it did."""
        self.clock.advance(max(0, before_ms - self.clock.now_ms()))
        if stands_still:
            self.clock.stop()

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
        """Create a consumer group; its real name. ``max_attempts``: deliveries until a message is dead.

        Its retry topic is there, too, so that members of remoting clients read it from their start.
        """
        config = SubscriptionGroupConfig(
            self.name(name), consume_message_orderly=fifo, retry_max_times=max_attempts - 1
        )
        broker, retries = self._server.broker, retry_topic(config.group_name)
        self._on_loop(lambda: broker.groups.update(config))
        self._on_loop(lambda: broker.topics.create_on_send_back(retries, config.retry_queue_nums))
        self._wait_for_route(retries)
        return config.group_name

    def messages(self, topic: str) -> list[MessageExt]:
        """The messages that are stored in a topic, queue by queue."""
        return self._stored(self.name(topic))

    def dead_letters(self, group: str) -> list[MessageExt]:
        """The messages that were delivered to a group too often."""
        return self._stored(dlq_topic(self.name(group)))

    def fail_next(self, request: str, times: int = 1) -> None:
        """Answer the next requests of a kind with an error: 50001 over gRPC, SYSTEM_ERROR over remoting.

        It is an RPC ("SendMessage", also for the same request of remoting clients) or a request code of remoting
        ("PULL_MESSAGE"). UsageError for another name.
        """
        failing = self._server.failing
        failing.must_know(request)
        self._on_loop(lambda: failing.next(request, times))

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

    def until(self, condition: Callable[[], T], at_most: str | int = "10m") -> T:
        """Let the server's time pass until a condition is true; returns what it returned. AssertionError if never."""
        left_ms = milliseconds(at_most)
        while True:
            wait_seconds = REACTION_SECONDS if left_ms > 0 else PATIENCE_SECONDS
            end = time.monotonic() + wait_seconds
            while time.monotonic() < end:
                value = condition()
                if value:
                    return value
                time.sleep(PAUSE_SECONDS)
            if left_ms <= 0:
                raise AssertionError(f"not within {at_most} of the server's time")
            self.advance(min(left_ms, SMALL_JUMP_MS))
            left_ms -= SMALL_JUMP_MS

    def freeze(self) -> None:
        """Let the server's time stand still until the test is over, but for ``advance`` and ``until``."""
        self._on_loop(self._server.clock.stop)

    def end(self) -> None:
        """The test is over: what was to fail fails no more, and time runs."""
        self._on_loop(self._server.failing.clear)
        self._on_loop(self._server.clock.go_on)

    def _jump(self, ms: int) -> None:
        broker = self._server.broker
        # Clients cannot say that they are there while time jumps; no client counts as silent because of it.
        members = [member for group in broker.consumers.values() for member in group.members.values()]
        members += [member for group in broker.producers.values() for member in group.values()]
        for member in members:
            member.last_update_ms += ms
        for client in self._server.front.front.state.clients:
            client.last_heard_ms += ms
        self._server.clock.advance(ms)

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
        """A topic is found when the name server knows it. LimitReached when that takes too long."""
        name_server = self._server.server.name_server
        assert name_server is not None
        end = time.monotonic() + ROUTE_SECONDS
        while not self._on_loop(lambda: name_server.routes.route(topic) is not None):
            if time.monotonic() > end:
                raise LimitReached(f"the name server has no route of {topic} after {ROUTE_SECONDS:g} s")
            time.sleep(LOOK_SECONDS)

    def _on_loop(self, action: Callable[[], Any]) -> Any:
        return self._server.server.on_loop(action)

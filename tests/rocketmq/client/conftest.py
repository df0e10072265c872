"""A small world for client tests: a name server, brokers, and clients on nodes of their own, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.broker import Broker, BrokerConfig
from mqlab.rocketmq.client import Producer, PushConsumer
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.nameserver import NameServer, NameServerConfig
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.message import Message, MessageExt

STORE = StoreConfig(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=1_000,
    max_index_num=4_000,
)


class World:
    """Nodes by name; clients have message trace off unless asked, so that frames can be counted."""

    def __init__(
        self, directory: Path, *, brokers: Sequence[str] = ("broker-a",), seed: int = 7, **settings: Any
    ) -> None:
        self.directory = directory
        self.sim = SimWorld(seed=seed)
        self.name_server = NameServer(self.ports("nameserver-1"), NameServerConfig())
        self.name_server.start()
        self.name_servers = ["10.0.0.1:9876"]
        self.brokers: dict[str, Broker] = {}
        for name in brokers:
            self.add_broker(name, **settings)

    def ports(self, name: str, **options: Any) -> Any:
        return self.sim.add_node(name, RealFiles(), **options)

    def add_broker(self, name: str, **settings: Any) -> Broker:
        store_names = {each: settings[each] for each in settings if hasattr(STORE, each)}
        config = BrokerConfig(broker_name=name, **{k: v for k, v in settings.items() if k not in store_names})
        broker = Broker(
            self.ports(name),
            config,
            store_directory=str(self.directory / name),
            store_config=replace(STORE, **store_names),
            name_servers=self.name_servers,
        )
        broker.start()
        self.brokers[name] = broker
        self.run_until(lambda: name in self.name_server.routes.broker_names())
        return broker

    @property
    def broker(self) -> Broker:
        return next(iter(self.brokers.values()))

    @property
    def now_ms(self) -> int:
        return self.sim.now_ms

    def create_topic(self, topic: str, queues: int = 4, *, read: int | None = None, perm: int = 6) -> None:
        for broker in self.brokers.values():
            broker.create_topic(TopicConfig(topic, read_queue_nums=read or queues, write_queue_nums=queues, perm=perm))
        self.run_for(100)

    def producer(self, group: str = "shop", *, start: bool = True, **settings: Any) -> Producer:
        made = Producer(self.ports(f"{group}-p"), group, self.name_servers, **{"enable_trace": False, **settings})
        if start:
            made.start()
        return made

    def consumer(
        self,
        group: str = "billing",
        topic: str = "orders",
        listener: Any = None,
        *,
        name: str | None = None,
        expression: str = "*",
        orderly: bool = False,
        start: bool = True,
        cores: int = 2,
        **settings: Any,
    ) -> PushConsumer:
        ports = self.ports(name or f"{group}-1", cores=cores)
        made = PushConsumer(ports, group, self.name_servers, **{"enable_trace": False, **settings})
        made.subscribe(topic, expression)
        if listener is not None:
            (made.on_messages_orderly if orderly else made.on_messages)(listener)
        if start:
            made.start()
        return made

    def run_for(self, ms: int) -> None:
        self.sim.run_until_ms(self.sim.now_ms + ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 120_000) -> None:
        self.sim.run_until(condition, limit_ms, "the test's condition")

    def notes(self, kind: str, node: str | None = None) -> list[dict[str, Any]]:
        return [values for record, values in self.sim.journal.changes(kind) if node in (None, record.node)]

    def requests(self, code: int, receiver: str | None = None) -> list[Any]:
        """Steps in which a node got a request with this code."""
        return [
            record
            for record in self.sim.journal
            if record.about is not None
            and record.about.code == code
            and not record.about.is_response
            and receiver in (None, record.node)
        ]


class Recorder:
    """A listener that notes what it is given and answers from a script (the last answer stays)."""

    def __init__(self, world: World, *answers: Any, takes: str | int = 0) -> None:
        self.world = world
        self.answers = list(answers) or ["CONSUME_SUCCESS"]
        self.takes = takes
        self.seen: list[MessageExt] = []
        self.times: list[int] = []

    def __call__(self, messages: Sequence[MessageExt], context: Any) -> Any:
        self.seen.extend(messages)
        self.times.extend([self.world.now_ms] * len(messages))
        if self.takes:
            context.sleep(self.takes)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.seen]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    return lambda **settings: World(tmp_path, **settings)


def send(producer: Producer, topic: str, *bodies: str, **settings: Any) -> list[Any]:
    return [producer.send(Message(topic, body.encode(), **settings)) for body in bodies]

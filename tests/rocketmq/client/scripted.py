"""A name server and brokers that answer from a script: for what a real broker does rarely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.client import LitePullConsumer, Producer, PushConsumer
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.remoting import Channel, Remoting, Reply
from mqlab.rocketmq.wire.bodies import BrokerData, QueueData, TopicRouteData, consumer_ids_to_json
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand

Answer = RemotingCommand | None


class ScriptedBroker:
    """Answers sends with codes from ``script`` (the last one stays); None: never answers."""

    def __init__(self, world: ScriptedWorld, name: str, slave: bool = False) -> None:
        self.world = world
        self.name = name
        ports = world.sim.add_node(name + ("-slave" if slave else ""), RealFiles())
        self.address = f"{ports.ip}:10911"
        self.clock = ports.clock
        self.script: list[int | None] = [ResponseCode.SUCCESS]
        self.delay_ms = 0
        self.asked: list[RemotingCommand] = []
        self.channels: dict[str, Channel] = {}
        self.on: dict[int, Callable[[RemotingCommand], Answer]] = {}
        self.remoting = Remoting(ports, {int(code): self._handle for code in RequestCode})
        self.remoting.listen(self.address)

    def of(self, *codes: int) -> list[RemotingCommand]:
        return [request for request in self.asked if request.code in codes]

    def _handle(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        self.asked.append(request)
        self.channels[channel.remote_address.split(":")[0]] = channel
        answer = self._answer(request)
        if answer is None:
            return
        if self.delay_ms and request.code == RequestCode.SEND_MESSAGE_V2:
            self.clock.call_later(self.delay_ms, lambda: reply(answer), "scripted.answer")
        else:
            reply(answer)

    def _answer(self, request: RemotingCommand) -> Answer:
        if request.code in self.on:
            return self.on[request.code](request)
        if request.code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
            code = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            if code is None:
                return None
            fields = {"msgId": "0A00000200002A9F0000000000000000", "queueId": request.ext_fields["e"], "queueOffset": 7}
            return request.reply(code, None if code == 0 else f"scripted {code}", **fields)
        if request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return request.reply(body=consumer_ids_to_json(self.world.members))
        if request.code == RequestCode.QUERY_CONSUMER_OFFSET:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, "none")
        if request.code in (RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET):
            return request.reply(offset=0)
        if request.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            return None  # held for ever
        return request.reply()


class ScriptedWorld:
    """``routes``: topic -> list of broker names that have 2 queues of it."""

    def __init__(
        self, brokers: Sequence[str] = ("broker-a", "broker-b"), *, name_servers: int = 1, queues: int = 2
    ) -> None:
        self.sim = SimWorld(seed=3)
        self.queues = queues
        self.members: list[str] = []
        self.route_requests: list[tuple[str, str]] = []
        self.routes: dict[str, list[str]] = {"orders": list(brokers)}
        self.name_servers = []
        for number in range(name_servers):
            ports = self.sim.add_node(f"nameserver-{number + 1}", RealFiles())
            address = f"{ports.ip}:9876"
            Remoting(ports, {RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route}).listen(address)
            self.name_servers.append(address)
        self.brokers = {name: ScriptedBroker(self, name) for name in brokers}
        self.slaves: dict[str, ScriptedBroker] = {}

    def _route(self, channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        topic = request.ext_fields["topic"]
        self.route_requests.append((channel.local_address, topic))
        names = self.routes.get(topic)
        if names is None:
            reply(request.reply(ResponseCode.TOPIC_NOT_EXIST, "No topic route info"))
            return
        addresses = {name: {0: self.brokers[name].address} for name in names}
        for name, slave in self.slaves.items():
            addresses[name][1] = slave.address
        route = TopicRouteData(
            [QueueData(name, self.queues, self.queues, 6) for name in names],
            [BrokerData("DefaultCluster", name, addresses[name]) for name in names],
        )
        reply(request.reply(body=route.to_json()))

    def producer(self, **settings: Any) -> Producer:
        ports = self.sim.add_node("shop-1", RealFiles())
        made = Producer(ports, "shop", self.name_servers, **{"enable_trace": False, **settings})
        made.start()
        return made

    def consumer(self, listener: Any = lambda messages, context: "CONSUME_SUCCESS", **settings: Any) -> PushConsumer:
        ports = self.sim.add_node("billing-1", RealFiles())
        made = PushConsumer(ports, "billing", self.name_servers, **{"enable_trace": False, **settings})
        self.members = [made.client_id]
        made.subscribe("orders")
        made.on_messages(listener)
        made.start()
        return made

    def lite(self, **settings: Any) -> LitePullConsumer:
        ports = self.sim.add_node("audit-1", RealFiles())
        return LitePullConsumer(ports, "audit", self.name_servers, **{"enable_trace": False, **settings})

    def run_for(self, ms: int) -> None:
        self.sim.run_until_ms(self.sim.now_ms + ms)

    @property
    def now_ms(self) -> int:
        return self.sim.now_ms

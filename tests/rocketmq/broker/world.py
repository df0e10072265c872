"""A name server, a broker and a bare client on the simulated network: frames through the real codec, no client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.lab.runtime.sim import DEFAULT_START_MS, SimWorld
from mqlab.rocketmq.broker import Broker, BrokerConfig
from mqlab.rocketmq.broker.sending import LETTERS
from mqlab.rocketmq.machine.files import LAB_DISK_USED, RealFiles
from mqlab.rocketmq.nameserver import NameServer, NameServerConfig
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting.endpoint import Channel, Remoting, Reply
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from mqlab.rocketmq.wire.command import RemotingCommand, request
from mqlab.rocketmq.wire.record import Record

SMALL_STORE = StoreConfig(
    mapped_file_size_commit_log=1 << 18, mapped_file_size_consume_queue=2_000, max_hash_slot_num=100, max_index_num=400
)


class BareClient:
    """Sends requests as they are given and keeps what is sent to it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.ports = world.sim.add_node(name, RealFiles())
        self.received: list[RemotingCommand] = []
        self.answers: dict[int, RemotingCommand] = {}
        self.remoting = Remoting(self.ports, dict.fromkeys((39, 40, 220, 221, 307, 309), self._asked))

    def _asked(self, channel: Channel, command: RemotingCommand, reply: Reply) -> None:
        self.received.append(command)
        prepared = self.answers.get(command.code)
        if prepared is not None:
            reply(command.reply(prepared.code, prepared.remark, prepared.body))

    def send(
        self, code: int, body: bytes | None = None, *, to: str | None = None, **fields: Any
    ) -> Promise[RemotingCommand]:
        """Ask the broker (or ``to``); the answer comes when the world is played."""
        return self.remoting.invoke(to or self.world.broker.address, request(code, body, **fields), timeout_ms=60_000)

    def ask(self, code: int, body: bytes | None = None, *, to: str | None = None, **fields: Any) -> RemotingCommand:
        """Ask and play until the answer is there."""
        answer = self.send(code, body, to=to, **fields)
        self.world.sim.wait_for(answer)
        return answer.result()

    def tell(self, code: int, body: bytes | None = None, **fields: Any) -> None:
        """A one-way request, played until it arrived."""
        self.remoting.invoke_oneway(self.world.broker.address, request(code, body, **fields))
        self.world.run_for(5)

    def put(
        self, topic: str, body: bytes = b"body", *, queue_id: int = 0, code: int = 310, more: Any = None, **named: str
    ) -> RemotingCommand:
        """Send one message as a Java client does; ``named`` are properties, ``more`` fields by their long names."""
        values = {
            "producerGroup": "shop",
            "topic": topic,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": 4,
            "queueId": queue_id,
            "sysFlag": 0,
            "bornTimestamp": self.ports.clock.now_ms(),
            "flag": 0,
            "properties": properties.to_text(named),
            "reconsumeTimes": 0,
            "batch": code == 320,
            **(more or {}),
        }
        if code != 10:
            values = {LETTERS[name]: value for name, value in values.items()}
        return self.ask(code, body, **values)

    def heartbeat(
        self, group: str, *subscriptions: SubscriptionData, client_id: str = "", **more: Any
    ) -> RemotingCommand:
        """One consumer's heartbeat; without subscriptions a producer's."""
        consumers = [ConsumerData(group, subscription_data_set=list(subscriptions), **more)] if subscriptions else []
        producers = [] if subscriptions else [ProducerData(group)]
        data = HeartbeatData(client_id or f"{self.ports.ip}@{self.ports.node}", producers, consumers)
        return self.ask(34, data.to_json())

    def pull(
        self, group: str, topic: str, offset: int = 0, *, queue_id: int = 0, **more: Any
    ) -> Promise[RemotingCommand]:
        """Pull without waiting for the answer; sysFlag 2 (may be held) unless given."""
        values = {
            "consumerGroup": group,
            "topic": topic,
            "queueId": queue_id,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": 2,
            "commitOffset": 0,
            "suspendTimeoutMillis": 15_000,
            "subVersion": 0,
        }
        return self.send(11, **{**values, **more})


class World:
    """One name server, one broker, started; ``client(name)`` makes more nodes."""

    def __init__(
        self,
        directory: Path,
        *,
        store: StoreConfig = SMALL_STORE,
        name_server: NameServerConfig | None = None,
        start_ms: int = DEFAULT_START_MS,
        files: RealFiles | None = None,
        **settings: Any,
    ) -> None:
        self.sim = SimWorld(seed=5, start_ms=start_ms)
        self.directory = str(directory)
        self.name_server = NameServer(self.sim.add_node("nameserver-1", RealFiles()), name_server)
        self.name_server.start()
        self.settings = settings
        self.store_config = store
        self.files = files or RealFiles(disk_used=LAB_DISK_USED)
        self.broker = self.make_broker("broker-a")
        self.broker.start()
        self.run_for(20)

    def make_broker(self, name: str) -> Broker:
        settings = {"broker_name": name, **self.settings}
        if name not in self.sim.nodes:
            self.sim.add_node(name, self.files)
        node = self.sim.nodes[name]
        return Broker(
            self.sim.ports(node, self.files),
            BrokerConfig(**settings),
            store_directory=f"{self.directory}/{name}",
            store_config=self.store_config,
            name_servers=[self.name_server.address],
        )

    def restart_broker(self, *, clean: bool = True, power_cut: bool = False) -> None:
        """End the broker's process and start it again on the same store; a power cut loses what was not synced."""
        node = self.sim.nodes["broker-a"]
        if clean:
            self.broker.shutdown()
        node.alive = False
        self.sim.network.drop_node(node, silent=False)
        self.sim.disarm(node)
        self.files.process_ended()
        if power_cut:
            assert isinstance(self.files, CrashFiles)
            self.files.power_cut()
        self.run_for(10)
        node.alive, node.incarnation = True, node.incarnation + 1
        self.broker = self.make_broker("broker-a")
        self.broker.start()
        self.run_for(20)

    def client(self, name: str = "client-1") -> BareClient:
        return BareClient(self, name)

    def run_for(self, ms: int) -> None:
        self.sim.run_until_ms(self.sim.now_ms + ms)

    def messages(self, topic: str, queue_id: int = 0) -> list[Record]:
        """What stands in a queue of the broker now."""
        store = self.broker.store
        return store.get(topic, queue_id, store.min_offset(topic, queue_id), 1000).records()

    def changes(self, kind: str) -> list[dict[str, Any]]:
        """Every journal change of a kind so far."""
        return [values for _, values in self.sim.journal.changes(kind)]

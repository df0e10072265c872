"""One broker: builds its parts from the tables upwards, starts them and stops them.

Mirrors: BrokerController.

    frame ─▶ Remoting ─▶ request_table[code] ─▶ a handler (sending, pulling, …) ─▶ tables and store ─▶ reply
                                                store.dispatch ─▶ _arrived ─▶ held pulls, schedule, transaction check

    start       load the tables · recover the store · listen · register at the name servers · arm the timers
    shutdown    unregister · disarm the timers · save the tables · close the store · close the channels

Left out: thread pools per kind of request; the second ("VIP") port is opened by mqlab.cluster.serving.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.long_polling import CHECK_PERIOD_MS, HeldPulls
from mqlab.rocketmq.broker.membership import Membership
from mqlab.rocketmq.broker.plug_in import NOTHING_PLUGGED_IN, PlugIn
from mqlab.rocketmq.broker.pop.service import PopService
from mqlab.rocketmq.broker.pulling import Pulling
from mqlab.rocketmq.broker.putting import Putter
from mqlab.rocketmq.broker.registration import Registration
from mqlab.rocketmq.broker.replication.ha_client import HaClient
from mqlab.rocketmq.broker.replication.ha_server import HaServer
from mqlab.rocketmq.broker.replication.ha_status import HaStatusHandler
from mqlab.rocketmq.broker.replication.replication import Replication
from mqlab.rocketmq.broker.replication.roles import settings_of_role
from mqlab.rocketmq.broker.replication.slave_synchronize import SlaveSynchronize
from mqlab.rocketmq.broker.request_table import request_table
from mqlab.rocketmq.broker.schedule import Schedule
from mqlab.rocketmq.broker.state import open_state
from mqlab.rocketmq.broker.table_files import table_savers
from mqlab.rocketmq.broker.tables.users import UserTable
from mqlab.rocketmq.broker.tools.assignments import Assignments
from mqlab.rocketmq.broker.transaction_check import TransactionCheck
from mqlab.rocketmq.broker.transactions import Transactions
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.remoting.endpoint import Channel, Remoting
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.bodies import TopicConfig

_WAITING_TOPICS = frozenset((names.TIMER_TOPIC, names.SCHEDULE_TOPIC, names.HALF_TOPIC, names.OP_HALF_TOPIC))


class Broker:
    """A broker node. ``store_directory`` is where its store and configuration files are. Mirrors BrokerController.

    ``plug_in`` replaces its store and some of its handlers.
    """

    def __init__(
        self,
        ports: Ports,
        config: BrokerConfig,
        *,
        store_directory: str,
        store_config: StoreConfig | None = None,
        name_servers: Iterable[str] = (),
        memory_bytes: int | None = None,
        users: UserTable | None = None,
        plug_in: PlugIn = NOTHING_PLUGGED_IN,
    ) -> None:
        # 1. The state, and the files of its tables.
        config, store_config = settings_of_role(config, store_config or StoreConfig())
        self._plug_in = plug_in
        state = self.state = open_state(ports, config, store_config, plug_in, store_directory, memory_bytes, users)
        self._savers = table_savers(state, store_directory)
        outer_ports, ports = ports, state.ports

        # 2. The services, each of them made of the state and of services above it.
        self.held_pulls = HeldPulls(
            outer_ports.clock,
            state.store.max_offset,
            check_period_ms=CHECK_PERIOD_MS if config.long_polling_enable else config.short_polling_time_mills,
            note=ports.note,
        )
        putter = self._putter = Putter(state)
        self._schedule = Schedule(state, putter)
        self.pop = PopService(state, putter)
        self._transactions = Transactions(state, putter)
        self._transaction_check = TransactionCheck(state, putter)
        self._broadcast_offsets = BroadcastOffsets(state)
        self._membership = Membership(state, self.held_pulls)
        pulling = Pulling(state, self.held_pulls, self._broadcast_offsets)
        ha_server, ha_client = HaServer(ports, state.store, state.identity.ha_address), HaClient(ports, state.store)

        # 3. What answers requests, and what sends requests of its own.
        name_servers = list(name_servers)
        self._assignments = Assignments(state, name_servers)
        ha_status = HaStatusHandler(state, ha_server, ha_client)
        handlers = request_table(
            state, putter, self._transactions, pulling, self._membership, ha_status, self._assignments, self.pop
        )
        handlers = plug_in.handlers(state, self.held_pulls, self._broadcast_offsets, handlers)
        self.remoting = Remoting(outer_ports, handlers, on_channel_closed=self._channel_closed)
        self.replication = Replication(state, ha_server, ha_client, SlaveSynchronize(state, self.remoting))
        self.registration = Registration(state, self.remoting, self.replication, name_servers)

        # 4. The names by which labs and tests look at a broker.
        self.ports, self.store = outer_ports, state.store
        self.topics, self.groups = state.topics, state.groups
        self.consumers, self.producers = state.consumers, state.producers
        self.offset_table, self.delay_offset_table = state.offset_table, state.delay_offset_table
        self.transaction_metrics, self.queue_locks = state.transaction_metrics, state.queue_locks
        self.stats, self.store_stats = state.stats, state.store_stats
        identity = state.identity
        self.address, self.ha_address, self.is_slave = identity.address, identity.ha_address, identity.is_slave

    @property
    def config(self) -> BrokerConfig:
        """The settings as they are now: UPDATE_BROKER_CONFIG changes them."""
        return self.state.config

    @property
    def is_running(self) -> bool:
        """True from ``start()`` to ``shutdown()``."""
        return self.state.is_running

    @property
    def started_ms(self) -> int:
        """When the broker was started, in ms of its own clock."""
        return self.state.started_ms

    def start(self) -> None:
        """Load tables, recover the store, listen, register. Raises StoreError or CorruptionError for damaged files."""
        state = self.state
        state.started_ms = state.now_ms()
        # 1. What the files hold. Messages that the store recovers wake no pulls and no timers.
        for saver in self._savers:
            saver.load()
        self.store.load()
        if state.timer is not None:
            state.timer.load()
        self._schedule.correct_offsets()
        self.store.on_arrival = self._arrived
        self.store.start()
        # 2. Requests may come from now on.
        state.is_running = True
        self.remoting.listen(self.address)
        # 3. Timers and links.
        for saver in self._savers:
            saver.start()
        self.replication.start()
        if state.timer is not None:
            state.timer.start(self._putter.put_again, delivers=not self.is_slave)
        self.pop.start()
        if not self.is_slave:
            self._schedule.start()
            self._transaction_check.start()
        self.registration.start()
        self._plug_in.start()

    def shutdown(self) -> None:
        """Stop cleanly: nothing that was acknowledged or committed is lost."""
        if not self.is_running:
            return
        # 1. Clients learn from the name servers to go elsewhere.
        self.registration.stop()
        self.state.is_running = False
        # 2. Nothing starts any more.
        self.replication.stop()
        self.held_pulls.clear()
        self._membership.stop()
        self._assignments.stop()
        self._broadcast_offsets.stop()
        self._transaction_check.stop()
        self._transactions.stop()
        self._schedule.stop()
        self.pop.stop()
        self._plug_in.stop()
        if self.state.timer is not None:
            self.state.timer.stop()
        # 3. Everything in memory goes to its file.
        for saver in self._savers:
            saver.stop()
        self.store.shutdown()
        self.remoting.close()

    def create_topic(self, config: TopicConfig) -> None:
        """Create or change a topic, as UPDATE_AND_CREATE_TOPIC does. Raises UsageError for one that is not allowed."""
        problem = self.topics.problem_of(config)
        if problem is not None:
            raise UsageError(problem)
        self.topics.update(config)

    def _arrived(
        self,
        topic: str,
        queue_id: int,
        next_queue_offset: int,
        tags_code: int,
        store_timestamp: int,
        properties: Mapping[str, str],
    ) -> None:
        """A message became readable. Mirrors NotifyMessageArrivingListener."""
        if self.is_slave or topic in _WAITING_TOPICS:
            self._arrived_for_the_broker(topic, queue_id, tags_code)
        self.held_pulls.arrived(topic, queue_id, next_queue_offset, tags_code, properties)
        if self._plug_in is not NOTHING_PLUGGED_IN:  # a call per message
            self._plug_in.arrived(topic, queue_id)
        pop = self.pop
        if pop.held.groups or pop.notifications.groups or topic == pop.revive_log.topic:
            pop.arrived(topic, queue_id, next_queue_offset, tags_code, properties)

    def _arrived_for_the_broker(self, topic: str, queue_id: int, tags_code: int) -> None:
        """Messages that wait are read by services of the broker itself; a slave counts all."""
        if topic == names.TIMER_TOPIC and self.state.timer is not None:
            self.state.timer.arrived()
            if self.is_slave:
                self.replication.synchronize.follow_timer()
        if self.is_slave:
            self.store_stats.dispatched += 1
        elif topic == names.SCHEDULE_TOPIC:
            self._schedule.arrived(queue_id, tags_code)
        elif topic == names.HALF_TOPIC or topic == names.OP_HALF_TOPIC:
            self._transaction_check.look()

    def _channel_closed(self, channel: Channel) -> None:
        self._membership.channel_closed(channel)
        self.pop.channel_closed(channel)
        self._plug_in.channel_closed(channel)

    def __repr__(self) -> str:
        life = "running" if self.is_running else "stopped"
        name = f"{self.config.broker_name}{f' slave {self.config.broker_id}' if self.is_slave else ''}"
        return f"<Broker {name} {self.address} {life}: {len(self.topics)} topics, {self.store!r}>"

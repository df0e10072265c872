"""The clients of the front, by their ids, with what each of them reported.

Mirrors: GrpcChannelManager, GrpcClientSettingsManager, ClientActivity.

    x-mq-client-id ──▶ client: settings (latest Telemetry message), stream (latest Telemetry call), links (per broker)
    silent for 120 s ──▶ it leaves its groups, and its leases end in a second

A producer belongs to a producer group per topic, named like the topic; a consumer to its group. mqadmin sees both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mqlab.cluster.grpc.codes import SQL, ClientType, Code, StatusError
from mqlab.cluster.grpc.local_brokers import LocalBrokers, LocalLink
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.broker.pulling import tag_subscription
from mqlab.rocketmq.broker.tables.consumers import CONSUME_ACTIVELY, CONSUME_PASSIVELY, Member
from mqlab.rocketmq.ports import Deadline, Ports
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.command import LANGUAGES, VERSION, RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request

SILENT_MS = 120_000
SCAN_MS = 10_000
CLUSTERING = "CLUSTERING"


@dataclass(frozen=True, slots=True)
class Caller:
    """What the metadata of one call says. ``left_ms``: how long the client waits for the answer, None: for ever."""

    client_id: str
    language: str
    remote_address: str
    left_ms: int | None = None


@dataclass(slots=True, eq=False)
class GrpcClient:
    """One client. ``send`` puts a TelemetryCommand on its stream; ``waiting`` has the questions that it must answer."""

    client_id: str
    language: str
    remote_address: str
    last_heard_ms: int
    settings: Any = None
    send: Callable[[Any], None] | None = None
    links: dict[str, LocalLink] = field(default_factory=dict)
    waiting: dict[str, Callable[[Any, Any], None]] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """Its consumer group; "" for a producer."""
        return "" if self.settings is None else str(self.settings.subscription.group.name)


class GrpcClients:
    """The clients that were heard lately. ``gone(client)`` follows when one ends or falls silent."""

    def __init__(
        self, ports: Ports, brokers: LocalBrokers, on_request: Callable[[GrpcClient, LocalLink, RemotingCommand], None]
    ) -> None:
        self.gone: Signal[[GrpcClient]] = Signal()
        self._ports = ports
        self._brokers = brokers
        self._on_request = on_request
        self._by_id: dict[str, GrpcClient] = {}
        self._scan: Deadline | None = None

    def __iter__(self) -> Iterator[GrpcClient]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def of(self, caller: Caller) -> GrpcClient:
        """The client that calls. StatusError when it does not say who it is."""
        if not caller.client_id:
            raise StatusError(Code.CLIENT_ID_REQUIRED, "client id cannot be empty")
        client, now_ms = self._by_id.get(caller.client_id), self._ports.clock.now_ms()
        if client is None:
            client = GrpcClient(caller.client_id, caller.language, caller.remote_address, now_ms)
            self._by_id[caller.client_id] = client
            self._arm()
        client.last_heard_ms, client.language = now_ms, caller.language
        return client

    def with_settings(self, caller: Caller) -> GrpcClient:
        """The same; StatusError when it has not reported its settings."""
        client = self.of(caller)
        if client.settings is None:
            raise StatusError(Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")
        return client

    def link(self, client: GrpcClient, broker: Broker) -> LocalLink:
        """A client's connection at a broker, made when there is none."""
        name = broker.config.broker_name
        link = client.links.get(name)
        if link is None or not link.is_open:
            link = client.links[name] = LocalLink(
                broker, client.remote_address, lambda link, request: self._on_request(client, link, request)
            )
        return link

    def ask(
        self,
        client: GrpcClient,
        broker: Broker,
        code: int,
        body: bytes | None = None,
        **fields: str | int | bool | None,
    ) -> Promise[RemotingCommand]:
        """What a broker answers to a request of a client."""
        channel = self.link(client, broker).channel
        return broker.remoting.ask(channel, make_request(code, body, bname=broker.config.broker_name, **fields))

    def register(self, client: GrpcClient) -> None:
        """Make a client a member of its groups, or say that it still is. StatusError for an unknown language."""
        if client.language not in LANGUAGES:
            raise StatusError(
                Code.INTERNAL_SERVER_ERROR,
                f"No enum constant org.apache.rocketmq.remoting.protocol.LanguageCode.{client.language}. "
                "IllegalArgumentException. java.base/java.lang.Enum.valueOf(Enum.java:273)",
            )
        for broker in self._brokers:
            channel = self.link(client, broker).channel
            member = Member(channel, client.client_id, client.language, VERSION, self._ports.clock.now_ms())
            for topic in client.settings.publishing.topics:
                broker.producers.register(topic.name, member)
            if client.group:
                simple = client.settings.client_type == ClientType.SIMPLE_CONSUMER
                broker.consumers.register(
                    client.group,
                    member,
                    consume_type=CONSUME_ACTIVELY if simple else CONSUME_PASSIVELY,
                    message_model=CLUSTERING,
                    consume_from_where="CONSUME_FROM_LAST_OFFSET",
                    subscriptions=[
                        subscription_of(entry.topic.name, entry.expression, self._ports.clock.now_ms())
                        for entry in client.settings.subscription.subscriptions
                    ],
                )

    def forget(self, client: GrpcClient) -> None:
        """A client has ended."""
        if self._by_id.pop(client.client_id, None) is None:
            return
        self.gone(client)
        for link in client.links.values():
            link.leave()
        for waiting in list(client.waiting.values()):
            waiting(None, None)

    def close(self) -> None:
        """Scan no more, and forget all clients."""
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None
        for client in list(self._by_id.values()):
            self._by_id.pop(client.client_id)
            for link in client.links.values():
                link.is_open = False

    def _arm(self) -> None:
        if self._scan is None and self._by_id:
            self._scan = self._ports.clock.call_later(SCAN_MS, self._look, "grpc.scan_clients")

    def _look(self) -> None:
        self._scan = None
        silent_since_ms = self._ports.clock.now_ms() - SILENT_MS
        for client in [client for client in self._by_id.values() if client.last_heard_ms < silent_since_ms]:
            self.forget(client)
        self._arm()


def subscription_of(topic: str, expression: Any, version: int) -> SubscriptionData:
    """A filter expression as a broker knows it. FilterError for tags that cannot be read."""
    if expression.type == SQL:
        return SubscriptionData(topic, expression.expression, sub_version=version, expression_type="SQL92")
    return tag_subscription(topic, expression.expression or "*", version)

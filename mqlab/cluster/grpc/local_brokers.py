"""The brokers behind the front, and the connections of gRPC clients at them: channels without a socket.

Mirrors: the local services of the proxy (LocalMessageService, SimpleChannel, GrpcClientChannel).

    client r1 ── link ── broker-a     requests go straight to the broker's handlers
              ── link ── broker-b     what a broker asks its client (about a transaction) is decoded and handed on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.remoting.endpoint import Channel
from mqlab.rocketmq.wire import command as wire_command
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.command import RemotingCommand


class LocalLink:
    """One client at one broker of this process: the broker's Connection to it, and its Channel."""

    def __init__(self, broker: Broker, remote_address: str, on_request: Callable[[LocalLink, RemotingCommand], None]):
        self.broker = broker
        self.local_address = broker.address
        self.remote_address = remote_address
        self.is_open = True
        self._on_request = on_request
        self.channel: Channel = broker.remoting.join(self)

    def send(self, data: bytes) -> None:
        """Hand a request of the broker to the client; see mqlab.rocketmq.ports.Connection."""
        if self.is_open:
            self._on_request(self, wire_command.decode(data))

    def answer(self, answer: RemotingCommand) -> None:
        """The client has answered a request of the broker."""
        self.broker.remoting.answered(self.channel, answer)

    def close(self) -> None:
        """The broker hangs up."""
        self.is_open = False

    def leave(self) -> None:
        """The client is gone: it leaves every group."""
        self.is_open = False
        self.broker.remoting.lose(self, "closed by peer")


class LocalBrokers:
    """The masters of this process by name."""

    def __init__(self, brokers: Iterable[Broker]) -> None:
        self._by_name = {broker.config.broker_name: broker for broker in brokers if not broker.is_slave}

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def named(self, name: str) -> Broker:
        """A broker; for a name that is not here the first one, as RocketMQ has only one in local mode."""
        return self._by_name.get(name) or next(iter(self))

    def with_topic(self, topic: str) -> list[tuple[Broker, TopicConfig]]:
        """The brokers that have a topic, in the order of their names, each with its configuration of it."""
        holders = []
        for name in sorted(self._by_name):
            config = self._by_name[name].topics.get(topic)
            if config is not None:
                holders.append((self._by_name[name], config))
        return holders

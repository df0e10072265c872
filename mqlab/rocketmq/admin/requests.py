"""Requests to name servers and brokers from the tool's own node.

Mirrors: MQClientAPIImpl as DefaultMQAdminExtImpl uses it.

    ask(address, code, …)          the answer, or a BrokerError for one that is not SUCCESS
    ask_name_server(code, …)       asks the name server in use, or the next one when it cannot be reached
    brokers(names)                 (name, address of the master) of all or of those named

Left out: asking a slave when its master is down (ha_status and broker status take a broker id).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from mqlab.errors import BrokerError, RemotingError, UsageError
from mqlab.rocketmq.client.instance.broker_calls import BrokerCalls
from mqlab.rocketmq.client.instance.name_servers import NameServerChoice
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting import Channel, Remoting
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import ClusterInfo, TopicRouteData
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand, request
from mqlab.rocketmq.wire.names import MASTER_ID

T = TypeVar("T")


class AdminNode:
    """The tool's connections. ``timeout_ms`` holds for every single request."""

    def __init__(self, ports: Ports, name_servers: Sequence[str], *, timeout_ms: int = 5_000) -> None:
        self.ports = ports
        self.timeout_ms = timeout_ms
        self.name_servers = NameServerChoice(name_servers, ports.rng)
        self.remoting = Remoting(ports, {}, on_channel_closed=self._channel_closed)
        self.calls = BrokerCalls(self._invoke, self.remoting.invoke_oneway)

    def start(self) -> None:
        """Do nothing: connections are opened by the first request."""

    def shutdown(self) -> None:
        """Close all connections."""
        self.remoting.close()

    def _channel_closed(self, channel: Channel) -> None:
        self.name_servers.failed(channel.remote_address)

    def _invoke(self, address: str, request: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        return self.remoting.invoke(address, request, timeout_ms)

    def wait(self, start: Callable[[], Promise[T]]) -> T:
        """Start something on this node and wait for it."""
        return self.ports.workers.call(start)

    def ask(self, address: str, code: int, body: bytes | None = None, **fields: Any) -> RemotingCommand:
        """Send one request; BrokerError for an answer that is not SUCCESS, RemotingError without an answer."""
        answer = self.wait(lambda: self.remoting.invoke(address, request(code, body, **fields), self.timeout_ms))
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=address)
        return answer

    def ask_value(self, address: str, code: int, body: bytes | None = None, **fields: Any) -> dict[str, Any]:
        """The JSON object in the answer; empty when there is none."""
        return value_of(self.ask(address, code, body, **fields))

    def ask_name_server(self, code: int, **fields: Any) -> RemotingCommand:
        """Ask the name server in use; when it cannot be reached, each of the list once."""
        left = len(self.name_servers.addresses) + 1  # the first connection may be closed without our knowledge
        while True:
            address, left = self.name_servers.current(), left - 1
            try:
                return self.ask(address, code, **fields)
            except RemotingError:
                self.name_servers.failed(address)
                if not left:
                    raise

    def cluster_info(self) -> ClusterInfo:
        """All brokers that are registered at the name server."""
        return ClusterInfo.from_json(self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO).body or b"{}")

    def brokers(self, names: Iterable[str] | str | None = None) -> list[tuple[str, str]]:
        """Name and master address of every broker, or of those named; UsageError lists the existing ones."""
        brokers = self.cluster_info().broker_addr_table
        chosen = sorted(brokers) if names is None else [names] if isinstance(names, str) else list(names)
        masters = []
        for name in chosen:
            address = brokers[name].broker_addrs.get(MASTER_ID) if name in brokers else None
            if address is not None:
                masters.append((name, address))
            elif names is not None:
                raise UsageError(f"there is no broker {name!r}", hint=f"the name server has: {', '.join(brokers)}")
        return masters

    def address_of(self, broker: str, broker_id: int = MASTER_ID) -> str:
        """The address of one broker process; UsageError lists the existing ones."""
        known = self.cluster_info().broker_addr_table
        addresses = known[broker].broker_addrs if broker in known else {}
        if broker_id not in addresses:
            there = [f"{name} {known_id}" for name in sorted(known) for known_id in sorted(known[name].broker_addrs)]
            raise UsageError(
                f"there is no broker {broker!r} with id {broker_id}", hint=f"the name server has: {', '.join(there)}"
            )
        return addresses[broker_id]

    def route(self, topic: str) -> TopicRouteData:
        """The route of a topic; BrokerError with code 17 when the name server has none."""
        answer = self.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)
        return TopicRouteData.from_json(answer.body or b"{}")

    def brokers_of(self, topic: str) -> list[tuple[str, str]]:
        """Name and master address of the brokers that have a topic."""
        masters = [(data.broker_name, data.broker_addrs.get(MASTER_ID)) for data in self.route(topic).broker_datas]
        return sorted((name, address) for name, address in masters if address is not None)

    def brokers_of_group(self, group: str) -> list[tuple[str, str]]:
        """The brokers with the retry topic of a group; all brokers when it has none yet."""
        try:
            return self.brokers_of(f"%RETRY%{group}")
        except BrokerError as error:
            if error.response_code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return self.brokers()

    def __repr__(self) -> str:
        return f"<Admin {self.ports.node} of {', '.join(self.name_servers.addresses)}>"


def value_of(answer: RemotingCommand) -> dict[str, Any]:
    """The JSON object in an answer; empty when there is none."""
    value = java_json.loads((answer.body or b"{}").decode("utf-8", "replace"))
    return value if isinstance(value, dict) else {}

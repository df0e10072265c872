"""Brokers come and go: registrations, goodbyes, closed channels, and the scan for silent brokers.

Mirrors: DefaultRequestProcessor and BrokerHousekeepingService.

    REGISTER_BROKER      its topics and addresses are used; the answer has the ordered topics (and a slave's master)
    UNREGISTER_BROKER    the broker is removed
    a closed channel     the broker is removed at once
    120 s of silence     the broker is removed at the next 5 s scan (armed only when a broker can expire)

Left out: compressed registrations, notices about the smallest broker id.
"""

from __future__ import annotations

from mqlab.rocketmq.nameserver.kv_config import ORDER_TOPIC_CONFIG
from mqlab.rocketmq.nameserver.routes import BrokerRegistration
from mqlab.rocketmq.nameserver.state import NameServerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body, text, whole_long, whole_long_or, whole_or
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.bodies import DataVersion, RegisterBrokerBody
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_hash import crc32


class Registrations:
    """Handlers of what brokers send, and the scan for silent brokers."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state
        self._scan: Deadline | None = None

    def register_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """REGISTER_BROKER."""
        content = request.body or b""
        checksum = whole_or(request, "bodyCrc32", 0)
        if checksum and checksum != crc32(content):
            raise Refused(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        topics = RegisterBrokerBody.from_json(content) if content else RegisterBrokerBody()  # a broker without topics
        registered = self._state.routes.register(
            BrokerRegistration(
                cluster=text(request, "clusterName"),
                address=text(request, "brokerAddr"),
                broker_name=text(request, "brokerName"),
                broker_id=whole_long(request, "brokerId"),
                ha_server_address=request.ext_fields.get("haServerAddr", ""),
                topics=topics.topic_config_table,
                data_version=topics.data_version,
                timeout_ms=whole_long_or(request, "heartbeatTimeoutMillis", None),
                channel=channel,
            )
        )
        if registered is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "register broker failed")
        self._arm_scan()
        # The answer has the ordered topics, because brokers learn of them only here.
        with_order = self._state.config.return_order_topic_config_to_broker
        ordered = self._state.kv_config.namespace(ORDER_TOPIC_CONFIG) if with_order else None
        return request.reply(
            body=bodies.kv_table_to_json(ordered) if ordered is not None else None,
            haServerAddr=registered.ha_server_address,
            masterAddr=registered.master_address,
        )

    def unregister_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UNREGISTER_BROKER."""
        self._state.routes.unregister(
            text(request, "clusterName"), text(request, "brokerAddr"), text(request, "brokerName")
        )
        return request.reply()

    def query_data_version(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_DATA_VERSION: whether this name server has the current topics of a broker."""
        version = DataVersion.from_json(body(request))
        registered = self._state.routes.data_version(text(request, "clusterName"), text(request, "brokerAddr"))
        content = None if registered is None else registered.to_json()
        return request.reply(body=content, changed=registered != version)

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone: the broker that registered over it is removed."""
        self._state.routes.channel_closed(channel)

    def stop(self) -> None:
        """Scan no more."""
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None

    def _arm_scan(self) -> None:
        expires_ms = self._state.routes.next_expiry_ms()
        if expires_ms is None:
            return
        # One deadline for all brokers: the first tick of the grid at which one of them has expired.
        due_ms = next_on_grid(expires_ms, self._state.config.scan_not_active_broker_interval, self._state.started_ms)
        if self._scan is not None:
            if self._scan.due_ms <= due_ms:
                return
            self._scan.cancel()
        self._scan = self._state.ports.clock.call_at(due_ms, self._expire, "nameserver.scan")

    def _expire(self) -> None:
        self._scan = None
        for channel in self._state.routes.expire():
            channel.close()
        self._arm_scan()

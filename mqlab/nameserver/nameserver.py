"""The name server: brokers register here, clients ask here where a topic is, and name servers never talk to each other.

Mirrors: NamesrvController, DefaultRequestProcessor, ClientRequestProcessor, BrokerHousekeepingService; lab on routes.

    103 REGISTER_BROKER          take over, answer with the ordered topics (and a slave's master)
    105 GET_ROUTEINFO_BY_TOPIC   TopicRouteData, 17 for an unknown topic
    a closed channel             the broker is forgotten at once
    120 s of silence             forgotten at the next 5 s scan (armed only when something can expire)

All state is memory: a restarted name server knows nobody until the brokers' next registration.
Left out: compressed registrations, notices about the smallest broker id, the old spelling of routes for clients before
4.9.4 (they read the standard one too).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mqlab.errors import UsageError
from mqlab.nameserver.config import NameServerConfig
from mqlab.nameserver.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from mqlab.nameserver.routes import Registration, RouteTable
from mqlab.ports import Deadline, Ports, next_on_grid
from mqlab.remoting.endpoint import Channel, Remoting, Reply
from mqlab.remoting.requests import Answer, Refused, answering, body, text, whole, whole_or
from mqlab.remoting.settings import changes_to, lines_of, parsed_lines, refuse_black_listed
from mqlab.store.config_files import ConfigFile
from mqlab.wire import bodies
from mqlab.wire.bodies import ClusterInfo, DataVersion, RegisterBrokerBody, TopicRouteData
from mqlab.wire.codes import RequestCode, ResponseCode
from mqlab.wire.command import RemotingCommand
from mqlab.wire.java_hash import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mqlab.remoting.endpoint import Handler

NEVER_UPDATED = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")
"""Settings that no request changes, whatever configBlackList says."""


class NameServer:
    """A name server node. Mirrors NamesrvController."""

    def __init__(self, ports: Ports, config: NameServerConfig | None = None) -> None:
        self.ports = ports
        self.config = config or NameServerConfig()
        self.address = f"{ports.ip}:{self.config.listen_port}"
        self.started_ms = self.now_ms()
        self.is_running = False
        self.routes = RouteTable(
            self.now_ms,
            default_timeout_ms=self.config.default_broker_channel_expired_time,
            delete_topics=self.config.delete_topic_with_broker_registration,
            note=ports.note,
        )
        self.kv_config = KvConfig(on_changed=self._save_kv)
        self._kv_file = ConfigFile(ports.files, self.config.kv_config_path) if self.config.kv_config_path else None
        self._scan: Deadline | None = None
        self.remoting = Remoting(ports, self._handlers(), on_channel_closed=self._channel_closed)

    def _handlers(self) -> Mapping[int, Handler]:
        """Request code -> handler."""
        code = RequestCode
        table = {
            code.REGISTER_BROKER: self.register_broker,
            code.UNREGISTER_BROKER: self.unregister_broker,
            code.QUERY_DATA_VERSION: self.query_data_version,
            code.GET_ROUTEINFO_BY_TOPIC: self.get_routeinfo_by_topic,
            code.GET_BROKER_CLUSTER_INFO: self.get_broker_cluster_info,
            code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.get_all_topic_list_from_nameserver,
            code.GET_TOPICS_BY_CLUSTER: self.get_topics_by_cluster,
            code.GET_SYSTEM_TOPIC_LIST_FROM_NS: self.get_system_topic_list_from_ns,
            code.GET_UNIT_TOPIC_LIST: self.get_unit_topic_list,
            code.GET_HAS_UNIT_SUB_TOPIC_LIST: self.get_has_unit_sub_topic_list,
            code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self.get_has_unit_sub_ununit_topic_list,
            code.REGISTER_TOPIC_IN_NAMESRV: self.register_topic_in_namesrv,
            code.DELETE_TOPIC_IN_NAMESRV: self.delete_topic_in_namesrv,
            code.WIPE_WRITE_PERM_OF_BROKER: self.wipe_write_perm_of_broker,
            code.ADD_WRITE_PERM_OF_BROKER: self.add_write_perm_of_broker,
            code.PUT_KV_CONFIG: self.put_kv_config,
            code.GET_KV_CONFIG: self.get_kv_config,
            code.DELETE_KV_CONFIG: self.delete_kv_config,
            code.GET_KVLIST_BY_NAMESPACE: self.get_kvlist_by_namespace,
            code.GET_NAMESRV_CONFIG: self.get_namesrv_config,
            code.UPDATE_NAMESRV_CONFIG: self.update_namesrv_config,
        }
        return {int(number): answering(handle) for number, handle in table.items()}

    # -- life

    def now_ms(self) -> int:
        """This node's time."""
        return self.ports.clock.now_ms()

    def start(self) -> None:
        """Listen, with the key-value configuration of the last time if a file keeps it."""
        self.started_ms = self.now_ms()
        if self._kv_file is not None:
            self._kv_file.load_as(self.kv_config.decode)
        self.is_running = True
        self.remoting.listen(self.address)

    def shutdown(self) -> None:
        """Close every connection."""
        self.is_running = False
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None
        self.remoting.close()

    def _save_kv(self) -> None:
        if self._kv_file is not None:
            self._kv_file.save(self.kv_config.encode())

    # -- brokers

    def register_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """REGISTER_BROKER."""
        content = body(request)
        checksum = whole_or(request, "bodyCrc32", 0)
        if checksum and checksum != crc32(content):
            raise Refused(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        told = RegisterBrokerBody.from_json(content)
        registered = self.routes.register(
            Registration(
                cluster=text(request, "clusterName"),
                address=text(request, "brokerAddr"),
                broker_name=text(request, "brokerName"),
                broker_id=whole(request, "brokerId"),
                ha_server_address=request.ext_fields.get("haServerAddr", ""),
                topics=told.topic_config_table,
                data_version=told.data_version,
                timeout_ms=whole_or(request, "heartbeatTimeoutMillis", None),
                channel=channel,
            )
        )
        if registered is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "register broker failed")
        self._arm_scan()
        tells = self.config.return_order_topic_config_to_broker
        ordered = self.kv_config.namespace(ORDER_TOPIC_CONFIG) if tells else None
        return request.reply(
            body=bodies.kv_table_to_json(ordered) if ordered is not None else None,
            haServerAddr=registered.ha_server_address,
            masterAddr=registered.master_address,
        )

    def unregister_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UNREGISTER_BROKER."""
        self.routes.unregister(text(request, "clusterName"), text(request, "brokerAddr"), text(request, "brokerName"))
        return request.reply()

    def query_data_version(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_DATA_VERSION: does this name server have the broker's present topics?"""
        asked = DataVersion.from_json(body(request))
        known = self.routes.data_version(text(request, "clusterName"), text(request, "brokerAddr"))
        return request.reply(body=known.to_json() if known is not None else None, changed=known != asked)

    def _channel_closed(self, channel: Channel) -> None:
        self.routes.channel_closed(channel)

    def _arm_scan(self) -> None:
        expires_ms = self.routes.next_expiry_ms()
        if expires_ms is None:
            return
        due_ms = next_on_grid(expires_ms, self.config.scan_not_active_broker_interval, self.started_ms)
        if self._scan is not None:
            if self._scan.due_ms <= due_ms:
                return
            self._scan.cancel()
        self._scan = self.ports.clock.call_at(due_ms, self._expire, "nameserver.scan")

    def _expire(self) -> None:
        self._scan = None
        for channel in self.routes.expire():
            channel.close()
        self._arm_scan()

    # -- clients and tools

    def get_routeinfo_by_topic(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ROUTEINFO_BY_TOPIC."""
        ready_ms = self.started_ms + self.config.wait_seconds_for_service * 1_000
        if self.config.need_wait_for_service and self.now_ms() < ready_ms:
            raise Refused(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = request.ext_fields.get("topic") or ""
        route = self.routes.route(topic)
        if route is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {topic}")
        if self.config.order_message_enable:
            route = dataclasses.replace(route, order_topic_conf=self.kv_config.get(ORDER_TOPIC_CONFIG, topic))
        return request.reply(body=route.to_json())

    def get_broker_cluster_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_CLUSTER_INFO."""
        info = ClusterInfo(broker_addr_table=dict(self.routes.brokers), cluster_addr_table=dict(self.routes.clusters))
        return request.reply(body=info.to_json())

    def get_all_topic_list_from_nameserver(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_TOPIC_LIST_FROM_NAMESERVER."""
        return self._topic_list(request, self.routes.topics, enabled=self.config.enable_all_topic_list)

    def get_topics_by_cluster(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TOPICS_BY_CLUSTER."""
        return self._topic_list(request, self.routes.topics_of_cluster(text(request, "cluster")))

    def get_unit_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_UNIT_TOPIC_LIST."""
        return self._topic_list(request, self.routes.topics_flagged(unit=True))

    def get_has_unit_sub_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_HAS_UNIT_SUB_TOPIC_LIST."""
        return self._topic_list(request, self.routes.topics_flagged(unit_sub=True))

    def get_has_unit_sub_ununit_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST."""
        return self._topic_list(request, self.routes.topics_flagged(unit=False, unit_sub=True))

    def _topic_list(self, request: RemotingCommand, topics: Iterable[str], enabled: bool | None = None) -> Answer:
        if not (self.config.enable_topic_list if enabled is None else enabled):
            raise Refused(ResponseCode.SYSTEM_ERROR, "disable")
        return request.reply(body=bodies.topic_list_to_json(topics))

    def get_system_topic_list_from_ns(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_SYSTEM_TOPIC_LIST_FROM_NS: names of clusters and brokers, which are topics too; one broker's address."""
        listed = [*self.routes.clusters, *self.routes.brokers]
        addresses = [address for broker in self.routes.brokers.values() for address in broker.broker_addrs.values()]
        return request.reply(body=bodies.topic_list_to_json(listed, broker_addr=addresses[0] if addresses else None))

    def register_topic_in_namesrv(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """REGISTER_TOPIC_IN_NAMESRV."""
        self.routes.register_topic(text(request, "topic"), TopicRouteData.from_json(body(request)).queue_datas)
        return request.reply()

    def delete_topic_in_namesrv(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_TOPIC_IN_NAMESRV."""
        self.routes.delete_topic(text(request, "topic"), request.ext_fields.get("clusterName") or None)
        return request.reply()

    def wipe_write_perm_of_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """WIPE_WRITE_PERM_OF_BROKER."""
        return request.reply(wipeTopicCount=self.routes.wipe_write_perm(text(request, "brokerName")))

    def add_write_perm_of_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """ADD_WRITE_PERM_OF_BROKER."""
        return request.reply(addTopicCount=self.routes.add_write_perm(text(request, "brokerName")))

    # -- key-value configuration

    def put_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """PUT_KV_CONFIG."""
        self.kv_config.put(text(request, "namespace"), text(request, "key"), text(request, "value"))
        return request.reply()

    def get_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_KV_CONFIG."""
        namespace, key = text(request, "namespace"), text(request, "key")
        value = self.kv_config.get(namespace, key)
        if value is None:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace} Key: {key}")
        return request.reply(value=value)

    def delete_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_KV_CONFIG."""
        self.kv_config.delete(text(request, "namespace"), text(request, "key"))
        return request.reply()

    def get_kvlist_by_namespace(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_KVLIST_BY_NAMESPACE."""
        namespace = text(request, "namespace")
        values = self.kv_config.namespace(namespace)
        if values is None:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}")
        return request.reply(body=bodies.kv_table_to_json(values))

    def get_namesrv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_NAMESRV_CONFIG: every setting, name=value a line."""
        return request.reply(body="\n".join(sorted(lines_of(self.config))).encode("utf-8"))

    def update_namesrv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_NAMESRV_CONFIG: all the named settings, or none when one is wrong; 16 for those of the black list."""
        values = parsed_lines(request.body or b"")
        refuse_black_listed(values, NEVER_UPDATED, self.config.config_black_list)
        try:
            self.config = dataclasses.replace(self.config, **changes_to(self.config, values))
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        self.routes.default_timeout_ms = self.config.default_broker_channel_expired_time
        self.routes.delete_topics = self.config.delete_topic_with_broker_registration
        return request.reply()

    def __repr__(self) -> str:
        return f"<NameServer {self.address}: {self.routes!r}>"

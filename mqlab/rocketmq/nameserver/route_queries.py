"""What clients and tools ask a name server about routes, and the changes that tools make to them.

Mirrors: ClientRequestProcessor and DefaultRequestProcessor.

    GET_ROUTEINFO_BY_TOPIC    TopicRouteData; TOPIC_NOT_EXIST for an unknown topic

Left out: the old spelling of routes for clients before 4.9.4 (they read the standard one too).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from mqlab.rocketmq.nameserver.kv_config import ORDER_TOPIC_CONFIG
from mqlab.rocketmq.nameserver.state import NameServerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body, text
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.bodies import ClusterInfo, TopicRouteData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand


class RouteQueries:
    """Handlers of the requests about topics, brokers and clusters."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state

    def get_routeinfo_by_topic(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ROUTEINFO_BY_TOPIC."""
        # A new name server may wait, because it does not know all brokers yet.
        ready_ms = self._state.started_ms + self._state.config.wait_seconds_for_service * 1_000
        if self._state.config.need_wait_for_service and self._state.now_ms() < ready_ms:
            raise Refused(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = request.ext_fields.get("topic") or ""
        route = self._state.routes.route(topic)
        if route is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {topic}")
        if self._state.config.order_message_enable:
            route = dataclasses.replace(route, order_topic_conf=self._state.kv_config.get(ORDER_TOPIC_CONFIG, topic))
        return request.reply(body=route.to_json())

    def get_broker_cluster_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_CLUSTER_INFO."""
        info = ClusterInfo(
            broker_addr_table=dict(self._state.routes.brokers), cluster_addr_table=dict(self._state.routes.clusters)
        )
        return request.reply(body=info.to_json())

    def get_all_topic_list_from_nameserver(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_ALL_TOPIC_LIST_FROM_NAMESERVER."""
        return self._topic_list(request, self._state.routes.topics, enabled=self._state.config.enable_all_topic_list)

    def get_topics_by_cluster(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TOPICS_BY_CLUSTER."""
        return self._topic_list(request, self._state.routes.topics_of_cluster(text(request, "cluster")))

    def get_unit_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_UNIT_TOPIC_LIST."""
        return self._topic_list(request, self._state.routes.topics_flagged(unit=True))

    def get_has_unit_sub_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_HAS_UNIT_SUB_TOPIC_LIST."""
        return self._topic_list(request, self._state.routes.topics_flagged(unit_sub=True))

    def get_has_unit_sub_ununit_topic_list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST."""
        return self._topic_list(request, self._state.routes.topics_flagged(unit=False, unit_sub=True))

    def _topic_list(self, request: RemotingCommand, topics: Iterable[str], enabled: bool | None = None) -> Answer:
        if not (self._state.config.enable_topic_list if enabled is None else enabled):
            raise Refused(ResponseCode.SYSTEM_ERROR, "disable")
        return request.reply(body=bodies.topic_list_to_json(topics))

    def get_system_topic_list_from_ns(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_SYSTEM_TOPIC_LIST_FROM_NS: names of clusters and brokers, which are topics too; one broker's address."""
        routes = self._state.routes
        listed = [*routes.clusters, *routes.brokers]
        addresses = [address for broker in routes.brokers.values() for address in broker.broker_addrs.values()]
        return request.reply(body=bodies.topic_list_to_json(listed, broker_addr=addresses[0] if addresses else None))

    def register_topic_in_namesrv(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """REGISTER_TOPIC_IN_NAMESRV."""
        self._state.routes.register_topic(text(request, "topic"), TopicRouteData.from_json(body(request)).queue_datas)
        return request.reply()

    def delete_topic_in_namesrv(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_TOPIC_IN_NAMESRV."""
        self._state.routes.delete_topic(text(request, "topic"), request.ext_fields.get("clusterName") or None)
        return request.reply()

    def wipe_write_perm_of_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """WIPE_WRITE_PERM_OF_BROKER."""
        return request.reply(wipeTopicCount=self._state.routes.wipe_write_perm(text(request, "brokerName")))

    def add_write_perm_of_broker(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """ADD_WRITE_PERM_OF_BROKER."""
        return request.reply(addTopicCount=self._state.routes.add_write_perm(text(request, "brokerName")))

"""A broker registers at every name server: at the start, after 10 s, every 30 s, and at once when a topic changes.

Mirrors: BrokerController.registerBrokerAll, BrokerOuterAPI; REGISTER_BROKER and UNREGISTER_BROKER.

    0 s, 10 s, 40 s, 70 s …       the whole topic table and its version      ─▶ each name server
    a topic is new or changed     that topic alone and the new version       ─▶ each name server
    shutdown                      UNREGISTER_BROKER                          ─▶ each name server

    the answer has the list of ordered topics and, for a slave, the addresses of its master

Left out: the light heartbeat (904), asking for versions first (322), compressed bodies, the 5 s cluster poll (106).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from mqlab.rocketmq.broker.replication.replication import Replication
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.topics import PERM_ALL
from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.promises import Promise, gather
from mqlab.rocketmq.remoting.endpoint import Remoting
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.bodies import RegisterBrokerBody, TopicConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.java_hash import crc32

SECOND_REGISTRATION_MS = 10_000


class Registration:
    """Keeps the name servers informed. ``registered`` counts the registrations that were accepted."""

    def __init__(
        self, state: BrokerState, remoting: Remoting, replication: Replication, name_servers: Iterable[str]
    ) -> None:
        self._state = state
        self._remoting = remoting
        self._replication = replication
        self._deadline: Deadline | None = None
        self.name_servers = list(name_servers)
        self.registered = 0
        state.topics.changed.subscribe(self.register_changed)
        state.permission_changed.subscribe(self.register_all)

    def start(self) -> None:
        """Register now, and on the timer from now on."""
        self.register_all()
        self._arm(SECOND_REGISTRATION_MS)

    def stop(self) -> Promise[list[Promise[RemotingCommand]]]:
        """Unregister at every name server."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        return gather([self._send(server, self._unregister_request()) for server in self.name_servers])

    def register_all(self) -> None:
        """Send the whole topic table. Mirrors registerBrokerAll."""
        self._register(self._state.topics.values())

    def register_changed(self, topics: list[TopicConfig]) -> None:
        """Send the topics that are new or changed. Mirrors registerIncrementBrokerData."""
        if topics and self._state.is_running:
            self._register(topics)

    def _arm(self, delay_ms: int) -> None:
        self._deadline = self._state.ports.clock.call_later(delay_ms, self._tick, "broker.register")

    def _tick(self) -> None:
        self.register_all()
        self._arm(self._state.config.register_period_ms)

    def _register(self, topics: Iterable[TopicConfig]) -> None:
        if not self.name_servers:
            return
        # The version belongs to the whole table, also when only one topic is sent.
        table = {topic.topic_name: self._as_shown(topic) for topic in topics}
        content = RegisterBrokerBody(
            topic_config_table=table, data_version=self._state.topics.data_version, filter_server_list=[]
        ).to_json()
        answers: list[RemotingCommand] = []

        def answered(answer: RemotingCommand) -> None:
            if answer.code == ResponseCode.SUCCESS:
                answers.append(answer)
                self.registered += 1
                if len(answers) == 1:  # name servers may disagree: the first answer is used
                    self._take_over(answer)

        # A name server that does not answer gets the table with the next registration.
        for server in self.name_servers:
            self._send(server, self._register_request(content)).then(answered, lambda error: None)

    def _as_shown(self, topic: TopicConfig) -> TopicConfig:
        """A topic with the permissions that the broker as a whole allows, too."""
        allowed = self._state.config.broker_permission
        return topic if allowed & PERM_ALL == PERM_ALL else dataclasses.replace(topic, perm=topic.perm & allowed)

    def _register_request(self, content: bytes) -> RemotingCommand:
        config = self._state.config
        return make_request(
            RequestCode.REGISTER_BROKER,
            content,
            brokerName=config.broker_name,
            brokerAddr=self._state.identity.address,
            clusterName=config.broker_cluster_name,
            haServerAddr=self._state.identity.ha_address,
            brokerId=config.broker_id,
            enableActingMaster=False,
            compressed=False,
            bodyCrc32=crc32(content),
        )

    def _unregister_request(self) -> RemotingCommand:
        config = self._state.config
        return make_request(
            RequestCode.UNREGISTER_BROKER,
            brokerName=config.broker_name,
            brokerAddr=self._state.identity.address,
            clusterName=config.broker_cluster_name,
            brokerId=config.broker_id,
        )

    def _send(self, server: str, request: RemotingCommand) -> Promise[RemotingCommand]:
        return self._remoting.invoke(server, request, self._state.config.register_broker_timeout_mills)

    def _take_over(self, answer: RemotingCommand) -> None:
        """Use an answer: a slave's master, and the ordered topics. Mirrors handleRegisterBrokerResult."""
        fields = answer.ext_fields
        self._replication.registered(fields.get("haServerAddr"), fields.get("masterAddr"))
        if answer.body:
            table = java_json.loads(answer.body.decode("utf-8", "replace")).get("table") or {}
            self._state.topics.set_order(table)

    def __repr__(self) -> str:
        return f"<Registration at {len(self.name_servers)} name servers, {self.registered} times accepted>"

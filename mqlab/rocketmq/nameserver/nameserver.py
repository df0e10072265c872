"""The name server: brokers register here, clients ask here where a topic is, and name servers never talk to each other.

Mirrors: NamesrvController.

    frame ─▶ Remoting ─▶ request code ─▶ registrations · route_queries · settings_requests ─▶ routes, kv_config ─▶ reply

A restarted name server knows no broker until the brokers' next registrations.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.nameserver.registrations import Registrations
from mqlab.rocketmq.nameserver.route_queries import RouteQueries
from mqlab.rocketmq.nameserver.settings_requests import SettingsRequests
from mqlab.rocketmq.nameserver.state import NameServerState, open_state
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.remoting.endpoint import Handler, Remoting
from mqlab.rocketmq.remoting.requests import answering
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.host import address_text


class NameServer:
    """A name server node. Mirrors NamesrvController."""

    def __init__(self, ports: Ports, config: NameServerConfig | None = None) -> None:
        self.state = open_state(ports, config or NameServerConfig())
        self.routes, self.kv_config = self.state.routes, self.state.kv_config
        self.address = address_text(ports.ip, self.config.listen_port)
        self.is_running = False
        path = self.config.kv_config_path
        self._kv_file = ConfigFile(ports.files, path, clock=ports.clock, note=ports.note) if path else None
        if self._kv_file is not None:
            self.kv_config.changed.subscribe(self._save_kv_config)
        self._registrations = Registrations(self.state)
        self.remoting = Remoting(
            ports,
            request_table(self.state, self._registrations),
            on_channel_closed=self._registrations.channel_closed,
        )

    @property
    def config(self) -> NameServerConfig:
        """The settings as they are now: UPDATE_NAMESRV_CONFIG changes them."""
        return self.state.config

    @property
    def started_ms(self) -> int:
        """When the name server was started, in ms of its own clock."""
        return self.state.started_ms

    def start(self) -> None:
        """Load the key-value configuration if a file keeps it, and listen."""
        self.state.started_ms = self.state.now_ms()
        if self._kv_file is not None:
            self._kv_file.load_as(self.kv_config.decode)
        self.is_running = True
        self.remoting.listen(self.address)

    def shutdown(self) -> None:
        """Close every connection."""
        self.is_running = False
        self._registrations.stop()
        self.remoting.close()

    def _save_kv_config(self) -> None:
        assert self._kv_file is not None
        self._kv_file.save(self.kv_config.encode())

    def __repr__(self) -> str:
        return f"<NameServer {self.address}: {self.routes!r}>"


def request_table(state: NameServerState, registrations: Registrations) -> Mapping[int, Handler]:
    """The handlers of a name server by request code."""
    routes, settings, code = RouteQueries(state), SettingsRequests(state), RequestCode
    handlers = {
        code.REGISTER_BROKER: registrations.register_broker,
        code.UNREGISTER_BROKER: registrations.unregister_broker,
        code.QUERY_DATA_VERSION: registrations.query_data_version,
        code.GET_ROUTEINFO_BY_TOPIC: routes.get_routeinfo_by_topic,
        code.GET_BROKER_CLUSTER_INFO: routes.get_broker_cluster_info,
        code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: routes.get_all_topic_list_from_nameserver,
        code.GET_TOPICS_BY_CLUSTER: routes.get_topics_by_cluster,
        code.GET_SYSTEM_TOPIC_LIST_FROM_NS: routes.get_system_topic_list_from_ns,
        code.GET_UNIT_TOPIC_LIST: routes.get_unit_topic_list,
        code.GET_HAS_UNIT_SUB_TOPIC_LIST: routes.get_has_unit_sub_topic_list,
        code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: routes.get_has_unit_sub_ununit_topic_list,
        code.REGISTER_TOPIC_IN_NAMESRV: routes.register_topic_in_namesrv,
        code.DELETE_TOPIC_IN_NAMESRV: routes.delete_topic_in_namesrv,
        code.WIPE_WRITE_PERM_OF_BROKER: routes.wipe_write_perm_of_broker,
        code.ADD_WRITE_PERM_OF_BROKER: routes.add_write_perm_of_broker,
        code.PUT_KV_CONFIG: settings.put_kv_config,
        code.GET_KV_CONFIG: settings.get_kv_config,
        code.DELETE_KV_CONFIG: settings.delete_kv_config,
        code.GET_KVLIST_BY_NAMESPACE: settings.get_kvlist_by_namespace,
        code.GET_NAMESRV_CONFIG: settings.get_namesrv_config,
        code.UPDATE_NAMESRV_CONFIG: settings.update_namesrv_config,
    }
    return {number: answering(handle) for number, handle in handlers.items()}

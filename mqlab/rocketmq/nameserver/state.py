"""What one name server knows: its ports, its settings, the routes and the key-value configuration.

All of it is memory, but for the key-value configuration when ``kv_config_path`` names a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.nameserver.kv_config import KvConfig
from mqlab.rocketmq.nameserver.routes import RouteTable
from mqlab.rocketmq.ports import Ports


@dataclass(slots=True, eq=False)
class NameServerState:
    """One name server's state. ``started_ms`` changes when it starts."""

    ports: Ports
    config: NameServerConfig
    routes: RouteTable
    kv_config: KvConfig
    now_ms: Callable[[], int]
    started_ms: int

    def change_config(self, config: NameServerConfig) -> None:
        """Use other settings while the name server runs."""
        self.config = config
        self.routes.default_timeout_ms = config.default_broker_channel_expired_time
        self.routes.delete_topics = config.delete_topic_with_broker_registration


def open_state(ports: Ports, config: NameServerConfig) -> NameServerState:
    """The state of a name server that no broker has registered at yet."""
    now_ms = ports.clock.now_ms
    routes = RouteTable(
        now_ms,
        default_timeout_ms=config.default_broker_channel_expired_time,
        delete_topics=config.delete_topic_with_broker_registration,
        note=ports.note,
    )
    return NameServerState(ports, config, routes, KvConfig(), now_ms, now_ms())

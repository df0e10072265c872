"""Every setting of a name server, with RocketMQ's names and defaults.

Mirrors: NamesrvConfig and the name server's NettyServerConfig. ``Lab(name_server={…})`` sets them.

    name in snake_case          default      in ms unless the comment gives another unit

Left out: thread pools, the built-in controller, acting masters.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.errors import UsageError


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """A name server's settings. Mirrors NamesrvConfig."""

    listen_port: int = 9876
    scan_not_active_broker_interval: int = 5_000
    default_broker_channel_expired_time: int = 120_000  # for registrations without a time of their own
    order_message_enable: bool = False  # add the order configuration of the topic to routes
    return_order_topic_config_to_broker: bool = True
    delete_topic_with_broker_registration: bool = False
    need_wait_for_service: bool = False
    wait_seconds_for_service: int = 45  # s
    enable_all_topic_list: bool = True  # answer GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    enable_topic_list: bool = True  # answer the requests for lists of some topics
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"  # not changed by UPDATE_NAMESRV_CONFIG
    kv_config_path: str = ""  # a file that keeps the key-value configuration; empty: memory only

    def __post_init__(self) -> None:
        for name in ("scan_not_active_broker_interval", "default_broker_channel_expired_time"):
            if getattr(self, name) <= 0:
                raise UsageError(f"NameServerConfig.{name} is {getattr(self, name)}, expected a number above 0")

"""Every setting of a name server in one place, with RocketMQ's names and defaults.

Mirrors: NamesrvConfig and the name server's NettyServerConfig. ``Lab(name_server={…})`` sets them.

    name in snake_case          default      unit: ms unless the comment says otherwise

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
    default_broker_channel_expired_time: int = 120_000  # for registrations that do not bring their own
    order_message_enable: bool = False  # answer route questions with the order configuration of the topic
    return_order_topic_config_to_broker: bool = True
    delete_topic_with_broker_registration: bool = False
    need_wait_for_service: bool = False
    wait_seconds_for_service: int = 45  # s
    enable_all_topic_list: bool = True  # answer 206, every topic
    enable_topic_list: bool = True  # answer 224 and 311 to 313, some topics
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"  # settings that 318 may not change
    kv_config_path: str = ""  # a file that keeps the key-value configuration; empty: memory only

    def __post_init__(self) -> None:
        for name in ("scan_not_active_broker_interval", "default_broker_channel_expired_time"):
            if getattr(self, name) <= 0:
                raise UsageError(f"NameServerConfig.{name} is {getattr(self, name)}, expected a number above 0")

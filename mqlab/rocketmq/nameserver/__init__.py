"""The name server: which broker serves which queues, as the brokers last registered it."""

from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.nameserver.nameserver import NameServer

__all__ = ["NameServer", "NameServerConfig"]

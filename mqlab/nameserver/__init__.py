"""The name server: which broker serves which queues, as the brokers last registered it."""

from mqlab.nameserver.config import NameServerConfig
from mqlab.nameserver.nameserver import NameServer

__all__ = ["NameServer", "NameServerConfig"]

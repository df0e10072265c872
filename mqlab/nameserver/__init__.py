"""The name server: who serves which queues, as the brokers last told it."""

from mqlab.nameserver.config import NameServerConfig
from mqlab.nameserver.nameserver import NameServer

__all__ = ["NameServer", "NameServerConfig"]

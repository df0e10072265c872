"""The broker: request handlers over the tables they read and the store they write."""

from mqlab.broker.broker import Broker
from mqlab.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig"]

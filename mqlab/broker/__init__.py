"""The broker: handlers of requests, the tables they read, and the store they write to."""

from mqlab.broker.broker import Broker
from mqlab.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig"]

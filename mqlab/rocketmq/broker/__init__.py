"""The broker: handlers of requests, the tables they read, and the store they write to."""

from mqlab.rocketmq.broker.broker import Broker
from mqlab.rocketmq.broker.config import BrokerConfig

__all__ = ["Broker", "BrokerConfig"]

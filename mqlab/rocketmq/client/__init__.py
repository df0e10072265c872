"""The clients: producers and consumers, and what they share.

Mirrors: the client module of RocketMQ (package org.apache.rocketmq.client).

    producer, transaction_producer            a program sends with these          their parts: sending
    push_consumer                             its listener is called              their parts: consuming
    pull_consumer, lite_pull_consumer         the program asks for messages
    simple_consumer                           the program receives messages on lease
    pull_schedule                             is called when it is time to ask
    allocate, settings, statuses              values that a program chooses from
    instance                                  one per process: connections, routes, heartbeats, its members

    parts are handed a state (consuming/member_state.py), the access to the cluster (instance/cluster_access.py) and
    the functions that they call; none of them holds the client that it is a part of

Left out: request-reply, namespaces, ACL signatures, TLS.
"""

from mqlab.rocketmq.client.lite_pull_consumer import LitePullConsumer
from mqlab.rocketmq.client.producer import Producer
from mqlab.rocketmq.client.pull_consumer import PullConsumer
from mqlab.rocketmq.client.pull_schedule import PullConsumerScheduleService
from mqlab.rocketmq.client.push_consumer import PushConsumer
from mqlab.rocketmq.client.simple_consumer import SimpleConsumer
from mqlab.rocketmq.client.transaction_producer import TransactionProducer

__all__ = [
    "LitePullConsumer",
    "Producer",
    "PullConsumer",
    "PullConsumerScheduleService",
    "PushConsumer",
    "SimpleConsumer",
    "TransactionProducer",
]

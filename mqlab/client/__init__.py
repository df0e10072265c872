"""The clients: producers and consumers, and what they share.

Mirrors: the client module of RocketMQ (package org.apache.rocketmq.client). Every lab uses it through
``lab.producer`` and ``lab.push_consumer``.

    mq_client ── routes, broker_calls         one per process: connections, routes, heartbeats, who lives here
    producer ── sending, queue_selection      send: which queue, which broker, how often
    push_consumer ── rebalance, pull_loop     which queues are mine; fetch, filter, keep
        ── concurrently | orderly             run the listener, send back what failed, move the offset
        ── offset_store                       how far the group is
    pull_consumer, lite_pull_consumer         the caller asks for messages itself
    pull_schedule                             is called when it is time to ask

Left out: POP consumption, request-reply, namespaces, ACL signatures, TLS.
"""

from mqlab.client.lite_pull_consumer import LitePullConsumer
from mqlab.client.producer import Producer
from mqlab.client.pull_consumer import PullConsumer
from mqlab.client.pull_schedule import PullConsumerScheduleService
from mqlab.client.push_consumer import PushConsumer
from mqlab.client.transaction_producer import TransactionProducer

__all__ = [
    "LitePullConsumer",
    "Producer",
    "PullConsumer",
    "PullConsumerScheduleService",
    "PushConsumer",
    "TransactionProducer",
]

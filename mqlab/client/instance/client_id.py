"""The name of one client instance, and the instance for it.

Mirrors: ClientConfig.buildMQClientId and MQClientManager. Lab 03 has two clients with one id.

    ip@instance_name[@unit_name][@STREAM]        10.0.0.4@billing-1

RocketMQ replaces the instance name DEFAULT by pid#nanoTime so that two processes on one machine differ; here the
instance name is the node's name, which is unique and the same in every run.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.client.instance.mq_client import INNER_PRODUCER_GROUP, MQClient
from mqlab.client.sending.sender import Sender
from mqlab.client.settings import ClientConfig, ProducerConfig
from mqlab.ports import Ports

STREAM_MARK = "ReqT"  # in every request of a pull client: 0 stands for "stream"


def build_client_id(ports: Ports, config: ClientConfig, *, stream: bool = False) -> str:
    """The client id; ``stream`` is how lite pull consumers mark theirs."""
    parts = [ports.ip, config.instance_name or ports.node]
    if config.unit_name:
        parts.append(config.unit_name)
    if stream:
        parts.append("STREAM")
    return "@".join(parts)


def client_of(ports: Ports, name_servers: Sequence[str], config: ClientConfig, *, stream: bool = False) -> MQClient:
    """A client instance of its own, with the inner producer that sends on behalf of consumers."""
    client = MQClient(ports, name_servers, build_client_id(ports, config, stream=stream), config)
    if stream:
        client.marks = {STREAM_MARK: "0"}
    client.inner_sender = Sender(client, INNER_PRODUCER_GROUP, ProducerConfig())
    client.register_producer(client.inner_sender)
    return client

"""The name of one client instance.

Mirrors: ClientConfig.buildMQClientId and MQClientManager.

    ip@instance_name[@unit_name][@STREAM]        10.0.0.4@billing-1

RocketMQ replaces the instance name DEFAULT by pid#nanoTime so that two processes on one machine differ; here the
instance name is the node's name, which is unique and the same in every run.
"""

from __future__ import annotations

from mqlab.client.settings import ClientConfig
from mqlab.ports import Ports


def build_client_id(ports: Ports, config: ClientConfig, *, stream: bool = False) -> str:
    """The client id; ``stream`` is how pull consumers mark theirs."""
    parts = [ports.ip, config.instance_name or ports.node]
    if config.unit_name:
        parts.append(config.unit_name)
    if stream:
        parts.append("STREAM")
    return "@".join(parts)

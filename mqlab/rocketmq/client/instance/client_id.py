"""The name of one client instance.

Mirrors: ClientConfig.buildMQClientId and MQClientManager.

    client_ip@instance_name[@unit_name][@STREAM]        10.0.0.4@billing-1

RocketMQ takes the machine's address as the client's IP, and replaces the instance name DEFAULT by pid#nanoTime so that
two processes on one machine differ. Here the defaults are the node's address and the node's name, which is unique and
the same in every run.

Nothing checks that an id is unique. Two processes get the same one when an instance name was copied with the
configuration and their addresses are equal, as those of containers on different machines often are. The broker then
lists the id twice, because it knows members by their connections. A strategy that looks for its own place in that list
finds the first one in both processes: both own the same queues, and the second place's queues have no owner. A lock for
orderly consumption is given to an id, so both processes have it.
"""

from __future__ import annotations

from mqlab.rocketmq.client.settings import ClientConfig
from mqlab.rocketmq.ports import Ports


def build_client_id(ports: Ports, config: ClientConfig, *, stream: bool = False) -> str:
    """The client id; ``stream`` is how pull consumers mark theirs."""
    parts = [config.client_ip or ports.ip, config.instance_name or ports.node]
    if config.unit_name:
        parts.append(config.unit_name)
    if stream:
        parts.append("STREAM")
    return "@".join(parts)

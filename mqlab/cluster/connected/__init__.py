"""mqlab's clients in real time, against a served cluster or a real RocketMQ.

    with mqlab.connect("127.0.0.1:9876") as cluster:
        cluster.producer("shop").send(Message("orders", b"..."))

Left out: what only a Lab has: a virtual clock, a journal, faults, deliveries, pictures.
"""

from mqlab.cluster.connected.cluster import Cluster, connect, connect_from_environment
from mqlab.cluster.connected.recording import Recording

__all__ = ["Cluster", "Recording", "connect", "connect_from_environment"]

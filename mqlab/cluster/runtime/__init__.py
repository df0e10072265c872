"""The drivers of nodes that talk to other processes: real time, TCP to any address, one event loop for all nodes.

Mirrors: one JVM with Netty, in which a name server, brokers or clients live. ``mqlab serve`` and ``mqlab.connect`` use
it; a Lab does not.

    EventLoop ── ports(node, ip) ─▶ Ports     clock: loop_clock, network: tcp, workers: loop_workers
       asyncio: every handler of every node runs on this one loop, to completion

Left out: a journal, faults, seeds. What a node notes is logged if an operator needs it, not kept.
"""

from mqlab.cluster.runtime.event_loop import EventLoop
from mqlab.cluster.runtime.tcp import PeerLimits, Peers

__all__ = ["EventLoop", "PeerLimits", "Peers"]

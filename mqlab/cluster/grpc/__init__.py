"""The gRPC front: what RocketMQ's 5.x clients speak, in front of the brokers of this process.

Mirrors: the proxy of RocketMQ 5.3.3 in local mode. Needs the extra ``grpc``.

    a 5.x client ── gRPC ──▶ service ──▶ front ──▶ sending, receiving, acknowledging, … ──▶ the broker's own handlers

The front is a translator with four tables of its own: clients and their settings, leases that it renews, open
transactions, and the round robin of its sends. They are in memory: a restart forgets them, and clients report again.

Left out: cluster mode, namespaces, remoting over the same port, batches of acks.
"""

import os

from mqlab.extras import need

need("grpc")
# With them, a process that gRPC's threads work in cannot fork safely: a child such as Spark's JVM dies now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

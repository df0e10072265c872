"""The processes that send and consume: addresses, and the beginnings of the ids they make.

Mirrors: what MessageClientIDSetter takes from a JVM. A client is recognised by its born host and by its UNIQ_KEYs.

    number    0 1 order-service   2 3 payment-service   4 5 logistics      two processes each
              6 ... 11  billing, shipping, notification                    two each
              12 the warehouse system
    an id     ip, pid, class loader (20 letters, one table row per process) | ms of the month (8) | counter (4)

Each broker has processes of its own, as in a cell of a larger platform, so that brokers can be written apart.
Left out: restarts of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from mqlab.traffic.draws import Array
from mqlab.traffic.model import INSTANCES, PRODUCERS, TRACED
from mqlab.traffic.text_columns import hexadecimal, joined, pool
from mqlab.wire.host import Host, encode_host
from mqlab.wire.ids import UniqueIdMaker

FIRST_CONSUMER = len(PRODUCERS) * INSTANCES
WAREHOUSE = FIRST_CONSUMER + len(TRACED) * INSTANCES
COUNT = WAREHOUSE + 1
_PREFIX = 20


class Clients:
    """The processes around one broker, on a day that begins at ``start_ms``."""

    def __init__(self, broker: int, start_ms: int) -> None:
        hosts = [self.host(broker, number) for number in range(COUNT)]
        self.hosts = pool([encode_host(host) for host in hosts])
        self._prefixes = pool(_prefixes(broker, hosts, start_ms))
        first = datetime.fromtimestamp(start_ms // 1000, UTC).replace(day=1, hour=0, minute=0, second=0)
        self._month_ms = int(first.timestamp()) * 1000

    @staticmethod
    def host(broker: int, number: int) -> Host:
        """Where a process sends from."""
        return (f"10.{20 + broker // 250}.{broker % 250}.{10 + number}", 40_000 + 37 * number)

    @staticmethod
    def broker_host(broker: int) -> Host:
        """Where the broker listens."""
        return (f"10.{20 + broker // 250}.{broker % 250}.2", 10_911)

    def ids(self, clients: Array, times_ms: Array, counters: Array) -> Array:
        """UNIQ_KEYs as text of 32 letters: made by these clients at these times, with these counters (16 bits)."""
        passed = hexadecimal(times_ms - self._month_ms, 8)
        return joined(self._prefixes[clients], passed, hexadecimal(counters, 4))


def _prefixes(broker: int, hosts: Sequence[Host], start_ms: int) -> list[bytes]:
    loaders = [0x1B2C6EC2 + 7919 * broker + 104_729 * number for number in range(COUNT)]
    makers = [UniqueIdMaker(host[0], 4000 + 7 * n, loaders[n]) for n, host in enumerate(hosts)]
    return [maker.next(start_ms)[:_PREFIX].encode() for maker in makers]


def consumer(numbers: Array) -> Array:
    """Client numbers of consumer processes that are counted from 0."""
    return np.asarray(numbers) + FIRST_CONSUMER

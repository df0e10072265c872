"""The processes that send and consume: addresses, and the beginnings of the ids they make.

Mirrors: what MessageClientIDSetter takes from a JVM. A client is recognised by its born host and by its UNIQ_KEYs.

    number    0 1 order-service   2 3 payment-service   4 5 logistics      two processes each
              6 ... 11  billing, shipping, notification                    two each
              12 the warehouse system
              13 ...  processes that were started again, and third members: three members of each group, 12 lives each
              the last two send invoices
    an id     ip, pid, class loader (20 letters, one table row per process) | ms of the month (8) | counter (4)

Each broker has processes of its own, as in a cell of a larger platform, so that brokers can be written apart.
A process that is started again is on the same machine, with another port and another beginning of its ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import INSTANCES, PRODUCERS, TRACED
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.writing.columns.text_columns import hexadecimal, joined, pool
from mqlab.rocketmq.wire.host import Host, encode_host
from mqlab.rocketmq.wire.ids import UniqueIdMaker

FIRST_CONSUMER = len(PRODUCERS) * INSTANCES
WAREHOUSE = FIRST_CONSUMER + len(TRACED) * INSTANCES
_ORDINARY = WAREHOUSE + 1
MEMBERS, LIVES = 3, 12
INVOICE_SERVICE = _ORDINARY + len(TRACED) * MEMBERS * LIVES
COUNT = INVOICE_SERVICE + INSTANCES
_PREFIX = 20


class Clients:
    """The processes around one broker, on a day that begins at ``start_ms``."""

    def __init__(self, broker: int, start_ms: int, incidents: Sequence[Incident] = ()) -> None:
        hosts = [self.host(broker, number) for number in range(COUNT)]
        self.hosts = pool([encode_host(host) for host in hosts])
        self._prefixes = pool(_prefixes(broker, hosts, start_ms))
        first = datetime.fromtimestamp(start_ms // 1000, UTC).replace(day=1, hour=0, minute=0, second=0)
        self._month_ms = int(first.timestamp()) * 1000
        # A clock belongs to a machine, so a process that is started again has it, too.
        machines = np.array([machine(number) for number in range(COUNT)])
        self._clocks = [
            (i.start_ms, i.end_ms, (machines == machine(i.client)) * (i.skew_ms or 0))
            for i in incidents
            if i.kind == "clock_skew" and i.client is not None
        ]

    @staticmethod
    def host(broker: int, number: int) -> Host:
        """Where a process sends from."""
        return (f"10.{20 + broker // 250}.{broker % 250}.{10 + machine(number)}", 40_000 + 37 * number)

    @staticmethod
    def broker_host(broker: int) -> Host:
        """Where the broker listens."""
        return (f"10.{20 + broker // 250}.{broker % 250}.2", 10_911)

    def clock_ms(self, clients: Array, times_ms: Array) -> Array:
        """What the clocks of these clients show at these times."""
        shown = times_ms
        for start_ms, end_ms, ahead_ms in self._clocks:
            shown = shown + np.where((times_ms >= start_ms) & (times_ms < end_ms), ahead_ms[clients], 0)
        return shown

    def ids(self, clients: Array, times_ms: Array, counters: Array) -> Array:
        """UNIQ_KEYs as text of 32 letters: made by these clients at these times, with these counters (16 bits)."""
        passed = hexadecimal(times_ms - self._month_ms, 8)
        return joined(self._prefixes[clients], passed, hexadecimal(counters, 4))


def _prefixes(broker: int, hosts: Sequence[Host], start_ms: int) -> list[bytes]:
    loaders = [0x1B2C6EC2 + 7919 * broker + 104_729 * number for number in range(COUNT)]
    makers = [UniqueIdMaker(host[0], 4000 + 7 * n, loaders[n]) for n, host in enumerate(hosts)]
    return [maker.next(start_ms)[:_PREFIX].encode() for maker in makers]


def consumer(group: int, member: Array | int, life: Array | int) -> Array:
    """Client numbers of a group's members (0, 1, or 2 for one that joined) in a life, which is 0 before any restart."""
    member, life = np.asarray(member), np.asarray(life)
    first = FIRST_CONSUMER + group * INSTANCES + member
    later = _ORDINARY + (group * MEMBERS + member) * LIVES + np.minimum(life, LIVES - 1)
    return np.where((life == 0) & (member < INSTANCES), first, later)


def address(broker: int, client: int) -> str:
    """A process as a log of its broker names it, such as 10.20.0.12:40074."""
    return ":".join(str(part) for part in Clients.host(broker, client))


def members_of(clients: Array) -> Array:
    """Which member of its group each consumer process is."""
    return np.where(
        clients < _ORDINARY, (clients - FIRST_CONSUMER) % INSTANCES, (clients - _ORDINARY) // LIVES % MEMBERS
    )


def machine(number: int) -> int:
    """The machine on which a process runs: those of lives after the first are on that of the first."""
    if number < _ORDINARY:
        return number
    if number >= INVOICE_SERVICE:
        return number - INVOICE_SERVICE + _ORDINARY + len(TRACED)
    group, member = divmod((number - _ORDINARY) // LIVES, MEMBERS)
    return FIRST_CONSUMER + group * INSTANCES + member if member < INSTANCES else _ORDINARY + group

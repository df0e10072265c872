"""Which name server a client asks: one of a shuffled list, kept as long as its connection lives.

Mirrors: NettyRemotingClient.getAndCreateNameserverChannelAsync.

    list (shuffled)   b:9876  a:9876            chosen = a:9876, until its connection closes or a call to it fails
    next failure ─▶   index += 1, chosen = list[index % n]; the failing call itself is not repeated

An answer "no such topic" changes nothing, a stale answer neither.
Left out: finding the list by HTTP or DNS.
"""

from __future__ import annotations

import random  # as a type only: the numbers come from ports.rng
from collections.abc import Sequence

from mqlab.errors import UsageError


class NameServerChoice:
    """The list of name server addresses and the one in use."""

    def __init__(self, addresses: Sequence[str], rng: random.Random) -> None:
        self._rng = rng
        self._index = rng.randrange(999)
        self.chosen: str | None = None
        self.addresses: list[str] = []
        self.update(addresses)

    def update(self, addresses: Sequence[str]) -> None:
        """Take a new list; the chosen one stays if it is in it. An unchanged set keeps its order."""
        if not addresses:
            raise UsageError("no name server address", hint='pass at least one "ip:port"')
        if sorted(addresses) != sorted(self.addresses):
            self.addresses = list(addresses)
            self._rng.shuffle(self.addresses)
        if self.chosen not in self.addresses:
            self.chosen = None

    def current(self) -> str:
        """The address to ask now."""
        if self.chosen is None:
            self._index += 1
            self.chosen = self.addresses[self._index % len(self.addresses)]
        return self.chosen

    def failed(self, address: str) -> None:
        """A call to this address failed, or its connection is gone: the next call takes the next one."""
        if self.chosen == address:
            self.chosen = None

    def __repr__(self) -> str:
        return f"<NameServerChoice {self.chosen or 'none yet'} of {len(self.addresses)}>"

"""Asks brokers that could not be reached whether they answer again, so that producers need not find out by sending.

Mirrors: LatencyFaultToleranceImpl.startDetector and detectByOneRound (startDetectorEnable, off by default).

    every 3 s     each known broker that was not asked within 2 s ─▶ 30 GET_MAX_OFFSET, 200 ms
    it answers    reachable again              no address any more: forgotten

Without the detector only an error answer makes a broker unreachable; with it a transport error does, too.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.timers import Periodic
from mqlab.rocketmq.client.sending.fault_strategy import LatencyFaultStrategy
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.message import MessageQueue

ROUND_MS = 3_000


class FaultDetector:
    """Asks the brokers that ``strategy`` knows. ``topics`` names those in use: the first is asked about."""

    def __init__(
        self,
        cluster: ClusterAccess,
        strategy: LatencyFaultStrategy,
        topics: Callable[[], list[str]],
        *,
        interval_ms: int,
        timeout_ms: int,
    ) -> None:
        self._cluster = cluster
        self._strategy = strategy
        self._topics = topics
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._timer = Periodic(cluster.ports.clock, "producer.detect", ROUND_MS, self._tick)

    def start(self) -> None:
        """Begin to ask; the first round is in 3 s."""
        self._timer.start(ROUND_MS)

    def stop(self) -> None:
        """Stop asking."""
        self._timer.stop()

    def _tick(self) -> None:
        background(self._cluster.ports, self.detect(), "fault detector")

    @flow
    def detect(self) -> Flow[None]:
        """One round over all known brokers, one after the other."""
        clock = self._cluster.ports.clock
        for name, item in list(self._strategy.items.items()):
            if clock.now_ms() < item.check_from_ms:
                continue
            item.check_from_ms = clock.now_ms() + self._interval_ms
            address = self._cluster.routes.master_address(name)
            topics = self._topics()
            if address is None:
                self._strategy.items.pop(name, None)
            elif topics:
                try:
                    yield self._cluster.calls.max_offset(address, MessageQueue(topics[0], name, 0), self._timeout_ms)
                    item.reachable = True
                except MqlabError as error:
                    self._cluster.ports.note("producer.not_reached", broker=name, error=error.text)

    def __repr__(self) -> str:
        return f"<FaultDetector {self._timer!r}>"

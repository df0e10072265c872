"""The event loop on which served nodes live: on a thread of its own, or on the main thread of a server.

Mirrors: the JVM of mqnamesrv, mqbroker or a client program. It is asyncio's loop; a node's code sees only its ports.

    loop = EventLoop(); loop.start()                   a thread of its own: mqlab.connect
    loop.run_until_stopped()                           this thread: mqlab serve
    loop.ports("broker-a", "127.0.0.1", files)         what a node is made of

An error that leaves a handler is logged and counted; the loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.cluster.runtime.loop_clock import AdvancingClock, LoopClock
from mqlab.cluster.runtime.loop_workers import LoopWorkers
from mqlab.cluster.runtime.recorder import Recorder
from mqlab.cluster.runtime.tcp import PeerLimits, Peers, TcpNetwork
from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Access, Files, Ports

log = logging.getLogger("mqlab.nodes")

LEVELS = {
    "handler.failed": logging.WARNING,
    "part.failed": logging.WARNING,
    "part.recovered": logging.WARNING,
    "ha.connected": logging.WARNING,
    "ha.lost": logging.WARNING,
    "ha.block_refused": logging.WARNING,
    "channel.broken": logging.WARNING,
    "consumer.refused": logging.WARNING,
    "config.damaged": logging.ERROR,
    "store.problem": logging.ERROR,
    "timer.problem": logging.ERROR,
    "pop.problem": logging.ERROR,
    "schedule.undeliverable": logging.ERROR,
}
"""Kinds of notes that an operator reads, and their levels: damage is an ERROR, as in RocketMQ. Others are dropped."""


class EventLoop:
    """One loop, its clock and its connections. ``failures`` counts the errors that left a handler.

    ``not_before_ms``: the earliest time the clock may show.
    """

    def __init__(self, *, limits: PeerLimits | None = None, not_before_ms: int = 0, can_advance: bool = False) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._failed)
        clock = AdvancingClock if can_advance else LoopClock
        self.clock: LoopClock = clock(self.loop, not_before_ms=not_before_ms)
        self.peers = Peers(self.loop, limits)
        self.failures = 0
        self._workers: list[LoopWorkers] = []
        self._thread: threading.Thread | None = None
        self._thread_id: int | None = None

    def ports(
        self,
        node: str,
        ip: str,
        files: Files,
        *,
        bind: str | None = None,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
        access: Access | None = None,
    ) -> Ports:
        """The ports of a node. ``ip`` is the address that it tells others, ``bind`` where it listens.

        A node that listens writes a line for every request that it refuses.
        """
        workers = LoopWorkers(self.loop, lambda: self._thread_id, node)
        self._workers.append(workers)
        return Ports(
            node=node,
            ip=ip,
            clock=self.clock,
            network=TcpNetwork(self.peers, node, bind, server_tls=server_tls, client_tls=client_tls),
            files=files,
            workers=workers,
            rng=random.Random(secrets.randbits(64)),
            note=self._noter(node),
            annotate=_nothing,
            access=access,
            refused=None if bind is None else self._refuser(node),
            keeps_journal=False,
        )

    def record(self, path: str | Path) -> None:
        """Write down from now on what passes over new connections; see mqlab.cluster.runtime.recorder."""
        try:
            self.peers.recorder = Recorder(path, self.clock.now_ms)
        except OSError as error:
            raise UsageError(f"cannot write a recording to {path}: {error.strerror or error}") from error

    def start(self) -> None:
        """Run on a daemon thread of its own."""
        self._thread = threading.Thread(target=self.run_until_stopped, name="mqlab-loop", daemon=True)
        self._thread.start()

    def run_until_stopped(self) -> None:
        """Run on the calling thread until ``stop``."""
        asyncio.set_event_loop(self.loop)
        self._thread_id = threading.get_ident()
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.peers.close())
            self._end_tasks()
            if self.peers.recorder is not None:
                self.peers.recorder.close()
            self.loop.close()

    def stop(self) -> None:
        """End the loop from any thread; calls that wait end with NodeDown. Waits for the loop's own thread."""
        for workers in self._workers:
            workers.end()
        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _noter(self, node: str) -> Callable[..., None]:
        def note(kind: str, /, **values: Any) -> None:
            level = LEVELS.get(kind)
            if level is not None:
                log.log(level, "%s %s %s", node, kind, " ".join(f"{name}={value}" for name, value in values.items()))

        return note

    def _refuser(self, node: str) -> Callable[[str], None]:
        return lambda what: log.warning("%s refused %s", node, what)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures += 1
        log.error("%s", context.get("message", "an error on the loop"), exc_info=context.get("exception"))

    def __repr__(self) -> str:
        return f"<EventLoop {len(self.peers.connections)} connections, {self.failures} failures>"


def _nothing(about: Any) -> None:
    """A served node keeps no journal, so no reader asks what a step was about."""

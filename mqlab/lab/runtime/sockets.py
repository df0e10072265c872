"""The links of a world in real time: the same ends, rules and faults, but the bytes go through TCP on loopback.

Mirrors: the sockets under Netty and under RocketMQ's replication link. Used by the threads driver.

    node's loop ── send ──▶ socket ══ kernel ══ socket ──▶ one reading thread ── frame ──▶ other node's loop
    10.0.0.2:10912 stands for 127.0.0.1:<any free port>; the port of a caller identifies it

The kernel delivers bytes in pieces of any size: a frame step may bring half a request, or three.
A killed process shuts its sockets. A silent machine keeps them, and what arrives there is read and discarded.
Left out: other machines; clients that are not of this world.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mqlab.lab.runtime.links import CONNECT_TIMEOUT_MS, Link, Links, OnAccept
from mqlab.rocketmq.ports import OnClosed, OnData

if TYPE_CHECKING:
    from mqlab.lab.runtime.threads import ThreadWorld
    from mqlab.lab.runtime.world import Machine

LOOPBACK = "127.0.0.1"
READ_BYTES = 1 << 16


class Mark(NamedTuple):
    """Where one send ends in the stream, the step that sent it, and whether that step was periodic."""

    end: int
    step: int
    periodic: bool


class Wire:
    """The socket of one end, with marks for what was sent into it and has not arrived at the other end."""

    __slots__ = ("link", "marks", "received", "sent", "socket")

    def __init__(self, link: Link, end: socket.socket) -> None:
        self.link = link
        self.socket = end
        self.sent = 0
        self.received = 0
        self.marks: deque[Mark] = deque()


class SocketLinks(Links):
    """All links of one ThreadWorld. One thread accepts and reads; each node's own loop writes."""

    world: ThreadWorld

    def __init__(self, world: ThreadWorld, latency_ms: int) -> None:
        super().__init__(world, latency_ms)
        self._selector = selectors.DefaultSelector()
        self._wires: dict[Link, Wire] = {}
        self._sockets: dict[str, socket.socket] = {}  # listening, by the address they stand for
        self._calling: dict[int, Link] = {}  # by the port they call from
        self._todo: deque[Callable[[], None]] = deque()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._woken)
        self._thread: threading.Thread | None = None
        self._in_order = threading.RLock()
        self._running = True

    def listen(self, node: Machine, address: str, on_accept: OnAccept, on_data: OnData, on_closed: OnClosed) -> None:
        super().listen(node, address, on_accept, on_data, on_closed)
        self._stop_listening(address)
        listening = self._sockets[address] = socket.create_server((LOOPBACK, 0), backlog=128)
        self._watch(listening, partial(self._called, listening))

    def transmit(self, sender: Link, data: bytes) -> None:
        with self._in_order:
            wire = self._wires.get(sender)
            if wire is None or not self.passes(sender, data):
                return
            wire.sent += len(data)
            periodic = self.world.step_is_periodic
            if not periodic:
                self.world.count_busy(1)
            wire.marks.append(Mark(wire.sent, self.world.step_now, periodic))
            with suppress(OSError):  # the other end is closed: the event for that is on its way
                wire.socket.sendall(data)

    def heal(self) -> None:
        with self._in_order:  # held frames are sent before new ones
            super().heal()

    def drop_node(self, node: Machine, *, silent: bool) -> None:
        before = [address for address, listener in self._listeners.items() if listener[0] is node]
        super().drop_node(node, silent=silent)
        for address in before:
            self._stop_listening(address)

    def stop(self) -> None:
        """Close every socket and end the reading thread."""
        self._running = False
        self._later(lambda: None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        for end in [*self._sockets.values(), *(wire.socket for wire in list(self._wires.values()))]:
            end.close()
        self._wake_reader.close()
        self._wake_writer.close()
        self._selector.close()

    def call(self, connection: Link, target: Machine) -> None:
        listening = self._sockets.get(connection.remote_address)
        calling = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if listening is None:
                raise ConnectionRefusedError(connection.remote_address)
            calling.bind((LOOPBACK, 0))
            self._calling[calling.getsockname()[1]] = connection
            calling.settimeout(CONNECT_TIMEOUT_MS / 1_000)
            calling.connect(listening.getsockname())
            calling.settimeout(None)
        except OSError:
            calling.close()
            self._close_here(connection, "refused")
            return
        self._add_wire(connection, calling)

    def _called(self, listening: socket.socket) -> None:
        """A connection came in, on the reading thread: its accept is a step of the node that listens."""
        try:
            accepted, (_, port) = listening.accept()
        except OSError:  # no longer listening
            return
        client = self._calling.pop(port, None)
        if client is None or not client.peer_node.alive:
            accepted.close()
            return
        target = client.peer_node
        self._arm(client, target, "net.accept", lambda: self._answered(client, target, accepted))

    def _answered(self, client: Link, target: Machine, accepted: socket.socket) -> None:
        self._accept(client, target, lambda server: self._add_wire(server, accepted))
        if client.peer is None:
            accepted.close()

    def _add_wire(self, link: Link, end: socket.socket) -> None:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = self._wires[link] = Wire(link, end)
        self._watch(end, partial(self._readable, wire))

    def say_goodbye(self, closed: Link, reason: str) -> None:
        wire = self._wires.get(closed)
        if wire is not None:
            with suppress(OSError):  # what was sent before still arrives; then the other end reads the end
                wire.socket.shutdown(socket.SHUT_WR)

    def _stop_listening(self, address: str) -> None:
        listening = self._sockets.pop(address, None)
        if listening is not None:
            self._later(lambda: self._forget_socket(listening))

    def _watch(self, end: socket.socket, on_readable: Callable[[], None]) -> None:
        self._later(lambda: self._selector.register(end, selectors.EVENT_READ, on_readable))
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_all, name="mqlab-sockets", daemon=True)
            self._thread.start()

    def _later(self, action: Callable[[], object]) -> None:
        """Let the reading thread do something: the selector is its own."""
        self._todo.append(action)  # type: ignore[arg-type]
        with suppress(OSError):
            self._wake_writer.send(b"!")

    def _woken(self) -> None:
        self._wake_reader.recv(READ_BYTES)
        while self._todo:
            with suppress(OSError, ValueError, KeyError):  # a socket that was closed meanwhile
                self._todo.popleft()()

    def _read_all(self) -> None:
        while self._running:
            for key, _ in self._selector.select():
                try:
                    key.data()
                except Exception as failure:  # as in a node's loop: run_until raises it
                    self.world.failures.append(failure)

    def _readable(self, wire: Wire) -> None:
        try:
            data = wire.socket.recv(READ_BYTES)
        except OSError:
            data = b""
        link, sender = wire.link, wire.link.peer
        if not data:
            self._forget_socket(wire.socket)
            if self._is_heard(link) and sender is not None:
                self._arm(sender, link.node, "net.closed", lambda: self._ended(link))
            elif link in self._wires:
                del self._wires[link]
            return
        wire.received += len(data)
        step, periodic, whole = self._sent_by(sender, wire.received)
        if self._is_heard(link) and sender is not None:
            due_ms = self.world.now_ms + self.latency_ms + sender.node.delay_ms + link.node.delay_ms
            due_ms = sender.last_due_ms = max(due_ms, sender.last_due_ms)
            action = partial(self._deliver, sender, data)
            self.world.arm(link.node, due_ms, "frame", action, periodic=periodic, cause=step)
        self.world.count_busy(-whole)

    def _sent_by(self, sender: Link | None, received: int) -> tuple[int | None, bool, int]:
        """The last step whose bytes arrived whole, whether all of those were periodic, and how many were not."""
        marks = self._wires[sender].marks if sender in self._wires else deque[Mark]()
        step, periodic, whole = None, bool(marks), 0
        while marks and marks[0].end <= received:
            mark = marks.popleft()
            step, periodic, whole = mark.step, periodic and mark.periodic, whole + (not mark.periodic)
        return step, periodic and step is not None, whole

    def _is_heard(self, link: Link) -> bool:
        return link.is_open and link.node.alive and link.life == link.node.incarnation

    def _ended(self, link: Link) -> None:
        """The other end said goodbye, and everything before it was delivered."""
        self._wires.pop(link, None)
        if link.is_open:
            link.is_open = False
            self._forget(link)
            link.on_closed(link, "closed by peer")

    def _forget_socket(self, end: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(end)
        end.close()

"""In-process links between the nodes of a world: first in first out per direction, with latency, faults, real bytes.

Mirrors: TCP as Netty presents it to RocketMQ.

    connect ─▶ net.accept at the listener, or net.closed("refused", "timed out") back
    send    ─▶ frame at the peer, never before an earlier one
    close   ─▶ net.closed at the peer, after what was sent before

A killed process closes its connections, which peers notice at once. A powered-off machine is silent: peers notice it
by a time-out, and after a restart it answers old connections with "reset". A partition holds back frames and closes
until it heals, as TCP's retransmission would; new connections across it time out.
The threads driver builds on it (mqlab.lab.runtime.sockets): several threads, each link end used by its own node's only.
Left out: bandwidth, partial frames (real sockets bring them), TIME_WAIT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Connection, OnClosed, OnData

if TYPE_CHECKING:
    from mqlab.lab.runtime.world import Machine, World

OnAccept = Callable[[Connection], None]
FIRST_EPHEMERAL_PORT = 50_000
CONNECT_TIMEOUT_MS = 3_000  # Netty's connectTimeoutMillis


class Link:
    """One end of a link; see mqlab.rocketmq.ports.Connection."""

    __slots__ = (
        "held",
        "is_open",
        "last_due_ms",
        "life",
        "local_address",
        "network",
        "node",
        "on_closed",
        "on_data",
        "peer",
        "peer_node",
        "remote_address",
    )

    def __init__(
        self,
        network: Links,
        node: Machine,
        peer_node: Machine,
        local: str,
        remote: str,
        on_data: OnData,
        on_closed: OnClosed,
    ) -> None:
        self.network = network
        self.node = node
        self.life = node.incarnation
        self.peer_node = peer_node
        self.local_address = local
        self.remote_address = remote
        self.on_data = on_data
        self.on_closed = on_closed
        self.peer: Link | None = None
        self.is_open = True
        self.last_due_ms = 0  # when the last frame arrives; a later one must not overtake it
        self.held: list[bytes] = []  # sent into a partition

    def send(self, data: bytes) -> None:
        if self.is_open:
            self.network.transmit(self, data)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.network.finish(self, "closed by peer")

    def __repr__(self) -> str:
        return f"<{self.local_address} -> {self.remote_address} {'open' if self.is_open else 'closed'}>"


class Links:
    """All links of one world, with their partitions and drops."""

    def __init__(self, world: World[Any], latency_ms: int) -> None:
        self.world = world
        self.latency_ms = latency_ms
        self._listeners: dict[str, tuple[Machine, OnAccept, OnData, OnClosed]] = {}
        self._connections: dict[str, list[Link]] = {}
        self._ports: dict[str, int] = {}
        self._partitions: list[frozenset[str]] = []
        self._held_ends: list[tuple[Link, str]] = []  # closed during a partition, with the reason
        self._drops: dict[tuple[str, str], int] = {}

    def of(self, node: Machine) -> NodeNetwork:
        """The Network port of one node."""
        return NodeNetwork(self, node)

    def listen(self, node: Machine, address: str, on_accept: OnAccept, on_data: OnData, on_closed: OnClosed) -> None:
        taken = self._listeners.get(address)
        if taken is not None and taken[0].alive and taken[0] is not node:
            raise UsageError(f"{taken[0].name} listens at {address} already")
        self._listeners[address] = (node, on_accept, on_data, on_closed)

    def connect(self, node: Machine, address: str, on_data: OnData, on_closed: OnClosed) -> Link:
        ip = address.rpartition(":")[0]
        target = next((other for other in self.world.nodes.values() if other.ip == ip), None)
        port = self._ports[node.name] = self._ports.get(node.name, FIRST_EPHEMERAL_PORT - 1) + 1
        connection = Link(self, node, target or node, f"{node.ip}:{port}", address, on_data, on_closed)
        self._connections.setdefault(node.name, []).append(connection)
        if target is None:
            self._close_here(connection, "refused")
        elif self._is_cut(connection):
            self._give_up_connecting(connection)
        elif target.alive:
            self.call(connection, target)
        elif target.silent:
            self._give_up_connecting(connection)
        else:
            self._close_here(connection, "refused")
        return connection

    def call(self, connection: Link, target: Machine) -> None:
        """Ask a node that is up for a connection: it accepts or refuses in a step of its own."""
        self._arm(connection, target, "net.accept", lambda: self._accept(connection, target))

    def transmit(self, sender: Link, data: bytes) -> None:
        """Send bytes, which arrive as one frame event unless ``passes`` returns False."""
        target, peer = sender.peer_node, sender.peer
        is_same_life = peer is None or peer.life == target.incarnation
        if (is_same_life and target.alive and not self._drops and not self._partitions) or self.passes(sender, data):
            self._arm(sender, target, "frame", partial(self._deliver, sender, data))

    def passes(self, sender: Link, data: bytes) -> bool:
        """Whether bytes are sent now; if not, they are held, dropped, lost at a silent machine or reset."""
        source, target = sender.node.name, sender.peer_node.name
        if self._drops and self._drops.get((source, target), 0) > 0:
            self._drops[source, target] -= 1
            self.world.note(sender.node, "frame.dropped", to=target, bytes=len(data))
            return False
        if self._partitions and self._is_cut(sender):
            sender.held.append(data)
            return False
        peer = sender.peer
        if peer is not None and (not sender.peer_node.alive or peer.life != sender.peer_node.incarnation):
            if sender.peer_node.alive:
                self._close_here(sender, "reset")  # the machine is up again with another process
            return False
        return True

    def finish(self, closed: Link, reason: str) -> None:
        """One end was closed: close the other one after everything that was sent before."""
        self._forget(closed)
        if self._is_cut(closed):
            self._held_ends.append((closed, reason))
        elif closed.peer_node.alive:
            self.say_goodbye(closed, reason)

    def say_goodbye(self, closed: Link, reason: str) -> None:
        """Close the other end in a step of its node."""
        self._arm(closed, closed.peer_node, "net.closed", lambda: self._closed_by_peer(closed, reason))

    def open_links(self) -> list[tuple[str, str, str]]:
        """Open connections as (who opened it, to whom, at which address), each once."""
        links = {
            (link.node.name, link.peer_node.name, link.remote_address): None
            for links in self._connections.values()
            for link in links
            if link.is_open and link.remote_address in self._listeners
        }
        return list(links)

    def drop_node(self, node: Machine, *, silent: bool) -> None:
        """A process ends. Its sockets close and peers notice; if ``silent``, nothing is sent and no peer notices."""
        for connection in list(self._connections.get(node.name, ())):
            connection.is_open = False
            if not silent:
                self.finish(connection, "closed by peer")
        self._connections.pop(node.name, None)
        for connection in self._on_their_way_to(node):  # the node will not accept them
            if silent:
                self._give_up_connecting(connection)
            else:
                self._close_here(connection, "refused")
        for address in [address for address, listener in self._listeners.items() if listener[0] is node]:
            del self._listeners[address]

    def partition(self, node: str, other: str) -> None:
        """Hold back everything that two nodes send each other until heal()."""
        pair = frozenset((node, other))
        if pair not in self._partitions:
            self._partitions.append(pair)

    def heal(self) -> None:
        """End all partitions: what was held back arrives now, in order."""
        self._partitions.clear()
        for connections in list(self._connections.values()):
            for connection in list(connections):
                held, connection.held = connection.held, []
                for data in held:
                    connection.send(data)
        ends, self._held_ends = self._held_ends, []
        for closed, reason in ends:
            for data in closed.held:
                self.transmit(closed, data)
            self.finish(closed, reason)

    def _is_cut(self, link: Link) -> bool:
        """Whether a partition lies between the ends of a link."""
        return frozenset((link.node.name, link.peer_node.name)) in self._partitions

    def drop(self, sender: str, receiver: str, count: int) -> None:
        """Lose the next frames from one node to another."""
        self._drops[sender, receiver] = self._drops.get((sender, receiver), 0) + count

    def drop_no_more(self) -> None:
        """Forget the frames that were still to be lost."""
        self._drops.clear()

    def _arm(self, sender: Link, target: Machine, kind: str, action: Callable[[], None]) -> None:
        world = self.world
        due_ms = world.now_ms + self.latency_ms + sender.node.delay_ms + target.delay_ms
        if due_ms < sender.last_due_ms:
            due_ms = sender.last_due_ms
        sender.last_due_ms = due_ms
        world.arm(target, due_ms, kind, action, periodic=world.step_is_periodic)

    def _accept(self, client: Link, target: Machine, on_server: Callable[[Link], None] = lambda server: None) -> None:
        """Create the listener's end and pass it to ``on_server``, then to the listener."""
        listener = self._listeners.get(client.remote_address)
        if listener is None:
            self._close_here(client, "refused")
            return
        _, on_accept, on_data, on_closed = listener
        server = Link(self, target, client.node, client.remote_address, client.local_address, on_data, on_closed)
        server.peer, client.peer = client, server
        self._connections.setdefault(target.name, []).append(server)
        on_server(server)
        on_accept(server)

    def _deliver(self, sender: Link, data: bytes) -> None:
        peer = sender.peer
        if peer is not None and peer.is_open:
            peer.on_data(peer, data)

    def _closed_by_peer(self, closed: Link, reason: str) -> None:
        peer = closed.peer
        if peer is not None and peer.is_open:
            peer.is_open = False
            self._forget(peer)
            peer.on_closed(peer, reason)

    def _on_their_way_to(self, node: Machine) -> list[Link]:
        """Links to a node that it has not accepted."""
        return [
            link
            for links in self._connections.values()
            for link in links
            if link.peer_node is node and link.peer is None and link.node is not node
        ]

    def _give_up_connecting(self, connection: Link) -> None:
        """Let a connection fail with a time-out, because no peer answers."""
        self._close_here(connection, "timed out", CONNECT_TIMEOUT_MS)

    def _close_here(self, connection: Link, reason: str, after_ms: int | None = None) -> None:
        """Close a connection at its own node, one latency from now or after ``after_ms``."""

        def closed() -> None:
            if connection.is_open:
                connection.is_open = False
                self._forget(connection)
                connection.on_closed(connection, reason)

        due_ms = self.world.now_ms + (self.latency_ms if after_ms is None else after_ms)
        self.world.arm(connection.node, due_ms, "net.closed", closed, periodic=self.world.step_is_periodic)

    def _forget(self, connection: Link) -> None:
        mine = self._connections.get(connection.node.name, [])
        if connection in mine:
            mine.remove(connection)


class NodeNetwork:
    """The Network port of one node."""

    def __init__(self, network: Links, node: Machine) -> None:
        self._network = network
        self._node = node

    def listen(self, address: str, on_accept: OnAccept, on_data: OnData, on_closed: OnClosed) -> None:
        self._network.listen(self._node, address, on_accept, on_data, on_closed)

    def connect(self, address: str, on_data: OnData, on_closed: OnClosed) -> Link:
        return self._network.connect(self._node, address, on_data, on_closed)

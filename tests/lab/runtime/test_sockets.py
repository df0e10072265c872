"""Links over real sockets: the same rules as in-process ones, whatever pieces the kernel makes of the bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqlab.lab.runtime.threads import ThreadWorld
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Connection, Ports

LIMIT_MS = 60_000
TEXT = "привет 你好 🚀 ".encode()


class End:
    """A node that keeps what it hears."""

    def __init__(self, world: ThreadWorld, name: str) -> None:
        self.world = world
        self.ports: Ports = world.add_node(name, RealFiles())
        self.address = f"{self.ports.ip}:1234"
        self.heard: list[bytes] = []
        self.ended: list[str] = []
        self.links: list[Connection] = []

    def listen(self) -> None:
        self.ports.network.listen(self.address, self.links.append, self.on_data, self.on_closed)

    def call(self, other: End) -> Connection:
        link = self.ports.network.connect(other.address, self.on_data, self.on_closed)
        self.links.append(link)
        return link

    def on_data(self, link: Connection, data: bytes) -> None:
        self.heard.append(data)

    def on_closed(self, link: Connection, reason: str) -> None:
        self.ended.append(reason)

    @property
    def text(self) -> bytes:
        return b"".join(self.heard)


@pytest.fixture
def world() -> Iterator[ThreadWorld]:
    made = ThreadWorld(speed=20)
    yield made
    made.stop()


@pytest.fixture
def pair(world: ThreadWorld) -> tuple[End, End]:
    server, client = End(world, "server"), End(world, "client")
    server.listen()
    client.call(server)
    until(world, lambda: bool(server.links))
    return server, client


def until(world: ThreadWorld, condition: Any) -> None:
    world.run_until(condition, LIMIT_MS, "what the test waits for")


def test_bytes_arrive_in_order_both_ways(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    for number in range(200):
        client.links[0].send(f"{number} ".encode() + TEXT)
        server.links[0].send(f"{-number} ".encode())
    expected = b"".join(f"{number} ".encode() + TEXT for number in range(200))
    until(world, lambda: server.text == expected)
    until(world, lambda: client.text == b"".join(f"{-number} ".encode() for number in range(200)))


def test_a_megabyte_comes_in_pieces_and_whole(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    data = TEXT * 100_000
    client.links[0].send(data)
    until(world, lambda: len(server.text) == len(data))
    assert server.text == data and len(server.heard) > 1
    until(world, world.is_quiet)


def test_what_was_sent_before_the_goodbye_arrives_before_it(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    client.links[0].send(TEXT * 1_000)
    client.links[0].close()
    until(world, lambda: server.ended == ["closed by peer"])
    assert server.text == TEXT * 1_000
    server.links[0].send(b"too late")
    assert not server.links[0].is_open and client.ended == []


def test_nobody_listens(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    client.ports.network.connect(f"{server.ports.ip}:9", client.on_data, client.on_closed)
    client.ports.network.connect("10.9.9.9:1234", client.on_data, client.on_closed)
    until(world, lambda: client.ended == ["refused", "refused"])


def test_a_killed_node_is_noticed_and_a_silent_one_is_not(world: ThreadWorld, pair: tuple[End, End]) -> None:
    _, client = pair
    quiet = End(world, "quiet")
    quiet.listen()
    client.call(quiet)
    until(world, lambda: bool(quiet.links))
    for name, silent in (("server", False), ("quiet", True)):
        node = world.nodes[name]
        node.alive, node.silent = False, silent
        world.network.drop_node(node, silent=silent)
        world.disarm(node)
    until(world, lambda: client.ended == ["closed by peer"])
    client.links[1].send(TEXT)
    client.call(quiet)  # connecting to a silent machine
    until(world, lambda: client.ended == ["closed by peer", "timed out"])
    assert quiet.heard == [] and client.links[1].is_open


def test_a_partition_holds_bytes_back_in_order(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    world.network.partition("server", "client")
    for number in range(50):
        client.links[0].send(f"{number} ".encode())
    client.call(server)
    until(world, lambda: client.ended == ["timed out"])
    assert server.heard == []
    world.network.heal()
    client.links[0].send(b"end")
    until(world, lambda: server.text.endswith(b"end"))
    assert server.text == b"".join(f"{number} ".encode() for number in range(50)) + b"end"


def test_a_restarted_listener_is_found_at_its_old_address(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    node = world.nodes["server"]
    node.alive = False
    world.network.drop_node(node, silent=False)
    world.disarm(node)
    until(world, lambda: client.ended == ["closed by peer"])
    node.alive, node.incarnation = True, node.incarnation + 1
    server.ports = world.ports(node, RealFiles())
    server.listen()
    client.call(server).send(TEXT)
    until(world, lambda: server.text == TEXT)


def test_frames_name_the_step_that_sent_them(world: ThreadWorld, pair: tuple[End, End]) -> None:
    server, client = pair
    client.ports.clock.call_later(0, lambda: client.links[0].send(TEXT), "call")
    until(world, lambda: server.text == TEXT)
    frame = next(record for record in world.journal if record.kind == "frame")
    assert world.journal[frame.cause].node == "client"

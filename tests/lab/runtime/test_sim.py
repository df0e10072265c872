"""The simulated world on its own: order, time, links, listeners, faults."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from mqlab.errors import LimitReached, NodeDown, UsageError
from mqlab.lab.runtime.collector import NEW_OBJECTS
from mqlab.lab.runtime.sim import LEAST_SWEPT, SimWorld
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Promise, flow


def two_nodes(seed: int = 1) -> tuple[SimWorld, Ports, Ports]:
    world = SimWorld(seed=seed, start_ms=1_000)
    return world, world.add_node("server", RealFiles()), world.add_node("client", RealFiles())


def echo_server(ports: Ports) -> list[str]:
    heard: list[str] = []
    ports.network.listen(
        f"{ports.ip}:1",
        lambda connection: heard.append(f"accept {connection.remote_address}"),
        lambda connection, data: (heard.append(data.decode()), connection.send(b"<" + data + b">")),
        lambda connection, reason: heard.append(reason),
    )
    return heard


def test_deadlines_run_in_order_of_time_then_of_arming() -> None:
    world, server, _ = two_nodes()
    seen: list[tuple[str, int]] = []
    for name, due_ms in (("b", 2_000), ("a", 1_500), ("c", 2_000)):
        server.clock.call_at(due_ms, lambda name=name: seen.append((name, world.now_ms)), "timer")
    world.run_until_ms(3_000)
    assert seen == [("a", 1_500), ("b", 2_000), ("c", 2_000)]
    assert world.now_ms == 3_000


def test_a_cancelled_deadline_never_happens() -> None:
    world, server, _ = two_nodes()
    deadline = server.clock.call_later(10, lambda: pytest.fail("cancelled"), "timer")
    deadline.cancel()
    deadline.cancel()
    world.run_until_ms(2_000)
    assert world.busy == 0


def test_cancelled_deadlines_are_swept_out_and_the_others_keep_their_order() -> None:
    world, server, _ = two_nodes()
    seen: list[int] = []
    for number in range(2_000):
        server.clock.call_later(3_000, lambda: seen.append(-1), "remoting.timeout").cancel()
        if number % 20 == 0:
            server.clock.call_later(100 - number // 20, lambda number=number: seen.append(number), "timer")
    assert len(world._heap) < 2 * LEAST_SWEPT
    world.run_for_ms(5_000)
    assert seen == list(range(1_980, -1, -20))


def test_a_step_that_changes_nothing_keeps_its_record_alone() -> None:
    def lists() -> int:
        return sum(type(kept) is list for kept in gc.get_objects())

    world, server, _ = two_nodes()
    for number in range(1_000):
        server.clock.call_later(number, lambda: None, "timer")
    before = lists()
    world.run_for_ms(1_000)
    assert len(world.journal) == 1_000
    assert lists() < before + 500


def test_frames_keep_their_order_and_take_the_latency() -> None:
    world, server, client = two_nodes()
    heard = echo_server(server)
    answers: list[tuple[bytes, int]] = []
    link = client.network.connect(
        f"{server.ip}:1", lambda _, data: answers.append((data, world.now_ms)), lambda *_: None
    )
    link.send("заказ".encode())
    link.send("订单😀".encode())
    world.run_until_ms(2_000)
    assert heard == ["accept 10.0.0.2:50000", "заказ", "订单😀"]
    assert answers == [("<заказ>".encode(), 1_002), ("<订单😀>".encode(), 1_002)]


def test_a_refused_connection_is_told_later() -> None:
    world, server, client = two_nodes()
    reasons: list[str] = []
    client.network.connect(f"{server.ip}:9", lambda *_: None, lambda _, reason: reasons.append(reason))
    client.network.connect("10.9.9.9:9", lambda *_: None, lambda _, reason: reasons.append(reason))
    assert reasons == []
    world.run_until_ms(2_000)
    assert reasons == ["refused", "refused"]


def test_a_listener_sleeps_in_virtual_time_and_others_run_meanwhile() -> None:
    world, server, _ = two_nodes()
    seen: list[tuple[str, int]] = []
    pool = server.workers.pool("consume", 2)

    def call(name: str) -> None:
        server.workers.sleep(100)
        seen.append((name, world.now_ms))

    for name in "abc":
        pool.submit(lambda name=name: call(name), lambda value, error: None)
    assert (pool.running, pool.waiting) == (2, 1)
    world.run_until_ms(5_000)
    assert seen == [("a", 1_100), ("b", 1_100), ("c", 1_200)]
    assert (pool.running, pool.waiting) == (0, 0)


def test_computing_occupies_a_core_and_sleeping_does_not() -> None:
    world = SimWorld(start_ms=0)
    ports = world.add_node("client", RealFiles(), cores=1)
    ends: list[int] = []
    pool = ports.workers.pool("consume", 4)
    for _ in range(4):
        pool.submit(lambda: ports.workers.compute(10), lambda value, error: ends.append(world.now_ms))
    world.run_until_ms(1_000)
    assert ends == [10, 20, 30, 40]


def test_killing_a_node_raises_in_its_listeners_and_disarms_it() -> None:
    world, server, client = two_nodes()
    echo_server(server)
    closed: list[str] = []
    client.network.connect(f"{server.ip}:1", lambda *_: None, lambda _, reason: closed.append(reason))
    ends: list[str] = []

    def call() -> None:
        try:
            server.workers.sleep(1_000)
        except NodeDown:
            with pytest.raises(NodeDown):
                server.workers.sleep(1)
            ends.append("down")
            raise

    server.workers.pool("consume", 1).submit(call, lambda value, error: ends.append("done"))
    server.clock.call_later(50, lambda: ends.append("timer"), "timer")
    world.run_until_ms(1_010)
    node = world.nodes["server"]
    node.alive = False
    world.network.drop_node(node, silent=False)
    world.disarm(node)
    world.workers["server"].end()
    world.run_until_ms(5_000)
    assert ends == ["down"]
    assert closed == ["closed by peer"]
    assert world.busy == 0


def test_a_call_from_the_notebook_plays_the_world_until_its_answer() -> None:
    world, server, _ = two_nodes()
    answer: Promise[int] = Promise()
    server.clock.call_later(500, lambda: answer.resolve(7), "timer")
    assert server.workers.call(lambda: answer) == 7
    assert world.now_ms == 1_500
    with pytest.raises(LimitReached, match="nothing is left"):
        server.workers.call(Promise)


def test_a_flow_reads_straight_down() -> None:
    world, server, _ = two_nodes()

    def after(ms: int, value: int) -> Promise[int]:
        promise: Promise[int] = Promise()
        server.clock.call_later(ms, lambda: promise.resolve(value), "timer")
        return promise

    @flow
    def total():  # type: ignore[no-untyped-def]
        first = yield after(10, 1)
        second = yield after(20, 2)
        return first + second

    assert server.workers.call(total) == 3
    assert world.now_ms == 1_030


def test_the_world_is_quiet_when_only_periodic_timers_are_left() -> None:
    world, server, _ = two_nodes()

    def beat() -> None:
        server.clock.call_later(30_000, beat, "client.heartbeat")

    beat()
    assert world.is_quiet()
    server.clock.call_later(10, lambda: None, "timer")
    assert not world.is_quiet()
    world.run_until(world.is_quiet, 60_000, "quiet")
    assert world.now_ms == 1_010


def test_a_handler_may_not_play_the_world() -> None:
    world, server, _ = two_nodes()
    server.clock.call_later(1, lambda: world.step(), "timer")
    with pytest.raises(UsageError, match="step of the world cannot play the world"):
        world.run_until_ms(2_000)


def test_time_sleep_in_a_listener_is_warned_of() -> None:
    import time

    world, server, _ = two_nodes()
    server.workers.pool("consume", 1).submit(lambda: time.sleep(0), lambda value, error: None)
    with pytest.warns(UserWarning, match=r"context\.sleep"):
        world.run_until_ms(2_000)


def test_a_partition_holds_frames_back_and_healing_delivers_them_in_order() -> None:
    world, server, client = two_nodes()
    heard = echo_server(server)
    link = client.network.connect(f"{server.ip}:1", lambda *_: None, lambda *_: None)
    world.run_until_ms(1_010)
    world.network.partition("client", "server")
    for word in (b"one", b"two"):
        link.send(word)
    world.run_until_ms(9_000)
    assert heard == ["accept 10.0.0.2:50000"]
    world.network.heal()
    world.run_until_ms(10_000)
    assert heard[1:] == ["one", "two"]


def test_equal_seeds_give_equal_digests_and_others_do_not() -> None:
    def digest(seed: int) -> str:
        world, server, client = two_nodes(seed)
        echo_server(server)
        link = client.network.connect(f"{server.ip}:1", lambda *_: None, lambda *_: None)

        def speak() -> None:
            client.note("spoke", number=client.rng.randrange(1_000_000))
            link.send(b"hello")
            if world.now_ms < 2_000:
                client.clock.call_later(client.rng.randrange(1, 50), speak, "timer")

        speak()
        world.run_until_ms(5_000)
        return world.journal.digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


@pytest.fixture
def often() -> Iterator[tuple[int, int, int]]:
    """The garbage collector as Python has it."""
    before, usual = gc.get_threshold(), (700, 10, 10)
    gc.set_threshold(*usual)
    yield usual
    gc.set_threshold(*before)


def test_the_garbage_collector_is_left_as_it_was_found(often: tuple[int, int, int]) -> None:
    world = SimWorld()
    ports = world.add_node("node", RealFiles())
    seen: list[int] = []
    ports.clock.call_later(5, lambda: seen.append(gc.get_threshold()[0]), "timer")
    world.run_until_ms(world.now_ms + 10)
    assert seen == [NEW_OBJECTS] and gc.get_threshold() == often
    with pytest.raises(LimitReached):
        world.run_until(lambda: False, 10, "nothing")
    assert gc.get_threshold() == often

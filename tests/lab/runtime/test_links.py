"""Connections to machines that die before they accept, or are off: a client learns it and connects anew later."""

from __future__ import annotations

from mqlab import Lab, Message
from mqlab.errors import RemotingError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.remoting import Remoting
from mqlab.rocketmq.wire.command import RemotingCommand, request


def ask(remoting: Remoting, address: str = "10.0.0.1:1000") -> list[str]:
    outcome: list[str] = []

    def failed(error: BaseException) -> None:
        assert isinstance(error, RemotingError)
        outcome.append(error.code)

    remoting.invoke(address, request(1), timeout_ms=10_000).then(lambda answer: outcome.append("answered"), failed)
    return outcome


def a_server_and_a_client() -> tuple[SimWorld, Remoting]:
    def answer(channel: object, command: RemotingCommand, reply: object) -> None:
        reply(command.reply())  # type: ignore[operator]

    world = SimWorld()
    Remoting(world.add_node("server", RealFiles()), {1: answer}).listen("10.0.0.1:1000")  # type: ignore[dict-item]
    return world, Remoting(world.add_node("client", RealFiles()), {})


def end(world: SimWorld, *, silent: bool) -> None:
    node = world.nodes["server"]
    node.alive, node.silent = False, silent
    world.network.drop_node(node, silent=silent)
    world.disarm(node)


def test_a_process_that_is_killed_before_it_accepts_refuses() -> None:
    world, client = a_server_and_a_client()
    outcome = ask(client)
    end(world, silent=False)
    world.run_until_ms(world.now_ms + 5)
    assert outcome == ["connect"]


def test_a_machine_that_goes_off_before_it_accepts_is_given_up_after_three_seconds() -> None:
    world, client = a_server_and_a_client()
    outcome = ask(client)
    end(world, silent=True)
    world.run_until_ms(world.now_ms + 2_999)
    assert outcome == []
    world.run_until_ms(world.now_ms + 1)
    assert outcome == ["connect"]


def test_a_machine_that_is_off_is_given_up_after_three_seconds() -> None:
    world, client = a_server_and_a_client()
    end(world, silent=True)
    outcome = ask(client)
    world.run_until_ms(world.now_ms + 3_000)
    assert outcome == ["connect"]


def test_a_client_that_connected_to_a_dark_machine_reaches_it_when_it_is_back() -> None:
    lab = Lab(client={"enable_trace": False})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    producer.fetch_publish_message_queues("orders")
    lab.power_off("broker-a")
    pending = producer.send_async(Message("orders", "во тьму".encode()))
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("5s")
    assert pending.done
    assert producer.send(Message("orders", "снова".encode())).send_status == "SEND_OK"

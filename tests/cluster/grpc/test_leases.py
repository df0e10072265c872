"""Leases of push consumers in virtual time: renewed as designed, given up with their client, and never in 5.3.3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.cluster.grpc.clients import Caller
from mqlab.cluster.grpc.codes import StatusError
from mqlab.cluster.grpc.front import GrpcFront
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.state import FrontConfig, checked_group
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.wire.bodies import TopicConfig
from tests.rocketmq.broker.world import World

GROUP = {"name": "billing"}
ORDERS = {"name": "orders"}


class Talk:
    """One client that pushes, and a front, in a world of their own."""

    def __init__(self, directory: Path, *, as_in_5_3_3: bool = False) -> None:
        self.world = World(directory)
        self.world.broker.create_topic(TopicConfig("orders", 1, 1))
        ports = self.world.sim.add_node("grpc", RealFiles())
        self.front = GrpcFront(ports, [self.world.broker], FrontConfig(8081, (), as_in_5_3_3))
        self.caller = Caller("c1", "PYTHON", "127.0.0.1:5000")
        self.sent: list[Any] = []
        subscription = {"topic": ORDERS, "expression": {"type": 1, "expression": "*"}}
        settings = make("Settings", client_type=2, subscription={"group": GROUP, "subscriptions": [subscription]})
        self.front.telemetry.take(make("TelemetryCommand", settings=settings), self.caller, self.sent.append)

    def put(self, *bodies: bytes) -> None:
        shop = self.world.client("shop")
        for body in bodies:
            shop.put("orders", body, UNIQ_KEY=body.decode())

    def receive(self, *, invisible_s: int | None = None) -> list[Any]:
        """The messages of one call, which waits at most 5 s."""
        request = make(
            "ReceiveMessageRequest",
            group=GROUP,
            message_queue={"topic": ORDERS, "broker": {"name": "broker-a"}},
            filter_expression={"type": 1, "expression": "*"},
            batch_size=32,
            auto_renew=invisible_s is None,
            invisible_duration=None if invisible_s is None else {"seconds": invisible_s},
            long_polling_timeout={"seconds": 5},
        )
        promise = self.front.receive(request, self.caller)
        self.world.sim.wait_for(promise)
        return list(promise.result().messages)

    def answer(self, rpc: str, **fields: Any) -> Any:
        promise = self.front.answer(rpc, make(f"{rpc}Request", **fields), self.caller)
        self.world.sim.wait_for(promise)
        return promise.result()

    def ack(self, message: Any) -> int:
        """The code that an ack of one message gets."""
        system = message.system_properties
        entry = {"message_id": system.message_id, "receipt_handle": system.receipt_handle}
        return int(self.answer("AckMessage", group=GROUP, topic=ORDERS, entries=[entry]).entries[0].status.code)

    def work_for(self, seconds: int) -> None:
        """Time passes, and the client says that it is there."""
        for _ in range(seconds // 10):
            self.world.run_for(10_000)
            self.answer("Heartbeat", group=GROUP, client_type=2)


def bodies(messages: list[Any]) -> list[bytes]:
    return [message.body for message in messages]


@pytest.mark.parametrize(("as_in_5_3_3", "code", "again"), [(False, 20000, []), (True, 40013, [b"1", b"2"])])
def test_work_that_takes_longer_than_its_lease(
    tmp_path: Path, as_in_5_3_3: bool, code: int, again: list[bytes]
) -> None:
    talk = Talk(tmp_path, as_in_5_3_3=as_in_5_3_3)
    talk.put(b"1", b"2")
    messages = talk.receive()
    talk.work_for(400)  # the lease is a minute, then one more, then three, then five
    assert [talk.ack(message) for message in messages] == [code, code]
    talk.world.run_for(30_000)
    assert sorted(bodies(talk.receive())) == again


def test_a_client_that_ends_gives_its_messages_back_at_once(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.put(b"1")
    talk.receive()
    assert talk.answer("NotifyClientTermination", group=GROUP).status.code == 20000
    assert not talk.world.broker.consumers.get("billing")
    talk.world.run_for(8_000)
    (message,) = talk.receive(invisible_s=10)
    assert message.system_properties.delivery_attempt == 2


def test_a_client_that_falls_silent_gives_its_messages_back_later(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.put(b"1")
    talk.receive()
    talk.world.run_for(100_000)
    assert len(talk.front.renewing) == 1 and talk.world.broker.consumers.get("billing")
    talk.world.run_for(40_000)
    assert not len(talk.front.renewing) and not talk.world.broker.consumers.get("billing")
    assert bodies(talk.receive()) == [b"1"]


def test_what_did_not_reach_its_client_comes_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.put(b"1")
    request = make(
        "ReceiveMessageRequest",
        group=GROUP,
        message_queue={"topic": ORDERS, "broker": {"name": "broker-a"}},
        filter_expression={"type": 1, "expression": "*"},
        batch_size=1,
        auto_renew=True,
    )
    talk.front.receive(request, talk.caller).then(talk.front.give_back)
    assert not len(talk.front.renewing)
    talk.world.run_for(8_000)
    assert bodies(talk.receive()) == [b"1"]


def test_an_invisible_time_has_limits_and_a_system_group_receives_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.put(b"1")
    (message,) = talk.receive(invisible_s=10)
    for seconds, text in ((-1, "too small. min is 0"), (43_201, "too large. max is 43200000")):
        refused = talk.answer(
            "ChangeInvisibleDuration",
            group=GROUP,
            topic=ORDERS,
            receipt_handle=message.system_properties.receipt_handle,
            invisible_duration={"seconds": seconds},
        )
        assert (refused.status.code, refused.status.message) == (40011, f"the invisibleTime is {text}")
    with pytest.raises(StatusError, match="cannot use system consumer group"):
        checked_group("CID_RMQ_SYS_mine")
    assert checked_group("TOOLS_CONSUMER")


def test_a_changed_handle_is_the_one_that_counts(tmp_path: Path) -> None:
    """The second message of a pop: with 5.3.3's handle its ack has no effect (see the raw conversation)."""
    talk = Talk(tmp_path)
    talk.put(b"1", b"2")
    first, second = talk.receive(invisible_s=10)
    system = second.system_properties
    changed = talk.answer(
        "ChangeInvisibleDuration",
        group=GROUP,
        topic=ORDERS,
        receipt_handle=system.receipt_handle,
        invisible_duration={"seconds": 20},
        message_id=system.message_id,
    )
    system.receipt_handle = changed.receipt_handle
    assert [talk.ack(first), talk.ack(second)] == [20000, 20000]
    talk.world.run_for(60_000)
    assert not talk.receive()


def test_an_unknown_language_is_refused_and_a_missing_id_too(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.caller = Caller("c1", "KLINGON", "127.0.0.1:5000")
    assert "LanguageCode.KLINGON" in talk.answer("Heartbeat", group=GROUP, client_type=2).status.message
    talk.caller = Caller("", "PYTHON", "127.0.0.1:5000")
    assert talk.answer("Heartbeat", group=GROUP, client_type=2).status.code == 40017

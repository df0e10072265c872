"""Requests, answers, one-way requests, time-outs and broken frames between two endpoints in the simulation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqlab.errors import RemotingError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting import Channel, Remoting, Reply
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import ROCKETMQ, RemotingCommand, request


class Two:
    """A server that answers ECHO at once, HOLD when told, and fails on BREAK; a client; what each saw."""

    ECHO, HOLD, BREAK = RequestCode.GET_MAX_OFFSET, RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE

    def __init__(self) -> None:
        self.world = SimWorld(start_ms=0)
        server: Ports = self.world.add_node("server", RealFiles())
        self.held: list[tuple[RemotingCommand, Reply]] = []
        self.channels: list[Channel] = []
        self.closed: list[Channel] = []
        self.server = Remoting(
            server,
            {self.ECHO: self.echo, self.HOLD: self.hold, self.BREAK: self.fail},
            on_channel_closed=self.closed.append,
        )
        self.server.listen(f"{server.ip}:1")
        self.address = f"{server.ip}:1"
        self.told: list[RemotingCommand] = []
        client = self.world.add_node("client", RealFiles())
        self.client = Remoting(
            client, {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: lambda c, r, reply: self.told.append(r)}
        )

    def echo(self, channel: Channel, asked: RemotingCommand, reply: Reply) -> None:
        self.channels.append(channel)
        reply(asked.reply(body=asked.body, **asked.ext_fields))

    def hold(self, channel: Channel, asked: RemotingCommand, reply: Reply) -> None:
        self.held.append((asked, reply))

    def fail(self, channel: Channel, asked: RemotingCommand, reply: Reply) -> None:
        raise ValueError("нет 没有")

    def answer(self, command: RemotingCommand, timeout_ms: int = 3_000) -> RemotingCommand:
        promise = self.client.invoke(self.address, command, timeout_ms)
        self.world.wait_for(promise)
        return promise.result()


@pytest.mark.parametrize("serialize_type", [0, ROCKETMQ])
def test_an_answer_has_the_opaque_and_the_serialisation_of_its_request(serialize_type: int) -> None:
    two = Two()
    asked = request(two.ECHO, "订单 😀".encode(), topic="заказы")
    asked.serialize_type = serialize_type
    answer = two.answer(asked)
    assert (answer.opaque, answer.serialize_type, answer.code) == (asked.opaque, serialize_type, ResponseCode.SUCCESS)
    assert (answer.body, answer.ext_fields) == ("订单 😀".encode(), {"topic": "заказы"})


def test_answers_may_come_in_any_order() -> None:
    two = Two()
    promises = [two.client.invoke(two.address, request(two.HOLD, queueId=number)) for number in range(3)]
    two.world.run_until_ms(10)
    for asked, reply in reversed(two.held):
        reply(asked.reply(**asked.ext_fields))
    two.world.run_until_ms(20)
    assert [promise.result().ext_fields["queueId"] for promise in promises] == ["0", "1", "2"]


def test_an_unknown_code_is_answered_with_3_and_an_exception_with_1() -> None:
    two = Two()
    unknown = two.answer(request(9999))
    assert (unknown.code, unknown.remark) == (3, " request type 9999 not supported")
    broken = two.answer(request(two.BREAK))
    assert (broken.code, broken.remark) == (1, "ValueError: нет 没有")


def test_a_one_way_request_is_never_answered() -> None:
    two = Two()
    for code in (two.ECHO, two.BREAK, 9999):
        two.client.invoke_oneway(two.address, request(code))
    two.world.run_until_ms(100)
    assert [record.node for record in two.world.journal.of("frame")] == ["server"] * 3


def test_one_peer_may_leave_only_so_many_requests_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.rocketmq.remoting.endpoint.MOST_UNANSWERED", 3)
    two = Two()
    held = [two.client.invoke(two.address, request(two.HOLD)) for _ in range(3)]
    busy = two.answer(request(two.HOLD))
    assert (busy.code, busy.remark) == (
        ResponseCode.SYSTEM_BUSY,
        "[OVERLOAD]system busy, start flow control for a while",
    )
    assert two.answer(request(two.ECHO)).code == ResponseCode.SYSTEM_BUSY
    # One-way requests wait for nothing, so they are neither counted nor refused.
    two.client.invoke_oneway(two.address, request(two.ECHO))
    two.world.run_until_ms(two.world.now_ms + 50)
    assert len(two.channels) == 1
    # An answer makes room for one request, even when it is given twice.
    asked, reply = two.held[0]
    reply(asked.reply())
    reply(asked.reply())
    assert two.answer(request(two.ECHO)).code == ResponseCode.SUCCESS
    two.client.invoke(two.address, request(two.HOLD))
    two.world.run_until_ms(two.world.now_ms + 50)
    assert two.answer(request(two.ECHO)).code == ResponseCode.SYSTEM_BUSY
    assert [promise.done for promise in held] == [True, False, False]


def test_no_answer_in_time_is_an_error_and_a_late_one_is_ignored() -> None:
    two = Two()
    with pytest.raises(RemotingError, match=r"PULL_MESSAGE .* within 50 ms") as caught:
        two.answer(request(two.HOLD), timeout_ms=50)
    assert (caught.value.code, caught.value.not_done) == ("timeout", False)
    asked, reply = two.held[0]
    reply(asked.reply())
    two.world.run_until_ms(1_000)


def test_nobody_there_is_an_error_that_is_sure_of_itself() -> None:
    two = Two()
    two.address = "10.0.0.1:9"
    with pytest.raises(RemotingError) as caught:
        two.answer(request(two.ECHO))
    assert (caught.value.code, caught.value.not_done) == ("connect", True)


def test_a_lost_connection_fails_what_is_pending_and_tells_the_owner() -> None:
    two = Two()
    promise = two.client.invoke(two.address, request(two.HOLD))
    two.world.run_until_ms(10)
    two.client.channel_to(two.address).close()
    assert isinstance(promise.error, RemotingError)
    two.world.run_until_ms(20)
    assert len(two.closed) == 1
    assert two.answer(request(two.ECHO)).code == 0  # the next call opens another


def test_a_server_asks_its_client_over_the_channel_the_client_opened() -> None:
    two = Two()
    two.answer(request(two.ECHO))
    two.channels[0].send_oneway(request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, consumerGroup="billing"))
    unknown: Promise[RemotingCommand] = two.channels[0].invoke(request(RequestCode.GET_CONSUMER_RUNNING_INFO))
    two.world.run_until_ms(100)
    assert [command.ext_fields for command in two.told] == [{"consumerGroup": "billing"}]
    assert two.told[0].opaque >= 1
    assert unknown.result().code == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda frame: b"\x00\x00\x00\x03" + frame,
        lambda frame: b"GET / HTTP/1.1\r\n\r\n",
        lambda frame: frame[:4] + b"\x07" + frame[5:],
        lambda frame: frame[:8] + b"{{{{" + frame[12:],
        lambda frame: b"\xff\xff\xff\xff" + frame,
    ],
)
def test_a_broken_frame_closes_its_channel_and_nothing_else(damage: Callable[[bytes], bytes]) -> None:
    from mqlab.rocketmq.wire.command import encode

    two = Two()
    assert two.answer(request(two.ECHO)).code == 0
    link = next(iter(two.client._channels))
    link.send(damage(encode(request(two.ECHO))))
    two.world.run_until_ms(two.world.now_ms + 100)
    assert len(two.world.journal.of("channel.broken")) == 1
    assert not two.channels[0].is_open
    assert two.answer(request(two.ECHO)).code == 0

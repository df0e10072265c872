"""A client that is refused is a line in the server's log, whatever it was refused for."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqlab
from mqlab.cluster.serving import Server
from mqlab.cluster.serving.plan import VIP_DISTANCE
from mqlab.cluster.serving.planning import Wanted, plan_of
from mqlab.errors import MqlabError
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import decode, encode, request
from tests.cluster.serving.served import server_in


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("refusing"), "autoCreateTopicEnable=false") as running:
        running.wait_until_registered()
        yield running


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def asked(server: Server, code: int, **fields: object) -> None:
    """Ask the broker and wait for its answer, whatever it is."""
    with mqlab.connect(str(server.plan.name_server)) as cluster:
        admin = cluster.admin
        with pytest.raises(MqlabError):
            admin.ask(server.plan.brokers[0].address, code, **fields)


def heartbeat(group: str) -> bytes:
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [],
        "unitMode": False,
    }
    return json.dumps({"clientID": "c@1", "consumerDataSet": [consumer], "producerDataSet": []}).encode()


def test_a_request_without_its_fields(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    asked(server, RequestCode.QUERY_CONSUMER_OFFSET, topic="t")
    assert any("broker-a refused QUERY_CONSUMER_OFFSET of 127.0.0.1:" in line for line in said(caplog))


def test_a_heartbeat_of_a_group_that_may_not_be_called_so(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.plan.brokers[0].config.listen_port), timeout=10) as peer:
        peer.sendall(encode(request(RequestCode.HEART_BEAT, heartbeat("g" * 256))))
        assert peer.recv(4096)
    assert any("consumer.refused" in line and "longer than 255" in line for line in said(caplog))


def test_the_second_port_knows_nothing_that_waits_for_messages(server: Server) -> None:
    """Asked of a real 5.3.3: those six are answered with 3 there, and everything else as at the first port."""
    port = server.plan.brokers[0].config.listen_port - VIP_DISTANCE
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        answers = {}
        for code in (11, 361, 200050, 200052, 200054, 200055, RequestCode.GET_ALL_TOPIC_CONFIG):
            peer.sendall(encode(request(code)))
            size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
            answer = decode(size.to_bytes(4, "big") + peer.recv(size, socket.MSG_WAITALL))
            answers[int(code)] = answer.code, answer.remark
        assert answers.pop(int(RequestCode.GET_ALL_TOPIC_CONFIG)) == (0, None)
    assert answers == {code: (3, f" request type {code} not supported") for code in answers} and len(answers) == 6


def test_a_frame_that_is_broken(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.plan.brokers[0].config.listen_port), timeout=10) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not peer.recv(4096)
    assert any("channel.broken" in line for line in said(caplog))


def test_what_is_not_refused_is_no_line(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with mqlab.connect(str(server.plan.name_server)) as cluster:
        cluster.admin.create_topic("orders", confirm=True)
        cluster.producer("shop").send(mqlab.Message("orders", b"x"))
        consumer = cluster.push_consumer("g" * 200)
        consumer.subscribe("orders")
        consumer.on_messages(lambda messages, context: mqlab.CONSUME_SUCCESS)
        consumer.start()
    assert not said(caplog)


def test_the_addresses_of_ipv6_can_be_used_as_they_are(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    plan, _ = plan_of(Wanted(store=tmp_path, namesrv="[::1]:0", broker="[::1]:0"))
    with Server(plan) as running:
        running.wait_until_registered()
        (broker,) = running.addresses()["brokers"]
        for name in ("address", "vip", "ha"):
            assert broker[name].startswith("[::1]:"), name
        assert running.name_server is not None and running.name_server.address.startswith("[::1]:")

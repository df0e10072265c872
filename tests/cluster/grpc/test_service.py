"""The front over the wire: who is let in, encryption, RPCs that are not answered, a client that hangs up."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from mqlab.cluster.grpc.messages import CLASSES, make
from mqlab.cluster.grpc.service import PREFIX, problem_of
from mqlab.cluster.serving import Server
from mqlab.cluster.serving.planning import Wanted, plan_of
from mqlab.cluster.serving.server import Tls
from mqlab.errors import UsageError
from mqlab.rocketmq.broker.tables.users import UserTable
from mqlab.rocketmq.remoting.access import User
from mqlab.rocketmq.wire.bodies import TopicConfig
from tests.cluster.grpc.official import message, producer
from tests.cluster.serving.served import server_in

FREE = "127.0.0.1:0"
CERTIFICATE = Path(__file__).parents[1] / "serving" / "test_server.pem"
SCHEME, DATE = "MQv2-HMAC-SHA1", "20261127T003357Z"
METADATA = (("x-mq-client-id", "c1"), ("x-mq-language", "PYTHON"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows one user, with a topic."""
    settings = ("authenticationEnabled=true", 'initAuthenticationUser={"username":"shop","password":"12345678"}')
    inner = 'innerClientAuthenticationCredentials={"accessKey":"shop","secretKey":"12345678"}'
    with server_in(tmp_path_factory.mktemp("guarded"), *settings, inner, grpc=FREE) as server:
        server.wait_until_registered()
        server.on_loop(lambda: server.brokers[0].create_topic(TopicConfig("orders")))
        yield server


def call(channel: Any, rpc: str, request: Any, metadata: Any = METADATA) -> Any:
    serialize, parse = type(request).SerializeToString, CLASSES[f"{rpc}Response"].FromString
    return channel.unary_unary(PREFIX + rpc, serialize, parse)(request, metadata=metadata, timeout=5)


def test_the_official_client_signs_and_is_let_in(guarded: Server) -> None:
    with producer(str(guarded.plan.grpc), "orders", user=("shop", "12345678")) as shop:
        assert shop.send(message("orders", b"1")).message_id


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({}, "username cannot be null."),
        ({"authorization": f"{SCHEME} Credential=shop"}, "datetime is null."),
        (
            {"authorization": f"{SCHEME} Credential=ann, Signature=00", "x-mq-date-time": DATE},
            "User:ann is not found.",
        ),
        (
            {"authorization": f"{SCHEME} Credential=shop, Signature=00", "x-mq-date-time": DATE},
            "check signature failed.",
        ),
    ],
)
def test_who_does_not_sign_is_refused(guarded: Server, header: dict[str, str], problem: str) -> None:
    with grpc.insecure_channel(str(guarded.plan.grpc)) as channel:
        answer = call(
            channel, "QueryRoute", make("QueryRouteRequest", topic={"name": "orders"}), (*METADATA, *header.items())
        )
    assert (answer.status.code, answer.status.message) == (40100, problem)


def test_a_right_signature_and_a_disabled_user() -> None:
    signature = hmac.new(b"12345678", DATE.encode(), hashlib.sha1).hexdigest().upper()
    header = f"{SCHEME} Credential=shop, SignedHeaders=x-mq-date-time, Signature={signature}"
    metadata = {"authorization": header, "x-mq-date-time": DATE}
    assert problem_of(metadata, UserTable([User("shop", "12345678")])) is None
    disabled = User("shop", "12345678", status="disable")
    assert problem_of(metadata, UserTable([disabled])) == "User:shop is disabled."


def test_an_encrypted_front(tmp_path: Path) -> None:
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(CERTIFICATE)
    client_side = ssl.create_default_context(cafile=str(CERTIFICATE))
    client_side.check_hostname = False
    pem = CERTIFICATE.read_bytes()
    plan = server_in(tmp_path, grpc=FREE).plan
    with Server(plan, tls=Tls(server_side, client_side, (pem, pem))) as server:
        server.wait_until_registered()
        credentials = grpc.ssl_channel_credentials(pem)
        options = [("grpc.ssl_target_name_override", "localhost")]
        with grpc.secure_channel(str(plan.grpc), credentials, options) as channel:
            answer = call(channel, "QueryRoute", make("QueryRouteRequest", topic={"name": "nope"}))
        assert answer.status.code == 40402
        with grpc.insecure_channel(str(plan.grpc)) as plain, pytest.raises(grpc.RpcError):
            call(plain, "QueryRoute", make("QueryRouteRequest", topic={"name": "nope"}))


@pytest.mark.parametrize("rpc", ["PullMessage", "GetOffset", "SyncLiteSubscription"])
def test_an_rpc_that_5_3_3_does_not_answer(guarded: Server, rpc: str) -> None:
    with grpc.insecure_channel(str(guarded.plan.grpc)) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(PREFIX + rpc)(b"", timeout=5)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_settings_without_a_side_end_the_stream(tmp_path: Path) -> None:
    with server_in(tmp_path, grpc=FREE) as server, grpc.insecure_channel(str(server.plan.grpc)) as channel:
        command = CLASSES["TelemetryCommand"]
        stream = channel.stream_stream(PREFIX + "Telemetry", command.SerializeToString, command.FromString)
        with pytest.raises(grpc.RpcError) as refused:
            list(stream(iter([make("TelemetryCommand", settings={})]), metadata=METADATA, timeout=5))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "there is no publishing or subscription data in settings" in refused.value.details()


def test_a_front_needs_a_master_here(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a master"):
        plan_of(Wanted(store=tmp_path, only="namesrv", grpc=FREE))
    with pytest.raises(UsageError, match="needs --grpc"):
        plan_of(Wanted(store=tmp_path, grpc_as_in_5_3_3=True))

"""Users of a served broker: who is let in, with which words others are refused, and settings that cannot be kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqlab
from mqlab import Message
from mqlab.cluster.connected import connect_from_environment
from mqlab.cluster.serving import Server
from mqlab.errors import BrokerError, MqlabError, UsageError
from mqlab.rocketmq.broker.tables.users import UserTable
from mqlab.rocketmq.remoting.access import Credentials, User, Users
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand, request
from tests.cluster.serving.served import server_in

USER = 'initAuthenticationUser={"username":"shop","password":"12345678"}'
INNER = 'innerClientAuthenticationCredentials={"accessKey":"shop","secretKey":"12345678"}'
ON = "authenticationEnabled=true"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = (ON, USER, INNER)
    with server_in(tmp_path_factory.mktemp("users"), *settings) as server:
        server.wait_until_registered()
        yield server


def signed(command: RemotingCommand, name: str = "shop", password: str = "12345678") -> RemotingCommand:
    Credentials(name, password).sign(command)
    return command


def test_the_signature_is_made_of_sorted_values_and_the_body() -> None:
    command = signed(request(RequestCode.SEND_MESSAGE, "ж".encode(), topic="orders", queueId=3, Zed="z"))
    expected = hmac.new(b"12345678", b"shopz3orders" + "ж".encode(), hashlib.sha1).digest()
    # AccessKey, Zed, queueId, topic: capital letters come first in Java's order.
    assert command.ext_fields["Signature"] == base64.b64encode(expected).decode()
    before = dict(command.ext_fields)
    assert signed(command).ext_fields == before  # a request that is sent again is signed again


@pytest.mark.parametrize(
    "spoiled, answer",
    [
        ({}, None),
        ({"AccessKey": ""}, "username cannot be null."),
        ({"AccessKey": "mallory"}, "User:mallory is not found."),
        ({"topic": "salaries"}, "check signature failed."),
        ({"Signature": ""}, "check signature failed."),
        ({"Signature": "не то"}, "check signature failed."),
        ({"more": "x"}, "check signature failed."),
    ],
)
def test_a_request_that_was_changed_on_its_way_is_refused(spoiled: dict[str, str], answer: str | None) -> None:
    command = signed(request(RequestCode.PULL_MESSAGE, topic="orders"))
    command.ext_fields |= spoiled
    users = Users(UserTable([User("shop", "12345678")]))
    assert users.problem_of(command) == answer
    command.body = b"another body"
    assert users.problem_of(command) is not None


def test_old_clients_add_one_field_after_they_have_signed() -> None:
    command = signed(request(RequestCode.QUERY_MESSAGE, topic="orders"))
    command.ext_fields["_UNIQUE_KEY_QUERY"] = "true"
    users = Users(UserTable([User("shop", "12345678")]))
    assert users.problem_of(command) == "check signature failed."
    command.version = 399
    assert users.problem_of(command) is None


def test_a_user_may_send_and_read_and_operate(served: Server) -> None:
    with mqlab.connect(str(served.plan.name_server), access_key="shop", secret_key="12345678") as cluster:
        cluster.admin.create_topic("orders", read_queue_nums=1, write_queue_nums=1, confirm=True)
        assert cluster.producer("shop").send(Message("orders", b"hello")).send_status == "SEND_OK"
        reader = cluster.lite_pull_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        reader.subscribe("orders", "*")
        reader.start()
        bodies: list[bytes] = []
        for _ in range(50):
            bodies += [message.body for message in reader.poll(200)]
            if bodies:
                break
        assert bodies == [b"hello"]


@pytest.mark.parametrize(
    "who, words",
    [
        ({}, "username cannot be null"),
        ({"access_key": "shop", "secret_key": "87654321"}, "check signature failed"),
        ({"access_key": "mallory", "secret_key": "12345678"}, "User:mallory is not found"),
    ],
)
def test_nobody_else_is_answered(served: Server, who: dict[str, str], words: str) -> None:
    with mqlab.connect(str(served.plan.name_server), **who) as cluster:  # a name server has no users
        with pytest.raises(BrokerError, match=words) as caught:
            cluster.admin.get_broker_config("broker-a")
        assert caught.value.response_code == ResponseCode.NO_PERMISSION
        with pytest.raises(BrokerError, match=words):  # not even whether a request is known is told
            cluster.admin.ask(served.plan.brokers[0].address, 9999)


def test_a_slave_needs_credentials_to_copy_its_masters_tables(served: Server, tmp_path: Path) -> None:
    master = served.plan.brokers[0].address
    with pytest.raises(MqlabError, match="username cannot be null"):
        server_in(tmp_path / "refused", replica_of=master, namesrv=str(served.plan.name_server))
    with server_in(tmp_path / "slave", INNER, replica_of=master, namesrv=str(served.plan.name_server)) as slave:
        assert slave.brokers[0].is_slave


@pytest.mark.parametrize(
    "settings, words",
    [
        ((ON,), "there is no user"),
        ((ON, "initAuthenticationUser=shop"), "initAuthenticationUser has no username and password"),
        ((ON, 'initAuthenticationUser={"username":"shop"}'), "initAuthenticationUser has no username and password"),
        (("aclEnable=true",), "plain_acl.yml"),
        (("authorizationEnabled=true",), "rights of users"),
        (("authenticationEnabled=yes",), "expected true or false"),
        ((ON, USER, "authenticationProvider=com.example.Mine"), "com.example.Mine: that class is not here"),
        ((ON, USER, "authenticationWhitelist=SEND"), "expected numbers of requests"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_starts(
    tmp_path: Path, settings: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        server_in(tmp_path, *settings)
    assert words in str(caught.value)


def test_a_name_without_a_password_is_refused() -> None:
    with pytest.raises(UsageError, match="a name and a password"):
        mqlab.connect("127.0.0.1:9876", access_key="shop")


def test_the_command_line_takes_both_from_the_environment(monkeypatch: pytest.MonkeyPatch, served: Server) -> None:
    monkeypatch.setenv("MQLAB_ACCESS_KEY", "shop")
    with pytest.raises(UsageError, match="only one of MQLAB_ACCESS_KEY and MQLAB_SECRET_KEY is set"):
        connect_from_environment(str(served.plan.name_server))
    monkeypatch.setenv("MQLAB_SECRET_KEY", "12345678")
    with connect_from_environment(str(served.plan.name_server)) as cluster:
        assert cluster.admin.get_broker_config("broker-a")["brokerName"] == "broker-a"


def test_passwords_are_not_shown() -> None:
    assert "12345678" not in repr((Credentials("shop", "12345678"), Users(UserTable([User("shop", "12345678")]))))

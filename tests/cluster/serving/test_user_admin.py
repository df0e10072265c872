"""Users that an operator makes, changes and deletes while a broker runs (codes 3001 to 3005)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import mqlab
from mqlab.cli import main
from mqlab.cluster.serving import Server
from mqlab.errors import UsageError
from mqlab.rocketmq.remoting.access import Credentials
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, request
from tests.cluster.serving.served import server_in
from tests.cluster.serving.test_hostile_peers import Peer
from tests.cluster.serving.test_users import INNER, ON, USER

SHOP, BILLING = ("shop", "12345678"), ("billing", "first")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("user-admin"), ON, USER, INNER.replace("shop", "slave")) as server:
        yield server


@pytest.fixture(autouse=True)
def forget_the_others(served: Server) -> Iterator[None]:
    yield
    for name in ("billing", "other"):
        ask(served, RequestCode.AUTH_DELETE_USER, username=name)


def ask(server: Server, code: int, body: Any = None, *, by: tuple[str, str] = SHOP, **fields: Any) -> tuple[int, Any]:
    """The code of the answer, and its body or remark."""
    command = request(code, None if body is None else json.dumps(body).encode(), **fields)
    Credentials(*by).sign(command)
    peer = Peer(server)
    answer = peer.ask(command)
    peer.socket.close()
    return answer.code, json.loads(answer.body) if answer.body else answer.remark


def create(server: Server, user: tuple[str, str] = BILLING, **more: Any) -> tuple[int, Any]:
    by = more.pop("by", SHOP)
    return ask(server, RequestCode.AUTH_CREATE_USER, {"password": user[1], **more}, by=by, username=user[0])


def is_let_in(server: Server, user: tuple[str, str]) -> tuple[int, Any]:
    return ask(server, RequestCode.GET_MAX_OFFSET, by=user, topic="TBW102", queueId=0)


def test_a_user_who_is_made_is_let_in_until_he_is_deleted(served: Server) -> None:
    assert is_let_in(served, BILLING) == (ResponseCode.NO_PERMISSION, "User:billing is not found.")
    assert create(served) == (ResponseCode.SUCCESS, NOT_SET)
    assert is_let_in(served, BILLING)[0] == ResponseCode.SUCCESS
    assert create(served) == (ResponseCode.NO_PERMISSION, "The user is existed")
    assert ask(served, RequestCode.AUTH_DELETE_USER, username="billing")[0] == ResponseCode.SUCCESS
    assert is_let_in(served, BILLING)[0] == ResponseCode.NO_PERMISSION
    assert ask(served, RequestCode.AUTH_DELETE_USER, username="billing")[0] == ResponseCode.SUCCESS


def test_a_new_password_and_a_status_count_at_once_and_leave_the_rest(served: Server) -> None:
    create(served)
    assert ask(served, RequestCode.AUTH_UPDATE_USER, {"password": "second"}, username="billing")[0] == 0
    assert is_let_in(served, BILLING) == (ResponseCode.NO_PERMISSION, "check signature failed.")
    assert ask(served, RequestCode.AUTH_UPDATE_USER, {"userStatus": "DISABLE"}, username="billing")[0] == 0
    assert is_let_in(served, ("billing", "second")) == (ResponseCode.NO_PERMISSION, "User:billing is disabled.")
    assert ask(served, RequestCode.AUTH_GET_USER, username="billing")[1] == {
        "username": "billing",
        "password": "second",
        "userType": "Normal",
        "userStatus": "disable",
    }
    answer = ask(served, RequestCode.AUTH_UPDATE_USER, {"password": "x"}, username="nobody")
    assert answer == (ResponseCode.NO_PERMISSION, "The user is not exist")


def test_users_are_listed_by_a_part_of_their_names(served: Server) -> None:
    create(served)
    listed = ask(served, RequestCode.AUTH_LIST_USER)[1]
    assert [(user["username"], user["userType"]) for user in listed] == [
        ("billing", "Normal"),
        ("shop", "Super"),
        ("slave", "Super"),
    ]
    assert [user["username"] for user in ask(served, RequestCode.AUTH_LIST_USER, filter="hop")[1]] == ["shop"]
    assert ask(served, RequestCode.AUTH_LIST_USER, filter="nobody") == (ResponseCode.SUCCESS, NOT_SET)
    assert ask(served, RequestCode.AUTH_GET_USER, username="nobody") == (ResponseCode.SUCCESS, NOT_SET)


def test_a_normal_user_is_not_above_a_super_user(served: Server) -> None:
    create(served)
    refused = create(served, ("other", "x"), userType="super", by=BILLING)
    assert refused == (ResponseCode.SYSTEM_ERROR, "The super user can only be create by super user")
    assert create(served, ("other", "x"), by=BILLING)[0] == ResponseCode.SUCCESS
    for code, body in ((RequestCode.AUTH_UPDATE_USER, {"password": "x"}), (RequestCode.AUTH_DELETE_USER, None)):
        refused = ask(served, code, body, by=BILLING, username="shop")
        assert refused == (ResponseCode.NO_PERMISSION, "The super user can only be update by super user")
    assert is_let_in(served, SHOP)[0] == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "code, body, name, answer",
    [
        (RequestCode.AUTH_CREATE_USER, {"password": "x"}, " ", (ResponseCode.INVALID_PARAMETER, "username is blank")),
        (RequestCode.AUTH_CREATE_USER, {"password": " "}, "other", (ResponseCode.NO_PERMISSION, "password can not be")),
        (RequestCode.AUTH_CREATE_USER, [1], "other", (ResponseCode.INVALID_PARAMETER, "the body must be a user")),
        (RequestCode.AUTH_CREATE_USER, None, "other", (ResponseCode.SYSTEM_ERROR, "needs a body")),
        (RequestCode.AUTH_GET_USER, None, "", (ResponseCode.INVALID_PARAMETER, "username is blank")),
    ],
)
def test_what_names_no_user_is_refused(
    served: Server, code: int, body: Any, name: str, answer: tuple[int, str]
) -> None:
    found = ask(served, code, body, username=name)
    assert found[0] == answer[0]
    assert answer[1] in found[1]


def test_users_are_there_after_the_next_start_and_the_configuration_does_not_bring_a_password_back(
    tmp_path: Path,
) -> None:
    with server_in(tmp_path, ON, USER) as first:
        create(first)
        ask(first, RequestCode.AUTH_UPDATE_USER, {"password": "changed"}, username="shop")
    with server_in(tmp_path, ON, USER) as second:
        assert is_let_in(second, BILLING)[0] == ResponseCode.SUCCESS
        assert is_let_in(second, SHOP)[0] == ResponseCode.NO_PERMISSION
        assert is_let_in(second, ("shop", "changed"))[0] == ResponseCode.SUCCESS


def test_brokers_of_one_process_have_users_of_their_own(tmp_path: Path) -> None:
    with server_in(tmp_path, ON, USER, brokers=2) as both:
        create(both)  # asks the first one
        tables = [broker.state.users for broker in both.brokers]
        assert [table is not None and table.find("billing") is not None for table in tables] == [True, False]


def test_a_broker_that_asks_nobody_for_a_name_has_no_users(tmp_path: Path) -> None:
    with server_in(tmp_path) as server:
        code, words = create(server)
        assert (code, "authenticationEnabled" in words) == (ResponseCode.SYSTEM_ERROR, True)


def test_an_operator_makes_and_changes_users_without_mqadmin(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    served.wait_until_registered()
    address = str(served.plan.name_server)

    def run(verb: str, *options: str, by: tuple[str, str] = SHOP, answer: str = "") -> Result:
        monkeypatch.setenv("MQLAB_ACCESS_KEY", by[0])
        monkeypatch.setenv("MQLAB_SECRET_KEY", by[1])
        return CliRunner().invoke(main, ["admin", verb, "-n", address, *options], input=answer)

    # 1. The password is asked for and never shown, and nothing is done without a yes.
    assert run("createUser", "-u", "billing", answer="first\nn\n").exit_code == 1
    assert is_let_in(served, BILLING)[0] == ResponseCode.NO_PERMISSION
    assert run("createUser", "-u", "billing", answer="first\ny\n").exit_code == 0
    assert is_let_in(served, BILLING)[0] == ResponseCode.SUCCESS
    listed = run("listUser", "--json", "-f", "bill").stdout
    assert json.loads(listed) == [
        {"broker": "broker-a", "username": "billing", "user_type": "Normal", "user_status": "enable"}
    ]

    # 2. Changes count at once.
    assert run("updateUser", "-u", "billing", "-s", "disable", "--yes").exit_code == 0
    assert is_let_in(served, BILLING) == (ResponseCode.NO_PERMISSION, "User:billing is disabled.")
    assert run("updateUser", "-u", "billing", "-s", "enable", "-p", "second", "--yes").exit_code == 0
    assert is_let_in(served, ("billing", "second"))[0] == ResponseCode.SUCCESS
    assert "disable" not in run("getUser", "-u", "billing").stdout
    assert run("deleteUser", "-u", "billing", "--yes").exit_code == 0

    # 3. What cannot be done is said in words.
    for verb, more, told in (
        ("getUser", [], "no broker has a user 'billing'"),
        ("updateUser", ["--yes"], "nothing to change of user 'billing'"),
        ("updateUser", ["--yes", "-p", "x"], "The user is not exist"),
    ):
        refused = run(verb, "-u", "billing", *more)
        assert refused.exit_code != 0 and told in refused.stderr


def test_with_python_a_change_wants_a_second_word(served: Server) -> None:
    with mqlab.connect(str(served.plan.name_server), access_key=SHOP[0], secret_key=SHOP[1]) as cluster:
        with pytest.raises(UsageError, match="a client that knows the password is let in"):
            cluster.admin.create_user("billing", "first")
        cluster.admin.create_user("billing", "first", confirm=True)
        assert cluster.admin.get_user("billing", broker="broker-a")[0].user_type == "Normal"
        cluster.admin.delete_user("billing", confirm=True)
        assert "billing" not in [row.username for row in cluster.admin.list_user()]

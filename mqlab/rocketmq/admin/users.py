"""Users of brokers that ask for a name: made, shown, changed and deleted.

Mirrors: mqadmin createUser, updateUser, deleteUser, getUser, listUser; requests 3001 to 3005, UserInfo.

    broker     username  user_type  user_status
    broker-a   billing   Normal     enable

Every broker keeps its own users: without ``broker`` a verb goes to all masters, one after the other, and tells at the
end which of them refused. Left out: the password in what is shown, which mqadmin prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from mqlab.errors import BrokerError, UsageError
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.admin.steps import DONE, Steps, at_each
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.java_json import loads, to_json


@dataclass(frozen=True, slots=True)
class UserInfo:
    """One user of one broker: ``user_type`` Super or Normal, ``user_status`` enable or disable."""

    broker: str
    username: str
    user_type: str
    user_status: str


def create_user(
    admin: AdminNode, username: str, password: str, user_type: str = "Normal", *, broker: str | None = None
) -> None:
    """Make a user at one broker, or at all that do not have it; BrokerError when all have it or there are no users.

    A user that some brokers had stays as it was there, so that a second call goes on where the first one ended.
    """
    said = to_json({"username": username, "password": password, "userType": user_type})
    places, steps, created = admin.brokers(broker), Steps("create_user"), False

    def create(address: str) -> str:
        nonlocal created
        if len(places) > 1 and admin.ask(address, RequestCode.AUTH_GET_USER, username=username).body:
            return "has the user already"
        admin.ask(address, RequestCode.AUTH_CREATE_USER, said, username=username)
        created = True
        return DONE

    for name, address in places:
        steps.take(name, partial(create, address), at=address, outcome=str)
    steps.finish()
    if places and not created:  # every broker has it: let the first one say so
        admin.ask(places[0][1], RequestCode.AUTH_CREATE_USER, said, username=username)


def update_user(
    admin: AdminNode,
    username: str,
    *,
    password: str | None = None,
    user_type: str | None = None,
    user_status: str | None = None,
    broker: str | None = None,
) -> None:
    """Change what is given of a user; a new password counts at once. BrokerError when there is no such user."""
    said = {"password": password, "userType": user_type, "userStatus": user_status}
    wanted = {name: text for name, text in said.items() if text}
    if not wanted:
        raise UsageError(
            f"nothing to change of user {username!r}", hint="give a password, a user type or a user status"
        )
    _say(admin, RequestCode.AUTH_UPDATE_USER, broker, username, **wanted)


def delete_user(admin: AdminNode, username: str, *, broker: str | None = None) -> None:
    """Forget a user; without that user nothing happens."""
    _say(admin, RequestCode.AUTH_DELETE_USER, broker, username)


def get_user(admin: AdminNode, username: str, *, broker: str | None = None) -> Rows[UserInfo]:
    """A user as each broker knows it, one row per broker; BrokerError with code 1 when no broker does."""
    users = []
    for name, address in admin.brokers(broker):
        body = admin.ask(address, RequestCode.AUTH_GET_USER, username=username).body
        users += [_user(name, loads(body))] if body else []
    if not users:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"no broker has a user {username!r}")
    return Rows(users, f"user {username}")


def list_user(admin: AdminNode, filter: str = "", *, broker: str | None = None) -> Rows[UserInfo]:
    """The users whose names contain ``filter``, one row per broker and user, sorted by name."""
    users = []
    for name, address in admin.brokers(broker):
        body = admin.ask(address, RequestCode.AUTH_LIST_USER, filter=filter).body
        users += [_user(name, user) for user in (loads(body) if body else [])]
    return Rows(users, "users")


def _say(admin: AdminNode, code: RequestCode, broker: str | None, username: str, **said: str) -> None:
    body = to_json({"username": username, **said})
    at_each(code.name.lower(), admin.brokers(broker), lambda address: admin.ask(address, code, body, username=username))


def _user(broker: str, value: dict[str, Any]) -> UserInfo:
    return UserInfo(broker, *(str(value.get(name) or "") for name in ("username", "userType", "userStatus")))

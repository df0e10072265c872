"""Users that mqadmin makes, shows, changes and deletes.

Mirrors: AdminBrokerProcessor's createUser, updateUser, deleteUser, getUser and listUser; codes 3001 to 3005.

    AUTH_CREATE_USER    field username, body {"password", "userType": "Super" or "Normal", "userStatus"}
    AUTH_UPDATE_USER    the same; what is missing in the body stays as it was; the new password counts at once
    AUTH_DELETE_USER    field username; no error when there is none
    AUTH_GET_USER       field username; no body when there is none
    AUTH_LIST_USER      field filter: a part of the names

Who signs as a normal user cannot make, change or delete a super user. A broker that asks no client for a name has no
users, and says so. Left out: rights of users (3006 to 3010).
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.users import ENABLED, NORMAL, SUPER, UserTable, shown, status_of, type_of
from mqlab.rocketmq.remoting.access import ACCESS_KEY, User
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.java_json import loads, to_json

NO_USERS = "this broker has no users: it was not started with authenticationEnabled=true"
ONLY_SUPER = "The super user can only be %s by super user"


class UserAdmin:
    """Handlers of the five requests."""

    def __init__(self, state: BrokerState) -> None:
        self._users = state.users

    def create(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """AUTH_CREATE_USER."""
        name, users, said = _name(request), self._table(), _said(request)
        if said["userType"] == SUPER and self._is_normal(request):
            raise Refused(ResponseCode.SYSTEM_ERROR, ONLY_SUPER % "create")
        user = User(name, said["password"], said["userType"] or NORMAL, said["userStatus"] or ENABLED)
        return _done(request, lambda: users.create(user))

    def update(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """AUTH_UPDATE_USER."""
        name, users, said = _name(request), self._table(), _said(request)
        if said["userType"] == SUPER and self._is_normal(request):
            raise Refused(ResponseCode.SYSTEM_ERROR, ONLY_SUPER % "update")
        self._must_not_be_above(request, name)
        kind, status = said["userType"], said["userStatus"]
        return _done(request, lambda: users.update(name, password=said["password"], kind=kind, status=status))

    def delete(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """AUTH_DELETE_USER."""
        name = request.ext_fields.get("username", "")
        if not name.strip():
            raise Refused(ResponseCode.NO_PERMISSION, "username can not be blank")
        users = self._table()
        self._must_not_be_above(request, name)
        return _done(request, lambda: users.delete(name))

    def get(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """AUTH_GET_USER."""
        name = _name(request)
        user = self._table().find(name)
        return _answer(request, None if user is None else shown(user))

    def list(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """AUTH_LIST_USER."""
        users = self._table().named_like(request.ext_fields.get("filter", ""))
        return _answer(request, [shown(user) for user in users] or None)

    def _table(self) -> UserTable:
        if self._users is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, NO_USERS)
        return self._users

    def _is_normal(self, request: RemotingCommand) -> bool:
        user = self._table().find(request.ext_fields.get(ACCESS_KEY, ""))
        return user is not None and user.type != SUPER

    def _must_not_be_above(self, request: RemotingCommand, name: str) -> None:
        user = self._table().find(name)
        if user is not None and user.type == SUPER and self._is_normal(request):
            raise Refused(ResponseCode.NO_PERMISSION, ONLY_SUPER % "update")


def _done(request: RemotingCommand, change: Callable[[], None]) -> RemotingCommand:
    try:
        change()
    except UsageError as error:
        raise Refused(ResponseCode.NO_PERMISSION, error.text) from None
    return _answer(request, None)


def _answer(request: RemotingCommand, value: object) -> RemotingCommand:
    return request.reply(ResponseCode.SUCCESS, NOT_SET, None if value is None else to_json(value))


def _name(request: RemotingCommand) -> str:
    name = request.ext_fields.get("username", "")
    if not name.strip():
        raise Refused(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return name


def _said(request: RemotingCommand) -> dict[str, str]:
    """Password, type and status of the body; "" for what it does not say."""
    try:
        value = loads(body(request))
    except ValueError as error:
        raise Refused(ResponseCode.INVALID_PARAMETER, f"the body must be a user object: {error}") from None
    if not isinstance(value, dict):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"the body must be a user object: found {type(value).__name__}")
    said = {name: str(value.get(name) or "") for name in ("password", "userType", "userStatus")}
    return {**said, "userType": type_of(said["userType"]), "userStatus": status_of(said["userStatus"])}

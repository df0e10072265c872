"""The users that a configuration file names, and how a broker signs what it asks of other brokers.

Mirrors: AuthConfig. A setting that would let a server look safer than it is ends the start.

    authenticationEnabled=true
    initAuthenticationUser={"username":"shop","password":"12345678"}
    innerClientAuthenticationCredentials={"accessKey":"shop","secretKey":"12345678"}
    authenticationWhitelist=105,34

The third is what a slave tells its master; the fourth are the codes of requests that need no user.

These users are those of a first start; mqadmin makes, changes and deletes further ones while a broker runs.
Left out: AuthConfig's providers and strategies other than RocketMQ's own, rights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.tables.users import SUPER, UserTable
from mqlab.rocketmq.remoting.access import Credentials, NodeAccess, User, Users

ENABLED, USER, INNER = "authenticationEnabled", "initAuthenticationUser", "innerClientAuthenticationCredentials"
OPEN_CODES = "authenticationWhitelist"
NOT_MODELLED = {
    "aclEnable": "RocketMQ 4's users (plain_acl.yml) are not read here",
    "authorizationEnabled": "rights of users are not modelled here: every user may do everything",
    "migrateAuthFromV1Enabled": "RocketMQ 4's users (plain_acl.yml) are not read here",
}
OWN_CLASSES = {
    "authenticationProvider": ("DefaultAuthenticationProvider",),
    "authenticationMetadataProvider": ("LocalAuthenticationMetadataProvider",),
    "authenticationStrategy": ("StatelessAuthenticationStrategy", "StatefulAuthenticationStrategy"),
}
SETTINGS = (ENABLED, USER, INNER, OPEN_CODES, *NOT_MODELLED, *OWN_CLASSES)


def access_of(process: Mapping[str, str]) -> NodeAccess | None:
    """The users that may ask a broker, and how it signs; None when none is asked for. UsageError for what cannot be."""
    for name, reason in NOT_MODELLED.items():
        if _is_on(process, name):
            raise UsageError(f"{name}=true: {reason}", hint=f"{ENABLED}=true with {USER} checks who a client is")
    for name, known in OWN_CLASSES.items():
        if process.get(name, known[0]).rpartition(".")[2] not in known:
            raise UsageError(f"{name}={process[name]}: that class is not here", hint=f"RocketMQ's own: {known[0]}")
    credentials = None
    if process.get(INNER):
        credentials = Credentials(*_pair(process[INNER], ("accessKey", "secretKey"), INNER))
    if not _is_on(process, ENABLED):
        return NodeAccess(credentials) if credentials else None
    if not process.get(USER):
        raise UsageError(f"{ENABLED}=true, and there is no user", hint=f'{USER}={{"username":"shop","password":"…"}}')
    name, password = _pair(process[USER], ("username", "password"), USER)
    initial = [User(name, password, SUPER)]
    if credentials is not None and credentials.access_key != name:
        initial.append(User(credentials.access_key, credentials.secret_key, SUPER))
    return NodeAccess(credentials, Users(UserTable(initial), _codes(process.get(OPEN_CODES, ""))))


def of_one_broker(access: NodeAccess | None) -> tuple[NodeAccess | None, UserTable | None]:
    """The same for one of the brokers of a process: each has a table of users of its own."""
    if access is None or access.users is None:
        return access, None
    table = UserTable(access.users.known.named_like())
    return NodeAccess(access.credentials, Users(table, access.users.open_codes)), table


def _is_on(process: Mapping[str, str], name: str) -> bool:
    value = process.get(name, "false").lower()
    if value not in ("true", "false"):
        raise UsageError(f"{name}={process[name]}: expected true or false")
    return value == "true"


def _pair(text: str, names: tuple[str, str], setting: str) -> tuple[str, str]:
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = None
    match [value.get(name) for name in names] if isinstance(value, dict) else []:
        case [str(name), str(secret)] if name and secret:
            return name, secret
    example = json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False, separators=(",", ":"))
    raise UsageError(f"{setting} has no {names[0]} and {names[1]}", hint=f"{setting}={example}")


def _codes(text: str) -> frozenset[int]:
    try:
        return frozenset(int(code) for code in text.split(",") if code.strip())
    except ValueError as error:
        raise UsageError(f"{OPEN_CODES}={text}: expected numbers of requests, as in 105,34") from error

"""Users of a broker, and the signatures by which their requests are known.

Mirrors: AclClientRPCHook, AclUtils and AclSigner; AuthenticationPipeline and DefaultAuthenticationHandler.

    client   AccessKey = its name
             Signature = base64(HMAC-SHA1(password, the values of all header fields, sorted by name, then the body))
    broker   makes the same sum of what arrived, without Signature; a difference is answered NO_PERMISSION

Left out: rights of users (authorization).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_hash import sorted_as_java

ACCESS_KEY, SIGNATURE, SECURITY_TOKEN = "AccessKey", "Signature", "SecurityToken"
UNIQUE_QUERY = "_UNIQUE_KEY_QUERY"  # clients up to 4.9.3 add it after they have signed
V4_9_3 = 399  # the place of V4_9_3 in MQVersion.Version
DISABLED = "disable"


def signature(fields: Mapping[str, str], body: bytes | None, secret_key: str) -> str:
    """The signature of header fields and a body. Mirrors AclUtils.calSignature.

    >>> signature({"topic": "orders", "AccessKey": "shop"}, b"hello", "12345678")
    '4Lq0tq3/bQ3vzzS/F/Y1Eq5b1zQ='
    """
    import base64  # not at the top: few clusters know their users, and every Lab would load OpenSSL
    import hmac

    values = "".join(fields[name] for name in sorted_as_java(fields.keys()) if name != SIGNATURE)
    signed = hmac.digest(secret_key.encode(), values.encode("utf-8", "surrogatepass") + (body or b""), "sha1")
    return base64.b64encode(signed).decode("ascii")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The name and secret that a client gives. Mirrors SessionCredentials."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, command: RemotingCommand) -> None:
        """Add name and signature to a request."""
        command.ext_fields = {**command.ext_fields, ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            command.ext_fields[SECURITY_TOKEN] = self.security_token
        command.ext_fields[SIGNATURE] = signature(command.ext_fields, command.body, self.secret_key)


@dataclass(frozen=True, slots=True)
class User:
    """An account that may ask a broker. ``type``: "Super" or "Normal"; ``status``: "enable" or "disable"."""

    name: str
    password: str = field(repr=False)
    type: str = "Normal"
    status: str = "enable"


class KnownUsers(Protocol):
    """Where users are looked up; broker.tables.users has them."""

    def find(self, name: str) -> User | None: ...

    def named_like(self, part: str = "") -> list[User]: ...


@dataclass(frozen=True, slots=True)
class Users:
    """Whom a broker lets in; requests of the codes in ``open_codes`` need no user."""

    known: KnownUsers
    open_codes: Collection[int] = ()

    def problem_of(self, command: RemotingCommand) -> str | None:
        """Why a request is refused, in RocketMQ's words; None when it is from one of the users."""
        if command.code in self.open_codes:
            return None
        fields = command.ext_fields
        name = fields.get(ACCESS_KEY)
        if not name:
            return "username cannot be null."
        user = self.known.find(name)
        if user is None:
            return f"User:{name} is not found."
        if user.status == DISABLED:
            return f"User:{name} is disabled."
        if command.version <= V4_9_3:
            fields = {key: value for key, value in fields.items() if key != UNIQUE_QUERY}
        import hmac  # as in signature

        right = signature(fields, command.body, user.password)
        if not hmac.compare_digest(right.encode(), fields.get(SIGNATURE, "").encode("utf-8", "surrogatepass")):
            return "check signature failed."
        return None


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Both sides of one node: how it signs what it asks (None: not), and whom it answers (None: every peer)."""

    credentials: Credentials | None = None
    users: Users | None = None

    def sign(self, command: RemotingCommand) -> None:
        """Add name and signature to a request, if this node has any."""
        if self.credentials is not None:
            self.credentials.sign(command)

    def problem_of(self, command: RemotingCommand) -> str | None:
        """Why a request is refused; None when it is not."""
        return None if self.users is None else self.users.problem_of(command)

"""The users whom a broker lets in, and what an operator may do with them.

Mirrors: AuthenticationMetadataManagerImpl, User, UserType, UserStatus; file config/users.json.

    users.json    {"users": [{"password": "…", "userStatus": "enable", "userType": "Super", "username": "shop"}, …]}
    initial       users of the configuration file: added at a start when they are not there, left alone when they are

Left out: RocketMQ's file, a RocksDB in config/auth/users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.remoting.access import DISABLED, User
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json

SUPER, NORMAL = "Super", "Normal"
ENABLED = "enable"
WIRE_NAMES = {"name": "username", "password": "password", "type": "userType", "status": "userStatus"}


class UserTable:
    """Users by name. ``changed`` is called after every change. Refusals are UsageErrors with RocketMQ's words."""

    def __init__(self, initial: Iterable[User] = ()) -> None:
        self.changed: Signal[[]] = Signal()
        self._initial = tuple(initial)
        self._by_name = {user.name: user for user in self._initial}

    def find(self, name: str) -> User | None:
        """The user of a name; None when there is none."""
        return self._by_name.get(name)

    def named_like(self, part: str = "") -> list[User]:
        """The users whose names contain ``part``, sorted by name."""
        return [user for name, user in sorted(self._by_name.items(), key=_utf_8) if part.strip() in name]

    def create(self, user: User) -> None:
        """Add a user, who must have a password and a name of his own."""
        if not user.password.strip():
            raise UsageError("password can not be blank")
        if user.name in self._by_name:
            raise UsageError("The user is existed")
        self._keep(user)

    def update(self, name: str, *, password: str = "", kind: str = "", status: str = "") -> None:
        """Change what is not empty of a user."""
        user = self._by_name.get(name)
        if user is None:
            raise UsageError("The user is not exist")
        self._keep(
            replace(
                user,
                password=password if password.strip() else user.password,
                type=kind or user.type,
                status=status or user.status,
            )
        )

    def delete(self, name: str) -> None:
        """Forget a user, if he is there."""
        if self._by_name.pop(name, None) is not None:
            self.changed()

    def _keep(self, user: User) -> None:
        self._by_name[user.name] = user
        self.changed()

    def encode(self) -> str:
        """The text of the file."""
        return java_json.to_json({"users": [shown(user) for user in self.named_like()]}).decode("utf-8")

    def decode(self, text: str) -> None:
        """Use the users of a file, and the initial ones that it does not name. Raises CorruptionError."""
        value = java_json.loads(text)
        listed = value.get("users") if isinstance(value, dict) else None
        if not isinstance(listed, list) or not all(isinstance(user, dict) and user.get("username") for user in listed):
            raise CorruptionError(
                "users cannot be read", expected='{"users":[{"username":…}]}', found=type(value).__name__
            )
        users = [User(*(str(user.get(name, "")) for name in WIRE_NAMES.values())) for user in listed]
        self._by_name = {user.name: user for user in (*self._initial, *users)}

    def __repr__(self) -> str:
        return f"<UserTable {', '.join(self._by_name)}>"


def shown(user: User) -> dict[str, Any]:
    """A user with the names of UserInfo, password included: mqadmin's getUser prints it."""
    return {WIRE_NAMES[name]: value for name, value in asdict(user).items()}


def type_of(text: str) -> str:
    """The type that a text names in any case; "" for another one, which RocketMQ takes for "not said"."""
    return _spelled(text, (SUPER, NORMAL))


def status_of(text: str) -> str:
    """The status that a text names in any case; "" for another one."""
    return _spelled(text, (ENABLED, DISABLED))


def _spelled(text: str, known: tuple[str, str]) -> str:
    return next((word for word in known if word.lower() == text.lower()), "")


def _utf_8(item: tuple[str, User]) -> bytes:
    return item[0].encode("utf-8", "surrogatepass")

"""RocketMQ's configuration files: broker.conf and namesrv.conf, read as its own programs read them.

Mirrors: ServerUtil and MixAll.properties2Object: a name that no class has is ignored there; here it is reported.

    brokerName = broker-a              BrokerConfig.broker_name
    mappedFileSizeCommitLog=1073741824 StoreConfig.mapped_file_size_commit_log
    brokerIP1=10.0.0.7                 the address that clients are told: ServedConfig.broker_ip1
    namesrvAddr, storePathRootDir      likewise

Left out: separate directories for parts of a store (storePathCommitLog must be the root's own).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.broker.config import BrokerConfig
from mqlab.errors import UsageError
from mqlab.nameserver.config import NameServerConfig
from mqlab.remoting.requests import Refused
from mqlab.remoting.settings import typed
from mqlab.serving import users
from mqlab.store.config import StoreConfig
from mqlab.wire.body import camel_case

OF_THE_PROCESS = ("brokerIP1", "brokerIP2", "namesrvAddr", "storePathRootDir", "storePathCommitLog", "rocketmqHome",
                  *users.SETTINGS)  # fmt: skip
"""Settings that say where a process runs; the plan uses them."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What a configuration file says: settings by class, those of the process, and names that mqlab has no use for."""

    broker: dict[str, Any] = field(default_factory=dict)
    store: dict[str, Any] = field(default_factory=dict)
    name_server: dict[str, Any] = field(default_factory=dict)
    process: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


def read_config(path: str | Path) -> FileSettings:
    """Read a configuration file. UsageError, with file and line, for what cannot be a setting's value."""
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    return parse_config(text, str(path))


def parse_config(text: str, where: str) -> FileSettings:
    """The settings in the text of a configuration file.

    >>> found = parse_config("brokerName=b1\\nlistenPort = 10921\\nsendThreadPoolNums=4", "broker.conf")
    >>> found.broker, found.unused
    ({'broker_name': 'b1', 'listen_port': 10921}, ('sendThreadPoolNums',))
    """
    found = FileSettings()
    unused: list[str] = []
    kinds = (
        (_fields(BrokerConfig()), found.broker),
        (_fields(StoreConfig()), found.store),
        (_fields(NameServerConfig()), found.name_server),
    )
    for number, name, value in _properties(text, where):
        if name in OF_THE_PROCESS:
            found.process[name] = value
            continue
        homes = [(fields[name], into) for fields, into in kinds if name in fields]
        if not homes:
            unused.append(name)
        for (field_name, default), into in homes:
            try:
                into[field_name] = tuple(value.split()) if isinstance(default, tuple) else typed(name, value, default)
            except Refused as error:
                raise UsageError(f"{where}, line {number}: {error.remark}") from error
    return dataclasses.replace(found, unused=tuple(unused))


def _fields(config: Any) -> Mapping[str, tuple[str, Any]]:
    return {camel_case(each.name): (each.name, getattr(config, each.name)) for each in dataclasses.fields(config)}


def _properties(text: str, where: str) -> list[tuple[int, str, str]]:
    """Line number, name and value of each entry of a property file; ``#`` and ``!`` begin a comment."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"{where}, line {number}: {stripped!r} is not a setting", hint="write name=value, as in broker.conf"
            )
        entries.append((number, name.strip(), value.strip()))
    return entries

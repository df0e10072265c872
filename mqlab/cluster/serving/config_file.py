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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.cluster.serving import users
from mqlab.errors import UsageError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.remoting.requests import Refused
from mqlab.rocketmq.remoting.settings import trimmed, typed
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import java_properties
from mqlab.rocketmq.wire.body import camel_case

OF_THE_PROCESS = (
    "brokerIP1",
    "brokerIP2",
    "namesrvAddr",
    "storePathRootDir",
    "storePathCommitLog",
    "rocketmqHome",
    *users.SETTINGS,
)
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
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    return parse_config(data, str(path))


def parse_config(data: bytes, where: str) -> FileSettings:
    """The settings in the bytes of a configuration file.

    >>> found = parse_config(b"brokerName=b1\\nlistenPort : 10921\\nsendThreadPoolNums 4", "broker.conf")
    >>> found.broker, found.unused
    ({'broker_name': 'b1', 'listen_port': 10921}, ('sendThreadPoolNums',))
    """
    try:
        entries = java_properties.entries(data)
    except ValueError as error:
        raise UsageError(f"{where}, {error}", hint=r"a backslash is written as \\ in a property file") from error
    return _settings([(f"{where}, line {number}", name, value) for number, name, value in entries])


def parse_set(options: Sequence[str]) -> FileSettings:
    """The settings of the options ``--set NAME=VALUE``; UsageError for what is not one."""
    entries = []
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {option!r} is not a setting", hint="write NAME=VALUE, as in brokerName=broker-a")
        entries.append(("--set", name.strip(), value.strip()))
    return _settings(entries)


def _settings(entries: Sequence[tuple[str, str, str]]) -> FileSettings:
    """The settings of entries: where each stands, its name and its value. The last one of a name counts."""
    settings = FileSettings()
    unused: list[str] = []
    kinds = (
        (_fields(BrokerConfig()), settings.broker),
        (_fields(StoreConfig()), settings.store),
        (_fields(NameServerConfig()), settings.name_server),
    )
    for where, name, value in {entry[1]: entry for entry in entries}.values():
        if name in OF_THE_PROCESS:
            settings.process[name] = trimmed(value)
            continue
        homes = [(fields[name], into) for fields, into in kinds if name in fields]
        if not homes:
            unused.append(name)
        for (field_name, default), into in homes:
            try:
                into[field_name] = tuple(value.split()) if isinstance(default, tuple) else typed(name, value, default)
            except Refused as error:
                raise UsageError(f"{where}: {error.remark}") from error
    return dataclasses.replace(settings, unused=tuple(unused))


def _fields(config: Any) -> Mapping[str, tuple[str, Any]]:
    return {camel_case(field.name): (field.name, getattr(config, field.name)) for field in dataclasses.fields(config)}

"""The servers of a Lab: name servers and brokers, each on a machine of its own, started and registered.

Mirrors: mqnamesrv and mqbroker with their configuration files. Used by Lab only.

    nameserver-1 10.0.0.1:9876      broker-a    10.0.0.2:10911, store in <directory>/broker-a
                                    broker-a-s1 10.0.0.3:10911, store in <directory>/replicas/broker-a-s1

Slaves start when their masters are registered, because they ask the name server for the address of their master.
Left out: slaves of slaves.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.world.handles import BROKERS, NodeHandle
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.broker import Broker, BrokerConfig
from mqlab.rocketmq.machine.files import RealFiles, copy_without_holes
from mqlab.rocketmq.nameserver import NameServer, NameServerConfig
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.settings import split_settings
from mqlab.rocketmq.store import StoreConfig
from mqlab.rocketmq.wire.bodies import TopicConfig

NAME_SERVER_PORT = 9876
BROKER_PORT = 10911
START_LIMIT_MS = 60_000
OWN_NAMES = ("replicas", "offsets")  # the other directories in a Lab's directory
LAB_STORE = StoreConfig(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=1_000,
    max_index_num=4_000,
    mapped_file_size_timer_log=1 << 18,
)
"""Small segments, so that a lab sees files roll; a real broker's are 1 GiB, 6 MB and 420 MB."""


def broker_names(brokers: int | Sequence[str], stores: Mapping[str, Any] | None) -> list[str]:
    """The names of the brokers: as given, those of the stores, or broker-a, broker-b …"""
    if stores is not None and not isinstance(stores, Mapping):
        raise UsageError(
            f"stores must map names of brokers to directories, got {stores!r}", hint='stores={"broker-a": "path"}'
        )
    if stores:
        if brokers not in (1, len(stores)) and brokers != list(stores):
            raise UsageError(
                f"brokers={brokers!r} contradicts stores= with {', '.join(stores)}",
                hint="each store is one broker: leave out brokers=",
            )
        brokers = list(stores)
    if isinstance(brokers, int):
        if not 1 <= brokers <= 26:
            raise UsageError(f"a number of brokers is 1 to 26, got {brokers}", hint="for more give a list of names")
        return [f"broker-{chr(ord('a') + index)}" for index in range(brokers)]
    return _distinct_names("brokers", brokers)


def name_server_names(name_servers: int | Sequence[str]) -> list[str]:
    """The name servers' names: as given, or nameserver-1, nameserver-2 …"""
    if isinstance(name_servers, int):
        if name_servers < 1:
            raise UsageError(f"a Lab needs at least one name server, got {name_servers}")
        return [f"nameserver-{number}" for number in range(1, name_servers + 1)]
    return _distinct_names("name_servers", name_servers)


def _distinct_names(what: str, names: Sequence[str]) -> list[str]:
    """The names, after a check that each can be the name of a directory."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise UsageError(
            f"{what} must be a number or a list of names, got {names!r}", hint=f'{what}=["room1@one", "two"]'
        )
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{what}: names are strings, {name!r} is not")
        file_name(name, what)
    return list(names)


def file_name(name: str, what: str) -> str:
    """The name, after a check that it can be the name of a file in the Lab's directory; UsageError when it cannot."""
    if not re.fullmatch(r"[^\s./\\\0]([^/\\\0]*[^\s/\\\0])?", name) or name in OWN_NAMES:
        raise UsageError(
            f"{name!r} among {what} cannot be the name of a file in the Lab's directory",
            hint=f"letters, digits, - _ @ and dots, and not {' or '.join(OWN_NAMES)}",
        )
    return name


def latency(network: Mapping[str, str | int] | None) -> int:
    """How long a frame travels, in ms. UsageError for a setting of the network that does not exist."""
    for name in network or {}:
        if name != "latency":
            raise UsageError(f"the network has no setting {name!r}", hint='network={"latency": "1ms"}')
    return milliseconds((network or {}).get("latency", "1ms"))


def bring_stores(
    stores: Mapping[str, str | Path] | None, directory: Path, bring_file: Callable[[str, str], None]
) -> int | None:
    """Bring existing stores into the Lab's directory, each file by ``bring_file``.

    Returns when the clock is to start: 1 s after the last store timestamp; None when there is no message.
    """
    if not stores:
        return None
    from mqlab.lab.inspector import StoreInspector

    latest_ms = None
    for name, source in stores.items():
        file_name(name, "stores")
        if not (Path(source) / "commitlog").is_dir():
            raise UsageError(f"{source} is not a store: it has no directory commitlog", hint="give a store's root")
        shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("lock"), copy_function=bring_file)
        for folder, _, _ in os.walk(directory / name):  # the original may be read-only
            Path(folder).chmod(0o755)
        last_ms = StoreInspector(directory / name).last_store_timestamp()
        if last_ms is not None:
            latest_ms = max(last_ms + 1_000, latest_ms or 0)
    return latest_ms


def copy_writable(source: str, target: str) -> None:
    """Copy a file. The copy can be written to even if the original is read-only."""
    copy_without_holes(source, target)
    shutil.copystat(source, target)
    Path(target).chmod(0o644)


def start_name_servers(state: LabState, names: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Start the name servers."""
    (config,) = split_settings(settings, NameServerConfig())
    for name in names:
        files = RealFiles()

        def build(ports: Ports) -> NameServer:
            return NameServer(ports, config)

        state.handles[name] = NodeHandle(
            name, "name server", files, state.world.add_node(name, files), state.fitted("name server", build)
        )
        state.handles[name].start()


def name_server_addresses(state: LabState) -> list[str]:
    """The addresses of the Lab's name servers."""
    return [
        f"{state.world.nodes[handle.name].ip}:{NAME_SERVER_PORT}"
        for handle in state.handles.values()
        if handle.role == "name server"
    ]


def start_brokers(state: LabState, names: Sequence[str], settings: Mapping[str, Any], memory: str | int | None) -> None:
    """Start the brokers on their store directories and let time pass until every name server has registered them."""
    for name in names:
        _start_broker(state, name, "broker", state.directory / name, {**settings, "broker_name": name}, memory)
    state.world.run_until(lambda: _all_registered(state, names, 1), START_LIMIT_MS, "registration of all brokers")


def start_slaves(
    state: LabState, names: Sequence[str], replicas: int, settings: Mapping[str, Any], memory: str | int | None
) -> None:
    """Start the slaves of each broker and let time pass until they are registered and their masters send to them."""
    for name in names:
        for broker_id in range(1, replicas + 1):
            own = {"broker_name": name, "broker_id": broker_id, "broker_role": "SLAVE"}
            node = f"{name}-s{broker_id}"
            _start_broker(state, node, "slave", state.directory / "replicas" / node, {**settings, **own}, memory)

    def are_linked() -> bool:
        servers = [state.handles[name].node.replication.server for name in names]
        return _all_registered(state, names, 1 + replicas) and all(
            sum(slave.is_sending for slave in server.connections) == replicas for server in servers
        )

    state.world.run_until(are_linked, START_LIMIT_MS, "the links between masters and slaves")


def _start_broker(
    state: LabState, name: str, role: str, directory: Path, settings: Mapping[str, Any], memory: str | int | None
) -> None:
    broker_config, store_config = split_settings(settings, BrokerConfig(trace_topic_enable=True), LAB_STORE)
    addresses = name_server_addresses(state)
    files = state.machine_files()
    plug_in = state.plug_in(role)

    def build(ports: Ports) -> Broker:
        return Broker(
            ports,
            broker_config,
            store_directory=str(directory),
            store_config=store_config,
            name_servers=addresses,
            memory_bytes=memory_bytes(memory),
            plug_in=plug_in,
        )

    state.handles[name] = NodeHandle(name, role, files, state.world.add_node(name, files), state.fitted(role, build))
    state.handles[name].start()


def _all_registered(state: LabState, names: Sequence[str], processes: int) -> bool:
    """Whether every name server has this number of processes, or more, of each broker."""
    servers = [handle for handle in state.handles.values() if handle.role == "name server"]
    return all(
        name in server.routes.brokers and len(server.routes.brokers[name].broker_addrs) >= processes
        for server in servers
        for name in names
    )


def readable_brokers(state: LabState) -> list[tuple[str, Broker]]:
    """Broker name and process to read from: the master or, while that is down, its first slave that is up."""
    processes: dict[str, Broker] = {}
    for handle in state.handles.values():  # masters come before slaves
        if handle.role in BROKERS and handle.is_up:
            processes.setdefault(handle.node.config.broker_name, handle.node)
    return list(processes.items())


def create_topic(
    state: LabState,
    topic: str,
    read_queue_nums: int,
    write_queue_nums: int,
    perm: int,
    brokers: Sequence[str] | str | None,
) -> None:
    """Create or change a topic and let time pass until every name server has it from every broker concerned."""
    config = TopicConfig(topic, read_queue_nums=read_queue_nums, write_queue_nums=write_queue_nums, perm=perm)
    if isinstance(brokers, str):
        brokers = [brokers]
    # 1. The masters create the topic; slaves copy it from them.
    handles: list[Any] = [
        state.handle_of(name, *BROKERS)
        for name in (brokers or [handle.name for handle in state.handles.values() if handle.role == "broker"])
    ]
    for handle in handles:  # none is changed unless all can be
        if handle.role == "slave":
            raise UsageError(f"{handle.name} is a slave: it copies its topics from its master")
        handle.must_be_up()
    for handle in handles:
        handle.on_its_node(lambda handle=handle: handle.node.create_topic(config))
    # 2. Each broker registers the topic with every name server; wait for the last of them.
    servers = [handle for handle in state.handles.values() if handle.role == "name server" and handle.is_up]

    def is_registered() -> bool:
        return all(
            server.routes.queue_data(topic, handle.name) == config.queue_data(handle.name)
            for server in servers
            for handle in handles
        )

    state.world.run_until(is_registered, START_LIMIT_MS, f"registration of topic {topic!r}")


def memory_bytes(memory: str | int | None) -> int | None:
    """How many bytes at the end of a log count as in memory, from a number or "4MB", "512KB", "1GB".

    >>> memory_bytes("4MB"), memory_bytes(None)
    (4194304, None)
    """
    if memory is None or (isinstance(memory, int) and memory >= 0):
        return memory
    text = str(memory)
    for unit, size in (("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)):
        if text.upper().endswith(unit) and text[: -len(unit)].strip().isdigit():
            return int(text[: -len(unit)]) * size
    raise UsageError(f"{memory!r} is not a size", hint='write "512KB", "4MB", "1GB" or a number of bytes')

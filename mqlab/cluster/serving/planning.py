"""From options to a plan: configuration file, single settings, addresses, master.

    the command line    over    the configuration file    over    RocketMQ's defaults

Mirrors: the order in which BrokerStartup reads its options. A setting of RocketMQ that mqlab has no use for is
reported and ignored in both; another name is ignored in a file, as there, and refused on the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mqlab.cluster.runtime import EventLoop
from mqlab.cluster.runtime.address import Address, address_of
from mqlab.cluster.serving import rocketmq_settings
from mqlab.cluster.serving.config_file import FileSettings, parse_set, read_config
from mqlab.cluster.serving.plan import BROKER_PORT, BrokerPlan, ServingPlan, broker_addresses, free_port, own_address
from mqlab.cluster.serving.users import access_of
from mqlab.errors import RemotingError, UsageError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.remoting.access import NodeAccess
from mqlab.rocketmq.remoting.settings import parsed_lines
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.java_numbers import int_or

LOOPBACK = "127.0.0.1"
NAME_SERVER_PORT = 9876


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. None: not said. ``only``: "namesrv" or "broker"; ``settings``: lines "name=value"."""

    store: Path | None = None
    namesrv: str | None = None
    broker: str | None = None
    brokers: int = 1
    replica_of: str | None = None
    broker_id: int = 1
    only: str | None = None
    config: Path | None = None
    settings: Sequence[str] = field(default=())
    grpc: str | None = None
    grpc_as_in_5_3_3: bool = False


def plan_of(wanted: Wanted) -> tuple[ServingPlan, tuple[str, ...]]:
    """The plan, and the names of settings that have no effect. UsageError for what cannot be."""
    settings = read_config(wanted.config) if wanted.config else FileSettings()
    said = parse_set(wanted.settings)
    unknown = [name for name in said.unused if name not in rocketmq_settings.NAMES]
    if unknown:
        raise UsageError(
            f"there is no setting {unknown[0]!r}", hint="settings have the names of broker.conf: flushDiskType=…"
        )
    unused = (*settings.unused, *said.unused)
    settings = _joined(settings, said)
    # 1. Name servers: this process has one unless only brokers are wanted, or the brokers are slaves.
    has_name_server = wanted.only != "broker" and wanted.replica_of is None
    name_server = _name_server(wanted, settings) if has_name_server else None
    if name_server is not None:
        name_servers: tuple[str, ...] = (str(name_server),)
    else:
        listed = wanted.namesrv or settings.process.get("namesrvAddr") or ""
        name_servers = tuple(str(_to_register_at(address)) for address in listed.split(";") if address.strip())
    if wanted.only == "broker" and not name_servers:
        raise UsageError("--only broker needs the name servers to register at", hint='--namesrv "10.0.0.7:9876"')
    # 2. Brokers, and whom they answer.
    access = None if wanted.only == "namesrv" else access_of(settings.process)
    brokers = () if wanted.only == "namesrv" else _brokers(wanted, settings, name_servers, access)
    if wanted.replica_of is not None and not name_servers:
        name_servers = master_of(wanted.replica_of, access).name_servers
        if not name_servers:
            raise UsageError(
                f"the master at {wanted.replica_of} does not say at which name servers it registers",
                hint='name them: --namesrv "10.0.0.7:9876"',
            )
    server_config, grpc = _name_server_config(settings, wanted), _grpc(wanted)
    plan = ServingPlan(name_server, name_servers, brokers, server_config, access, grpc, wanted.grpc_as_in_5_3_3)
    return plan, unused


def _grpc(wanted: Wanted) -> Address | None:
    """Where 5.x clients are answered: in front of the masters of this process, and of no others."""
    if wanted.grpc is None:
        if wanted.grpc_as_in_5_3_3:
            raise UsageError("--grpc-as-in-5.3.3 needs --grpc HOST:PORT")
        return None
    if wanted.only == "namesrv" or wanted.replica_of is not None:
        raise UsageError("the gRPC front needs a master in this process", hint="leave out --grpc, or run a broker here")
    where = address_of(wanted.grpc)
    return where if where.port else replace(where, port=free_port(where.host))


def _to_register_at(text: str) -> Address:
    where = address_of(text)
    if not where.port:
        raise UsageError(
            f"{text} is not an address to register at", hint="give a port; 0 is for an address of this process"
        )
    return where


def _joined(first: FileSettings, over: FileSettings) -> FileSettings:
    return FileSettings(
        {**first.broker, **over.broker},
        {**first.store, **over.store},
        {**first.name_server, **over.name_server},
        {**first.process, **over.process},
    )


def _name_server(wanted: Wanted, settings: FileSettings) -> Address:
    of_file = settings.name_server.get("listen_port") if wanted.only == "namesrv" else None
    text = wanted.namesrv or f"{LOOPBACK}:{of_file or NAME_SERVER_PORT}"
    if ";" in text:
        raise UsageError(
            f"one process has one name server, not {text!r}", hint="with --only broker a list is where to register"
        )
    where = address_of(text)
    return where if where.port else replace(where, port=free_port(where.host))


def _name_server_config(settings: FileSettings, wanted: Wanted) -> NameServerConfig:
    """Its settings; ``listenPort`` of a broker's file is the broker's."""
    own = {name: value for name, value in settings.name_server.items() if name != "listen_port"}
    return NameServerConfig(**own)


def _brokers(
    wanted: Wanted, settings: FileSettings, name_servers: tuple[str, ...], access: NodeAccess | None
) -> tuple[BrokerPlan, ...]:
    if wanted.brokers > 1 and ("broker_name" in settings.broker or wanted.replica_of is not None):
        raise UsageError(
            "several brokers cannot share one name", hint="leave out --brokers, or brokerName and --replica-of"
        )
    first = wanted.broker or f"{LOOPBACK}:{settings.broker.get('listen_port', BROKER_PORT)}"
    root = wanted.store or (Path(path) if (path := settings.process.get("storePathRootDir")) else None)
    if root is None:
        raise UsageError("no directory for the messages", hint="--store DIR")
    _check_log_path(settings, root)
    of_broker, of_store = dict(settings.broker), dict(settings.store)
    if wanted.replica_of is not None:
        master = master_of(wanted.replica_of, access)
        of_broker |= {"broker_name": master.broker_name, "broker_id": wanted.broker_id}
        of_broker |= {"broker_cluster_name": master.cluster}
        of_store |= {"broker_role": "SLAVE", "ha_master_address": master.ha_address}
    plans = []
    for number, where in enumerate(broker_addresses(first, wanted.brokers)):
        name = of_broker.get("broker_name", f"broker-{chr(ord('a') + number)}")
        plans.append(
            BrokerPlan(
                bind=where.host,
                advertised=own_address(where.host, settings.process.get("brokerIP1")),
                directory=root if wanted.brokers == 1 else root / name,
                config=BrokerConfig(**{**of_broker, "broker_name": name, "listen_port": where.port}),
                store=StoreConfig(**of_store),
            )
        )
    return tuple(plans)


def _check_log_path(settings: FileSettings, root: Path) -> None:
    log = settings.process.get("storePathCommitLog")
    if log is not None and Path(log) != root / "commitlog":
        raise UsageError(
            f"storePathCommitLog={log} is not in storePathRootDir={root}",
            hint="mqlab keeps all parts of a store below one directory: move it, or leave the setting out",
        )


@dataclass(frozen=True, slots=True)
class Master:
    """What a slave needs to know of its master."""

    broker_name: str
    cluster: str
    ha_address: str
    name_servers: tuple[str, ...]


def master_of(address: str, access: NodeAccess | None = None) -> Master:
    """Ask a broker for its settings: name, cluster, the port for slaves. RemotingError when it does not answer."""
    from mqlab.rocketmq.admin.requests import AdminNode  # only a slave asks; a server of tests starts a fifth faster

    where = address_of(address)
    loop = EventLoop()
    loop.start()
    try:
        node = AdminNode(loop.ports("replica", where.host, RealFiles(), access=access), [str(where)])
        answer = node.ask(str(where), RequestCode.GET_BROKER_CONFIG)
    except RemotingError as error:
        raise RemotingError(
            f"no master answers at {where}: {error.text}",
            code=error.code,
            hint="give the address at which the master answers clients, not its HA port",
        ) from error
    finally:
        loop.stop()
    values = parsed_lines(answer.body or b"")
    ha_port = int_or(values.get("haListenPort"), 0) or where.port + 1
    listed = values.get("namesrvAddr", "")
    return Master(
        values.get("brokerName", "broker-a"),
        values.get("brokerClusterName", "DefaultCluster"),
        str(Address(where.host, ha_port)),
        tuple(
            name_server.strip()
            for name_server in listed.split(";")
            if name_server.strip() and name_server.strip() != "null"
        ),
    )

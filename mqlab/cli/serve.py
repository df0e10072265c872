"""`mqlab serve`: name server and brokers over TCP, for real clients.

Mirrors: mqnamesrv and mqbroker in one process.

    mqlab serve                                       one name server, one broker, a store that ends with it
    mqlab serve --store run --port-file ports.json    the store in run; the addresses in ports.json once all listen
    mqlab serve --only broker --namesrv 10.0.0.7:9876 --config broker.conf

It listens on this machine alone unless --allow-remote is given. SIGTERM and Ctrl-C save, then end with exit code 0.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import ssl
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqlab.cli.new_file import NewFile
from mqlab.errors import UsageError
from mqlab.whole_files import whole_file

if TYPE_CHECKING:
    from mqlab.cluster.serving import Server, ServingPlan
    from mqlab.cluster.serving.server import Tls

log = logging.getLogger("mqlab.server")

NAME_SERVER = "127.0.0.1:9876"
BROKER = "127.0.0.1:10911"
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"
A_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
A_DIRECTORY = click.Path(path_type=Path, file_okay=False)

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--store", type=A_DIRECTORY, help="Where messages are kept. Default: a temporary directory, removed at the end."
    ),
    click.option(
        "--namesrv",
        metavar="HOST:PORT",
        help=f"The name server's address, {NAME_SERVER}; with --only broker those to register at, separated by ;.",
    ),
    click.option(
        "--broker",
        metavar="HOST:PORT",
        help=f"The first broker's address, {BROKER}; the ports two below and one above are also used. "
        "Port 0 takes free ones.",
    ),
    click.option(
        "--grpc",
        metavar="HOST:PORT",
        help="Answer RocketMQ's 5.x clients here, over gRPC, as the proxy does in local mode. Port 0 takes a free one.",
    ),
    click.option(
        "--grpc-as-in-5.3.3",
        "grpc_as_in_5_3_3",
        is_flag=True,
        help="With the faults of the release: leases are not renewed, a changed handle acknowledges nothing, and a "
        "receive right after the start fails.",
    ),
    click.option(
        "--brokers",
        type=click.IntRange(1, 26),
        default=1,
        show_default=True,
        help="How many brokers: broker-a, broker-b …, ten ports apart.",
    ),
    click.option(
        "--replica-of",
        metavar="HOST:PORT",
        help="Run one broker as a slave of the master at this address, also of a real RocketMQ.",
    ),
    click.option("--broker-id", type=click.IntRange(1), default=1, show_default=True, help="The slave's number."),
    click.option("--only", type=click.Choice(["namesrv", "broker"]), help="Run only a name server, or only brokers."),
    click.option(
        "--processes", is_flag=True, help="A process of its own for each broker; --port-file has their numbers (pid)."
    ),
    click.option("--config", type=A_FILE, help="RocketMQ's broker.conf or namesrv.conf."),
    click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="A setting with its name in broker.conf, such as flushDiskType=SYNC_FLUSH. May be repeated.",
    ),
    click.option("--port-file", type=NewFile(), help="Write the addresses to this file, as JSON, once all listen."),
    click.option("--metrics", metavar="HOST:PORT", help="Answer Prometheus at http://HOST:PORT/metrics."),
    click.option("--tls-cert", type=A_FILE, help="Encrypt all connections, with this certificate (PEM)."),
    click.option("--tls-key", type=A_FILE, help="The key of --tls-cert, when it is in a file of its own."),
    click.option(
        "--parts",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Your own broker: a folder of parts such as mybroker. See docs/your-broker.md.",
    ),
    click.option(
        "--record", type=NewFile(), help="Write every frame to this file; mqlab.cluster.connected.Recording shows it."
    ),
    click.option("--allow-remote", is_flag=True, help="Allow addresses that other machines can reach."),
    click.option("-v", "--verbose", is_flag=True, help="Log each connection that is closed for a reason."),
)


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all options; decorators are applied from the bottom up."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command(short_help="Run a name server and brokers for real RocketMQ clients.")
@with_options
def serve(
    port_file: Path | None,
    metrics: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    record: Path | None,
    allow_remote: bool,
    verbose: bool,
    processes: bool,
    parts: Path | None,
    **asked: Any,
) -> None:
    """Run a name server and brokers over TCP. RocketMQ's clients and mqadmin can use them.

    It is one Python process, or with --processes one for each broker, for learning and for tests: docs/serving.md says
    what it must not be used for.

    Example:  mqlab serve --store run --brokers 2
    """
    from mqlab.cluster.serving import Server
    from mqlab.cluster.serving.planning import Wanted, plan_of
    from mqlab.lab.parts import OwnParts, parts_in
    from mqlab.lab.parts.plug import ServingPlug

    if port_file is not None:  # who waits for it must not be given the ports of an earlier process
        port_file.unlink(missing_ok=True)
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    logging.getLogger("mqlab.network").setLevel(logging.INFO if verbose else logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="mqlab-serve-", ignore_cleanup_errors=True) as scratch:
        # 1. The plan. Without a directory the messages live as long as this process.
        if asked["store"] is None and asked["config"] is None:
            asked["store"] = Path(scratch)
        plan, unused = plan_of(Wanted(**asked))
        if unused:
            log.warning("settings without effect here: %s", ", ".join(unused))
        _must_be_allowed(plan, allow_remote)
        if processes:
            if plan.name_server is None or not plan.brokers or plan.grpc or any((metrics, record, parts)):
                raise UsageError(
                    "--processes needs a name server and brokers, and has no gRPC, metrics, recording or parts",
                    hint="leave out --only, --replica-of, --grpc, --metrics, --record and --parts",
                )
            common = _passed_on(asked, tls_cert, tls_key, allow_remote=allow_remote, verbose=verbose)
            _serve_apart(plan, Path(scratch), common, port_file, _tls(tls_cert, tls_key))
            return
        # 2. The server; it answers once every broker is registered.
        own = parts_in(parts) if parts is not None else OwnParts()
        server = Server(plan, tls=_tls(tls_cert, tls_key), plug_in=lambda: ServingPlug(own))
        if record is not None:
            server.loop.record(record)
        server.run(lambda: _ready(server, port_file, metrics), status=True)
    if port_file is not None:
        port_file.unlink(missing_ok=True)


def _passed_on(
    asked: dict[str, Any], tls_cert: Path | None, tls_key: Path | None, *, allow_remote: bool, verbose: bool
) -> list[str]:
    """The arguments that the process of each broker gets as well."""
    files = (("--config", asked["config"]), ("--tls-cert", tls_cert), ("--tls-key", tls_key))
    passed = [part for name, path in files if path is not None for part in (name, str(path))]
    passed += [part for setting in asked["settings"] for part in ("--set", setting)]
    return passed + ["--allow-remote"] * allow_remote + ["--verbose"] * verbose


def _serve_apart(plan: ServingPlan, scratch: Path, common: list[str], port_file: Path | None, tls: Tls | None) -> None:
    """The name server here, each broker in a process of its own. UsageError when one of them does not start."""
    from mqlab.cluster.serving import Server
    from mqlab.cluster.serving.processes import BrokerProcesses

    brokers = BrokerProcesses.of(plan.brokers, str(plan.name_server), scratch, common)
    server, problems = Server(dataclasses.replace(plan, brokers=()), tls=tls), list[UsageError]()

    def look() -> None:
        try:
            if brokers.are_ready:
                _tell(port_file, {**server.addresses(), "brokers": brokers.addresses()})
            else:
                server.loop.loop.call_later(0.05, look)
        except UsageError as error:
            problems.append(error)
            server.loop.stop()

    def start() -> None:
        dataclasses.replace(plan, name_server=None).let_go()  # the brokers' ports are for their own processes
        brokers.start()
        look()

    try:
        server.run(start)
    finally:
        brokers.end()
        if port_file is not None:
            port_file.unlink(missing_ok=True)
    if problems:
        raise problems[0]


def _must_be_allowed(plan: ServingPlan, allow_remote: bool) -> None:
    open_to_all = plan.reachable_from_outside()
    if open_to_all and not allow_remote:
        raise UsageError(
            f"{', '.join(open_to_all)} can be reached from other machines",
            hint="every process that connects can read and write everything; say --allow-remote if you want that",
        )
    if open_to_all:
        log.warning("%s: every process that can connect can read and write everything", ", ".join(open_to_all))


def _ready(server: Server, port_file: Path | None, metrics: str | None) -> None:
    """All listen: answer scrapes, write the addresses, say so."""
    from mqlab.cluster.runtime.address import address_of
    from mqlab.cluster.serving.metrics import serve_metrics

    addresses = server.addresses()
    if metrics is not None:
        where = address_of(metrics)
        where = replace(where, port=serve_metrics(server, where.host, where.port))
        addresses["metrics"] = f"http://{where}/metrics"
    _tell(port_file, addresses)


def _tell(port_file: Path | None, addresses: dict[str, Any]) -> None:
    if port_file is not None:
        with whole_file(port_file) as draft:
            draft.write_text(json.dumps(addresses) + "\n", "utf-8")
    log.info("ready: clients use the name server %s", addresses["namesrv"])


def _tls(certificate: Path | None, key: Path | None) -> Tls | None:
    if certificate is None:
        if key is not None:
            raise UsageError("--tls-key needs --tls-cert")
        return None
    from mqlab.cluster.serving.server import Tls

    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        client = ssl.create_default_context(cafile=str(certificate))
        server.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{certificate} cannot be used for TLS: {error}", hint="PEM, with its key") from error
    client.check_hostname = False  # brokers know each other by number
    pem = (certificate.read_bytes(), (key or certificate).read_bytes())
    return Tls(server, client, pem)

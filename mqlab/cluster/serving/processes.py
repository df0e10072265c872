"""One process per broker: a test can stop one of them, and the others go on.

Mirrors: mqbroker, which is a process of its own; the name server stays in the process that starts the others.

    processes = BrokerProcesses(commands); processes.start(); processes.addresses() …; processes.end()

A broker that ends by itself or is killed is not started again: its exit is a line in the log.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.cluster.serving.plan import BrokerPlan
from mqlab.errors import UsageError

log = logging.getLogger("mqlab.server")

END_SECONDS = 30.0


@dataclass(slots=True)
class BrokerProcess:
    """One broker's command line, the file of its addresses and, once it was started, its process."""

    name: str
    command: list[str]
    port_file: Path
    process: subprocess.Popen[bytes] | None = None


@dataclass(slots=True)
class BrokerProcesses:
    """The processes of all brokers of one server."""

    brokers: list[BrokerProcess] = field(default_factory=list)

    @classmethod
    def of(cls, plans: Sequence[BrokerPlan], namesrv: str, scratch: Path, common: Sequence[str]) -> BrokerProcesses:
        """A process for each planned broker; ``common``: arguments that all of them get, settings for example."""
        processes = cls()
        for plan in plans:
            name, where = plan.config.broker_name, f"{plan.bind}:{plan.config.listen_port}"
            port_file = scratch / f"{name}.json"
            command = [sys.executable, "-m", "mqlab.cli", "serve", "--only", "broker", "--namesrv", namesrv]
            command += ["--broker", where, "--store", str(plan.directory), "--port-file", str(port_file)]
            processes.brokers.append(BrokerProcess(name, [*command, *common, "--set", f"brokerName={name}"], port_file))
        return processes

    def start(self) -> None:
        """Start all of them."""
        for broker in self.brokers:
            broker.process = subprocess.Popen(  # a Ctrl-C is for this process, which ends the others
                broker.command, stdin=subprocess.DEVNULL, start_new_session=True
            )

    @property
    def are_ready(self) -> bool:
        """Whether every broker has written its addresses. UsageError when one has ended before."""
        for broker in self.brokers:
            if broker.port_file.exists():
                continue
            if broker.process is None or broker.process.poll() is not None:
                raise UsageError(f"the process of {broker.name} ended before it was ready", hint="its reason is above")
            return False
        return True

    def addresses(self) -> list[dict[str, Any]]:
        """What each broker's port file says, and the number of its process ("pid")."""
        entries = []
        for broker in self.brokers:
            assert broker.process is not None
            (entry,) = json.loads(broker.port_file.read_text("utf-8"))["brokers"]
            entries.append({**entry, "pid": broker.process.pid})
        return entries

    def end(self) -> None:
        """Let all of them save and end; one that does not within 30 s is killed."""
        running = [broker for broker in self.brokers if broker.process is not None]
        for broker in running:
            assert broker.process is not None
            broker.process.terminate()  # does nothing to one that has ended
        for broker in running:
            assert broker.process is not None
            try:
                code = broker.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                broker.process.kill()
                code = broker.process.wait()
            log.info("the process of %s ended with %d", broker.name, code)

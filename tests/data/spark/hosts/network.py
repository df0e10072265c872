"""Several hosts on this machine: network namespaces on one switch, each with a file system of its own.

    switch (a bridge in a namespace of its own)
      ├── 10.77.0.1  master     programs run under bubblewrap: the system and Python are there, read-only;
      ├── 10.77.0.2  driver     /tmp and /host are the host's own; other folders only where the case shares them
      └── 10.77.0.3  worker-1   "killed" is kill -9 of all that runs on the host

Needs the rights of root, ``ip``, ``tc`` and ``bwrap``; ``why_not`` says what is missing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep

from tests.tidy.sources import ROOT

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt")
PATIENCE_S = 600  # a start of Spark takes minutes where other work has the processors
NUMBERS = itertools.count(1)  # of the networks that this process makes


def ip(*arguments: str) -> None:
    """Run ``ip``. Raises CalledProcessError with what it said."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Why hosts cannot be made here; empty if they can."""
    for program in ("ip", "tc", "bwrap"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need the rights of root"
    name = f"mqlab-{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "left", "type", "veth", "peer", "name", "right")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not allowed here: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return ""


class Program:
    """A program that runs on a host; its output is a file that can be waited for."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    def says(self, text: str) -> None:
        """Wait until the program has printed ``text``. Raises AssertionError with its output when it ends before."""
        end = monotonic() + PATIENCE_S
        while text not in (output := self.log.read_text("utf-8", "replace")):
            assert self.process.poll() is None and monotonic() < end, output[-3000:]
            sleep(0.05)

    def ends(self) -> str:
        """What the program printed, once it has ended well."""
        status = self.process.wait()
        output = self.log.read_text("utf-8", "replace")
        assert status == 0, output[-6000:]
        return output

    def kill(self) -> None:
        """kill -9: bubblewrap's process is the first one of the host's own list, so all others end with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Host:
    """One host. ``has_mqlab``: whether mqlab is installed there: this checkout, another folder, or not at all."""

    def __init__(
        self,
        namespace: str,
        address: str,
        disk: Path,
        shared: Mapping[Path, Path],
        has_mqlab: bool | Path = True,
    ) -> None:
        self.namespace, self.address, self.disk = namespace, address, disk
        self._shared, self._has_mqlab = shared, has_mqlab
        self._programs: list[Program] = []
        for folder in ("tmp", "host"):
            (disk / folder).mkdir(parents=True)

    def run(self, *command: str, **environment: str) -> Program:
        """Start a program on this host."""
        log = self.disk / f"program-{len(self._programs)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, *self._file_system(), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(environment),
                start_new_session=True,
            )
        self._programs.append(Program(process, log))
        return self._programs[-1]

    def kill(self) -> None:
        """Everything that runs on this host ends at once."""
        for program in self._programs:
            program.kill()

    def slow_down(self, rate: str) -> None:
        """Let whatever leaves this host go at ``rate``, as ``tc`` writes it, and wait for the rest up to 400 ms."""
        bucket = ["qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "16kbit", "latency", "400ms"]
        subprocess.run(["ip", "netns", "exec", self.namespace, "tc", *bucket], check=True, capture_output=True)

    def _file_system(self) -> Iterator[str]:
        yield from ("bwrap", "--die-with-parent", "--unshare-pid", "--proc", "/proc", "--dev", "/dev")
        # 1. The host's own disk.
        for folder in ("tmp", "host"):
            yield from ("--bind", str(self.disk / folder), f"/{folder}")
        # 2. What is installed: the system, Python with its packages, and mqlab where the case has it.
        for folder in (*SYSTEM, sys.base_prefix, sys.prefix):
            if Path(folder).exists():
                yield from ("--ro-bind", folder, folder)
        if self._has_mqlab:
            source = ROOT / "mqlab" if self._has_mqlab is True else self._has_mqlab
            yield from ("--ro-bind", str(source), str(ROOT / "mqlab"))
        yield from ("--ro-bind", str(ROOT / "tests"), str(ROOT / "tests"))
        # 3. What is shared.
        for outside, inside in self._shared.items():
            yield from ("--bind", str(outside), str(inside))
        yield from ("--chdir", "/host")

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
            "HOME": "/host",
            "SPARK_LOCAL_IP": self.address,
            "SPARK_LOCAL_DIRS": "/tmp",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
            **more,
        }


class Network:
    """A switch and the hosts on it; a context manager that leaves nothing behind."""

    def __init__(self, disks: Path) -> None:
        self._disks = disks
        self._prefix = f"mqlab-{os.getpid()}-{next(NUMBERS)}"
        self._hosts: list[Host] = []
        self._namespaces: list[str] = []

    def __enter__(self) -> Network:
        switch = self._namespace("switch")
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.kill()
        for name in self._namespaces:
            ip("netns", "del", name)

    def host(
        self, name: str, *, shared: Mapping[Path, Path] | Sequence[Path] = (), has_mqlab: bool | Path = True
    ) -> Host:
        """Another host. ``shared``: folders that it sees, by the same path or by another one."""
        number = len(self._hosts) + 1
        namespace, switch, cable = self._namespace(name), self._namespaces[0], f"port{number}"
        # A cable from the host to the switch; its end in the host is eth0.
        ip("-n", switch, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        ip("-n", switch, "link", "set", cable, "master", "bridge", "up")
        address = f"10.77.0.{number}"
        ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", namespace, "link", "set", "eth0", "up")
        ip("-n", namespace, "link", "set", "lo", "up")
        folders = shared if isinstance(shared, Mapping) else {folder: folder for folder in shared}
        self._hosts.append(Host(namespace, address, self._disks / name, folders, has_mqlab))
        return self._hosts[-1]

    def _namespace(self, name: str) -> str:
        namespace = f"{self._prefix}-{name}"
        ip("netns", "add", namespace)
        self._namespaces.append(namespace)
        return namespace

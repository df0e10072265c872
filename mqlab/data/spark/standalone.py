"""A real cluster on this machine: a standalone master with workers, and a Spark Connect server, as processes.

Mirrors: Spark's sbin/start-master.sh, start-worker.sh and start-connect-server.sh, which pyspark's package leaves out
or has in part. Lab 10 runs one job on it.

    with StandaloneCluster(workers=2) as cluster:            master JVM, worker JVMs; executors come with the first job
        spark = session(cluster.master)                      spark://127.0.0.1:40123
    with ConnectServer("local[2]") as server:                one JVM; its client does not need Java
        spark = session(server.url)                          sc://127.0.0.1:40124

Everything listens on 127.0.0.1 alone, on ports that are free, and ends with the block.
Left out: several machines; there start-master.sh and start-worker.sh of a Spark distribution do this.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from mqlab.data.spark.java import find_java
from mqlab.data.spark.session import (
    LOCAL_SETTINGS,
    REMOTE,
    SETTINGS,
    SparkFailed,
    end_remote_session,
    launch_environment,
    log_file,
    quoted,
)
from mqlab.data.spark.worker_python import worker_python
from mqlab.errors import UsageError

HERE = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 10
DAEMON_MEMORY = "512m"
DAEMON_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
LOG_SETTINGS = """\
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class _Daemon:
    """One JVM in a process group of its own; its output goes to a log file and can be waited for."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = log_file().with_name(f"{os.getpid()}-{name}.log")  # kept when the folder is removed
        self._news = threading.Condition()
        self._lines: list[str] = []
        self._ended = False
        log_settings = folder / "log4j2.properties"
        log_settings.write_text(LOG_SETTINGS, "utf-8")
        java = quoted(f"-Dlog4j2.configurationFile={log_settings}")
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": HERE,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            # Not the user's settings.
            "SPARK_CONF_DIR": f"{os.environ['SPARK_HOME']}/conf",
            "SPARK_SUBMIT_OPTS": java,
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": f"{DAEMON_OPTIONS} {java}",
        }
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _listen(self, output: IO[str]) -> None:
        with output, self.log.open("w", encoding="utf-8") as log:
            for line in output:
                log.write(line)
                log.flush()
                # Wake the caller of wait_for, which looks at the lines so far.
                with self._news:
                    self._lines.append(line.rstrip())
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line that fits the pattern. Raises SparkFailed with the last lines when none comes in time."""
        matches: list[re.Match[str]] = []

        def is_there() -> bool:
            matches.extend(match for line in self._lines if (match := re.search(pattern, line)))
            return bool(matches) or self._ended

        with self._news:
            self._news.wait_for(is_there, START_SECONDS)
            if matches:
                return matches[0]
            tail = "\n".join([line for line in self._lines if not line.startswith("\tat ")][-5:])
        raise SparkFailed(f"the {self.name} did not start:\n{tail}", hint=f"all of its output is in {self.log}")

    def stop(self) -> None:
        """End the JVM and the processes that it started."""
        # Both signals go to the whole group, because executors may outlive the JVM that started them.
        for way in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, way)
                self._process.wait(STOP_SECONDS)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()
        self._reader.join(STOP_SECONDS)  # its pipe closes with it; a process that outlives the JVM may hold it longer


class _Daemons:
    """Some JVMs with a folder for their working files; a context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mqlab-cluster-"))
        self._running: list[_Daemon] = []

    def _start(self, name: str, program: str, arguments: Sequence[str]) -> _Daemon:
        import pyspark

        home, java = Path(pyspark.__file__).parent, find_java()
        with launch_environment(java, worker_python()):
            os.environ["SPARK_HOME"] = str(home)  # launch_environment restores it
            daemon = _Daemon(name, [str(home / "bin" / program), *arguments], self.folder)
        self._running.append(daemon)
        return daemon

    def stop(self) -> None:
        """End everything, newest first, and remove the folder."""
        while self._running:
            self._running.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> _Daemons:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class StandaloneCluster(_Daemons):
    """A standalone master and its workers. After SparkFailed, JavaMissing or UsageError nothing is running.

    ``cores`` and ``memory`` are each worker's; a session takes all cores, and 1 GiB per executor unless it sets
    spark.executor.memory.
    """

    def __init__(self, workers: int = 1, *, cores: int = 2, memory: str = "1g") -> None:
        if workers < 1 or cores < 1:
            raise UsageError(f"a cluster of {workers} workers with {cores} cores: expected 1 or more")
        super().__init__()
        try:
            # Port 0 lets the system choose; the port is then read from the log.
            host = ["--host", HERE, "--port", "0", "--webui-port", "0"]
            master = self._start("master", "spark-class", [MASTER, *host])
            self.master = master.wait_for(r"Starting Spark master at (spark://\S+)")[1]
            started = []
            for number in range(1, workers + 1):
                size = ["--cores", str(cores), "--memory", memory, "--work-dir", str(self.folder / f"work-{number}")]
                started.append(self._start(f"worker-{number}", "spark-class", [WORKER, *host, *size, self.master]))
            for worker in started:
                worker.wait_for("Successfully registered with master")
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> StandaloneCluster:
        return self

    def __repr__(self) -> str:
        return f"<StandaloneCluster {self.master} {max(len(self._running) - 1, 0)} workers>"


class ConnectServer(_Daemons):
    """A Spark Connect server with its jobs on ``master``. After SparkFailed or JavaMissing nothing is running."""

    def __init__(self, master: str = "local[*]", **settings: str) -> None:
        super().__init__()
        self.url = ""
        try:
            all_settings = {
                **SETTINGS,
                **LOCAL_SETTINGS,
                "spark.connect.grpc.binding.address": HERE,
                "spark.connect.grpc.binding.port": "0",
                "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
                "spark.log.level": "INFO",
                **settings,
            }
            confs = [word for name, value in all_settings.items() for word in ("--conf", f"{name}={value}")]
            server = self._start(
                "connect-server", "spark-submit", ["--master", master, "--class", CONNECT, *confs, "spark-internal"]
            )
            port = server.wait_for(r"Spark Connect server started at: .*:(\d+)")[1]
            self.url = f"{REMOTE}{HERE}:{port}"
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server, its client's session first."""
        end_remote_session(self.url)
        super().stop()

    def __enter__(self) -> ConnectServer:
        return self

    def __repr__(self) -> str:
        return f"<ConnectServer {self.url} {'running' if self._running else 'stopped'}>"

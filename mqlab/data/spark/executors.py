"""What the executors of a cluster see: whether they have mqlab, in which version, and whether a store is there.

A read is planned on the driver, in a process without a session. It asks the process that has it, before any task runs.

    register(spark) ── a thread that listens on 127.0.0.1
    planning, elsewhere ── paths ──> the thread ── a task for each core ──> which executors lack what

Left out: Spark Connect, whose reads are planned on the server's machine: a task reports there what is missing. An
executor that joins later, or has no free core now, is not asked.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

import mqlab
from mqlab.errors import MqlabError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Sight:
    """What one executor sees: the mqlab that it has, None without one, and the paths that are not there."""

    host: str
    version: str | None
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Executors:
    """Where the process listens that can ask the executors; handed to the process that plans."""

    port: int
    key: bytes

    def check(self, paths: Sequence[str]) -> None:
        """Raise UsageError when an executor lacks mqlab, has another version, or does not see one of the paths."""
        existing = [path for path in paths if os.path.exists(path)]  # what is not here either is reported by the plan
        with Client((HERE, self.port), authkey=self.key) as caller:
            caller.send(existing)
            answer = caller.recv()
        if isinstance(answer, str):
            raise MqlabError(f"the executors could not be asked what they see: {answer}")
        refuse_missing(answer)


def refuse_missing(sights: Sequence[Sight]) -> None:
    """Raise UsageError for the first thing that executors lack, with their hosts.

    >>> ours = mqlab.__version__
    >>> refuse_missing([Sight("10.0.0.3", ours, ()), Sight("10.0.0.4", ours, ("/stores/broker-a",))])
    Traceback (most recent call last):
    mqlab.errors.UsageError: /stores/broker-a is on the driver, and not on the executors of 10.0.0.4
      hint: mount it on all hosts under this path, or ask its broker: option("nameServer", "host:9876")
    """
    if without := _hosts(sights, lambda sight: sight.version is None):
        raise UsageError(
            f"mqlab is not installed on the executors of {without}", hint="mqlab.data.spark.ship(spark) sends it there"
        )
    for version in sorted({sight.version or "" for sight in sights} - {mqlab.__version__}):
        hosts = _hosts(sights, lambda sight, version=version: sight.version == version)  # type: ignore[misc]
        raise UsageError(
            f"the executors of {hosts} have mqlab {version}, and this driver has {mqlab.__version__}",
            hint="install the same version everywhere, or send this one: mqlab.data.spark.ship(spark)",
        )
    for path in sorted({path for sight in sights for path in sight.missing}):
        hosts = _hosts(sights, lambda sight, path=path: path in sight.missing)  # type: ignore[misc]
        raise UsageError(
            f"{path} is on the driver, and not on the executors of {hosts}",
            hint='mount it on all hosts under this path, or ask its broker: option("nameServer", "host:9876")',
        )


def _hosts(sights: Sequence[Sight], is_meant: Callable[[Sight], bool]) -> str:
    return ", ".join(sorted({sight.host for sight in sights if is_meant(sight)}))


def listen(spark: SparkSession, tasks: int) -> Executors:
    """Let planning processes ask the executors of this session, with so many tasks at once, while this process runs."""
    key = secrets.token_bytes(16)
    listener = Listener((HERE, 0), authkey=key)
    asked = threading.Thread(target=_answer, args=(listener, spark, tasks), name="mqlab-executors", daemon=True)
    asked.start()
    return Executors(listener.address[1], key)


def _answer(listener: Listener, spark: SparkSession, tasks: int) -> None:
    seen: set[str] = set()  # by all executors, which are not asked again
    while True:
        # A stranger without the key, or a caller that hangs up, must not end the thread.
        with contextlib.suppress(OSError, EOFError, AuthenticationError), listener.accept() as caller:
            _answer_one(caller, spark, tasks, seen)


def _answer_one(caller: Connection, spark: SparkSession, tasks: int, seen: set[str]) -> None:
    paths = [path for path in caller.recv() if path not in seen]
    if not paths and seen:
        return caller.send([])
    try:
        sights = look(spark, paths, tasks)
    except Exception as error:  # Spark raises errors of many kinds; the one who asks tells it
        return caller.send(str(error).splitlines()[0])
    if all(sight.version == mqlab.__version__ and not sight.missing for sight in sights):
        seen.update(paths)
    return caller.send(sights)


def look(spark: SparkSession, paths: Sequence[str], tasks: int) -> list[Sight]:
    """Ask ``tasks`` tasks that run at once what their executor sees."""

    def seen_by(_: object) -> tuple[str, str | None, tuple[str, ...]]:
        # It is sent as it is written, since an executor may have no mqlab: it imports what it needs.
        import os
        import socket
        import time

        time.sleep(0.2)  # longer than the start of the other tasks, which so find this core taken
        host = os.environ.get("SPARK_LOCAL_IP") or socket.gethostname()
        try:
            import mqlab
        except ImportError:
            return host, None, ()
        return host, mqlab.__version__, tuple(path for path in wanted if not os.path.exists(path))

    wanted: Any = tuple(paths)
    asked = spark.sparkContext.parallelize(range(tasks), tasks).map(seen_by).collect()
    return sorted({Sight(*answer) for answer in asked}, key=lambda sight: sight.host)

"""How fast the store is: put and dispatch, get, recovery, scan, against a raw loop, other queues and RocketMQ's store.

    python -m benchmarks store --messages 50000 --body 256 --repeat 3 [--no-java] [--profile put] [--json FILE]

Every contender runs in this process one after the other (RocketMQ's store in a Java process), with RocketMQ's default
file sizes. Messages have a key and a tag. Goals: commit log and queues at 0.4 of the raw loop, batches as fast as
RocketMQ one by one, recovery faster than RocketMQ's.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.baselines import QUEUES, RawLog, SqliteQueue, litequeue_put, queuelib_put
from benchmarks.timing import CLOCKS, Rate, best_rate, table
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.record import Record

DEFAULT_SIZES = "1073741824,6000000,5000000,20000000"
RAW, JAVA = "raw mmap+struct loop", "RocketMQ's own store"
PUT, BATCH, GET, SCAN = "put + dispatch, one by one", "put + dispatch, batches of 32", "get, 32 a call", "scan"
RECOVERY = "recovery after a crash"
BATCH_SIZE = 32


class StoreBench:
    """All measurements on ``count`` messages with bodies of ``body_size`` bytes, in a directory of its own."""

    def __init__(self, directory: Path, count: int, body_size: int, repeat: int, clock: str) -> None:
        self.directory, self.count = directory, count - count % (BATCH_SIZE * QUEUES)
        self.repeat, self.clock = repeat, clock
        self.body = b"x" * body_size
        self.rates: list[Rate] = []
        self._fresh = 0
        self._open: MessageStore | None = None

    def add(self, discipline: str, contender: str, prepare: Callable[[], Callable[[], object]], note: str = "") -> None:
        """Measure one contender, and say that it is done."""
        print(f"  {discipline}: {contender}", file=sys.stderr, flush=True)
        self.rates.append(Rate(discipline, contender, best_rate(self.count, prepare, self.repeat, self.clock), note))

    def new_directory(self) -> Path:
        """The path of a new directory; the one before it is removed, and the store in it closed."""
        self.close()
        shutil.rmtree(self.directory / f"run-{self._fresh}", ignore_errors=True)
        self._fresh += 1
        return self.directory / f"run-{self._fresh}"

    def records(self) -> list[Record]:
        """The messages: topic bench, four queues in turn, tag TagA, key k<number>."""
        return [
            Record(
                "bench",
                self.body,
                queue_id=number % QUEUES,
                born_timestamp=1700000000000,
                properties=properties.encode({"KEYS": f"k{number}", "TAGS": "TagA"}),
            )
            for number in range(self.count)
        ]

    def raw_messages(self) -> list[tuple[int, bytes, bytes, bytes]]:
        """The same messages for the raw loop."""
        return [(record.queue_id, b"bench", record.body, record.properties) for record in self.records()]

    def put_all(self, directory: Path, *, index: bool, batch: int = 1) -> Callable[[], object]:
        """A run that puts and dispatches everything; the store is open, the records are made."""
        records = self.records()
        store = MessageStore.open(str(directory), dispatch=False, message_index_enable=index)

        def one_by_one() -> None:
            # Looked up once: the loop should cost nothing of its own.
            put, dispatch = store.put, store.dispatch
            for record in records:
                put(record)
                dispatch()

        def in_batches() -> None:
            for queue_id in range(QUEUES):
                # A batch goes to one queue.
                mine = records[queue_id::QUEUES]
                for first in range(0, len(mine), batch):
                    store.put_batch(mine[first : first + batch])
                    store.dispatch()

        self._open = store
        return one_by_one if batch == 1 else in_batches

    def measure_put(self) -> None:
        self.add(PUT, RAW, lambda: RawLog(self.new_directory(), self.raw_messages()).put)
        self.add(PUT, "mqlab, log and queues", lambda: self.put_all(self.new_directory(), index=False))
        self.add(PUT, "mqlab, log, queues and index", lambda: self.put_all(self.new_directory(), index=True))
        self.add(PUT, "queuelib", lambda: queuelib_put(self.new_directory(), self.count, self.body)[0])
        self.add(PUT, "sqlite3", lambda: self._sqlite_put(1), "WAL, a transaction each")
        self.add(PUT, "litequeue", lambda: litequeue_put(self.new_directory(), self.count, self.body))

    def measure_batches(self) -> None:
        self.add(BATCH, RAW, lambda: RawLog(self.new_directory(), self.raw_messages()).put)
        for index, name in ((False, "mqlab, log and queues"), (True, "mqlab, log, queues and index")):
            self.add(BATCH, name, lambda index=index: self.put_all(self.new_directory(), index=index, batch=BATCH_SIZE))
        self.add(BATCH, "sqlite3", lambda: self._sqlite_put(BATCH_SIZE), "32 a transaction")

    def _sqlite_put(self, batch: int) -> Callable[[], object]:
        queue = SqliteQueue(self.new_directory(), self.count, self.body)
        return lambda: queue.put(batch)

    def measure_get(self) -> None:
        raw = RawLog(self.new_directory(), self.raw_messages())
        raw.put()
        self.add(GET, RAW, lambda: raw.get)
        directory = self.new_directory()
        self.put_all(directory, index=False)()
        store = self._open
        assert store is not None

        # 32 messages per get, as a consumer pulls them.
        def get_all(decoded: bool) -> None:
            for queue_id in range(QUEUES):
                offset, end = 0, store.max_offset("bench", queue_id)
                while offset < end:
                    result = store.get("bench", queue_id, offset, 32)
                    offset = result.next_begin_offset
                    if decoded:
                        result.records()

        self.add(GET, "mqlab, units", lambda: lambda: get_all(False))
        self.add(GET, "mqlab, decoded", lambda: lambda: get_all(True))
        put, get = queuelib_put(self.new_directory(), self.count, self.body)
        put()
        self.repeat, before = 1, self.repeat  # a get takes the message away, so it cannot be repeated
        self.add(GET, "queuelib", lambda: get, "one a call")
        self.repeat = before
        queue = SqliteQueue(self.new_directory(), self.count, self.body)
        queue.put(1000)
        self.add(GET, "sqlite3", lambda: queue.get)

    def measure_recovery_and_scan(self, java: JavaSide | None) -> None:
        raw = RawLog(self.new_directory(), self.raw_messages())
        raw.put()
        self.add(RECOVERY, RAW, lambda: raw.scan, "unit to unit, CRC")
        alive = self.new_directory()
        self.put_all(alive, index=True)()
        crashed, copy = self.directory / "crashed", self.directory / "copy"
        copy_sparse(alive, crashed)  # as a killed process leaves it: the abort file is there

        # Each run needs the crashed state again, because a recovery ends it.
        def fresh_copy() -> None:
            self.close()
            shutil.rmtree(copy, ignore_errors=True)
            copy_sparse(crashed, copy)

        def open_copy() -> None:
            self._open = MessageStore.open(str(copy), dispatch=False)

        def recover() -> Callable[[], object]:
            fresh_copy()
            return open_copy

        self.add(RECOVERY, "mqlab", recover, "queues there, index made again")
        if java is not None:
            fresh_copy()
            self.rates.append(Rate(RECOVERY, JAVA, java.recover(copy, self.count), "the same directory; a cold JVM"))
        self.add(SCAN, RAW, lambda: raw.scan, "unit to unit, CRC")
        self.add(SCAN, "mqlab, units", lambda: lambda: sum(1 for _ in StoreInspector(crashed).pieces()))
        self.add(SCAN, "mqlab, messages", lambda: lambda: sum(1 for _ in StoreInspector(crashed).messages()))

    def close(self) -> None:
        """Close the open store, if there is one."""
        if self._open is not None:
            self._open.shutdown()
        self._open = None


class JavaSide:
    """RocketMQ's own store, measured by tests/interop/StoreDoor."""

    def __init__(self, directory: Path) -> None:
        from tests.interop.java_store import JavaStore

        self._directory = directory
        directory.mkdir()
        self._store = JavaStore(directory)

    def put(self, count: int) -> list[Rate]:
        """Rates of put and get; the first run warms the JVM up and is not counted."""
        print(f"  {JAVA}", file=sys.stderr, flush=True)
        answer = self._store.ask("bench", self._directory / "store", DEFAULT_SIZES, count)
        rate = count / answer["putAndDispatch"]
        return [
            Rate(PUT, JAVA, rate, f"put alone {count / answer['put']:,.0f}; dispatch in another thread, with index"),
            Rate(BATCH, JAVA, rate, "one by one"),
            Rate(GET, JAVA, count / answer["get"]),
        ]

    def recover(self, directory: Path, count: int) -> float:
        """Messages a second of load()."""
        return float(count / self._store.ask("recover", directory, DEFAULT_SIZES)["seconds"])


def java_side(directory: Path, wanted: bool) -> JavaSide | None:
    """The real store, or None with the reason on stderr."""
    from tests.interop.java_store import what_is_missing

    missing = what_is_missing()
    if not wanted or missing:
        print(f"  without {JAVA}: {missing or 'not wanted'}", file=sys.stderr)
        return None
    return JavaSide(directory)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a directory; holes in its files stay holes."""
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "rb") as read, open(copy, "wb") as write:
            size = path.stat().st_size
            write.truncate(size)
            at = 0
            while at < size:
                try:
                    at = os.lseek(read.fileno(), at, os.SEEK_DATA)
                except OSError:  # only a hole is left
                    break
                # A log file is a gigabyte, nearly all of it a hole: only the data is copied.
                end = os.lseek(read.fileno(), at, os.SEEK_HOLE)
                os.pwrite(write.fileno(), os.pread(read.fileno(), end - at, at), at)
                at = end


def profile(bench: StoreBench, what: str) -> None:
    """Print which functions take the time of one discipline."""
    directory = bench.new_directory()
    if what in ("put", "index", "batch"):
        run = bench.put_all(directory, index=what == "index", batch=BATCH_SIZE if what == "batch" else 1)
    else:
        bench.put_all(directory, index=what == "recovery")()
        if what == "recovery":
            copy = bench.directory / "copy"
            copy_sparse(directory, copy)
            run = lambda: MessageStore.open(str(copy), dispatch=False)  # noqa: E731
        else:
            run = lambda: sum(1 for _ in StoreInspector(directory).messages())  # noqa: E731
    profiler = cProfile.Profile()
    profiler.runcall(run)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def main(arguments: list[str]) -> None:
    """Parse the options, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks store", description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--body", type=int, default=256, help="bytes of a body")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each; the best counts")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu: not for RocketMQ and disks")
    parser.add_argument("--java-messages", type=int, default=300_000, help="puts of RocketMQ's own store")
    parser.add_argument("--no-java", action="store_true", help="without RocketMQ's own store")
    parser.add_argument("--json", type=Path, help="write the rates to this file too")
    parser.add_argument("--profile", choices=("put", "index", "batch", "recovery", "scan"))
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="mqlab-bench-"))
    started = time.perf_counter()
    try:
        bench = StoreBench(directory, options.messages, options.body, options.repeat, options.clock)
        if options.profile:
            profile(bench, options.profile)
            return
        # 1. Each contender has a directory of its own below this one, which is removed at the end.
        java = java_side(directory / "java", not options.no_java)
        bench.measure_put()
        bench.measure_batches()
        bench.measure_get()
        bench.measure_recovery_and_scan(java)
        if java is not None:
            bench.rates += java.put(options.java_messages)
        bench.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    # 2. The table; its ratios are to the raw loop and to RocketMQ's store.
    print(f"{bench.count:,} messages, bodies of {options.body} bytes, best of {options.repeat}")
    print(table(bench.rates, RAW, JAVA))
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([asdict(rate) for rate in bench.rates], indent=1), "utf-8")

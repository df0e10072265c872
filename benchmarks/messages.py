"""How many messages a second go from a producer to a listener in the simulation, against redis-py and a local redis.

    python -m benchmarks messages --messages 5000 --body 256 --repeat 2 [--redis-server PATH] [--profile one|batch]

One message passes producer, codec, broker, store and consumer, and the frames between them, in one process. Redis is
Debian's redis-server, started here on a socket of its own: XADD by a client, XREADGROUP by another, one at a time.
Goals: one by one at least as many as redis one by one, in batches of 32 five times as many. A second table says which
part of mqlab takes the time; --profile names functions instead of measuring rates.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mqlab
from benchmarks.timing import CLOCKS, Rate, best_rate, table
from mqlab import CONSUME_SUCCESS, Lab, Message

ONE, BATCH = "one by one", "batches of 32"
BATCH_SIZE = 32
PACKAGE = Path(mqlab.__file__).parent
BELOW = "Python and C"  # of interpreter, standard library and greenlet
REDIS, MQLAB = "redis-py, XADD + XREADGROUP", "mqlab, producer to listener"
ROOMY = {
    "mapped_file_size_commit_log": 1 << 26,
    "mapped_file_size_consume_queue": 6_000_000,
    "max_hash_slot_num": 200_000,
    "max_index_num": 800_000,
}


def way_of_messages(count: int, body: bytes, batch: int) -> Callable[[], None]:
    """A world in which a consumer waits; the run sends ``count`` messages and ends when all are consumed."""
    lab = Lab(broker=ROOMY, client={"enable_trace": False}, journal_limit=1_000)
    lab.create_topic("bench")
    consumed = 0

    def listener(messages: Any, context: Any) -> str:
        nonlocal consumed
        consumed += len(messages)
        return CONSUME_SUCCESS

    consumer = lab.push_consumer("readers", consume_message_batch_max_size=batch)
    consumer.subscribe("bench")
    consumer.on_messages(listener)
    consumer.start()
    producer = lab.producer("writers")
    producer.send(Message("bench", body))
    # The first message makes routes, connections and queues known: none of this is measured.
    lab.run_for("5s")
    assert consumed == 1, "the consumer is not ready"

    def run() -> None:
        # A batch of one would measure the batch's own encoding.
        if batch == 1:
            for _ in range(count):
                producer.send(Message("bench", body))
        else:
            for _ in range(count // batch):
                producer.send_batch([Message("bench", body) for _ in range(batch)])
        lab.run_until(lambda: consumed == count + 1)

    return run


class RedisSide:
    """A redis-server of its own on a Unix socket, and the two clients of a stream."""

    def __init__(self, redis: Any, socket: str) -> None:
        self._writer = redis.Redis(unix_socket_path=socket)
        self._reader = redis.Redis(unix_socket_path=socket)
        self._streams = 0

    def one_by_one(self, count: int, body: bytes) -> Callable[[], None]:
        """Each message is added and read before the next one; it is not acknowledged."""
        self._streams += 1
        stream = f"bench-{self._streams}"
        self._writer.xgroup_create(stream, "readers", mkstream=True)

        def run() -> None:
            for _ in range(count):
                self._writer.xadd(stream, {"body": body})
                self._reader.xreadgroup("readers", "one", {stream: ">"}, count=1)

        return run


@contextmanager
def redis_side(server: str | None, directory: Path) -> Iterator[RedisSide | None]:
    """A running redis, or None with the reason on stderr."""
    program = server or shutil.which("redis-server")
    try:
        import redis
    except ImportError:
        redis = None
    if program is None or redis is None:
        missing = "no redis-server (Debian: redis-server)" if program is None else "no redis-py (the extra bench)"
        print(f"  without {REDIS}: {missing}", file=sys.stderr)
        yield None
        return
    socket = str(directory / "redis.sock")
    try:
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(directory)],
            stdout=subprocess.DEVNULL,
        )
    except OSError as error:
        raise SystemExit(f"{program} does not run: {error.strerror}") from error
    try:
        # 1. The server is ready when its socket is there.
        deadline = time.monotonic() + 10
        while not Path(socket).exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if not Path(socket).exists():
            raise SystemExit(f"{program} did not start: it made no socket within 10 s")
        # 2. The process ends with the measurement, however that ends.
        yield RedisSide(redis, socket)
    finally:
        process.terminate()
        process.wait()


def measure(options: argparse.Namespace, directory: Path) -> list[Rate]:
    """The rates of all contenders."""
    count, body = options.messages, b"x" * options.body
    rates: list[Rate] = []

    def add(discipline: str, contender: str, prepare: Callable[[], Callable[[], object]], note: str = "") -> None:
        print(f"  {discipline}: {contender}", file=sys.stderr, flush=True)
        rates.append(Rate(discipline, contender, best_rate(count, prepare, options.repeat, options.clock), note))

    with redis_side(options.redis_server, directory) as redis:
        if redis is not None:
            add(ONE, REDIS, lambda: redis.one_by_one(count, body), "a server in another process, on another core")
            rates.append(Rate(BATCH, REDIS, rates[0].per_second, "one by one"))
        add(ONE, MQLAB, lambda: way_of_messages(count, body, 1))
        add(BATCH, MQLAB, lambda: way_of_messages(count, body, BATCH_SIZE))
    return rates


def profiled(count: int, body: bytes, batch: int) -> pstats.Stats:
    """What one run does, by function."""
    run = way_of_messages(count, body, batch)
    profiler = cProfile.Profile()
    profiler.runcall(run)
    return pstats.Stats(profiler, stream=sys.stdout)


def package_of(file: str) -> str:
    """The room of mqlab that a file belongs to, wherever mqlab is installed; BELOW for every other file.

    >>> package_of(str(PACKAGE / "rocketmq" / "store" / "flush.py")), package_of(str(PACKAGE / "errors.py"))
    ('rocketmq.store', 'errors')
    >>> package_of("~") == BELOW
    True
    """
    path = Path(file)
    if not path.is_relative_to(PACKAGE):
        return BELOW
    return ".".join(path.relative_to(PACKAGE).parts[:-1][:2]) or path.stem


def shares(stats: pstats.Stats) -> list[tuple[str, float]]:
    """The share of the time that is spent in each package of mqlab itself, largest first."""
    spent: dict[str, float] = {}
    for (file, _, _), (_, _, own, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        package = package_of(file)
        spent[package] = spent.get(package, 0.0) + own
    whole = sum(spent.values())
    return sorted(((package, own / whole) for package, own in spent.items()), key=lambda item: -item[1])


def share_table(count: int, body: bytes) -> str:
    """The share of each package in the time of both ways, one line per package."""
    one, batch = (dict(shares(profiled(count, body, size))) for size in (1, BATCH_SIZE))
    lines = [f"{'where the time goes':<24}{ONE:>14}{BATCH:>16}"]
    for package, share in one.items():
        if max(share, batch.get(package, 0.0)) >= 0.005:
            lines.append(f"  {package:<22}{share:>14.0%}{batch.get(package, 0.0):>16.0%}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Parse the options, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks messages", description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--body", type=int, default=256, help="bytes of a body")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each; the best counts")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu leaves out what redis itself does")
    parser.add_argument("--redis-server", help="the program, if it is not on the PATH")
    parser.add_argument("--json", type=Path, help="write the rates to this file too")
    parser.add_argument("--profile", choices=("one", "batch"))
    options = parser.parse_args(arguments)
    # Both ways must send the same number, so it is a multiple of the batch.
    options.messages -= options.messages % BATCH_SIZE
    body = b"x" * options.body
    if options.profile:
        stats = profiled(options.messages, body, 1 if options.profile == "one" else BATCH_SIZE)
        stats.sort_stats("tottime").print_stats(40)
        return
    directory = Path(tempfile.mkdtemp(prefix="mqlab-bench-"))
    try:
        rates = measure(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{options.messages:,} messages, bodies of {options.body} bytes, best of {options.repeat}")
    print(table(rates, REDIS, MQLAB))
    print("\n" + share_table(options.messages, body))
    if options.json:
        options.json.write_text(json.dumps([asdict(rate) for rate in rates], indent=1), "utf-8")

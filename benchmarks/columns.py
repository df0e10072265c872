"""How fast a log becomes columns: the Arrow kernel against a plain parser, memcpy and Parquet, and DuckDB over it.

    python -m benchmarks columns --messages 500000 --repeat 3 [--clock cpu] [--json FILE]

One store of a seeded day of traffic, warm in the page cache, everything on one thread. Narrow: queue id, store time and
length of the body of every message. Wide: topic, queue, times, tags, keys, unique key and the body. The plain parser is
what one would write first: a loop with struct from unit to unit, one tuple per message. Goals: narrow faster than
memcpy of the log, wide four times the plain parser.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.timing import CLOCKS, Rate, best_rate, table

NARROW = ["queue_id", "store_timestamp", "body_length"]
WIDE = ["topic", "queue_id", "queue_offset", "physical_offset", "store_timestamp", "tags", "keys", "msg_id", "body"]
PLAIN, MEMCPY = "plain parser, tuples", "memcpy of the log"
QUERIES = {
    "narrow": "SELECT queue_id, count(*), sum(body_length), max(store_timestamp) FROM log GROUP BY queue_id",
    "wide": "SELECT topic, keys, count(*) FROM log WHERE keys IS NOT NULL GROUP BY ALL HAVING count(*) > 1",
}
FIXED = struct.Struct(">iiiiiqqiq8sq8siqi")  # a unit's fixed part with IPv4 hosts, the fields of LAYOUT
QUEUE_ID, QUEUE_OFFSET, PHYSICAL_OFFSET, STORE_TIMESTAMP, BODY_LENGTH = 3, 5, 6, 10, 14


class ColumnsBench:
    """All measurements over one store."""

    def __init__(self, store: Path, repeat: int, clock: str) -> None:
        from mqlab.data.arrow import read_table

        self.store, self.repeat, self.clock = store, repeat, clock
        self.logs = sorted((store / "commitlog").iterdir())
        self.parquet = store.parent / "log.parquet"
        log = read_table(store, WIDE + [name for name in NARROW if name not in WIDE] + ["total_size"])
        self.count = log.num_rows
        self.bytes = log.column("total_size").to_numpy().sum()
        self._write_parquet(log)
        self.rates: list[Rate] = []

    def _write_parquet(self, log: object) -> None:
        import pyarrow.parquet

        pyarrow.parquet.write_table(log, self.parquet)

    def add(self, discipline: str, contender: str, run: Callable[[], object], note: str = "") -> None:
        """Measure one contender, and say that it is done."""
        print(f"  {discipline}: {contender}", file=sys.stderr, flush=True)
        rate = best_rate(self.count, lambda: run, self.repeat, self.clock)
        megabytes = rate * self.bytes / self.count / 1e6
        self.rates.append(Rate(discipline, contender, rate, f"{megabytes:,.0f} MB of log a second{note}"))

    def measure(self, discipline: str, names: list[str], plain: Callable[[], list[tuple[object, ...]]]) -> None:
        """Every contender of one discipline; each comes to the same number of messages."""
        import duckdb
        import polars
        import pyarrow
        import pyarrow.parquet

        from mqlab.data.arrow import read_batches, read_table

        # 1. One query per discipline, so that every contender reads the same columns.
        duck = duckdb.connect(config={"threads": 1})
        query = QUERIES[discipline]

        def over(log: object) -> list[tuple[object, ...]]:
            return duck.sql(query).fetchall()  # DuckDB finds ``log`` by its name

        # 2. Wrong answers may be fast: each contender must agree before it is measured.
        expected = sorted(over(read_table(self.store, names)), key=repr)
        assert len(plain()) == read_table(self.store, names).num_rows == self.count
        assert sorted(over(pyarrow.parquet.read_table(self.parquet, columns=names)), key=repr) == expected
        # 3. The measurements. Those with a query include its time, and say so.
        self.add(discipline, PLAIN, plain)
        self.add(discipline, "plain parser, tuples -> Arrow", lambda: arrow_of(plain(), names))
        self.add(discipline, MEMCPY, self.copy_all)
        self.add(
            discipline, "mqlab.data.arrow", lambda: sum(batch.num_rows for batch in read_batches(self.store, names))
        )
        self.add(discipline, "Parquet, snappy", lambda: pyarrow.parquet.read_table(self.parquet, columns=names))
        self.add(
            discipline, "mqlab.data.arrow -> DuckDB", lambda: over(read_batches(self.store, names)), ", with the query"
        )
        self.add(
            discipline,
            "Parquet -> DuckDB",
            lambda: duck.sql(query.replace("FROM log", f"FROM '{self.parquet}'")).fetchall(),
            ", with the query",
        )
        self.add(
            discipline,
            "mqlab.data.arrow -> polars",
            lambda: polars.SQLContext(log=polars.from_arrow(read_table(self.store, names))).execute(query, eager=True),
            ", with the query",
        )

    def views(self) -> Iterator[mmap.mmap]:
        """The files of the log in memory."""
        for path in self.logs:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                yield view

    def copy_all(self) -> int:
        left, copied = int(self.bytes), 0
        for view in self.views():
            copied += len(bytearray(memoryview(view)[: min(left - copied, len(view))]))
        return copied

    def plain_narrow(self) -> list[tuple[object, ...]]:
        rows = []
        for view in self.views():
            at = 0
            while at + FIXED.size <= len(view):
                fields = FIXED.unpack_from(view, at)
                if fields[1] not in MAGICS:
                    break
                rows.append((fields[QUEUE_ID], fields[STORE_TIMESTAMP], fields[BODY_LENGTH]))
                at += fields[0]
        return rows

    def plain_wide(self) -> list[tuple[object, ...]]:
        rows = []
        for view in self.views():
            at = 0
            while at + FIXED.size <= len(view):
                fields = FIXED.unpack_from(view, at)
                if fields[1] not in MAGICS:
                    break
                body_at = at + FIXED.size
                topic_at = body_at + fields[BODY_LENGTH] + 1
                properties_at = topic_at + view[topic_at - 1] + 2
                end = at + fields[0]
                # A V1 unit: one byte before the topic is its length, two bytes after it are the properties' length.
                pairs = [pair.partition("\x01") for pair in view[properties_at:end].decode().split("\x02")]
                found = {name: value for name, _, value in pairs}
                rows.append(
                    (
                        view[topic_at : properties_at - 2].decode(),
                        fields[QUEUE_ID],
                        fields[QUEUE_OFFSET],
                        fields[PHYSICAL_OFFSET],
                        fields[STORE_TIMESTAMP],
                        found.get("TAGS"),
                        found.get("KEYS"),
                        found.get("UNIQ_KEY"),
                        view[body_at : topic_at - 1],
                    )
                )
                at = end
        return rows


MAGICS = (-626843481, -626843477)


def arrow_of(rows: list[tuple[object, ...]], names: list[str]) -> object:
    import pyarrow

    return pyarrow.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def main(arguments: list[str]) -> None:
    """Parse the options, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks columns", description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best counts")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall")
    parser.add_argument("--json", type=Path, help="write the rates to this file too")
    options = parser.parse_args(arguments)
    # polars reads this when it is imported, so it must be set before.
    os.environ["POLARS_MAX_THREADS"] = "1"
    import pyarrow

    from mqlab.data import traffic

    # Every contender has one thread: the question is the cost per message, not the number of cores.
    pyarrow.set_cpu_count(1)
    directory = Path(tempfile.mkdtemp(prefix="mqlab-bench-"))
    try:
        traffic.write(directory / "day", messages=options.messages, brokers=1, seed=7)
        (store,) = [path.parent for path in (directory / "day").rglob("commitlog")]
        bench = ColumnsBench(store, options.repeat, options.clock)
        bench.measure("narrow", NARROW, bench.plain_narrow)
        bench.measure("wide", WIDE, bench.plain_wide)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{bench.count:,} messages in {bench.bytes / 1e6:,.0f} MB of log, one thread, best of {options.repeat}")
    print(table(bench.rates, PLAIN, MEMCPY))
    if options.json:
        options.json.write_text(json.dumps([asdict(rate) for rate in bench.rates], indent=1), "utf-8")

"""The benchmark of columns runs on a small day and every contender comes to the same; rates are not asserted."""

from __future__ import annotations

import json

from benchmarks import __main__ as benchmarks
from benchmarks import columns


def test_every_contender_reads_the_same_messages(tmp_path, capsys):
    benchmarks.main(["columns", "--messages", "2000", "--repeat", "1", "--json", str(tmp_path / "rates.json")])
    rates = json.loads((tmp_path / "rates.json").read_text("utf-8"))
    for discipline in ("narrow", "wide"):
        contenders = [rate["contender"] for rate in rates if rate["discipline"] == discipline]
        assert contenders == [
            columns.PLAIN,
            "plain parser, tuples -> Arrow",
            columns.MEMCPY,
            "mqlab.data.arrow",
            "Parquet, snappy",
            "mqlab.data.arrow -> DuckDB",
            "Parquet -> DuckDB",
            "mqlab.data.arrow -> polars",
        ]
    assert all(rate["per_second"] > 0 for rate in rates)
    assert "2,000 messages" in capsys.readouterr().out


def test_the_plain_parser_says_what_the_kernel_says(tmp_path):
    from mqlab.data import traffic
    from mqlab.data.arrow import read_table

    (store,) = traffic.write(tmp_path / "day", messages=3000, seed=3, commit_log_bytes=1 << 20).stores.values()
    bench = columns.ColumnsBench(store, 1, "cpu")
    for names, plain in ((columns.NARROW, bench.plain_narrow), (columns.WIDE, bench.plain_wide)):
        expected = read_table(store, names).to_pylist()
        rows = [dict(zip(names, row, strict=True)) for row in plain()]
        for row in expected:
            row["store_timestamp"] = round(row["store_timestamp"].timestamp() * 1000)
        assert len(rows) == len(expected) == 3000
        assert rows == expected

"""The benchmark of generated traffic runs on a small day; rates are not asserted."""

from __future__ import annotations

import json

from benchmarks import __main__ as benchmarks
from benchmarks import traffic


def test_every_contender_moves_the_same_messages(tmp_path, capsys):
    benchmarks.main(["traffic", "--messages", "1500", "--repeat", "1", "--json", str(tmp_path / "rates.json")])
    rates = json.loads((tmp_path / "rates.json").read_text("utf-8"))
    assert [rate["contender"] for rate in rates] == [traffic.MEMCPY, traffic.WRITE, traffic.PLAIN, traffic.INDEXED]
    assert all(rate["per_second"] > 0 for rate in rates)
    assert "1,500 messages" in capsys.readouterr().out


def test_a_profile_is_printed(capsys):
    benchmarks.main(["traffic", "--messages", "1500", "--profile"])
    printed = capsys.readouterr().out
    assert "function calls" in printed
    assert "mqlab/data/traffic/writing/columns/" in printed

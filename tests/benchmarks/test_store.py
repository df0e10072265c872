"""The benchmark of the store runs, with few messages and without the real store; rates are not asserted."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import store


@pytest.fixture
def rates(tmp_path, capsys):
    pytest.importorskip("queuelib", reason="the bench extra is not installed")
    benchmarks.main(
        ["store", "--messages", "256", "--repeat", "1", "--no-java", "--json", str(tmp_path / "rates.json")]
    )
    assert store.RAW in capsys.readouterr().out
    return json.loads((tmp_path / "rates.json").read_text("utf-8"))


def test_every_discipline_has_the_raw_loop_and_mqlab(rates):
    for discipline in (store.PUT, store.BATCH, store.GET, store.RECOVERY, store.SCAN):
        contenders = [rate["contender"] for rate in rates if rate["discipline"] == discipline]
        assert contenders[0] == store.RAW
        assert any(contender.startswith("mqlab") for contender in contenders)
    assert all(rate["per_second"] > 0 for rate in rates)


def test_a_profile_is_printed(capsys):
    benchmarks.main(["store", "--messages", "256", "--profile", "put"])
    assert "dispatch_unit" in capsys.readouterr().out

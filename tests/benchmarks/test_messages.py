"""The benchmark of messages runs, with few messages and without redis; rates are not asserted."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import mqlab
from benchmarks import __main__ as benchmarks
from benchmarks import messages


@pytest.fixture
def no_redis(monkeypatch):
    monkeypatch.setattr(messages.shutil, "which", lambda program: None)


def test_without_redis_it_says_so_and_measures_mqlab(no_redis, tmp_path, capsys):
    benchmarks.main(["messages", "--messages", "64", "--repeat", "1", "--json", str(tmp_path / "rates.json")])
    said = capsys.readouterr()
    assert "no redis-server" in said.err
    assert messages.MQLAB in said.out and "where the time goes" in said.out
    rates = json.loads((tmp_path / "rates.json").read_text("utf-8"))
    assert [(rate["discipline"], rate["contender"]) for rate in rates] == [
        (messages.ONE, messages.MQLAB),
        (messages.BATCH, messages.MQLAB),
    ]
    assert all(rate["per_second"] > 0 for rate in rates)


def test_the_shares_of_the_packages_make_a_whole():
    shares = dict(messages.shares(messages.profiled(64, b"x", 1)))
    assert sum(shares.values()) == pytest.approx(1)
    assert {*(f"rocketmq.{room}" for room in ("client", "wire", "remoting", "broker", "store")), "lab.runtime"} < set(
        shares
    )


def test_folders_above_the_package_and_beside_it_do_not_count_whatever_they_are_called():
    """A clone is often called mqlab, and its folder may be, too."""
    package = Path(mqlab.__file__).parent
    clone = package.parent.with_name("mqlab")
    files = [package / "store" / "flush.py", clone / "benchmarks" / "messages.py", clone / "mqlab-notes" / "a.py"]
    stats = SimpleNamespace(stats={(str(file), 1, "run"): (1, 1, 1.0, 1.0, {}) for file in files})
    assert dict(messages.shares(stats)) == {"store": pytest.approx(1 / 3), messages.BELOW: pytest.approx(2 / 3)}


def test_a_profile_is_printed(capsys):
    benchmarks.main(["messages", "--messages", "64", "--profile", "batch"])
    assert "dispatch_unit" in capsys.readouterr().out


@pytest.mark.parametrize(("program", "said"), [("no-such-program", "does not run"), ("false", "did not start")])
def test_a_redis_server_that_is_none_ends_with_its_name(program, said):
    with pytest.raises(SystemExit, match=f"{program} {said}"):
        benchmarks.main(["messages", "--messages", "64", "--redis-server", program])

"""A run is the same however often it stops; what is not its own it leaves alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mqlab.data.traffic import write
from mqlab.data.traffic.writing import run as writing
from mqlab.data.traffic.writing.runners import in_processes
from mqlab.errors import StoreError, UsageError
from tests.data.traffic.conftest import SMALL

ASKED = {"messages": 4_000, "brokers": 2, "seed": 3, "model": SMALL}


def bytes_of(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(small_day) -> None:
    one, again = small_day("one", **ASKED), small_day("again", **ASKED)
    assert bytes_of(one.directory) == bytes_of(again.directory)
    assert one.truth.read_bytes() == again.truth.read_bytes()
    other = small_day("other", **{**ASKED, "seed": 4})
    logs = [name for name in bytes_of(one.directory) if "commitlog" in name]
    assert logs
    for name in logs:
        assert (one.directory / name).read_bytes() != (other.directory / name).read_bytes()
    assert [b.fingerprint for b in one.brokers] == [b.fingerprint for b in again.brokers]
    assert not {b.fingerprint for b in one.brokers} & {b.fingerprint for b in other.brokers}


def test_a_broker_can_be_made_without_the_others(small_day, tmp_path) -> None:
    whole = small_day("whole", **ASKED)
    alone = tmp_path / "alone"
    made = writing.make_store(whole.asked, 1, str(alone))
    assert bytes_of(alone) == bytes_of(whole.stores["broker-b"])
    assert made == whole.brokers[1]


def test_processes_make_the_same(small_day) -> None:
    whole = small_day("whole", **ASKED)
    seen: list[int] = []
    shared = small_day("shared", **ASKED, run=in_processes(2), progress=seen.append)
    assert bytes_of(shared.directory) == bytes_of(whole.directory)
    assert sum(seen) == 4_000


class Stop(Exception):
    pass


@pytest.mark.parametrize("stop_at", [1, 1_500, 2_001, 3_999])
def test_an_interrupted_run_goes_on_to_the_same_bytes(small_day, tmp_path, stop_at: int) -> None:
    whole = small_day("whole", **ASKED)
    seen = 0

    def progress(units: int) -> None:
        nonlocal seen
        seen += units
        if seen >= stop_at:
            raise Stop

    with pytest.raises(Stop):
        small_day("cut", **ASKED, progress=progress)
    cut = tmp_path / "cut"
    assert not (cut / "traffic.json").exists()
    for name in ("broker-a", "broker-b"):  # whatever has its name is whole
        if (cut / name).exists():
            assert bytes_of(cut / name) == bytes_of(whole.stores[name])
    seen = -(10**9)
    assert small_day("cut", **ASKED, progress=progress).brokers == whole.brokers
    assert bytes_of(cut) == bytes_of(whole.directory)
    assert (tmp_path / "cut.truth.json").read_bytes() == whole.truth.read_bytes()


def test_a_finished_run_is_only_read(small_day, tmp_path) -> None:
    first = small_day(**ASKED)
    before = {path: path.stat().st_mtime_ns for path in first.directory.rglob("*")}
    assert small_day(**ASKED) == first
    first.truth.unlink()  # as a student has it
    assert [b.fingerprint for b in small_day(**ASKED).brokers] == [b.fingerprint for b in first.brokers]
    assert not first.truth.exists()
    assert {path: path.stat().st_mtime_ns for path in first.directory.rglob("*")} == before


def test_what_students_get_says_nothing_of_the_incidents(small_day) -> None:
    summary = small_day(**ASKED)
    told = (summary.directory / "traffic.json").read_text("utf-8")
    assert not any(kind in told for kind in SMALL.incidents or ())
    assert json.loads(told)["command"] == (
        "mqlab traffic --messages 4_000 --brokers 2 --seed 3 --index --set commit_log_bytes=1048576 "
        "--set consume_queue_bytes=20000 --set hash_slot_num=5000 --set index_num=60000 --out DIR"
    )
    assert sorted(path.name for path in summary.directory.iterdir()) == ["broker-a", "broker-b", "traffic.json"]
    assert summary.truth.parent == summary.directory.parent
    with pytest.raises(UsageError, match="would be inside"):
        write(summary.directory, **ASKED, truth=summary.directory / "notes" / "truth.json")


def test_a_directory_of_something_else_is_left_alone(small_day, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("日 день ☀️")
    with pytest.raises(UsageError, match="was not made by mqlab traffic"):
        small_day("mine", **ASKED)
    small_day("made", **ASKED)
    for change, message in (
        ({"seed": 9}, "differs in seed"),
        ({"messages": 5_000}, "differs in messages"),
        ({"model": SMALL.changed(queues=3)}, "differs in model"),
        ({"model": SMALL.changed(incidents=("burst",))}, "differs in incidents"),
    ):
        with pytest.raises(UsageError, match=message):
            small_day("made", **{**ASKED, **change})
    (tmp_path / "made" / "traffic.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        small_day("made", **ASKED)
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["thesis.txt"]


def test_the_truth_of_another_run_is_not_lost(small_day, tmp_path) -> None:
    first = small_day("first", **ASKED)
    told = first.truth.read_bytes()
    with pytest.raises(UsageError, match="belongs to another run: it differs in seed"):
        small_day("second", **{**ASKED, "seed": 9}, truth=first.truth)
    shopping = tmp_path / "список.txt"
    shopping.write_text("хлеб 🍞")
    with pytest.raises(UsageError, match="cannot be read"):
        small_day("second", **ASKED, truth=shopping)
    assert (first.truth.read_bytes(), shopping.read_text()) == (told, "хлеб 🍞")
    assert not (tmp_path / "second").exists()


def test_two_runs_do_not_write_into_one_directory(small_day) -> None:
    refused = []

    def progress(units: int) -> None:
        with pytest.raises(UsageError, match="another run is writing into"):
            small_day("one", **ASKED)
        refused.append(units)

    summary = small_day("one", **ASKED, progress=progress)
    assert refused and bytes_of(summary.directory).keys() >= {"traffic.json"}
    assert not list(summary.directory.glob(".*"))


def test_questions_that_cannot_be_are_refused_before_anything_is_made(tmp_path) -> None:
    for asked, message in (
        ({"messages": 10}, "messages must be .* got 10"),
        ({"messages": 3_000, "brokers": 0}, "brokers must .* got 0"),
        ({"messages": 3_000, "seed": -1}, "seed must .* got -1"),
        ({"messages": 3_000, "incidents": ("flood",)}, "unknown kind of incident 'flood'"),
        ({"messages": 3_000, "queues": 0}, "queues must .* got 0"),
        ({"messages": 3_000, "speed": 1}, "has no number 'speed'"),
        ({"messages": 3_000, "commit_log_bytes": 100}, "commit_log_bytes must .* got 100"),
        ({"messages": 2.5e3}, "messages must .* got 2500"),
    ):
        with pytest.raises(UsageError, match=message):
            write(tmp_path / "x", **asked)
    with pytest.raises(StoreError, match="bytes free"):
        write(tmp_path / "x", messages=10**12)
    assert list(tmp_path.iterdir()) == []


def test_a_summary_in_one_line(small_day) -> None:
    summary = small_day(messages=4_000, model=SMALL.changed(index=False))
    assert repr(summary).startswith(f"<traffic {summary.directory}: 4,000 messages, ")
    assert repr(summary).endswith(" bytes, 1 broker, seed 3>")
    assert next(iter(summary.topics)) == "orders"

"""`mqlab traffic` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.data.traffic.writing import broker_store
from mqlab.data.traffic.writing.closing_files import BrokerSummary
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.store_state import WrittenStore

SMALL = ("--set", "commit_log_bytes=1048576", "--set", "consume_queue_bytes=20000")


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["traffic", *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_day_in_numbers_for_people_and_for_programs(tmp_path: Path) -> None:
    words = ("--messages", "4_000", "--brokers", "2", "--seed", "5", "--out", str(tmp_path / "день 天"), *SMALL)
    code, out, _ = run(*words)
    assert code == 0
    assert f"traffic {tmp_path / 'день 天'}: 4,000 messages, " in out
    assert "RMQ_SYS_TRACE_TOPIC" in out and str(tmp_path / "день 天.truth.json") in out
    code, out, _ = run(*words, "--json")
    told = json.loads(out)
    assert (code, told["messages"], told["brokers"]) == (0, 4_000, ["broker-a", "broker-b"])
    assert sum(told["topics"].values()) == 4_000
    assert CliRunner().invoke(main, ["inspect", str(tmp_path / "день 天" / "broker-b")]).exit_code == 0


def test_incidents_by_hand_and_none(tmp_path: Path) -> None:
    for name, words in (("two", ("--incident", "burst", "--incident", "wrong_reset")), ("none", ("--no-incidents",))):
        code, _, _ = run("--messages", "1_000", "--out", str(tmp_path / name), *SMALL, *words)
        assert code == 0
        told = json.loads((tmp_path / f"{name}.truth.json").read_text("utf-8"))["brokers"]["broker-a"]
        assert {incident["kind"] for incident in told} == ({"burst", "wrong_reset"} if name == "two" else set())


def test_delayed_messages_on_request(tmp_path: Path) -> None:
    code, out, _ = run("--messages", "1_000", "--out", str(tmp_path / "day"), *SMALL, "--reminders")
    assert code == 0 and "reminders" in out


def test_transactions_on_request(tmp_path: Path) -> None:
    code, out, _ = run("--messages", "1_000", "--out", str(tmp_path / "day"), *SMALL, "--invoices")
    assert code == 0 and "invoices" in out and "RMQ_SYS_TRANS_HALF_TOPIC" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--messages", "1e6"), "not a whole number such as 10_000_000"),
        (("--messages", "5"), "messages must be a whole number from 300 to 1000000000000, got 5"),
        (("--messages", "1_000", "--incident", "flood"), "unknown kind of incident 'flood'"),
        (("--messages", "1_000", "--incident", "burst", "--no-incidents"), "contradict each other"),
        (("--messages", "1_000", "--set", "speed=3"), "has no number 'speed'"),
        (("--messages", "1_000", "--set", "queues=many"), "'many' is not a number"),
        (("--messages", "1_000", "--set", "index=1"), "option of its own"),
        (("--messages", "1_000", "--spark", "--workers", "2"), "choose one"),
    ],
)
def test_questions_that_cannot_be(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    code, out, err = run(*words, "--out", str(tmp_path / "day"))
    assert (code, out) == (2, "")
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("заметки")
    code, _, err = run("--messages", "1_000", "--out", str(tmp_path))
    assert code == 2
    assert "is not empty and was not made by mqlab traffic" in err and "hint:" in err
    assert (tmp_path / "notes.txt").read_text() == "заметки"


def test_ctrl_c_and_on_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--messages", "4_000", "--brokers", "2", "--out", str(tmp_path / "day"), *SMALL)
    finish = broker_store.finish_store

    def interrupted(state: WrittenStore, outcomes: Outcomes) -> BrokerSummary:
        if state.broker == 1:
            raise KeyboardInterrupt
        return finish(state, outcomes)

    monkeypatch.setattr(broker_store, "finish_store", interrupted)
    code, out, err = run(*words)
    assert (code, out) == (130, "")
    assert "the same command continues and writes what is missing" in err
    there = sorted(path.name for path in (tmp_path / "day").iterdir())
    assert there == [".broker-b.unfinished", "broker-a", "traffic.unfinished.json"]
    monkeypatch.undo()
    assert run(*words)[0] == 0
    assert sorted(path.name for path in (tmp_path / "day").iterdir()) == ["broker-a", "broker-b", "traffic.json"]

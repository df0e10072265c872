"""The attempt log: only when asked for, only what was checked, and harmless whatever is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.course import CheckFailed, check
from mqlab.course.grading.running.attempts import Attempt, efforts, log_attempts, read_attempts, stop_logging
from mqlab.course.grading.submissions.finding import attempt_logs
from tests.course.grading.course import save


@pytest.fixture(autouse=True)
def quiet(course: Path) -> Iterator[None]:
    yield
    stop_logging()


def total(numbers: list[int]) -> int:
    return sum(numbers)


def test_nothing_is_written_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check("lab99.total", {"total": total})
    assert list(tmp_path.iterdir()) == []


def test_each_check_is_a_line(tmp_path: Path) -> None:
    log = tmp_path / "attempts.jsonl"
    log_attempts(log)
    log_attempts(log)
    with pytest.raises(CheckFailed):
        check("lab99.total", {"total": len})
    check("lab99.total", {"total": total})
    check("lab99.box", {})
    found = read_attempts(log)
    assert [(one.exercise, one.state) for one in found] == [
        ("lab99.total", "failed"),
        ("lab99.total", "passed"),
        ("lab99.box", "not started"),
    ]
    assert "The total is the sum" in found[0].said and found[0].at.endswith("+00:00")
    stop_logging()
    check("lab99.total", {"total": total})
    assert len(read_attempts(log)) == 3


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\x00", b"[]\n3\nnull\n", b'{"at": 1}\n', b"[" * 100_000, b'{"at":"","exercise":"' + b"x" * 400 + b'"}'],
)
def test_what_is_no_log_is_no_attempt(tmp_path: Path, data: bytes) -> None:
    good = json.dumps({"at": "t", "exercise": "e", "state": "passed", "said": "订单"}).encode()
    assert read_attempts(save(data + b"\n" + good + b"\n", tmp_path / "log")) == [Attempt("t", "e", "passed", "订单")]
    assert read_attempts(tmp_path / "nowhere") == []


def test_efforts_count_the_checks_before_the_first_that_passed() -> None:
    attempts = [
        Attempt(str(n), "a", state, "") for n, state in enumerate(["failed", "not started", "failed", "passed"])
    ]
    (one,) = efforts("anna", [*attempts, Attempt("9", "b", "failed", "")], ["a", "c"])
    assert (one.checks, one.before_pass, one.first_at, one.last_at) == (3, 2, "0", "3")
    (other,) = efforts("anna", [Attempt("9", "b", "failed", "")], ["b"])
    assert other.before_pass is None


def test_logs_are_found_with_the_work_and_links_are_not_followed(tmp_path: Path) -> None:
    log = save(b"{}", tmp_path / "in" / "anna" / "attempts.jsonl")
    (tmp_path / "in" / "boris").symlink_to(log.parent)
    (tmp_path / "in" / "chen").mkdir()
    assert attempt_logs(tmp_path / "in") == {"anna": [log]}

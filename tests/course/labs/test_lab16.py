"""Lab 16: three right brokers keep every promise; a wrong part keeps what its other promises are worth."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab16.manifest import EXERCISES
from mqlab.course.cases.lab16.tasks import TASKS
from mqlab.course.given.lab16.serving import served
from mqlab.course.teach.exercises import Exercise, Finding
from mqlab.errors import MqlabError
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape

BROKERS = (rocketmq_shape, dicts_and_lists, of_files)
BY_ID = {asked.id: asked for asked in EXERCISES}
Store: Any = rocketmq_shape.MyStore
Pulls: Any = rocketmq_shape.MyPulls
Groups: Any = rocketmq_shape.MyGroups


def looked(exercise_id: str, part: Any, seed: int = 1) -> Finding | None:
    asked = BY_ID[exercise_id]
    return asked.case(seed).run({asked.defines[0]: part})


@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
@pytest.mark.parametrize("broker", BROKERS, ids=lambda broker: broker.__name__.rpartition(".")[2])
def test_a_right_broker_keeps_every_promise(broker: ModuleType, asked: Exercise) -> None:
    assert check(asked.id, {name: getattr(broker, name) for name in asked.defines}).state == "good"


@pytest.mark.long
@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
@pytest.mark.parametrize("broker", BROKERS, ids=lambda broker: broker.__name__.rpartition(".")[2])
def test_a_right_broker_keeps_them_whatever_the_seed(broker: ModuleType, asked: Exercise) -> None:
    for seed in range(2, 40):
        assert looked(asked.id, getattr(broker, asked.defines[0]), seed) is None


class SearchesTooFar(Store):
    def offset_at(self, topic: str, queue_id: int, ms: int) -> int:
        return int(super().offset_at(topic, queue_id, ms + 1))


class Forgets(Store):
    def recover(self) -> None:
        pass


class KeepsTheTail(Store):
    def recover(self) -> None:
        write, self.disk.write = self.disk.write, lambda *_: None
        super().recover()
        self.disk.write = write


def test_a_wrong_promise_costs_its_share_and_says_its_rule() -> None:
    finding = looked("lab16.store", SearchesTooFar)
    assert finding is not None and finding.share == pytest.approx(8 / 9)
    assert "offset_at is the first message stored at that time or later" in finding.rule
    assert "(offsets by time)" in finding.first_wrong


def test_what_a_crash_must_not_take_costs_more() -> None:
    finding = looked("lab16.store", Forgets)
    assert finding is not None and finding.share == pytest.approx(4 / 9)
    assert "A crash loses nothing acknowledged" in finding.rule
    assert re.fullmatch(r"\d+ after the crash", repr(finding.expected))  # words, not a text in quotes


def test_what_was_behind_a_torn_end_must_not_come_back() -> None:
    for seed in (1, 2, 3):
        finding = looked("lab16.store", KeepsTheTail, seed)
        assert finding is not None and finding.share == pytest.approx(8 / 9)
        assert "offers nothing that was never put" in finding.rule


class NotWritten(Pulls):
    def look(self, now_ms: int) -> Any:
        raise NotImplementedError


class Idle:
    def __init__(self, disk: Any) -> None: ...
    def put(self, topic: str, queue_id: int, unit: bytes) -> Any: ...


def test_what_is_not_written_is_not_wrong() -> None:
    assert check("lab16.pulls", {"MyPulls": NotWritten}).state == "open"
    assert check("lab16.store", {"MyStore": Idle}).state == "open"
    assert check("lab16.handlers", {"HANDLERS": {310: lambda broker, request: ...}}).state == "open"


def test_a_check_says_what_was_earned() -> None:
    class RaisesAtTheEnd(Groups):
        def left(self, group: str, member: str) -> None:
            raise KeyError(member)

    with pytest.raises(CheckFailed, match=r"MyGroups\.left: it raises nothing") as failed:
        check("lab16.groups", {"MyGroups": RaisesAtTheEnd})
    assert "1.2 of 5 points in the public checks" in str(failed.value)


def task(name: str) -> Any:
    (asked,) = [asked for asked in TASKS if asked.id == f"lab16.{name}"]
    return asked


def test_halvings_are_judged_by_the_counts_that_were_run() -> None:
    looks = {1023: 10, 1024: 11}
    assert task("halvings").unready(looks) == "" and task("halvings").right(looks) == 1023
    assert "301 need 9" in task("halvings").unready({300: 9, 301: 9})


class CutMatrix:
    def __init__(self, lost: int) -> None:
        self.lost = lost

    def cells(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(outcome=f"{lost} acknowledged and lost") for lost in (0, self.lost)]


def test_the_pause_is_the_smallest_of_the_two_days_that_were_run() -> None:
    pause = task("pause")
    at_the_edge = {400: CutMatrix(2), 500: CutMatrix(1)}
    assert pause.unready(at_the_edge) == "" and pause.right(at_the_edge) == 500
    assert "increase PAUSE" in pause.unready({0: CutMatrix(3), 100: CutMatrix(3)})
    assert "decrease PAUSE" in pause.unready({700: CutMatrix(1), 800: CutMatrix(1)})


def test_three_pulls_are_counted_in_what_they_gave() -> None:
    rows = [{"given": count} for count in (6, 6, 3)]
    assert task("three").unready(rows) == "" and task("three").right(rows) == 5


def test_a_server_that_does_not_start_on_a_broken_part_says_why(tmp_path: Path) -> None:
    (tmp_path / "mybroker").mkdir()
    (tmp_path / "mybroker" / "store.py").write_text("class MyStore(:\n", "utf-8")
    with pytest.raises(MqlabError, match="did not start") as told:
        served(tmp_path)
    assert "store.py" in (told.value.hint or "") or "syntax" in (told.value.hint or "")

"""Lab 16 behind the wall: right brokers keep every promise in real processes, hostile parts gain none of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from mqlab.course.cases.lab16.manifest import EXERCISES
from mqlab.course.grading.judging.cases import judge
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.verdict import FAILED, HIDDEN, PASSED, STOPPED, CaseResult
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.kit.form import case_of
from mqlab.course.teach.exercises import Exercise
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape

BY_ID = {asked.id: asked for asked in EXERCISES}
SEED = 77
SHORT = Limits(seconds=1, total_seconds=20, clock_times=5)
"""For a part that loops for ever."""


@dataclass(frozen=True)
class HostilePart:
    """One text of the bank: what is at its head, and what comes after the right answer."""

    name: str
    kind: str
    exercise: str
    promises: tuple[str, ...]
    ends: str
    keeps: float  # for the promises that it kept honestly
    says: str
    source: str


def read(path: Path) -> HostilePart:
    text = path.read_text("utf-8")
    head = {name: value for name, value in re.findall(r"^# (\w+): (.+)$", text, re.MULTILINE) if name != "promise"}
    promises = tuple(re.findall(r"^# promise: (.+)$", text, re.MULTILINE))
    source = f"{inspect.getsource(rocketmq_shape)}\n\n{text}"
    return HostilePart(
        path.stem,
        head["kind"],
        head["exercise"],
        promises,
        head["ends"],
        float(head.get("keeps", 0)),
        head["says"],
        source,
    )


BANK = [read(path) for path in sorted((Path(__file__).parent / "hostile_parts").glob("*.txt"))]


@pytest.fixture
def desk(walls: Sandbox) -> Iterator[Desk]:
    """Walls, and a new process for each life, as in grading."""
    opened = Desk(walls)
    opened.new_processes = True
    yield opened
    opened.close()


def judged(
    desk: Desk, asked: Exercise, source: str, promises: tuple[str, ...] = (), limits: Limits | None = None
) -> CaseResult:
    """The result of the case of one seed, made of some of the exercise's promises."""
    some = tuple(promise for promise in asked.form.promises if not promises or promise.name in promises)
    assert len(some) == len(promises) or not promises
    answers = desk.load(asked.id, source, asked.defines, limits)
    case = case_of(replace(asked.form, promises=some), "the case", lambda: SEED, "")
    (result,) = judge([case], answers, HIDDEN, lambda: desk.asked)
    return result


@pytest.mark.long  # in the short tests the lab's reference is judged (test_known_wrong)
@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
def test_the_broker_of_rocketmqs_shape_keeps_every_promise(desk: Desk, asked: Exercise) -> None:
    assert judged(desk, asked, inspect.getsource(rocketmq_shape)).state == PASSED


@pytest.mark.long
@pytest.mark.parametrize("asked", EXERCISES[:4], ids=lambda asked: asked.id)
@pytest.mark.parametrize("broker", [dicts_and_lists, of_files], ids=lambda broker: broker.__name__.rpartition(".")[2])
def test_other_right_brokers_keep_every_promise(desk: Desk, broker: ModuleType, asked: Exercise) -> None:
    own = "\n".join(line for line in inspect.getsource(broker).splitlines() if "import HANDLERS" not in line)
    assert judged(desk, asked, own.replace('"HANDLERS", ', "")).state == PASSED


def test_the_bank_has_every_idea() -> None:
    kinds = " ".join(part.kind for part in BANK)
    for idea in ("patches its judge", "other world", "outside of its disk", "opens files", "exit", "loop", "frame"):
        assert idea in kinds
    assert len(BANK) >= 12


@pytest.mark.parametrize("part", BANK, ids=lambda part: part.name)
def test_a_hostile_part_gains_nothing(desk: Desk, part: HostilePart) -> None:
    limits = SHORT if "loop" in part.kind else None
    result = judged(desk, BY_ID[part.exercise], part.source, part.promises, limits)
    assert (result.state, result.share) == ({"failed": FAILED, "stopped": STOPPED}[part.ends], part.keeps), result
    assert part.says in f"{result.rule} {result.first_wrong}", result

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message, every_crash
from mqlab.course.widgets import CrashMatrix, crash_matrix
from mqlab.errors import UsageError
from mqlab.lab.parts import OwnParts
from mqlab.lab.world.state import CrashPoint
from tests.course.widgets.crash_stories import QUIET, VARIANTS, charges, lines_only
from tests.lab.parts.brokers.rocketmq_shape import MyStore


def matrix_of(variants: Any = VARIANTS, **changes: Any) -> CrashMatrix:
    return crash_matrix(variants, **{"node": "billing-1", "outcome": charges, "only": lines_only, **QUIET, **changes})


@pytest.fixture(scope="module")
def matrix() -> CrashMatrix:
    return matrix_of()


def test_the_outcomes_are_those_of_every_crash(matrix: CrashMatrix) -> None:
    for name, story in VARIANTS.items():
        expected = [
            (str(lab.crash_point), charges(lab))
            for lab in every_crash(story, node="billing-1", only=lines_only, **QUIET)
        ]
        assert [(str(cell.point), cell.outcome) for cell in matrix.rows[name]] == expected


def test_what_the_calm_run_does_is_good_and_the_rest_has_a_sign_of_its_own(matrix: CrashMatrix) -> None:
    assert matrix.good == {name: {"charged 1 times"} for name in VARIANTS}
    assert matrix.symbols() == {"charged 1 times": "✓", "charged 2 times": "①"}
    bad = [row for row in matrix.cells() if not row.good]
    assert {row.variant for row in bad} == {"two commits"} and len(bad) == 2  # before the second insert and its commit
    rows = {(row.variant, row.outcome): row.points for row in matrix.table()}
    assert rows["two commits", "charged 2 times"] == 2
    assert rows["one commit", "charged 1 times"] == len(matrix.rows["one commit"])


def test_each_run_tells_what_happened_around_its_crash(matrix: CrashMatrix) -> None:
    for row in matrix.rows.values():
        for cell in row:
            assert sum("billing-1: killed" in line for line in cell.story) == 1
            assert any("started again" in line for line in cell.story)


def test_a_run_opens_in_the_time_machine_with_its_crash(matrix: CrashMatrix) -> None:
    bad = next(row for row in matrix.cells() if not row.good)
    with pytest.raises(UsageError, match="there is no cell -1"):
        matrix.open()
    matrix.set("variant", bad.variant)
    matrix.set("number", bad.number)
    explorer = matrix.open()
    assert "killed" in explorer.stepper.label
    lab = explorer.stepper.last().lab
    assert charges(lab) == "charged 2 times" and lab.journal.of("fault.killed")
    assert "killed" in str(explorer.table())
    assert "killed" in matrix.asked("open", {"variant": bad.variant, "number": bad.number})["html"]


def test_a_page_without_a_kernel_can_open_the_first_bad_run(matrix: CrashMatrix) -> None:
    bad = next(row for row in matrix.cells() if not row.good)
    data = matrix.data()
    assert list(data["pages"]) == [f"two commits {bad.number}"]
    cell = data["rows"][0]["cells"][bad.number]
    assert cell[2] == "charged 2 times" and any("killed" in data["texts"][number] for number in cell[3])


def test_an_interruption_keeps_what_is_done_and_run_goes_on() -> None:
    runs = []

    def outcome(lab: Lab) -> str:
        runs.append(lab.crash_point)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return charges(lab)

    matrix = matrix_of({"two commits": VARIANTS["two commits"]}, outcome=outcome)
    total = len(matrix.rows["two commits"])
    assert len(matrix.waiting) == total - 2  # the first call was for the run without a crash
    assert "not run" in str(matrix.table()) and matrix.data()["pages"] == {}
    assert matrix.run().waiting == [] and len(runs) == total + 2


def test_the_page_runs_in_slices() -> None:
    matrix = matrix_of({"one commit": VARIANTS["one commit"]}, run=False)
    total = len(matrix.waiting)
    left = [matrix.asked("run", {})["left"]]
    while left[-1]:
        left.append(matrix.asked("run", {})["left"])
    assert left == sorted(left, reverse=True) and left[0] < total and matrix.waiting == []


def test_a_run_that_raises_is_an_outcome() -> None:
    def outcome(lab: Lab) -> str:
        assert charges(lab) == "charged 1 times", "somebody paid twice\nor never"
        return "paid"

    matrix = matrix_of({"two commits": VARIANTS["two commits"]}, outcome=outcome)
    assert set(matrix.symbols()) == {"paid", "AssertionError: somebody paid twice"}


def test_good_can_be_named_and_a_power_cut_of_the_broker_is_a_crash_too() -> None:
    def first_steps(point: CrashPoint) -> bool:
        return point.kind == "step" and point.number < 25

    story = VARIANTS["one commit"]
    matrix = matrix_of(story, node="broker-a", how="power_off", only=first_steps, good=["charged 0 times"])
    (name,) = matrix.rows
    assert name == "story" and matrix.good[name] == {"charged 0 times"}
    assert matrix.rows[name] and all("powered off" in " ".join(cell.story) for cell in matrix.rows[name])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"variants": {}}, "needs a variant"),
        ({"node": "billing-7"}, "'billing-7' never acts"),
        ({"how": "explode"}, "unknown kind of crash 'explode'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_played(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        matrix_of(**wrong)


def test_cells_that_do_not_exist_are_refused(matrix: CrashMatrix) -> None:
    with pytest.raises(UsageError, match="variants: two commits, one commit"):
        matrix.cell("three commits", 0)
    with pytest.raises(UsageError, match="numbers go from 0 to"):
        matrix.cell("one commit", 99)
    with pytest.raises(UsageError, match="cannot answer"):
        matrix.asked("sing", {})


class Forgets(MyStore):  # type: ignore[misc]
    def recover(self) -> None:
        pass


def test_a_part_that_breaks_a_rule_after_a_crash_is_an_outcome() -> None:
    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        lab.producer("shop").send(Message("orders", b"a book"))
        lab.run_for("1s")

    own = matrix_of(
        story,
        node="broker-a",
        outcome=lambda lab: "stored",
        only=lambda point: "store.dispatch" in str(point),
        parts=OwnParts(store=Forgets),
    )
    (row,) = own.table()
    assert row.outcome.startswith("BrokenPart: MyStore.max_offset: A crash loses nothing acknowledged")
    assert "A crash loses nothing" in own.open("story", 0).recording.error

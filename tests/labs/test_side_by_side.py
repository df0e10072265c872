"""Two notebooks side by side give what each gives alone, and what only the unsolved one does wrong is found."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.labs import side_by_side
from tests.labs.notebooks import WarmProcess, errors, texts

BEFORE = [
    "from mqlab.teach import predict, reveal\nruns = []",
    "def play(day):\n    runs.append(day)\n    return [day]",
]


def notebook(*cells: str) -> Any:
    return new_notebook(cells=[new_code_cell(one, id=f"cell-{at}") for at, one in enumerate(cells)])


def test_what_an_answer_cannot_change_runs_once_and_names_have_two_values(warm: WarmProcess) -> None:
    behind = ["lab = play(1)", "lab.append(len(runs))\nreveal('lab01.power', '40')", "total(lab)", "print(runs, lab)"]
    solved, lab = warm.execute_side_by_side(
        notebook(*BEFORE, "predict('lab01.power', '40')", "def total(days):\n    return sum(days)", *behind),
        notebook(*BEFORE, "predict('lab01.power')", "def total(days):\n    ...", *behind),
        ["total"],
    )
    assert [texts(cell) for cell in solved.cells[6:]] == ["2", "[1] [1, 1]\n"]
    assert errors(solved) == errors(lab) == []
    assert "you predict" in texts(solved.cells[2]) and "you predict" not in texts(lab.cells[2])
    assert "nothing yet" in texts(lab.cells[5]) and "nothing yet" not in texts(solved.cells[5])
    assert texts(lab.cells[6]) == texts(lab.cells[4]) == ""


def test_a_cell_that_is_passed_over_keeps_its_outputs_and_runs_in_the_lab_where_it_is_another(
    warm: WarmProcess,
) -> None:
    solution = notebook("seen = []", "seen.append(1)\nprint(answer)", "print(seen)")
    solution.cells[1].outputs = [new_output("stream", name="stdout", text="as committed\n")]
    solved, lab = warm.execute_side_by_side(
        solution, notebook("seen = []", "print('not started')", "print(seen)"), ["answer"], ["cell-1"]
    )
    assert [texts(cell) for cell in solved.cells] == ["", "as committed\n", "[]\n"] and errors(solved) == []
    assert texts(lab.cells[1]) == "not started\n"


def test_an_error_far_behind_an_answer_that_was_not_given_is_found(warm: WarmProcess) -> None:
    behind = ["def most(days):\n    return max(total(days) for _ in days)", "found = most([1, 2])", "found + 1"]
    solved, lab = warm.execute_side_by_side(
        notebook("def total(days):\n    return sum(days)", *behind, "found = 1", "found"),
        notebook("def total(days):\n    ...", *behind, "found = 1", "found"),
        ["total"],
    )
    assert errors(solved) == [] and [error.partition(":")[0] for error in errors(lab)] == ["cell-2", "cell-3"]
    assert texts(solved.cells[3]) == "4" and texts(solved.cells[5]) == "1"


@pytest.mark.parametrize(
    ("cells", "run_again"),
    [
        (["x = answer_of(1)", "y = x", "z = 1"], [0, 1]),  # a value of a value
        (["answer_of(lab)", "lab.now_ms"], [0, 1]),  # what was handed to the answer
        (["if answer_of:\n    other = 1\nlab.run_for(1)", "lab.now_ms"], [0, 1]),  # what a changed cell went on with
        (["def story(lab):\n    answer_of(lab)", "play(story)", "def other(lab):\n    lab"], [0, 1]),
        (
            ["def story(answer_of):\n    return answer_of", "[answer_of for answer_of in (1, 2)][0]"],
            [],
        ),  # names of theirs
        (["day = 1", "check('lab01.unit')\nday"], [1]),
    ],
)
def test_which_cells_run_again(cells: list[str], run_again: list[int]) -> None:
    assert list(side_by_side.run_again(notebook(*cells), notebook(*cells), ["answer_of"])) == run_again


def test_each_runs_in_its_own_folder(warm: WarmProcess) -> None:
    where = "import os; print(os.path.basename(os.getcwd()))"
    solved, lab = warm.execute_side_by_side(notebook(where), notebook(where + "  # yours"), [])
    assert (texts(solved.cells[0]), texts(lab.cells[0])) == ("solutions\n", "labs\n")

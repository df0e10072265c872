"""Every lab: built from its source, free of answers; unsolved nothing is started, solved it is as committed."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_notebook

from mqlab.teach.exercises import manifest
from mqlab.teach.kit.form import SECONDS
from mqlab.widgets.joining import joined
from solutions import build
from tests.labs import side_by_side
from tests.labs.notebooks import (
    ROOT,
    WarmProcess,
    differences,
    errors,
    execute,
    forget_the_learner,
    load_json,
    nbval,
    read,
    shell_of_this_process,
    source,
    texts,
    without_java,
)
from tests.teach.check_work import passes_in_its_time

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

SOURCES = sorted(build.SOURCES.glob("*.py"))
PAGES = ("explorers", "glossary", "index", "not_modelled")
OF_LABS = [path for path in SOURCES if path.stem[:2].isdigit()]
ASK_SPARK = [path for path in OF_LABS if "mqlab.spark" in path.read_text("utf-8")]
WITHOUT_SPARK = [pytest.param(path, id=path.stem) for path in OF_LABS if path not in ASK_SPARK]
WITH_SPARK = [pytest.param(path, marks=pytest.mark.spark, id=path.stem) for path in ASK_SPARK]
LABS = [*WITHOUT_SPARK, *WITH_SPARK]
NBVAL = ("01a_what_the_broker_writes",)
"""Those that nbval runs in `make test`, each in a kernel of its own; the others run without one."""

CHECKED = re.compile(r'^check\("(lab\d\d\.\w+)"', re.MULTILINE)
BOARDS = sorted(path.stem for path in (ROOT / "mqlab" / "widgets" / "modules").glob("*.js"))
IN_THE_SESSION = [one for one in WITH_SPARK if one.id[:3] == "10a"]
"""The first of Spark's notebooks, which `make test` runs; each of the others takes ten seconds and more."""

LONG_CHECKS = {
    "lab02.outbox", "lab02.scale_in", "lab04.once", "lab05.lanes", "lab05.poisoned", "lab06.detector",
    "lab08.any_delay", "lab08.cancel_unpaid", "lab08.transaction", "lab09.bottleneck", "lab09.brake", "lab09.size",
    "lab13.repair", "lab13.when",
}  # fmt: skip
"""Their public checks play days for more than a second of a processor: `make long` runs those cells.

In `make test` their references are judged on a hidden day, and wrong answers on the public ones.
"""

LONG_PARTS = ("02c", "04a", "05b", "07a", "09b", "13a")
"""Parts that play for more than three seconds and are not the shortest of their lab: `make long` runs them.

One part of each lab at least, and all shorter ones, are run by `make test`.
"""
UP_TO = {"09a": "lab09.threads", "10a": "lab10.options", "14_": "lab14.first_wrong_step"}
"""The shortest parts of their labs that still take seven seconds and more: `make test` runs them up to this check."""
SIDE_BY_SIDE = [
    pytest.param(*one.values, marks=pytest.mark.long if one.id[:3] in LONG_PARTS else (), id=one.id)
    for one in WITHOUT_SPARK
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_committed_notebooks_are_what_their_source_says(path: Path) -> None:
    assert build.stale(path) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_lab_has_no_outputs_and_no_solution_text(path: Path) -> None:
    lab = read(build.targets(path)[0])
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in lab.cells)
    handed_out = "\n".join(cell.source for cell in lab.cells)
    assert "SOLUTION" not in handed_out
    for answer in re.findall(
        r"### BEGIN SOLUTION\n(.*?)\s*### (?:STARTER|END SOLUTION)", path.read_text("utf-8"), re.DOTALL
    ):
        assert answer.strip() not in handed_out
        for line in answer.splitlines():
            assert len(line.strip()) < 25 or line.strip() not in handed_out


@pytest.mark.parametrize("path", LABS)
def test_lab_and_solution_have_the_same_cells(path: Path) -> None:
    lab, solution = (load_json(target) for target in build.targets(path) if target is not None)
    assert [(c["id"], c["cell_type"], c["metadata"]) for c in lab["cells"]] == [
        (c["id"], c["cell_type"], c["metadata"]) for c in solution["cells"]
    ]


@pytest.mark.parametrize("path", LABS)
def test_a_solution_was_run_to_its_end_and_its_explorers_need_no_kernel(path: Path) -> None:
    _, solution = build.targets(path)
    assert solution is not None
    for cell in load_json(solution)["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is not None
            data = [output["data"] for output in cell["outputs"] if "data" in output]
            assert not any("application/vnd.jupyter.widget-view+json" in each for each in data)
            # The attribute of a box; the page's own script names it too, with ${place} for its value.
            assert not any(build.PLACE.search(source({"source": each.get("text/html", "")})) for each in data)
            if "explorer" in cell["metadata"].get("tags", []):
                (page,) = [source({"source": each["text/html"]}) for each in data if "text/html" in each]
                assert "data-mqlab=" in page and '<script type="module">' in page
                is_new = any(joined(board) in page for board in BOARDS)
                assert is_new, f"{cell['id']} was saved with an older module of its board: make labs ARGS={path.stem}"


@pytest.mark.parametrize("path", LABS)
def test_every_answer_of_a_solution_is_right(path: Path) -> None:
    """A model answer that is told to run something first would be as committed, and nobody could give a better one."""
    judged = re.compile(r'^(answer|check)\("(lab\d\d\.\w+)"', re.MULTILINE)
    solution = load_json(build.targets(path)[1])
    calls = [
        (call, name, str(cell["outputs"])) for cell in solution["cells"] if cell["cell_type"] == "code"
        for call, name in judged.findall(source(cell))
    ]  # fmt: skip
    assert calls
    for call, name, shown in calls:
        assert ("is right" if call == "answer" else "✓") in shown, name


@pytest.mark.parametrize("path", LABS)
def test_cells_are_short_and_text_reads_well(path: Path) -> None:
    for cell in load_json(build.targets(path)[0])["cells"]:
        text = source(cell)
        if cell["cell_type"] == "code":
            assert len([line for line in text.splitlines() if line]) <= 15, cell["id"]
            assert max(map(len, text.splitlines())) <= 90, cell["id"]
        assert "TODO" not in text


@pytest.fixture
def as_in_a_kernel(plans_as_by_itself: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell of this process, for a notebook of Spark's: a kernel would start a JVM of its own."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython puts its own in that place
    forget_the_learner()
    with shell_of_this_process() as shell:
        yield shell
    forget_the_learner()


@pytest.mark.parametrize("path", SIDE_BY_SIDE)
def test_solved_it_gives_the_committed_outputs_and_unsolved_nothing_is_started(path: Path, warm: WarmProcess) -> None:
    """What no answer and no guess can change runs once for both, and a check is done in its time, if not a long one.

    Alone, an unsolved lab runs in `make long`, and so do the cells after UP_TO.
    """
    committed, lab = (beginning(path, whole) for whole in (solution_of(path), read(build.targets(path)[0])))
    long_checks = [cell.id for cell in graded(committed) if LONG_CHECKS.intersection(CHECKED.findall(cell.source))]
    solved, unsolved = warm.execute_side_by_side(copy.deepcopy(committed), lab, names_of_answers(path), long_checks)
    assert differences(solved, committed) == []
    nothing_was_started(path, unsolved)
    for cell in graded(solved):
        if cell.metadata.user_seconds > SECONDS:  # here, on a busy machine: so its work is counted
            for exercise_id in CHECKED.findall(cell.source):
                passes_in_its_time(exercise_id)


def beginning(path: Path, notebook: Any) -> Any:
    """Its cells up to the check in UP_TO; the whole notebook if it is not named there."""
    last = f"{UP_TO[path.stem[:3]].replace('.', '-')}-check" if path.stem[:3] in UP_TO else notebook.cells[-1].id
    ids = [cell.id for cell in notebook.cells]
    notebook.cells = notebook.cells[: ids.index(last) + 1]
    return notebook


def graded(lab: Any) -> list[Any]:
    """The cells that check an answer."""
    return [cell for cell in lab.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def names_of_answers(path: Path) -> list[str]:
    return [name for one in manifest(f"lab{path.stem[:2]}").exercises for name in one.defines]


def test_exercises_with_long_checks_exist() -> None:
    checked = {one for path in OF_LABS for cell in graded(solution_of(path)) for one in CHECKED.findall(cell.source)}
    assert checked > LONG_CHECKS


@pytest.mark.long
@pytest.mark.parametrize("path", LABS)
def test_unsolved_it_runs_to_the_end_in_a_kernel_of_its_own(path: Path) -> None:
    nothing_was_started(path, execute(read(build.targets(path)[0])))


def nothing_was_started(path: Path, lab: Any) -> None:
    """No cell failed, and every exercise and prediction of the notebook says that it waits for the learner."""
    assert errors(lab) == []
    checks = graded(lab)
    assert all("not started" in texts(cell) for cell in checks)
    # A part has its own exercises and predictions; together the parts have those of the manifest.
    written = "\n".join(cell.source for cell in lab.cells)
    asked = [one.id for one in manifest(f"lab{path.stem[:2]}").exercises if f"# exercise: {one.id}\n" in written]
    assert {cell.metadata.nbgrader.grade_id for cell in checks} == {f"{e.replace('.', '-')}-check" for e in asked}
    for question in manifest(f"lab{path.stem[:2]}").predictions:
        if f'reveal("{question.id}"' in written:
            assert any(question.question in texts(cell) for cell in lab.cells), question.id


@pytest.mark.parametrize("lab", sorted({build.lab_and_part(path.name)[0] for path in SOURCES} - set(PAGES)))
def test_a_lab_keeps_to_the_rules_and_asks_everything_in_one_of_its_parts(lab: str) -> None:
    assert build.against_the_rules(lab) == []
    written = "".join(path.read_text("utf-8") for path in build.parts_of(lab))
    assert all(written.count(f"# exercise: {one.id}\n") == 1 for one in manifest(lab).exercises)
    assert all(f'reveal("{one.id}"' in written for one in manifest(lab).predictions)


def test_words_have_a_source() -> None:
    assert all(build.words(path.stem) for path in build.WORDS.glob("*.json"))


def test_unsolved_it_runs_under_nbval() -> None:
    nbval(ROOT / "labs" / "00-a-messages-day.ipynb", "--nbval-lax")


@pytest.mark.parametrize("path", IN_THE_SESSION)
def test_in_an_open_session_solved_it_gives_the_committed_outputs_and_unsolved_nothing_is_started(
    path: Path, as_in_a_kernel: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, in a shell of this process; ``side_by_side`` goes to the folder of each."""
    monkeypatch.chdir(ROOT)
    committed, lab = (beginning(path, whole) for whole in (solution_of(path), read(build.targets(path)[0])))
    solved = copy.deepcopy(committed)
    side_by_side.run(as_in_a_kernel, solved, lab, (ROOT / "solutions", ROOT / "labs"), names_of_answers(path))
    assert differences(solved, committed) == []
    nothing_was_started(path, lab)


@pytest.mark.parametrize(
    "path", [pytest.param(*one.values, marks=() if one.id in NBVAL else pytest.mark.long, id=one.id) for one in LABS]
)
def test_solved_it_passes_nbval(path: Path, tmp_path: Path) -> None:
    """Spark's labs with the Java that a wheel brings: unsolved they run with the machine's own, if it has one."""
    environment = None
    if path in ASK_SPARK:
        environment = without_java(tmp_path)
        assert shutil.which("java", path=environment["PATH"]) is None
    solution = build.targets(path)[1]
    assert solution is not None
    nbval(solution, "--nbval", environment=environment)


def test_the_tour_of_the_explorers_runs_and_shows_each_of_them(warm: WarmProcess) -> None:
    tour = warm.execute(read(ROOT / "labs" / "explorers.ipynb"))
    assert errors(tour) == []
    shown = [cell for cell in tour.cells if "explorer" in cell.metadata.get("tags", [])]
    pages = ["".join(output.data.get("text/html", "") for output in cell.outputs) for cell in shown]
    modules = (
        "time_machine", "log_xray", "retry_clock", "allocation_board", "offset_strip", "tag_trap", "long_poll",
        "backlog", "lanes", "knows", "crash_matrix", "echoes", "percentiles", "watermark", "console",
    )  # fmt: skip
    for module, page in zip(modules, pages, strict=True):
        assert f'data-mqlab="{module}-' in page
    # Each is introduced by what it shows and by something to try.
    tries = [cell.source for cell in tour.cells if "**Try:**" in cell.source]
    assert len(tries) == len(modules)


def test_a_run_without_a_kernel_has_what_a_kernel_puts_out_and_what_differs_is_found(warm: WarmProcess) -> None:
    cells = [
        "import sys, os; print('in', os.path.basename(os.getcwd()), file=sys.stderr)",
        "display(1)\nprint(2)\n3",
        "1 / 0",
    ]
    notebook = new_notebook(cells=[new_code_cell(one, id=f"cell-{at}") for at, one in enumerate(cells)])
    ran, of_a_kernel = warm.execute(copy.deepcopy(notebook)), execute(copy.deepcopy(notebook))
    assert differences(ran, of_a_kernel) == [] and len(errors(ran)) == 1
    for number, old, new in [(0, "in labs", "in tests"), (1, "2", "4"), (1, "3", "4"), (2, "division", "what")]:
        other = from_dict(json.loads(json.dumps(of_a_kernel).replace(f'"{old}', f'"{new}')))
        assert [found.partition(":")[0] for found in differences(ran, other)] == [ran.cells[number].id]


def test_a_notebook_that_ends_its_process_fails_and_the_next_one_runs(warm: WarmProcess) -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        warm.execute(new_notebook(cells=[new_code_cell("import os; os._exit(3)")]))
    assert texts(warm.execute(new_notebook(cells=[new_code_cell("print('here')")])).cells[0]) == "here\n"


def solution_of(path: Path) -> Any:
    solution = build.targets(path)[1]
    assert solution is not None
    return read(solution)


@pytest.mark.parametrize("path", LABS)
def test_every_exercise_of_a_solution_passes_its_public_checks(path: Path) -> None:
    solution = solution_of(path)
    told = "\n".join(texts(cell) for cell in solution.cells)
    here = "\n".join(cell.source for cell in solution.cells)
    of_this_part = [one for one in manifest(f"lab{path.stem[:2]}").exercises if f"# exercise: {one.id}\n" in here]
    assert of_this_part
    for exercise in of_this_part:
        assert re.search(rf"✓ {re.escape(exercise.id)}: (\d+) of \1 public checks pass", told)


def test_the_index_names_every_lab_and_its_links_lead_somewhere() -> None:
    index = "\n".join(cell.source for cell in read(ROOT / "labs" / "index.ipynb").cells)
    linked = re.findall(r"\]\(([^)]+)\)", index)
    assert sorted(linked) == sorted(build.targets(path)[0].name for path in SOURCES if path.stem != "index")
    for path in SOURCES:
        lab = build.targets(path)[0]
        for link in re.findall(r"\]\(([^)#:]+)\)", "\n".join(cell.source for cell in read(lab).cells)):
            assert (lab.parent / link).exists(), f"{lab.name} links to {link}"


def test_a_wrong_answer_is_told_in_a_few_lines_where_a_traceback_would_be() -> None:
    lab = copy.deepcopy(read(ROOT / "labs" / "00-a-messages-day.ipynb"))
    answer = next(cell for cell in lab.cells if cell.id == "lab00-crash")
    answer.source += "\n    return {group: 0 for group in groups}"
    ran = execute(lab)
    shown = next(texts(cell) for cell in ran.cells if cell.id == "lab00-crash-check")
    assert shown.startswith("✗ lab00.crash: After a crash a group goes on from the last offset that the broker got")
    assert len(shown.splitlines()) == 9 and "Traceback" not in shown and "first wrong" in shown
    assert [error.partition(":")[0] for error in errors(ran)] == ["lab00-crash-check"]

"""Every lab: built from its source, free of answers; unsolved nothing is started, solved it is as committed."""

from __future__ import annotations

import copy
import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_notebook

from mqlab.course.kit.form import SECONDS
from mqlab.course.teach.exercises import manifest
from solutions import build
from solutions.boards import with_todays_boards
from tests.course.labs.notebooks import (
    ROOT,
    differences,
    errors,
    execute,
    load_json,
    nbval,
    read,
    source,
    texts,
    without_java,
)
from tests.course.teach.check_work import passes_in_its_time

SOURCES = sorted(build.SOURCES.glob("*.py"))
PAGES = ("explorers", "glossary", "index", "not_modelled")
OF_LABS = [path for path in SOURCES if path.stem[:2].isdigit()]
ASK_SPARK = [path for path in OF_LABS if "mqlab.data.spark" in path.read_text("utf-8")]
WITHOUT_SPARK = [pytest.param(path, id=path.stem) for path in OF_LABS if path not in ASK_SPARK]
WITH_SPARK = [pytest.param(path, marks=pytest.mark.spark, id=path.stem) for path in ASK_SPARK]
LABS = [*WITHOUT_SPARK, *WITH_SPARK]
NBVAL = ("01a_what_the_broker_writes",)
"""Those that nbval itself runs in `make test`; of the others its comparison is used."""

CHECKED = re.compile(r'^check\("(lab\d\d\.\w+)"', re.MULTILINE)
OF_MAKE_TEST = [*WITHOUT_SPARK, *(one for one in WITH_SPARK if one.id[:3] == "10a")]
FIRST_PARTS = [one for one in WITHOUT_SPARK if one.id[2] in "_a"]
LATER_PARTS = [pytest.param(*one.values, marks=pytest.mark.long, id=one.id) for one in LABS if one not in FIRST_PARTS]
"""Unsolved, they run in `make long`: `make test` runs them solved, and of Spark's, which start a JVM each, only 10a."""


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
                is_new = page == with_todays_boards(page)
                assert is_new, f"{cell['id']} has an older board: make labs ARGS='--keep-outputs {path.stem}'"


@pytest.mark.parametrize("path", LABS)
def test_every_answer_of_a_solution_is_right(path: Path) -> None:
    """A model answer that should run something first would be as committed, and no student could give a better one."""
    judged = re.compile(r'^(answer|check)\("(lab\d\d\.\w+)"', re.MULTILINE)
    solution = load_json(build.targets(path)[1])
    calls = [
        (call, name, str(cell["outputs"]))
        for cell in solution["cells"]
        if cell["cell_type"] == "code"
        for call, name in judged.findall(source(cell))
    ]
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
        assert text.strip() and "TODO" not in text, cell["id"]


@pytest.mark.parametrize("path", OF_MAKE_TEST)
def test_solved_it_gives_the_committed_outputs_and_each_check_is_done_in_its_time(path: Path) -> None:
    committed = solution_of(path)
    solved = execute(copy.deepcopy(committed), "solutions")
    assert differences(solved, committed) == []
    for cell in graded(solved):
        if seconds_of(cell) > SECONDS:  # here, on a busy machine: so its work is counted
            for exercise_id in CHECKED.findall(cell.source):
                passes_in_its_time(exercise_id)


def seconds_of(cell: Any) -> float:
    """By the wall, from its first message to its last."""
    began, ended = (
        datetime.fromisoformat(cell.metadata.execution[f"iopub.status.{when}"]) for when in ("busy", "idle")
    )
    return (ended - began).total_seconds()


def graded(lab: Any) -> list[Any]:
    """The cells that check an answer."""
    return [cell for cell in lab.cells if cell.metadata.get("nbgrader", {}).get("grade")]


@pytest.mark.parametrize("path", [*FIRST_PARTS, *LATER_PARTS])
def test_unsolved_it_runs_to_the_end_and_nothing_is_started(path: Path) -> None:
    """No cell failed, and every exercise and prediction of the notebook says that it waits for the learner."""
    lab = execute(read(build.targets(path)[0]))
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
    assert all(build.words(path.stem) for path in build.WORDS.glob("lab*.json"))


def test_unsolved_it_runs_under_nbval() -> None:
    nbval(ROOT / "labs" / "00-a-messages-day.ipynb", "--nbval-lax")


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


def test_the_tour_of_the_explorers_runs_and_shows_each_of_them() -> None:
    tour = execute(read(ROOT / "labs" / "explorers.ipynb"))
    assert errors(tour) == []
    shown = [cell for cell in tour.cells if "explorer" in cell.metadata.get("tags", [])]
    pages = ["".join(output.data.get("text/html", "") for output in cell.outputs) for cell in shown]
    modules = (
        "time_machine",
        "log_xray",
        "retry_clock",
        "allocation",
        "offset_strip",
        "tag_trap",
        "long_poll",
        "backlog",
        "lanes",
        "knows",
        "leases",
        "wheel",
        "crash_matrix",
        "echoes",
        "percentiles",
        "watermark",
        "console",
    )
    for module, page in zip(modules, pages, strict=True):
        assert f'data-mqlab="{module}-' in page
    # Each is introduced by what it shows and by something to try.
    tries = [cell.source for cell in tour.cells if "**Try:**" in cell.source]
    assert len(tries) == len(modules)


def test_what_differs_from_the_committed_outputs_is_found() -> None:
    cells = [
        "import sys, os; print('in', os.path.basename(os.getcwd()), file=sys.stderr)",
        "display(1)\nprint(2)\n3",
        "1 / 0",
    ]
    notebook = new_notebook(cells=[new_code_cell(one, id=f"cell-{at}") for at, one in enumerate(cells)])
    ran = execute(copy.deepcopy(notebook))
    assert differences(ran, ran) == [] and len(errors(ran)) == 1
    for number, old, new in [(0, "in labs", "in tests"), (1, "2", "4"), (1, "3", "4"), (2, "division", "what")]:
        other = from_dict(json.loads(json.dumps(ran).replace(f'"{old}', f'"{new}')))
        assert [found.partition(":")[0] for found in differences(ran, other)] == [ran.cells[number].id]


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
        assert re.search(rf"✓ {re.escape(exercise.id)}: (\d+) of \1 public check(s pass| passes)", told)


def test_the_index_names_every_lab_and_its_links_lead_somewhere() -> None:
    index = "\n".join(cell.source for cell in read(ROOT / "labs" / "index.ipynb").cells)
    linked = re.findall(r"\]\(([^)]+)\)", index)
    pages = {link.partition("#")[0] for link in linked}
    assert sorted(pages) == sorted(build.targets(path)[0].name for path in SOURCES if path.stem != "index")
    for path in SOURCES:
        lab = build.targets(path)[0]
        for link in re.findall(r"\]\(([^)#:]+)\)", "\n".join(cell.source for cell in read(lab).cells)):
            assert (lab.parent / link).exists(), f"{lab.name} links to {link}"


def test_a_wrong_answer_is_told_in_a_few_lines_where_a_traceback_would_be() -> None:
    lab = copy.deepcopy(read(ROOT / "labs" / "00-a-messages-day.ipynb"))
    answer = next(cell for cell in lab.cells if cell.id == "lab00-crash")
    answer.source += "\n    return {group: 0 for group in groups}"
    checked = next(at for at, cell in enumerate(lab.cells) if cell.id == "lab00-crash-check")
    del lab.cells[checked + 1 :]
    ran = execute(lab)
    shown = texts(ran.cells[checked])
    assert shown.startswith("✗ lab00.crash: After a crash a group resumes at the last offset that the broker got")
    assert len(shown.splitlines()) == 7 and "Traceback" not in shown and "first wrong" in shown
    assert errors(ran) == []  # a failed check shows no red box, though "Run All" stops at it

"""A part that is handed in as a file is the answer where the notebook has none."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.course.grading.submissions.finding import find_submissions
from mqlab.course.grading.submissions.kept_files import kept_files, with_kept
from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab
from mqlab.course.grading.submissions.notebook_file import read_notebook
from mqlab.course.grading.submissions.rebuild import Transplant, transplant
from mqlab.course.material import course_folder
from mqlab.course.mybroker import OWN_PARTS
from mqlab.course.teach.keeping import FILLED, write_part
from mqlab.lab.parts import ANSWERS
from tests.course.grading.course import save
from tests.lab.parts.brokers import of_files, rocketmq_shape

CACHE, FILE = "lab04.process_queue", "process_queue.py"
PRISTINE = course_folder() / "labs" / "04a-how-far-have-we-read.ipynb"
OWN = "class MyProcessQueue:\n    pass\n"


@pytest.fixture(scope="module")
def lab() -> CourseLab:
    return open_lab(course_folder(), "04")


def handed_in(folder: Path, source: str = "", kept: str = OWN) -> Path:
    """A student's folder: the first notebook of lab 04, its cell of the cache, and a file of mybroker."""
    notebook = json.loads(PRISTINE.read_text("utf-8"))
    for cell in notebook["cells"]:
        if source and "".join(cell["source"]).startswith(f"# exercise: {CACHE}\n"):
            cell["source"] = f"# exercise: {CACHE}\n{source}"
    save(notebook, folder / PRISTINE.name)
    (folder / "mybroker").mkdir()
    write_part(folder / "mybroker" / FILE, CACHE, kept, "kept")
    return folder


def taken(lab: CourseLab, folder: Path) -> Transplant:
    return with_kept(lab, transplant(lab, read_notebook(folder / PRISTINE.name)), kept_files(folder, lab))


def test_a_file_is_the_answer_where_the_notebook_has_none(lab: CourseLab, tmp_path: Path) -> None:
    found = taken(lab, handed_in(tmp_path / "anna"))
    assert list(found.answers) == [CACHE] and OWN in found.answers[CACHE] and CACHE not in found.untouched
    assert [note.text for note in found.notes] == [f"{CACHE}: mybroker/{FILE} was judged: the notebook has no answer"]


def test_an_answer_in_the_notebook_counts(lab: CourseLab, tmp_path: Path) -> None:
    found = taken(lab, handed_in(tmp_path / "anna", "class MyProcessQueue:\n    mine = 1\n"))
    assert "mine" in found.answers[CACHE] and found.notes == ()


def test_what_was_filled_in_is_nobodys_answer(lab: CourseLab, tmp_path: Path) -> None:
    folder = handed_in(tmp_path / "anna")
    write_part(folder / "mybroker" / FILE, CACHE, OWN_PARTS["process_queue"], FILLED)
    assert taken(lab, folder).answers == {}


def test_a_link_is_not_followed_and_bytes_that_are_no_text_are_named(lab: CourseLab, tmp_path: Path) -> None:
    folder = handed_in(tmp_path / "anna")
    path = folder / "mybroker" / FILE
    path.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in taken(lab, folder).notes[0].text and taken(lab, folder).answers == {}
    path.unlink()
    path.symlink_to(__file__)
    assert kept_files(folder, lab) == ()


def test_files_belong_to_the_student_in_whose_folder_they_are(lab: CourseLab, tmp_path: Path) -> None:
    folder = handed_in(tmp_path / "all" / "anna")
    save(json.loads(PRISTINE.read_text("utf-8")), tmp_path / "all" / "boris.ipynb")
    anna, boris = find_submissions(tmp_path / "all", [lab, open_lab(course_folder(), "00")])[::2]
    assert (anna.student, anna.kept) == ("anna", (folder / "mybroker" / FILE,)) and boris.kept == ()


@pytest.mark.long
def test_a_broker_of_files_has_full_points_without_a_word_in_the_notebooks(walls: object, tmp_path: Path) -> None:
    anna, notebooks = tmp_path / "all" / "anna", sorted((course_folder() / "labs").glob("16*.ipynb"))
    for notebook in notebooks:
        save(notebook.read_bytes(), anna / notebook.name)
    (anna / "mybroker").mkdir()
    for asked, kind in ANSWERS.items():
        if asked.startswith("lab16."):
            broker = rocketmq_shape if kind.file == "handlers" else of_files
            text = inspect.getsource(broker).replace(
                "from tests.lab.parts.brokers.rocketmq_shape import HANDLERS\n", ""
            )
            write_part(anna / "mybroker" / f"{kind.file}.py", asked, text.replace('"HANDLERS", ', ""), "kept")
    done = CliRunner().invoke(main, ["grade", str(tmp_path / "all"), "--lab", "16", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "out" / "records" / "anna.lab16.json").read_text("utf-8"))
    states = {one["id"]: one["state"] for one in record["exercises"]}
    assert {states[asked] for asked in ANSWERS if asked.startswith("lab16.")} == {"passed"}

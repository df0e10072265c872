"""Names and files as other programs write them, and work that was begun in more than one place."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.grading.judging.verdict import GRADED, PASSED, ExerciseResult, GradeRecord
from mqlab.course.grading.reports import statistics
from mqlab.course.grading.reports.course_sheet import filled
from mqlab.course.grading.submissions import notebook_file
from mqlab.course.grading.submissions.finding import find_submissions, read_roster, student_of
from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab
from mqlab.course.grading.submissions.notebook_file import NotANotebook, parse_notebook, read_notebook
from mqlab.course.grading.submissions.rebuild import transplant
from tests.course.grading.course import RIGHT, save, untouched, with_answers

NFC, NFD = (unicodedata.normalize(form, "Zoë Müller") for form in ("NFC", "NFD"))


@pytest.fixture
def lab(course: Path) -> CourseLab:
    return open_lab(course, "99")


def test_cells_of_a_sheet_keep_their_line_ends(tmp_path: Path) -> None:
    head = ["Identifier", "Full name", "Grade", "Feedback comments"]
    rows = [
        ["Participant 11", "Ann Ek", "", "<p>Good.</p>\n<p>See me</p>"],
        ["Participant 12", NFC, "", "one\u2028two"],
    ]
    text = io.StringIO()
    csv.writer(text).writerows([head, *rows])
    sheet = save(text.getvalue(), tmp_path / "Grades.csv")
    result = ExerciseResult("lab99.total", "Add up", 3, PASSED)
    made, lost = filled(sheet, [GradeRecord(one, "lab99", GRADED, exercises=(result,)) for one in ("Ann Ek 11", NFD)])
    back = list(csv.reader(io.StringIO(made, newline="")))
    assert lost == [] and back == [head, *([*row[:2], "3", row[3]] for row in rows)]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_roster_may_be_separated_as_excel_does_it(mark: str, encoding: str, tmp_path: Path) -> None:
    text = f"Name{mark}Email\r\nNodira K{mark}n@x\r\n{NFD}{mark}z@x\r\n"
    assert read_roster(save(text.encode(encoding), tmp_path / "class.csv")) == ["Nodira K", NFC]


def test_a_name_is_one_name_however_its_accents_are_spelled(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / NFD / "99-tiny.ipynb")
    (one,) = find_submissions(tmp_path, [lab], [NFC])
    assert one.student == NFC and one.path is not None


@pytest.mark.parametrize("file", ["99-tiny.ipynb", "my work (final).ipynb", "Lab.IPYNB"])
def test_moodles_flat_downloads_are_named_by_student(file: str, lab: CourseLab, course: Path, tmp_path: Path) -> None:
    name = f"Ann Ek_4711_assignsubmission_file_{file}"
    save(untouched(course), tmp_path / name)
    (one,) = find_submissions(tmp_path, [lab])
    assert student_of(name) == one.student == "Ann Ek 4711" and one.path == tmp_path / name


def test_an_ending_in_capitals_is_an_ending(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(untouched(course), tmp_path / "anna.IPYNB")
    save(untouched(course), tmp_path / "boris" / "X.IPYNB")
    assert [(one.student, one.path is not None) for one in find_submissions(tmp_path, [lab])] == [
        ("anna", True),
        ("boris", True),
    ]


def test_negative_numbers_of_the_class_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    one = statistics.Difficulty(*[None] * len(dataclasses.fields(statistics.Difficulty)))  # type: ignore[arg-type]
    one = dataclasses.replace(one, exercise="lab99.total", students=3, solved=0.5, mean=0.5, tells_apart=-0.25)
    monkeypatch.setattr(statistics, "difficulties", lambda _: [one])
    monkeypatch.setattr(statistics, "_by_lab", lambda _: [("lab99", [])])
    assert '"-0.25"' in statistics.csv_text([])


def test_an_untouched_copy_never_beats_begun_work(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    worked = with_answers(untouched(course), RIGHT)
    save(worked, tmp_path / "anna" / "99-tiny-Copy1.ipynb")
    save(untouched(course), tmp_path / "anna" / "99-tiny.ipynb")
    save(untouched(course), tmp_path / "anna" / "99-tiny-2026-03-05.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    assert one.name == "anna/99-tiny-Copy1.ipynb" and "99-tiny-Copy1.ipynb was judged" in one.note


def test_work_that_was_begun_in_two_copies_is_judged_together(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    for name, source in RIGHT.items():
        save(with_answers(untouched(course), {name: source}), tmp_path / "anna" / f"99-tiny-{name[6:]}.ipynb")
    (one,) = find_submissions(tmp_path, [lab])
    assert len(one.files) == 2 and "with what was begun only in 99-tiny-box.ipynb" in one.note


def cells_with(course: Path, source: str, original: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    notebook = untouched(course)
    (cell,) = [cell for cell in notebook["cells"] if cell["id"] == "lab99-total"]
    if original is not None:
        cell["source"] = original
    second = copy.deepcopy(cell) | {"id": "another", "source": source}
    notebook["cells"].insert(notebook["cells"].index(cell) + 1, second)
    return notebook, second


def test_an_untouched_cell_never_beats_a_begun_one(lab: CourseLab, course: Path) -> None:
    notebook, second = cells_with(course, f"# exercise: lab99.total\n{RIGHT['lab99.total']}")
    taken = transplant(lab, parse_notebook(json.dumps(notebook).encode()))
    assert taken.answers["lab99.total"] == second["source"]
    assert [note.text for note in taken.notes] == ["lab99.total: 2 answer cells; a begun one was judged"]


@pytest.mark.parametrize(
    "helper",
    [
        "twice = lambda x: 2 * x",
        "Pair = collections.namedtuple('Pair', 'a b')",
        "def twice(x):\n    return 2 * x",
        "twice = functools.partial(pow, 2)",
        "twice = functools.lru_cache()(len)",
    ],
)
@pytest.mark.parametrize("place", ["added", "changed"])
def test_helpers_of_any_kind_count_in_any_cell(lab: CourseLab, course: Path, helper: str, place: str) -> None:
    notebook = untouched(course)
    if place == "changed":
        notebook["cells"][1]["source"] = f"print(1)\n{helper}"
    else:
        notebook["cells"].append({"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "source": helper})
    text = "\n".join(transplant(lab, parse_notebook(json.dumps(notebook).encode())).set_up)
    assert helper.splitlines()[0] in text and "print" not in text


def test_a_pasted_photo_does_not_make_a_notebook_malformed(lab: CourseLab, course: Path) -> None:
    notebook = with_answers(untouched(course), RIGHT)
    photo = f"![me](data:image/png;base64,{'QUJD' * 1_000_000})"
    notebook["cells"].append({"cell_type": "markdown", "id": "photo", "metadata": {}, "source": photo})
    assert len(transplant(lab, parse_notebook(json.dumps(notebook).encode())).answers) == 2


def test_photos_that_make_a_file_larger_than_what_is_read_are_left_out(
    lab: CourseLab, course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_file, "MAX_READ_BYTES", 2 << 20)
    notebook = with_answers(untouched(course), RIGHT)
    photo = "QUJD" * 300_000
    attached = {"photo.jpg": {"image/jpeg": photo}}
    cell = {"cell_type": "markdown", "id": "photo", "metadata": {}, "source": "né ![](attachment:photo.jpg)"}
    pasted = {**cell, "id": "pasted", "source": f"![me](data:image/png;base64,{photo})"}
    drawn = {"output_type": "display_data", "metadata": {}, "data": {"image/png": ("QUJD" * 19 + "\n") * 13_000}}
    code = {"cell_type": "code", "id": "drawn", "metadata": {}, "source": "draw()", "outputs": [drawn]}
    notebook["cells"] += [{**cell, "attachments": attached}, pasted, code]
    path = tmp_path / "99-tiny.ipynb"
    path.write_text(json.dumps(notebook), "utf-8")
    assert path.stat().st_size > notebook_file.MAX_READ_BYTES
    seen = read_notebook(path)
    assert len(transplant(lab, seen).answers) == 2 and seen.cells[-3].source == "né ![](attachment:photo.jpg)"
    path.write_text(json.dumps({"cells": [{**cell, "source": "n. " * 700_000}]}), "utf-8")
    with pytest.raises(NotANotebook, match="without its pictures it is larger than 2 MB") as refused:
        read_notebook(path)
    assert "remove pasted pictures" in str(refused.value)


# split cells, and answers in cells of their own


HEAD = "# exercise: lab99.total\ndef total(numbers):\n    found = 0"
REST = "    for number in numbers:\n        found += number\n    return found"
SPLITS = {
    "within the function": (HEAD, REST),
    "after an import": ("# exercise: lab99.total\nimport math", "def total(numbers):\n    return math.fsum(numbers)"),
    "before a helper's end": ("# exercise: lab99.total\ndef plus(a, b):", "    return a + b\ndef total(numbers): ..."),
}


@pytest.mark.parametrize("ids", ["both", "the first", "the second", "none"])
@pytest.mark.parametrize("halves", SPLITS.values(), ids=SPLITS)
def test_the_halves_of_a_split_cell_are_judged_as_one(
    lab: CourseLab, course: Path, halves: tuple[str, str], ids: str
) -> None:
    notebook, second = cells_with(course, halves[1], halves[0])
    (first,) = [cell for cell in notebook["cells"] if cell["id"] == "lab99-total"]
    second["metadata"] = copy.deepcopy(first["metadata"])
    for cell, other in ((first, "the second"), (second, "the first")):
        if ids in (other, "none"):
            cell["id"], cell["metadata"] = f"new-{other[4:]}", {}
    taken = transplant(lab, parse_notebook(json.dumps(notebook).encode()))
    assert taken.answers["lab99.total"] == "\n".join(halves)
    assert [note.text for note in taken.notes] == ["lab99.total: 2 cells in a row were judged as one answer"]


def test_an_added_cell_after_a_whole_answer_stays_a_cell_of_its_own(lab: CourseLab, course: Path) -> None:
    notebook, second = cells_with(course, "print(total([1, 2]))", f"# exercise: lab99.total\n{RIGHT['lab99.total']}")
    second["metadata"] = {}
    taken = transplant(lab, parse_notebook(json.dumps(notebook).encode()))
    assert "print" not in taken.answers["lab99.total"] and taken.notes == ()


@pytest.mark.parametrize("starter", ["stays", "is gone"])
def test_an_answer_in_a_cell_without_a_mark_counts(lab: CourseLab, course: Path, starter: str) -> None:
    notebook, second = cells_with(course, RIGHT["lab99.total"])
    second["metadata"] = {}
    if starter == "is gone":
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] != "lab99-total"]
    taken = transplant(lab, parse_notebook(json.dumps(notebook).encode()))
    assert taken.answers == {"lab99.total": RIGHT["lab99.total"]}
    assert [note.kind for note in taken.notes] == ["unmarked"]


def test_of_two_begun_cells_the_one_that_defines_the_name_counts(lab: CourseLab, course: Path) -> None:
    answer = f"# exercise: lab99.total\n{RIGHT['lab99.total']}"
    notebook, _ = cells_with(course, answer, "# exercise: lab99.total\nprint('try this later')")
    taken = transplant(lab, parse_notebook(json.dumps(notebook).encode()))
    assert taken.answers["lab99.total"] == answer


# files that are not opened


def test_files_that_were_not_opened_are_named(lab: CourseLab, course: Path, tmp_path: Path) -> None:
    save(with_answers(untouched(course), RIGHT), tmp_path / "anna" / "99-tiny.ipynb")
    save(b"PK", tmp_path / "anna" / "more" / "answers.zip")
    save(b"PK", tmp_path / "boris.zip")
    save(b"x", tmp_path / "Cem Ek_4711_assignsubmission_file_report.docx")
    save(b"x", tmp_path / "dina_12_34_answers.py")
    save("a,b", tmp_path / "roster.csv")
    found = {one.student: one for one in find_submissions(tmp_path, [lab])}
    assert sorted(found) == ["Cem Ek 4711", "anna", "boris", "dina 12"]
    assert found["anna"].path is not None
    closed = "not opened, because not a notebook: "
    assert {name: one.note.removeprefix(closed) for name, one in found.items()} == {
        "Cem Ek 4711": "Cem Ek_4711_assignsubmission_file_report.docx",
        "anna": "anna/more/answers.zip",
        "boris": "boris.zip",
        "dina 12": "dina_12_34_answers.py",
    }


@pytest.mark.parametrize("name", ["99-tiny-Copy1.ipynb", "mine.ipynb"])
def test_a_copy_that_cannot_be_read_is_named_with_the_reason(
    name: str, lab: CourseLab, course: Path, tmp_path: Path
) -> None:
    save(with_answers(untouched(course), RIGHT), tmp_path / "anna" / "99-tiny.ipynb")
    save("{", tmp_path / "anna" / name)
    (one,) = find_submissions(tmp_path, [lab])
    assert one.name == "anna/99-tiny.ipynb" and f"anna/{name} cannot be read: it is not JSON" in one.note

"""Parts of a broker that are handed in as files: ``mybroker/store.py`` next to the notebooks is an answer, too.

    SUBMISSIONS/anna/16a-a-log-and-its-queues.ipynb     the cell of lab16.store has an answer: that is judged
    SUBMISSIONS/anna/mybroker/store.py                  it has none: the file is

What ``mybroker.fill`` has written is not an answer. Links are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mqlab.course.grading.judging.verdict import Note
from mqlab.course.grading.submissions.lab_files import CourseLab
from mqlab.course.grading.submissions.rebuild import Transplant
from mqlab.course.teach.keeping import is_filled
from mqlab.lab.parts import ANSWERS, FOLDER

MOST_BYTES = 1 << 18


def kept_files(folder: Path, lab: CourseLab) -> tuple[Path, ...]:
    """The files in a student's folder, or one below it, that may be answers of a lab, one for each exercise."""
    wanted = {f"{ANSWERS[asked.id].file}.py" for asked in lab.exercises if asked.id in ANSWERS}
    files: dict[str, Path] = {}
    files_there = (*folder.glob(f"{FOLDER}/*.py"), *folder.glob(f"*/{FOLDER}/*.py")) if wanted else ()
    for path in sorted(files_there):
        if path.name in wanted and path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES:
            files.setdefault(path.name, path)
    return tuple(files.values())


def with_kept(lab: CourseLab, taken: Transplant, files: Iterable[Path]) -> Transplant:
    """What was taken from a submission, with its files as the answers that its notebooks do not have."""
    by_name = {path.name: path for path in files}
    for asked in lab.exercises:
        path = by_name.get(f"{ANSWERS[asked.id].file}.py") if asked.id in ANSWERS else None
        if path is None or asked.id in taken.answers:
            continue
        name, how = f"{FOLDER}/{path.name}", "was judged: the notebook has no answer"
        try:
            text = "" if is_filled(path) else path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            text, how = "", f"cannot be read: {error}"
        if text:
            taken = replace(
                taken,
                answers={**taken.answers, asked.id: f"# exercise: {asked.id}\n{text}"},
                untouched=tuple(other for other in taken.untouched if other != asked.id),
                missing=tuple(other for other in taken.missing if other != asked.id),
            )
        if text or "cannot" in how:
            taken = replace(taken, notes=(*taken.notes, Note("files", f"{asked.id}: {name} {how}")))
    return taken

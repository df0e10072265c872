"""Grades a class: every submission gets a record, in any order, on several processors, and again after an interruption.

What ``mqlab grade`` calls.

    OUT/records/anna.lab01.json   one per submission, written atomically; the only state there is
    OUT/grades.csv ..             made of the records (mqlab.course.grading.reports)
    OUT/seed                      the class's seed

All of it is for its owner's eyes only (modes 0700 and 0600).
A record carries a fingerprint of all it depends on: the submission, the lab, the hidden cases, the seed, the sandbox.
With ``resume`` a record with the right fingerprint is kept, unless something in it could not be judged.
Records are not meant to be changed by hand: write a column of your own into the CSV.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mqlab
from mqlab.course.grading.judging.verdict import KERNEL_DIED, MALFORMED, MISSING, TAMPERED, TIMEOUT, GradeRecord, Note
from mqlab.course.grading.running.copies import Copies, Copy
from mqlab.course.grading.running.execute import (
    GRACE_SECONDS,
    GradingOrder,
    remove_left_behind,
    without_answers,
    write_record,
)
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.finding import Submission, readable
from mqlab.course.grading.submissions.lab_files import CourseLab
from mqlab.course.grading.submissions.notebook_file import MAX_FILE_BYTES
from mqlab.errors import UsageError

MARK = "gradebook.json"
SEED_FILE = "seed"
SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
LONGEST_NAME = 40
DEFAULT_SECONDS = 3_600.0
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class GradingPlan:
    """How a class is graded."""

    course: Path
    out: Path
    seed: str
    sandbox: Sandbox
    jobs: int = 1
    resume: bool = False
    hidden: bool = True
    seconds: float = DEFAULT_SECONDS
    own: Callable[[str], str] | None = None  # student -> what the student's own cases are made from


def open_gradebook(out: Path) -> None:
    """Create the folder of the results, or continue with it. UsageError for a folder with other content."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file", hint="give a folder for the results")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise UsageError(
            f"{out} is not empty, and what it holds was not made by mqlab grade", hint="give a new or an empty folder"
        )
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_folder(out / "records")
    (out / MARK).write_text('{"made_by": "mqlab grade"}\n', "utf-8")


def is_gradebook(out: Path) -> bool:
    """Whether a folder holds results of ``mqlab grade``."""
    return (out / MARK).is_file()


def class_seed(out: Path, wanted: str | None = None) -> str:
    """The seed that a class is graded with: the one asked for, else the one kept in ``out``, else a random one.

    It is kept for the next run into the same folder, in a file that only its owner can read.
    """
    file = out / SEED_FILE
    seed = wanted
    if seed is None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            seed = file.read_text("utf-8").strip()
    seed = seed or secrets.token_hex(8)
    write_private(file, f"{seed}\n")
    return seed


def private_folder(path: Path) -> None:
    """Make a folder that only its owner can enter, whatever its rights were before."""
    path.mkdir(exist_ok=True)
    path.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whatever its rights were before."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text.encode("utf-8", "backslashreplace"))


class Grader:
    """Grades submissions by a plan; ``stop`` ends the running ones."""

    def __init__(self, plan: GradingPlan, labs: Sequence[CourseLab]) -> None:
        self.plan = plan
        self._labs = {lab.number: lab for lab in labs}
        self._copies = Copies()
        self._running: set[Copy] = set()
        self._stopped = False

    def grade(self, submissions: Sequence[Submission]) -> Iterator[GradeRecord]:
        """One record per submission, in the order in which they are ready; kept records come first."""
        # 1. With --resume, a record with the same fingerprint is still valid, unless something was not judged.
        remove_left_behind()
        left: list[tuple[Submission, str]] = []
        for submission in submissions:
            mark = fingerprint(self.plan, self._labs[submission.lab], submission)
            kept = read_record(record_path(self.plan.out, submission)) if self.plan.resume else None
            if kept is not None and kept.fingerprint == mark and not kept.not_judged:
                yield kept
            else:
                left.append((submission, mark))
        # 2. Grade the others. A thread only waits for its process, so threads are enough.
        with ThreadPoolExecutor(max_workers=self.plan.jobs) as pool:
            waiting = [pool.submit(self._grade_one, submission, mark) for submission, mark in left]
            try:
                for done in as_completed(waiting):
                    yield done.result()
            except BaseException:
                self.stop()
                raise
            finally:
                self._copies.close()

    def stop(self) -> None:
        """End the running submissions and start no more. Finished records are kept."""
        self._stopped = True
        for copy in list(self._running):
            copy.kill()

    def _grade_one(self, submission: Submission, mark: str) -> GradeRecord:
        plan, lab = self.plan, self._labs[submission.lab]
        # 1. Remove the old record first: after an interruption there is no record rather than a wrong one.
        path = record_path(plan.out, submission)
        path.unlink(missing_ok=True)
        unfit = {file: reason for file in submission.files if (reason := _unfit(file)) is not None}
        fit = [str(file) for file in submission.files if file not in unfit]
        order = GradingOrder(
            student=submission.student,
            file=submission.name,
            submission=fit[0] if fit else "",
            course=str(plan.course),
            lab=lab.number,
            seed=plan.seed,
            sandbox=plan.sandbox,
            hidden=plan.hidden,
            seconds=plan.seconds,
            fingerprint=mark,
            other_parts=tuple(fit[1:]),
            kept=tuple(map(str, submission.kept)),
            own=_own(plan, submission),
        )
        # 2. A process of its own grades it, and writes the record even if it runs out of time.
        if not fit:
            missing = MISSING, submission.note or "nothing was handed in"
            record = without_answers(order, lab, *next(iter(unfit.values()), missing))
        else:
            trouble = self._in_a_process(order, path)
            record = read_record(path) or without_answers(order, lab, *trouble)
        # 3. A stopped process may have written a record about its own death: it is not the submission's.
        if self._stopped:
            path.unlink(missing_ok=True)
            raise Stopped
        record = _with_unfit_parts(record, unfit) if fit else record
        if submission.note:
            record = replace(record, notes=(*record.notes, Note("files", submission.note)))
        write_record(record, path)
        return record

    def _in_a_process(self, order: GradingOrder, record: Path) -> tuple[str, str]:
        """Run ``execute`` on an order, in a process of its own. Returns why, in case there is no record."""
        if self._stopped:
            raise Stopped
        line = json.dumps({**asdict(order), "record": str(record)}).encode() + b"\n"
        # The pipe carries the order, so that the seed is not on disk. When it closes, the process knows that we ended.
        copy = self._copies.make()
        self._running.add(copy)
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended already; its last word gives the reason below
                copy.orders.write(line)
                copy.orders.flush()
            code = copy.wait(order.seconds + 2 * GRACE_SECONDS)
            last = copy.last_word() or "no message"
        except TimeoutError:
            return TIMEOUT, "grading the whole notebook took too long"
        finally:
            self._running.discard(copy)
            copy.kill()
            copy.close()
        return KERNEL_DIED, f"the grading process ended with exit code {code}: {last}"


class Stopped(Exception):
    """Grading was interrupted before this submission had its record."""


def record_path(out: Path, submission: Submission) -> Path:
    """The path of a submission's record: a name that any file system accepts and that no two students share."""
    return out / "records" / f"{file_name(submission.student)}.lab{submission.lab}.json"


def file_name(student: str) -> str:
    """A student's name as a file name; different names stay different, even if the file system ignores case.

    >>> file_name("anna"), file_name("../anna"), file_name("Анна")[:5], file_name("a b") == file_name("a_b")
    ('anna', '.._anna~ec02c724', 'Анна~', False)
    """
    if student and len(student) <= LONGEST_NAME and set(student) <= SAFE and not student.startswith("."):
        return student
    shown = "".join(letter if letter in SAFE or letter.isalnum() else "_" for letter in student)
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{unicodedata.normalize('NFC', shown)[:LONGEST_NAME]}~{digest[:8]}"


def read_record(path: Path) -> GradeRecord | None:
    """The record in a file; None if the file is missing or damaged."""
    try:
        return GradeRecord.from_json(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def read_records(out: Path) -> list[GradeRecord]:
    """All records of a folder that can be read, in the order of their files."""
    records = (read_record(path) for path in sorted((out / "records").glob("*.json")))
    return [record for record in records if record is not None]


def fingerprint(plan: GradingPlan, lab: CourseLab, submission: Submission) -> str:
    """A digest of all that a record depends on."""
    digest = hashlib.sha256()
    # Not where folders are: a class that was moved is the same class.
    sandbox = plan.sandbox.level, asdict(plan.sandbox.limits), len(plan.sandbox.readable)
    facts = [mqlab.__version__, lab.id, plan.seed, plan.hidden, plan.seconds, submission.note, sandbox]
    digest.update(json.dumps(facts, sort_keys=True, default=str).encode())
    digest.update(_own(plan, submission).encode())
    digest.update(lab.notebook.data)
    for path in (lab.hidden_file, *_cases_files(lab), *submission.files, *submission.kept):
        digest.update(b"\0")
        for piece in _pieces(path) if path is not None else ():
            digest.update(piece)
    return digest.hexdigest()


def _own(plan: GradingPlan, submission: Submission) -> str:
    return plan.own(submission.student) if plan.own is not None else ""


def _cases_files(lab: CourseLab) -> list[Path]:
    """The modules that make and judge a lab's cases: lab01/manifest.py, lab01/judges.py …, and what labs share.

    A course's own lab may be modules of its name (lab20.py, lab20_judges.py) instead of a folder.
    """
    package = Path(mqlab.__file__).parent / "course" / "cases"
    folder = lab.cases_folder or package
    name = lab.manifest_id
    return sorted({*folder.glob(f"{name}*.py"), *(folder / name).rglob("*.py"), *package.glob("*.py")})


def _pieces(path: Path) -> Iterator[bytes]:
    """A file's content in pieces. A file that is too large to be a notebook is represented by its size."""
    try:
        if path.is_symlink():
            yield b"link " + os.fsencode(os.readlink(path))
        elif not path.is_file():
            yield b"other"
        elif (size := path.stat().st_size) > MAX_FILE_BYTES:
            yield f"{size} bytes".encode()
        else:
            with open(path, "rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
    except OSError:
        yield b"unreadable"


def _unfit(path: Path) -> tuple[str, str] | None:
    """The status and the reason of a file that is not even opened; None for an ordinary file."""
    if path.is_symlink():
        return TAMPERED, f"it is a link to {os.readlink(path)}, which was not followed"
    if not path.is_file():
        return MALFORMED, "it is not a regular file"
    return None


def _with_unfit_parts(record: GradeRecord, unfit: dict[Path, tuple[str, str]]) -> GradeRecord:
    """The record of a submission of which some parts' files were not opened; a link among them is a grave matter."""
    for path, (status, reason) in unfit.items():
        note = Note("files", readable(f"{path.name}: {reason}"), grave=status == TAMPERED)
        record = replace(record, notes=(*record.notes, note))
        if note.grave:
            record = replace(record, status=TAMPERED, reason=note.text)
    return record

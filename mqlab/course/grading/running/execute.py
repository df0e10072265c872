"""Grades one submission in a process of its own: read, transplant, run, and write the record.

mqlab.course.grading.running.gradebook has one per submission, made by mqlab.course.grading.running.copies.

    order, a line of standard input  {course lab submission student seed sandbox hidden seconds record}
      └▶ read_notebook ─▶ transplant ─▶ rebuilt notebook + job in a scratch folder ─▶ nbval ─▶ record.json

A watchdog writes the record "timeout" when everything together takes too long. When the process that ordered it is
gone, killed perhaps, this one ends without a record: a resumed run grades the submission again. Order and job hold the
class's seed, so they pass through pipes and are on no disk.
It knows nothing of the other submissions.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mqlab.course.grading.judging.verdict import (
    GRADED,
    HIDDEN,
    KERNEL_DIED,
    MALFORMED,
    MISSING,
    NOT_JUDGED,
    NOT_STARTED,
    PUBLIC,
    STOPPED,
    TAMPERED,
    TIMEOUT,
    CaseResult,
    ExerciseResult,
    GradeRecord,
    Note,
    settle,
)
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.running.kernel_copy import KernelCopy
from mqlab.course.grading.running.nbval_engine import CellRun, Engine, run_notebook
from mqlab.course.grading.sandbox.limits import SPARK
from mqlab.course.grading.sandbox.walled import Sandbox, own_user_id
from mqlab.course.grading.submissions.kept_files import with_kept
from mqlab.course.grading.submissions.lab_files import CourseLab, open_lab
from mqlab.course.grading.submissions.notebook_file import NotANotebook
from mqlab.course.grading.submissions.parts import parts_not_in, together
from mqlab.course.grading.submissions.rebuild import Transplant, rebuilt, transplant
from mqlab.course.grading.submissions.tampering import suspicions
from mqlab.whole_files import whole_file

DEMO_SECONDS = 600.0
START_SECONDS = 600.0
GRACE_SECONDS = 30.0
SCRATCH = "mqlab-grade-"
LEFT_BEHIND = re.compile(rf"{SCRATCH}(\d+)-\w+")


@dataclass(frozen=True, slots=True)
class GradingOrder:
    """What is to be graded and how. Paths are absolute; ``file`` is the submission as the class knows it.

    ``other_parts`` are the notebooks of a lab's further parts. ``own``: what this student's own cases are made from.
    ``kept``: files of ``mybroker`` that were handed in with them.
    """

    student: str
    file: str
    submission: str
    course: str
    lab: str
    seed: str
    sandbox: Sandbox
    hidden: bool
    seconds: float
    fingerprint: str = ""
    other_parts: tuple[str, ...] = ()
    own: str = ""
    kept: tuple[str, ...] = ()


def grade(order: GradingOrder, kernel: KernelCopy | None = None) -> GradeRecord:
    """The record of one submission, whatever its content; ``kernel`` waits to run its notebook, else one is started."""
    began = time.monotonic()
    # 1. Read the submission. A file that is not a notebook gets its record at once.
    lab = open_lab(Path(order.course), order.lab, order.hidden)
    try:
        submission, unread = together(lab, [Path(path) for path in (order.submission, *order.other_parts)])
    except NotANotebook as error:
        return without_answers(order, lab, MALFORMED, error.text)
    # 2. Take the answers out of it; everything else in it is only looked at for signs of tampering.
    taken = with_kept(lab, transplant(lab, submission), map(Path, order.kept))
    notes = [*unread, *taken.notes, *suspicions(lab, submission)]
    # 3. Run the rebuilt notebook. The folder's name has our process id, so that a later run can remove it after a kill.
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
    try:
        runs, trouble = _run(order, lab, taken, scratch, kernel) if taken.answers else ([], "")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    # 4. Turn what the cells reported into results and one status.
    over = f"{order.seconds:g} s" if time.monotonic() - began > order.seconds else ""
    roles = ("check", "hidden") if order.hidden else ("check",)
    results = tuple(_result(lab, taken, runs, exercise.id, roles, over) for exercise in lab.exercises)
    results = tuple(_with_missing_part(lab, parts_not_in(lab, submission), result) for result in results)
    status, reason, more = _status(results, runs, trouble, notes)
    return GradeRecord(
        order.student,
        lab.id,
        status,
        reason,
        order.file,
        results,
        (*notes, *more),
        order.fingerprint,
        round(time.monotonic() - began, 2),
    )


def without_answers(order: GradingOrder, lab: CourseLab, status: str, reason: str) -> GradeRecord:
    """A record in which nothing could be judged: every exercise is missing."""
    results = tuple(ExerciseResult(e.id, e.title, e.points, MISSING, reason) for e in lab.exercises)
    return GradeRecord(order.student, lab.id, status, reason, order.file, results, (), order.fingerprint)


def _run(
    order: GradingOrder, lab: CourseLab, taken: Transplant, scratch: Path, kernel: KernelCopy | None
) -> tuple[list[CellRun], str]:
    # 1. Three folders: files that cases hand to answers, the notebook's own, and the kernel's private ones.
    shared = scratch / "shared"
    for folder in (shared, scratch / "run", scratch / "private"):
        folder.mkdir(mode=0o700)
    if order.sandbox.drops_root:  # the worker runs as another user and must be able to enter these two
        scratch.chmod(0o711)
        shared.chmod(0o755)
    # 2. One worker serves all exercises, so its hard limits are the widest of theirs.
    limits = {answer.exercise.id: answer.limits for answer in lab.answers}
    widest = order.sandbox.limits
    for limit in limits.values():
        widest = widest.widest(limit)
    asks_spark = widest.processes >= SPARK.processes
    sandbox = replace(
        order.sandbox,
        limits=widest,
        handing=str(shared.resolve()),
        user_id=own_user_id(),
    )
    # 3. The job tells the kernel what to judge; the notebook contains calls instead of answers.
    cells = {answer.exercise.id: answer for answer in lab.answers}
    job = Job(
        lab=lab.id,
        seed=order.seed,
        sandbox=sandbox,
        answers={
            name: Answer(source, cells[name].names, limits[name], cells[name].cell.part)
            for name, source in taken.answers.items()
        },
        set_up=taken.set_up,
        later_set_up=taken.later_set_up,
        own=order.own,
        hidden_file=str(lab.hidden_file or "") if order.hidden else "",
        cases_folder=str(lab.cases_folder or ""),
        fresh_workers=not asks_spark,
    )
    job_file, notebook = scratch / "private" / "job.json", scratch / "run" / f"{lab.id}.ipynb"
    notebook.write_text(json.dumps(rebuilt(lab, set(taken.answers), str(job_file), hidden=order.hidden)), "utf-8")
    # 4. Time limits by the role of a cell, then the run itself. The job has the class's seed: it passes through a pipe.
    exercise = widest.clock_times * (widest.total_seconds + widest.lab_seconds) + GRACE_SECONDS
    demo = max(DEMO_SECONDS, widest.clock_times * widest.seconds)  # a Spark lab's own cells start a JVM too
    engine = Engine(
        {"demo": demo, "desk": START_SECONDS, "answer": exercise, "check": exercise, "hidden": exercise},
        time.monotonic() + order.seconds,
    )
    before = dict(os.environ)
    os.environ.update(private_environment(scratch / "private", shared))
    try:
        with handed_over(job_file, json.dumps(job.to_json()).encode()):
            trouble = run_notebook(notebook, engine, kernel)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return engine.runs, trouble


@contextlib.contextmanager
def handed_over(path: Path, data: bytes) -> Iterator[None]:
    """A named pipe that passes data to its reader and leaves nothing on disk."""
    os.mkfifo(path, 0o600)

    def give() -> None:
        with contextlib.suppress(BrokenPipeError), open(path, "wb") as pipe:
            pipe.write(data)

    giver = threading.Thread(target=give, daemon=True)
    giver.start()
    try:
        yield
    finally:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # no process has read: the giver ends all the same
        giver.join()


def remove_left_behind() -> None:
    """Remove the folders of killed runs: those of our name and owner whose process has ended."""
    for entry in os.scandir(tempfile.gettempdir()):
        name = LEFT_BEHIND.fullmatch(entry.name)
        if name is None or not entry.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_uid == os.geteuid() and not _is_running(int(name[1])):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def private_environment(private: Path, shared: Path) -> dict[str, str]:
    """Environment variables that make a kernel write into two folders only, and keep foreign pytest plugins out."""
    return {
        "HOME": str(private),
        "IPYTHONDIR": str(private / "ipython"),
        "JUPYTER_CONFIG_DIR": str(private / "jupyter"),
        "JUPYTER_DATA_DIR": str(private / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(private / "run"),
        "TMPDIR": str(shared),
        "PYTHONHASHSEED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
    }


def _result(
    lab: CourseLab, taken: Transplant, runs: list[CellRun], exercise_id: str, roles: tuple[str, ...], time_over: str
) -> ExerciseResult:
    """The result of an exercise, of the cells of some roles.

    ``time_over`` is the time that the whole notebook had, if it is used up.
    """
    exercise = next(exercise for exercise in lab.exercises if exercise.id == exercise_id)
    head = exercise.id, exercise.title, exercise.points
    # 1. Without an answer there is nothing to judge.
    if exercise_id in taken.missing:
        return ExerciseResult(*head, MISSING, "no answer cell was found")
    if exercise_id in taken.untouched:
        return ExerciseResult(*head, NOT_STARTED, "the answer cell is as it was handed out")
    # 2. The cells' verdicts decide.
    mine = [run for run in runs if run.exercise == exercise_id]
    cases = {kind: _cases(mine, exercise_id, kind) for kind in (PUBLIC, HIDDEN)}
    state, reason = settle(cases[PUBLIC], cases[HIDDEN])
    cause = next((case.cause for case in cases[PUBLIC] + cases[HIDDEN] if case.cause), "")
    # 3. A cell without a verdict was stopped, or the grader failed: never call that passed or failed. What was not run
    #    because the notebook's time is used up is lost: an answer could use it up at will.
    lacking = next((role for role in roles if not any(run.role == role and run.verdicts for run in mine)), "")
    if lacking and state != STOPPED:
        run = next((run for run in mine if run.role == lacking), None)
        late = time_over or (run is not None and run.timed_out)
        state, cause = (STOPPED, "timeout") if late else (NOT_JUDGED, "")
        reason = f"its {lacking} cell gave no result: {(run and run.error) or 'it was not run'}"
        if time_over:
            reason = f"the {time_over} for the whole notebook were over before its {lacking} cell gave a result"
    source = taken.answers.get(exercise_id, "")
    return ExerciseResult(*head, state, reason, tuple(cases[PUBLIC] + cases[HIDDEN]), source, cause)


def _with_missing_part(lab: CourseLab, parts: set[str], result: ExerciseResult) -> ExerciseResult:
    """The result of an exercise; where the notebook of its part was not handed in, that is the reason."""
    part = next(answer.cell.part for answer in lab.answers if answer.exercise.id == result.id)
    missing = result.state == MISSING and part in parts
    return replace(result, reason=f"the notebook of part {part} was not handed in") if missing else result


def _cases(runs: list[CellRun], exercise_id: str, kind: str) -> list[CaseResult]:
    return [
        CaseResult(**case)
        for run in runs
        for verdict in run.verdicts
        if verdict["exercise"] == exercise_id and verdict["kind"] == kind
        for case in verdict["cases"]
    ]


def _status(
    results: tuple[ExerciseResult, ...], runs: list[CellRun], trouble: str, notes: list[Note]
) -> tuple[str, str, list[Note]]:
    more = [Note("demonstration", f"a cell of the lab failed: {r.error}") for r in runs if r.role == "demo" and r.error]
    stopped = {result.cause: result.reason for result in reversed(results) if result.state == STOPPED}
    grave = [note.text for note in notes if note.grave]
    # Several states may apply; the first one in this order counts.
    if any(run.kernel_died for run in runs) or trouble:
        return KERNEL_DIED, trouble or "the kernel in which the checks run has crashed", more
    if "garbled" in stopped or grave:
        return TAMPERED, stopped.get("garbled") or grave[0], more
    if "died" in stopped:
        return KERNEL_DIED, stopped["died"], more
    if stopped or any(run.timed_out for run in runs):
        return TIMEOUT, next(iter(stopped.values()), "a cell took too long"), more
    own = [result for result in results if result.state == NOT_JUDGED]
    return GRADED, f"{own[0].id} was not judged: {own[0].reason}" if own else "", more


def watchdog(order: GradingOrder, record_file: Path) -> threading.Timer:
    """End this process, with a record, when everything together takes too long."""

    def bark() -> None:
        lab = open_lab(Path(order.course), order.lab, order.hidden)
        record = without_answers(order, lab, TIMEOUT, f"grading the whole notebook took more than {order.seconds:g} s")
        write_record(record, record_file)
        os._exit(1)

    timer = threading.Timer(order.seconds + GRACE_SECONDS, bark)
    timer.daemon = True
    timer.start()
    return timer


def end_with_the_orderer() -> None:
    """End this process and all that it started when the process at the other end of its standard input is gone."""

    def listen() -> None:
        while os.read(0, 1):
            pass
        # The whole group, because the kernel and its workers would go on otherwise.
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()


def write_record(record: GradeRecord, path: Path) -> None:
    """Write a record atomically; only its owner can read it."""
    text = json.dumps(record.to_json(), indent=1, ensure_ascii=False) + "\n"
    with whole_file(path) as draft:
        draft.touch(mode=0o600)
        draft.write_bytes(text.encode("utf-8", "backslashreplace"))  # half a character stays one, as a JSON escape


def read_order(line: bytes) -> tuple[GradingOrder, Path]:
    """The order on a line of JSON, and the path of its record."""
    data: dict[str, Any] = json.loads(line)
    record = Path(data.pop("record"))
    data |= {"sandbox": Sandbox.from_json(data["sandbox"]), "other_parts": tuple(data["other_parts"])}
    data["kept"] = tuple(data["kept"])
    return GradingOrder(**data), record


def main(kernel: KernelCopy | None = None) -> None:
    """Grade the submission of the order on standard input."""
    order, record_file = read_order(sys.stdin.buffer.readline())
    watchdog(order, record_file)
    end_with_the_orderer()
    write_record(grade(order, kernel), record_file)


if __name__ == "__main__":
    main()

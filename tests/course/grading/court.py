"""The judge of one exercise, for many answers: behind the wall, or in copies of this process without walls.

Behind the wall every answer that dies needs a process of its own, with a third of a second of imports. Without walls
the same worker answers the same lines in this process: the judge is the same, what crosses is the same, and so is the
verdict. What answers do to the process, only a copy of it suffers. These differ:

    mqlab is whole: what an exercise forbids is there        a life of an answer is its cells run again, so what it
    hash() of a text differs from run to run                 keeps outside its own cells survives
"""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import os
import pickle
import selectors
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from mqlab.course.grading.judging import desk
from mqlab.course.grading.judging.cases import judge
from mqlab.course.grading.judging.verdict import HIDDEN, PUBLIC, CaseResult
from mqlab.course.grading.running.job import Answer, Job
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.running.meter import Meter
from mqlab.course.grading.running.process_copy import copied
from mqlab.course.grading.sandbox.values import dump_line, load_line
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.sandbox.worker import Worker
from mqlab.course.grading.submissions.lab_files import CourseLab
from mqlab.course.grading.submissions.rebuild import transplant
from mqlab.course.teach.exercises import Case, Exercise
from mqlab.course.teach.lives import hash_in_process
from mqlab.lab.runtime import line_watch

Enough = Callable[[list[CaseResult]], bool]
COPY_SECONDS = 600
"""For the answers of one copy, on a busy machine."""


def judge_of(lab: CourseLab, sources: dict[str, str], sandbox: Sandbox) -> Judge:
    """A judge for some answers, as the trusted kernel would open it."""
    cells = {answer.exercise.id: answer for answer in lab.answers}
    taken = transplant(lab, lab.notebook)
    answers = {
        one: Answer(source, cells[one].names, sandbox.limits, cells[one].cell.part) for one, source in sources.items()
    }
    job = Job(
        lab.id,
        "autumn",
        sandbox,
        answers,
        taken.set_up,
        hidden_file=str(lab.hidden_file or ""),
        later_set_up=taken.later_set_up,
    )
    return Judge(job)


class Court:
    """The judge of one exercise: the lab's own cells are run once, and values are made once, for all its answers."""

    def __init__(self, exercise: Exercise, lab: CourseLab, sandbox: Sandbox) -> None:
        self._exercise = exercise
        self._judge = judge_of(lab, {exercise.id: ""}, sandbox)
        self._judge.give(exercise.id, {})
        first, *others = ((HIDDEN, case) for case in self._judge.hidden_cases(exercise))
        # Most answers lose the first with all their words.
        self._cases: list[tuple[str, Case]] = [first, *((PUBLIC, case) for case in exercise.public_cases()), *others]

    def results(self, source: str) -> Iterator[CaseResult]:
        """The results of an answer's cases, a hidden one first; each is judged when it is asked for."""
        one, answers = self._exercise.id, self._judge.job.answers
        answers[one] = replace(answers[one], source=source)
        self._judge.give(one, {})
        given = self._judge.answers[one]
        for kind, case in self._cases:
            yield from judge([case], given, kind)

    def close(self) -> None:
        self._judge.desk.close()


class OpenCourt(Court):
    """A court without walls: answers are judged in a copy of this process, with the cases that are ready in it.

    A copy takes a thirtieth of a second, as long as many an answer, so the answers of an exercise can share one: behind
    the wall they share a worker, too.
    """

    def __init__(self, exercise: Exercise, lab: CourseLab, sandbox: Sandbox) -> None:
        with without_walls():
            super().__init__(exercise, lab, sandbox)
        self._ready = 0
        self._make_ready(1)
        self._begun: dict[str, list[CaseResult]] = {}

    def _make_ready(self, count: int) -> None:
        for _, case in self._cases[self._ready : count]:
            case.prepare()
        self._ready = max(self._ready, min(count, len(self._cases)))

    def begin_together(self, asked: Sequence[tuple[str, Enough]]) -> None:
        """Judge some answers in one copy, as far as cases are ready. What ends it is met when each is judged alone."""
        with contextlib.suppress(AssertionError), without_walls():
            found = in_a_copy(lambda: [self._judged(source, enough) for source, enough in asked])
            self._begun = {source: results for (source, _), results in zip(asked, found, strict=True)}

    def results_until(self, source: str, enough: Enough) -> list[CaseResult]:
        """The results up to where they are enough."""
        found = self._begun.pop(source, [])
        while not enough(found) and len(found) < len(self._cases):
            # A case that is made here is ready in all later copies; made in a copy it would be lost with it. The next
            # copy judges all of them, so each time twice as many are ready.
            if len(found) == self._ready:
                self._make_ready(2 * self._ready)
            with without_walls():
                found = in_a_copy(lambda: self._judged(source, enough))
        return found

    def _judged(self, source: str, enough: Enough) -> list[CaseResult]:
        found: list[CaseResult] = []
        for result in itertools.islice(self.results(source), self._ready):
            found.append(result)
            if enough(found):
                break
        return found


@contextlib.contextmanager
def without_walls() -> Iterator[None]:
    """Inside it, desks start their workers in this process; the lines that stand for the wall are not an answer's."""
    main = sys.modules["__main__"]
    with (
        mock.patch.object(desk, "AnswerProcess", AnswersHere),
        mock.patch.object(line_watch, "_OTHERS_CODE", (*line_watch._OTHERS_CODE, __file__)),
    ):
        yield
    sys.modules["__main__"] = main


class AnswersHere:
    """In the place of an AnswerProcess: a worker that is called instead of written to."""

    def __init__(self, sandbox: Sandbox, forbids: tuple[str, ...] = ()) -> None:
        self._loaded: list[dict[str, Any]] = []
        self._life = 0
        self._worker = Worker(io.BytesIO(), io.BytesIO())
        self.meter = Meter(lambda: 0.0)

    def hand_over(self, values: Any) -> None:
        """Nothing is hidden from an answer."""

    def exchange(self, message: dict[str, Any], may_go_on: Callable[[], None]) -> dict[str, Any]:
        """The reply of the worker; what crosses is a line of text here, too."""
        if message["op"] == "life":
            self._next_life()
            return {"op": "ready"}
        if message["op"] == "load":
            self._loaded.append(message)
        return self._ask(message)

    def _next_life(self) -> None:
        self._life += 1
        self._worker = Worker(io.BytesIO(), io.BytesIO())
        for message in self._loaded:
            self._ask(message)
        self._worker.namespaces.go_elsewhere(hash_in_process(self._life))

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        # What an answer prints goes nowhere, and what traces its lines does not trace its judge.
        tracing, printed = sys.gettrace(), sys.stdout
        sys.settrace(None)
        sys.stdout = io.StringIO()
        try:
            return load_line(self._worker.reply(load_line(dump_line(message))))
        finally:
            sys.stdout = printed
            sys.settrace(tracing)

    def end(self) -> None:
        """It ends with its copy of this process."""


def in_a_copy(work: Callable[[], Any]) -> Any:
    """What some work gives, done in a copy of this process. AssertionError with its traceback if it fails there."""
    from_copy, to_parent = os.pipe()
    copy = copied()
    if copy is None:
        try:
            gc.freeze()  # a collection would write to every page that the copy shares with its original
            try:
                told = pickle.dumps((True, work()))
            except BaseException:
                told = pickle.dumps((False, traceback.format_exc()))
            with os.fdopen(to_parent, "wb") as pipe:
                pipe.write(told)
        finally:
            os._exit(0)
    os.close(to_parent)
    try:
        told = _read(from_copy)
    finally:
        copy.kill()
        copy.wait()
    assert told, "the copy of this process ended without a word"
    is_well, found = pickle.loads(told)
    assert is_well, found
    return found


def _read(from_copy: int) -> bytes:
    """All that a copy writes; nothing of one that takes too long."""
    told, deadline = b"", time.monotonic() + COPY_SECONDS
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(from_copy, selectors.EVENT_READ)
            while selector.select(max(deadline - time.monotonic(), 0.0)):
                piece = os.read(from_copy, 1 << 16)
                if not piece:
                    return told
                told += piece
        return b""
    finally:
        os.close(from_copy)

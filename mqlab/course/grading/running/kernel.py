"""What the rebuilt notebook calls: open the desk, put an answer behind its names, judge it in public and in hiding.

Runs in the trusted kernel, in cells that mqlab.course.grading.submissions.rebuild writes.

    open_desk(job)                     first cell: the worker's walls, the answers, the class's seed
    give_answer("lab01.unit", names)   in place of each answer cell
    check("lab01.unit")                the lab's own check cells, unchanged: public cases, recorded
    judge_hidden("lab01.unit")         after the last cell

Results leave as display data of type ``VERDICT``, which no answer can write: its process has no way to this kernel.
It shows nothing to a learner.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mqlab.course.cases
import mqlab.course.teach
from mqlab.course.grading.judging.budget import Budget
from mqlab.course.grading.judging.cases import hidden_seeds, judge, raised, short
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.judging.verdict import FAILED, HIDDEN, PUBLIC, RAISED, STOPPED, CaseResult
from mqlab.course.grading.running.job import Job
from mqlab.course.grading.sandbox import limits
from mqlab.course.teach.exercises import Case, Exercise, exercise, why_unusable
from mqlab.errors import UsageError

VERDICT = "application/vnd.mqlab.verdict+json"
DEFAULT_HIDDEN = 3
SET_UP_SECONDS = 30.0  # libraries are imported here: on a busy machine that takes longer than an answer may


class Judge:
    """One submission's judge: its desk, and the names that each answer defined."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.desk = Desk(job.sandbox)
        self.desk.fresh_workers = job.fresh_workers
        self.answers: dict[str, dict[str, Any]] = {}
        self.unable: dict[str, CaseResult] = {}
        self._budgets: dict[str, Budget] = {}
        self._hidden = _hidden_module(job)
        self._lacking = ""
        self._later_set_up = dict(job.later_set_up)
        for first in list(job.answers)[:1]:  # the worker then need not change when this one is loaded
            self.desk.withhold(exercise(first).forbids)
        for number, source in enumerate(job.set_up):
            self._set_up(f"set-up {number}", source, is_own=number == 0)

    def _set_up(self, name: str, source: str, *, is_own: bool) -> None:
        """Run the set-up that answers need. If a submission's own cells fail, its answers run without them."""
        limits = self.job.sandbox.limits
        patient = dataclasses.replace(
            limits,
            seconds=max(limits.seconds, SET_UP_SECONDS),
            total_seconds=max(limits.total_seconds, 10 * SET_UP_SECONDS),
        )
        if is_own:
            self.desk.load_given(name, source, patient)
            return
        try:
            self.desk.load(name, source, limits=patient)
        except (AnswerStopped, Exception) as error:
            what = str(error).removeprefix(f"{name}: ")
            self._lacking = f"; your other cells gave it nothing: when they were run, {what}"

    def give(self, exercise_id: str, names: MutableMapping[str, Any]) -> None:
        """Load an answer into the worker and its names into the notebook."""
        answer = self.job.answers.get(exercise_id)
        if answer is None:
            return
        self.desk.withhold(exercise(exercise_id).forbids)
        # What a later part of the lab gives its answers comes before the first of them, and hides what came before it.
        for number, source in enumerate(self._later_set_up.pop(answer.part, ())):
            self._set_up(f"set-up of {answer.part} {number}", source, is_own=number == 0)
        # The exercise counts as begun even if loading fails: then its result is that failure.
        self.answers[exercise_id] = {}
        try:
            loaded = self.desk.load(exercise_id, answer.source, answer.names, answer.limits)
        except AnswerStopped as stopped:
            self.unable[exercise_id] = CaseResult(
                "the cell itself", PUBLIC, STOPPED, short(str(stopped)), cause=stopped.kind
            )
            raise
        except Exception as error:
            self.unable[exercise_id] = raised("the cell itself", PUBLIC, error)
            raise
        self.answers[exercise_id] = loaded
        names.update(loaded)

    def judge(self, asked: Exercise, kind: str) -> None:
        """Run the public or the hidden cases and publish their results."""
        # 1. Only exercises with an answer are judged.
        if asked.id not in self.answers:
            return
        # 2. An answer that could not be loaded, or lacks a name, has one result instead of one per case.
        if asked.id in self.unable:
            self._publish(asked, kind, [dataclasses.replace(self.unable[asked.id], kind=kind)])
            return
        cases = asked.public_cases() if kind == PUBLIC else self.hidden_cases(asked)
        answers = {name: self.answers[asked.id].get(name) for name in asked.defines}
        missing = [name for name, value in answers.items() if value is None]
        rule = f"your cell does not define {', '.join(missing)}" if missing else why_unusable(answers)
        if rule:
            self._publish(asked, kind, [CaseResult("the cell itself", kind, FAILED, rule)])
            return
        # 3. Run the cases, if possible in a worker that no other answer has used. Only what costs points costs so much
        #    that each life of an answer is a new process.
        self.desk.new_processes = kind == HIDDEN
        self.desk.withhold(asked.forbids)
        if self.job.fresh_workers:
            self.desk.begin(asked.id)
        self._publish(asked, kind, self._results(asked.id, cases, answers, kind))

    def _results(self, exercise_id: str, cases: list[Case], answers: Mapping[str, Any], kind: str) -> list[CaseResult]:
        """The results of the cases, within the exercise's budget."""
        if exercise_id not in self._budgets:
            self._budgets[exercise_id] = Budget(exercise_id, self.job.answers[exercise_id].limits)
        try:
            with self._budgets[exercise_id].charged():
                return judge(cases, answers, kind, lambda: self.desk.asked)
        except AnswerStopped as stopped:
            return [CaseResult("all cases", kind, STOPPED, short(str(stopped)), cause=stopped.kind)]

    def _publish(self, asked: Exercise, kind: str, results: list[CaseResult]) -> None:
        for number, result in enumerate(results):
            if result.state in (FAILED, RAISED, STOPPED):
                results[number] = dataclasses.replace(result, rule=result.rule + self._lacking)
        publish(asked.id, kind, results)

    def hidden_cases(self, asked: Exercise) -> list[Case]:
        """The seeded cases of an exercise, those of the lab's hidden file, and those of this student alone."""
        counts: Mapping[str, int] = getattr(self._hidden, "SEEDED", {})
        extra: Mapping[str, tuple[Case, ...]] = getattr(self._hidden, "HIDDEN", {})
        # The last seed is for cases that the hidden file makes itself.
        *seeds, one_more = hidden_seeds(asked, self.job.seed, counts.get(asked.id, DEFAULT_HIDDEN) + 1)
        seeded = [unnamed_seed(asked.case(seed), seed, number) for number, seed in enumerate(seeds, 1)]
        makers: Mapping[str, Callable[[int], Iterable[Case]]] = getattr(self._hidden, "FROM_SEED", {})
        drawn = makers[asked.id](one_more) if asked.id in makers else ()
        owners: Mapping[str, Callable[[str], Iterable[Case]]] = getattr(self._hidden, "FROM_OWN", {})
        own = owners[asked.id](self.job.own) if self.job.own and asked.id in owners else ()
        return [*seeded, *drawn, *extra.get(asked.id, ()), *own]


def unnamed_seed(case: Case, seed: int, number: int) -> Case:
    """The same case with its seed removed from its name: students may see names, and could replay the seed at home."""
    name = case.name.replace(str(seed), f"no. {number}")
    return dataclasses.replace(case, name=name if name != case.name else f"{name} (no. {number})")


_judges: list[Judge] = []


def open_desk(job_file: str) -> None:
    """Read the job, use the lab's own checks as recorders, and start the worker."""
    job = Job.from_json(json.loads(Path(job_file).read_text("utf-8")))
    limits.bind_judge(job.sandbox.limits)
    if job.cases_folder:
        mqlab.course.cases.__path__.append(job.cases_folder)
    # The lab's own check cells are unchanged and import this name.
    mqlab.course.teach.check = check  # type: ignore[assignment]
    _judges.append(Judge(job))


def give_answer(exercise_id: str, names: MutableMapping[str, Any]) -> None:
    """Put an answer's names into the notebook; raises what the answer's cell raises."""
    _judges[-1].give(exercise_id, names)


def check(exercise_id: str, answers: Mapping[str, Any] | None = None) -> None:
    """Replaces mqlab.course.teach.check: runs all public cases, also those after the first failure."""
    _judges[-1].judge(exercise(exercise_id), PUBLIC)


def judge_hidden(exercise_id: str) -> None:
    """Run the seeded and the hidden cases of an exercise."""
    _judges[-1].judge(exercise(exercise_id), HIDDEN)


def publish(exercise_id: str, kind: str, results: list[CaseResult]) -> None:
    """Pass results to the process that runs this notebook."""
    from IPython.display import publish_display_data

    data = {"exercise": exercise_id, "kind": kind, "cases": [dataclasses.asdict(result) for result in results]}
    text = f"{exercise_id}: {sum(result.passed for result in results)} of {len(results)} {kind} cases pass"
    publish_display_data({VERDICT: data, "text/plain": text})  # type: ignore[no-untyped-call]


def _hidden_module(job: Job) -> ModuleType | None:
    """The lab's file under solutions/grading, run here and only here."""
    if not job.hidden_file:
        return None
    path = Path(job.hidden_file)
    spec = importlib.util.spec_from_file_location(f"hidden_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses of the file look their module up there while they are defined.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module

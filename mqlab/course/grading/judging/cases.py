"""Runs an exercise's cases on the desk's stand-ins: one result per case, whatever an answer does.

Called in the trusted kernel by mqlab.course.grading.running.kernel.

    Case.run(answers) ─▶ None                passed
                      ─▶ Finding             failed: the rule, the first wrong thing, expected, found
                      ─▶ an exception        raised: its text, and the learner's lines
                         answer not called   not judged: the case itself failed here, and that is not the answer's fault
                      ─▶ AnswerStopped       stopped; the cases after it are not run

Points are in mqlab.course.grading.judging.verdict.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.judging.verdict import FAILED, NOT_JUDGED, NOT_RUN, PASSED, RAISED, STOPPED, CaseResult
from mqlab.course.grading.sandbox.values import AnswerError
from mqlab.course.teach.exercises import Call, Case, Exercise, Finding
from mqlab.errors import NotGiven

MAX_TEXT = 600
MAX_ARGUMENT = 120
UNUSABLE = "your answer gave something the check cannot use"
OWN_FAILURE = "the case failed on the grader's machine before it called the answer"
NOTEBOOK_COMMAND = re.compile(r"^\s*[%!?]|=\s*[%!]|\?\s*$")
COMMAND_RULE = (
    "the cell holds the notebook command {!r} (line {}), and an answer is judged as plain Python: remove that line"
)
ADDRESS = re.compile(r"(?<= at )0x[0-9a-f]{9,16}\b")
"""An object's address in memory, which differs in every run."""


def judge(
    cases: Iterable[Case], answers: Mapping[str, Any], kind: str, asked: Callable[[], int] | None = None
) -> list[CaseResult]:
    """One result per case. ``asked`` counts the calls of answers; without it, every failure is the answer's."""
    results: list[CaseResult] = []
    stopped = False
    for case in cases:
        if stopped:
            skipped = CaseResult(case.name, kind, NOT_RUN, "not run: the answer was stopped before")
            results.append(replace(skipped, weight=case.weight))
            continue
        before = asked() if asked is not None else -1
        result = judge_one(case, answers, kind)
        # The case failed without calling the answer, so the failure is not the answer's.
        if asked is not None and result.state == RAISED and asked() == before:
            result = replace(result, state=NOT_JUDGED, rule=result.rule.replace(UNUSABLE, OWN_FAILURE))
        stopped = result.state == STOPPED
        results.append(replace(result, weight=case.weight))
    return results


def judge_one(case: Case, answers: Mapping[str, Any], kind: str) -> CaseResult:
    """The result of one case."""
    try:
        finding = case.run(answers)
    except AnswerStopped as stopped:
        return CaseResult(case.name, kind, STOPPED, short(str(stopped)), cause=stopped.kind)
    except Exception as error:
        return raised(case.name, kind, error)
    if finding is None:
        return CaseResult(case.name, kind, PASSED)
    if not isinstance(finding, Finding):
        raise TypeError(f"the case {case.name!r} gave {finding!r}; a case gives a Finding or None")
    return CaseResult(
        case.name,
        kind,
        FAILED,
        short(finding.rule),
        short(finding.first_wrong),
        shown(finding.expected),
        shown(finding.found),
        belief=short(finding.belief),
        call=_called_with(finding.call),
        step=finding.step,
        share=min(max(finding.share, 0.0), 1.0),
    )


def raised(name: str, kind: str, error: Exception) -> CaseResult:
    """The result of a case that ended with an exception, its own or the answer's."""
    if isinstance(error, SyntaxError) and NOTEBOOK_COMMAND.search(error.text or ""):
        return CaseResult(name, kind, RAISED, short(COMMAND_RULE.format((error.text or "").strip()[:80], error.lineno)))
    trace = getattr(error, "answer_trace", "")
    call = _called_with(getattr(error, "mqlab_call", None))
    if isinstance(error, NotGiven):
        rule = short(str(error).replace("\n  hint: ", "; "))
        return CaseResult(name, kind, RAISED, rule, trace=short(trace, 2_000), call=call)
    what = str(error) if isinstance(error, AnswerError) else f"{type(error).__name__}: {error}"
    rule = f"your code raised {what}" if trace else f"{UNUSABLE} ({what})"
    return CaseResult(name, kind, RAISED, short(rule), trace=short(trace, 2_000), call=call)


def _called_with(call: object) -> str:
    """The arguments of a call as text, each shortened: a log of a megabyte must not hide what stands next to it."""
    if not isinstance(call, Call):  # an exception of an answer may carry anything under that name
        return ""
    arguments = (f"{name}={short(shown(value), MAX_ARGUMENT)}" for name, value in call.arguments.items())
    return short(f"{call.to}({', '.join(arguments)})")


def hidden_seeds(exercise: Exercise, class_seed: str, count: int) -> list[int]:
    """Seeds that follow from the class's seed and the exercise alone, none of them public.

    The same for every student, so that a class is judged alike and a heat map compares what can be compared.
    """
    seeds: list[int] = []
    number = 0
    while len(seeds) < count:
        digest = hashlib.sha256(f"{class_seed}\n{exercise.id}\n{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big") >> 1
        number += 1
        if seed not in exercise.public_seeds and seed not in seeds:
            seeds.append(seed)
    return seeds


def shown(value: object) -> str:
    """A value as text, even if the answer made a value that cannot be shown."""
    try:
        return short(repr(value))
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def short(text: str, limit: int = MAX_TEXT) -> str:
    """A text for reports: valid in any file, the same in every run, shortened in the middle if it is long."""
    # Half a surrogate pair cannot be written as UTF-8, so it becomes an escape.
    text = ADDRESS.sub("0x…", text.encode("utf-8", "backslashreplace").decode("utf-8"))
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {text[-half:]}"

"""check(id): run the public cases of an exercise on the notebook's functions, and show the first finding.

Every lab's exercises end with it.

    nothing is defined, or the starter is unchanged   -> returns "not started"
    the cell that defines the answer failed           -> raises CheckFailed with that cell's error and line
    a case finds something                            -> raises CheckFailed: rule, first wrong value, call
    all public cases pass                             -> returns their number, the note, and a reminder of hidden checks

Points are not given here: they depend on hidden cases, which run out of an answer's reach (mqlab.course.grading).
"""

from __future__ import annotations

import dis
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from mqlab.counts import counted
from mqlab.course.teach import blocked
from mqlab.course.teach.exercises import Answers, Call, Case, Exercise, Finding, exercise, why_unusable
from mqlab.course.teach.failed_cells import failure_of
from mqlab.course.teach.forbidden import refuse_named, run_watched
from mqlab.course.teach.keeping import keepable
from mqlab.course.teach.lives import cell_is_run_anew
from mqlab.course.teach.partial import points_so_far
from mqlab.course.teach.passed import Passed
from mqlab.course.teach.practice import practise
from mqlab.course.teach.record import note_answer
from mqlab.course.teach.said import Said
from mqlab.course.teach.showing import Failed, remember, short_call
from mqlab.errors import MqlabError, NotGiven, words_of

MAX_VALUE_CHARACTERS = 200
PACKAGE = Path(__file__).resolve().parents[2]
LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
DOES_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "CACHE"}


watchers: list[Callable[[str, Said], None]] = []
"""Called after every check with the exercise's id and the result: the attempt log, if the learner switched it on."""


class CheckFailed(MqlabError, AssertionError):
    """An answer breaks a rule. A notebook shows the first lines of show_me, a terminal the lines of the result."""

    code = "check"
    exercise_id = ""

    def __init__(self, said: Said) -> None:
        super().__init__(said.text())
        self.said = said

    def _render_traceback_(self) -> list[str]:
        return [self.said.text_of_error()]


class CheckInterrupted(KeyboardInterrupt):
    """The learner stopped a check that did not end. A notebook shows the current line instead of a traceback."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.text())
        self.said = said

    def _render_traceback_(self) -> list[str]:
        return [self.said.text_of_error()]


def check(exercise_id: str, answers: Mapping[str, Any] | None = None, *, more: int = 0) -> Said:
    """Check an exercise by its id. ``answers`` are the defined names (default: those of the calling notebook).

    ``more`` tries as many other seeds once the public cases pass. Returns the result to show for an answer that passes
    or is not started; raises CheckFailed for a wrong answer.
    """
    asked = exercise(exercise_id)
    if cell_is_run_anew():  # this check is part of a cell that another check is running again
        return not_started(asked, list(asked.defines))
    names = sys._getframe(1).f_globals if answers is None else answers  # the notebook's own names
    # If the answer's cell failed, the notebook still has the older definition: it must not be judged.
    failed_cell = failure_of(asked.defines) if answers is None else None
    remember(asked.id, None)
    try:
        if failed_cell is not None:
            raise CheckFailed(_not_defined(asked, *failed_cell))
        said = _checked(asked, names, more)
    except CheckFailed as failed:
        failed.exercise_id = asked.id
        _tell(asked, failed.said)
        raise
    _tell(asked, said)
    return said


def _tell(asked: Exercise, said: Said) -> None:
    for watcher in watchers:
        watcher(asked.id, said)


def _checked(asked: Exercise, names: Mapping[str, Any], more: int) -> Said:
    # 1. Is there an answer that a case can call?
    missing = [name for name in asked.defines if is_untouched(names.get(name))]
    if missing:
        return not_started(asked, missing)
    answers: Answers = {name: names[name] for name in asked.defines}
    unusable = why_unusable(answers)
    if unusable:
        raise CheckFailed(Said("bad", f"{asked.id}: {unusable}", note=f'hint("{asked.id}") helps.'))
    # 2. Run the cases up to the first finding.
    cases = asked.public_cases()
    for number, case in enumerate(cases, 1):
        try:
            wrong = _judged(asked, case, answers, f"{case.name} ({number} of {len(cases)})")
            earned = points_so_far(asked, cases, answers, number - 1, wrong.share) if wrong is not None else []
        except NotImplementedError:
            return not_started(asked, list(asked.defines))
        except KeyboardInterrupt as stop:
            raise CheckInterrupted(_stopped(asked, case, stop)) from None
        if wrong is not None:
            raise CheckFailed(replace(wrong.said, facts=[*wrong.said.facts, *earned]))
    if not more:
        said = passed(asked, len(cases))
        return Passed.of(said, asked.id, names) if keepable(asked.id) else said
    # 3. Other seeds, as many as the learner likes.
    said = practise(
        asked, more, lambda case: finding.said if (finding := _judged(asked, case, answers, case.name)) else None
    )
    if said.state == "bad":
        raise CheckFailed(said)
    return said


class _Wrong(NamedTuple):
    """What is said to an answer, and which share of the case's worth it keeps."""

    said: Said
    share: float = 0.0


def _judged(asked: Exercise, case: Case, answers: Answers, name: str) -> _Wrong | None:
    """What is wrong with an answer in one case, None if nothing is; show_me then knows of it."""
    finding: Finding | None = None
    try:
        refuse_named(answers, asked.forbids)
        finding = _found(asked, case, answers, name)
    except (NotImplementedError, CheckFailed):
        raise
    except NotGiven as error:
        return _Wrong(_not_given(asked, error))
    except Exception as error:
        said, call = _raised(asked, case, error), _call_of(error)
        remember(asked.id, Failed(said, call) if call is not None else None)
        return _Wrong(said)
    if finding is None:
        return None
    if finding.belief:
        note_answer(finding.belief, "", False)
    said = _wrong(asked, finding, name)
    remember(asked.id, Failed(said, finding.call, finding))
    return _Wrong(said, finding.share)


def _found(asked: Exercise, case: Case, answers: Answers, name: str) -> Finding | None:
    """What a case finds. CheckFailed for an answer that waits in real time in a Lab: other cases would wait as well."""
    if not getattr(asked.form, "in_a_lab", False):  # a Spark answer waits for its JVM
        return run_watched(case, answers, asked.forbids)
    finding, stopped = None, None
    with blocked.ThreadWatch(is_theirs) as threads, blocked.BlockWatch(is_theirs, blocked.WAITS_S) as watch:
        try:
            finding = run_watched(case, answers, asked.forbids)
        except (Exception, KeyboardInterrupt) as error:
            stopped = error
    if watch.place is not None:  # even if the answer caught the interruption
        raise CheckFailed(_outside(asked, watch.place, blocked.RULE, blocked.USE, blocked.FOUND, name))
    if threads.place is not None and (finding is not None or stopped is not None):
        raise CheckFailed(
            _outside(asked, threads.place, blocked.THREAD_RULE, blocked.THREAD_USE, blocked.THREAD_FOUND, name)
        )
    if stopped is not None:
        raise stopped
    return finding


def _outside(asked: Exercise, where: blocked.Place, rule: str, use: str, caught: str, case: str) -> Said:
    """The result for an answer that leaves the Lab's time: the line, and what to use."""
    facts = [("at", str(where)), ("expected", use), ("found", caught), ("case", case)]
    return Said("bad", f"{asked.id}: {rule}", facts, note=f'hint("{asked.id}") helps.')


def _call_of(error: BaseException) -> Call | None:
    call = getattr(error, "mqlab_call", None)
    return call if isinstance(call, Call) else None


def is_untouched(value: object) -> bool:
    """Returns whether a value is that of a starter: nothing, ``...``, or a function, class or table that does nothing.

    A function is also one while a line such as ``status = ...`` is left in it: its other lines were given.

    >>> is_untouched(None), is_untouched(lambda: 7)
    (True, False)
    """
    if value is None or value is ...:
        return True
    if isinstance(value, FunctionType):
        constants, steps = {value.__doc__, None, ...}, list(dis.get_instructions(value))
        idle = all(step.opname in DOES_NOTHING for step in steps)
        blank = any(step.argval is ... and then.opname.startswith("STORE_FAST") for step, then in pairwise(steps))
        return blank or (idle and all(constant in constants for constant in value.__code__.co_consts))
    if isinstance(value, type):
        methods = [item for item in vars(value).values() if isinstance(item, FunctionType)]
        return all(is_untouched(method) for method in methods)
    return isinstance(value, dict) and all(map(is_untouched, value.values()))


def not_started(asked: Exercise, missing: list[str]) -> Said:
    """The result of a check before the learner has written anything."""
    note = f'Write {", ".join(missing)} in the cell above and run it. hint("{asked.id}") helps.'
    return Said("open", f"{asked.id}: not started", note=note)


def passed(asked: Exercise, count: int) -> Said:
    """The result of a check that found nothing wrong."""
    checks = counted(count, f"of {count} public checks pass", "of 1 public check passes")
    headline = f"{asked.id}: {checks}; hidden checks run at grading"
    return Said("good", headline, note=asked.note)


def _wrong(asked: Exercise, finding: Finding, name: str) -> Said:
    facts = [
        ("first wrong", finding.first_wrong),
        ("expected", _shown(finding.expected)),
        ("found", _shown(finding.found)),
        *_called(asked, finding.call),
        ("case", name),
    ]
    shows = f'show_me("{asked.id}") shows it. ' if finding.call is not None or finding.lab is not None else ""
    return Said("bad", f"{asked.id}: {finding.rule}", facts, note=f'{shows}hint("{asked.id}") helps.')


def _called(asked: Exercise, call: Call | None) -> list[tuple[str, str]]:
    """The failing call in one line, named as the learner's function is."""
    if call is None:
        return []
    name = call.to or getattr(asked.form, "name", "") or (asked.defines[0] if len(asked.defines) == 1 else "")
    return [("call", short_call(call, name))]


def _raised(asked: Exercise, case: Case, error: Exception) -> Said:
    """The result for an answer that raised: the error, the last line that is the learner's own, the call."""
    call = _call_of(error)
    facts = [
        ("raised", f"{type(error).__name__}: {words_of(error)}"),
        *_place(error),
        *_called(asked, call),
        ("case", case.name),
    ]
    shows = f'show_me("{asked.id}") shows the arguments. ' if call is not None else ""
    return Said("bad", f"{asked.id}: your code raised an exception", facts, note=f'{shows}hint("{asked.id}") helps.')


def _not_given(asked: Exercise, error: NotGiven) -> Said:
    """The result for an answer that uses what the exercise forbids, with the line if it was called."""
    note = f'{error.hint[:1].upper()}{error.hint[1:]}. hint("{asked.id}") helps.'
    return Said("bad", f"{asked.id}: {error.text}", _place(error), note=note)


def _not_defined(asked: Exercise, name: str, error: BaseException) -> Said:
    """The result when the answer's cell failed before it defined the answer; an older definition must not be judged."""
    raised, where = f"{type(error).__name__}: {words_of(error)}", _place(error)
    if isinstance(error, SyntaxError):
        kind = type(error).__name__.replace("_IncompleteInputError", "SyntaxError")  # a class of Python 3.13
        words = error.msg.replace("incomplete input", "incomplete input: a bracket or quote is open, or a body missing")
        raised, where = f"{kind}: {words}", [("at", f"line {error.lineno}: {(error.text or '').strip()}".rstrip(": "))]
    facts = [("raised", raised), *where]
    note = "Correct that cell, run it, and check again."
    headline = f"{asked.id}: the cell that defines {name} failed: there is nothing new to check"
    return Said("bad", headline, facts, note=note)


def _stopped(asked: Exercise, case: Case, stop: BaseException) -> Said:
    facts = [*_place(stop), ("case", case.name)]
    return Said("bad", f"{asked.id}: stopped before it ended", facts, note="Is there a loop that never ends?")


def _place(error: BaseException) -> list[tuple[str, str]]:
    """The last line of the learner's code in a traceback; empty if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_theirs(frame.filename)]
    if not frames:
        return []
    # A comprehension or a lambda has no name that its writer knows: the function around it has.
    name = next((frame.name for frame in reversed(frames) if not frame.name.startswith("<")), "")
    where = f"line {frames[-1].lineno}" + (f" of {name}" if name else "")
    return [("at", f"{where}: {frames[-1].line or ''}".rstrip(": "))]


def is_theirs(filename: str) -> bool:
    """True for a file that a learner may have written: neither this package nor an installed library contains it."""
    return not any(Path(filename).is_relative_to(folder) for folder in (PACKAGE, *LIBRARIES))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - 1] + "…"

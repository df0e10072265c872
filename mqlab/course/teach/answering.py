"""answer(id, value, ...): check what a learner says about a world, parameter, fault or seed of their own choice.

Every lab has such cells; they give no points.

    answer("lab00.unindexed", ..., lab)     nothing answered yet: the question
    answer("lab00.unindexed", 2, lab)       right, or what is to be said to this answer

The rule computes what is right from what is given after the value (mqlab.course.teach.tasks), so every world has its
own right answer. A wrong answer is not an error: the notebook runs on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqlab.course.teach.exercises import manifest
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.course.teach.tasks import Task
from mqlab.course.words import TaskWords, words_of

ANSWER_MIME = "application/vnd.mqlab.answer+json"
VERSION = 1
MAX_SHOWN = 60


@dataclass(frozen=True, repr=False)
class Answered(Said):
    """What is said to an answer. A saved notebook has the task's id next to it, and whether the answer was right."""

    task: str = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(include, exclude)
        if self.state == "open":
            return bundle
        return bundle | {ANSWER_MIME: {"version": VERSION, "task": self.task, "right": self.state == "good"}}


def answer(task_id: str, value: object = ..., *material: object) -> Said:
    """Check an answer to a your-turn question. ``material``: what the rule needs, as the lab's cell has it.

    UsageError for an unknown task, and for a rule that was given something other than it needs.
    """
    rule, words = _task(task_id)
    if value is ...:
        return Answered("open", words.question, note="Put your answer in place of the dots.", task=task_id)
    # 1. Does the question fit what the learner made?
    not_ready = _asked(rule.unready, rule, material)
    if not_ready:
        return Answered("open", f"{task_id}: {not_ready}", task=task_id)
    # 2. Right?
    shown = repr(value) if len(repr(value)) <= MAX_SHOWN else f"{repr(value)[: MAX_SHOWN - 1]}…"
    if rule.same(value, _asked(rule.right, rule, material)):
        return Answered("good", f"{task_id}: {shown} is right", note=words.note, task=task_id)
    # 3. Which wrong answer is it? The first that gives the same value; otherwise what is said to all others.
    named = (name for name, wrong in rule.wrong.items() if rule.same(value, _asked(wrong, rule, material)))
    note = words.wrong[next(named, "")]
    return Answered("bad", f"{task_id}: {shown} is not right", note=note, task=task_id)


def _task(task_id: str) -> tuple[Task, TaskWords]:
    lab = task_id.partition(".")[0]
    tasks = {task.id: task for task in manifest(lab).tasks}
    if task_id not in tasks:
        raise AskedWrongly(f"there is no task {task_id!r}", hint=f"there are: {', '.join(tasks) or 'none in this lab'}")
    return tasks[task_id], words_of(lab).tasks[task_id]


def _asked(rule: Any, task: Task, material: tuple[object, ...]) -> Any:
    try:
        return rule(*material)
    except TypeError as error:
        # A call with too few or too many arguments fails before the rule's own code runs.
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        hint = "after the answer, give what the lab's cell gives, for example your lab"
        raise AskedWrongly(f"{task.id}: the question cannot be judged by what was given: {error}", hint=hint) from None

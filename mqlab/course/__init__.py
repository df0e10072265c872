"""The course: what a notebook says and asks, its boards, and the grader.

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import explore

teach       the functions of a notebook          kit       what exercises are written with
cases       a folder per lab: its exercises      given     what the notebooks of a lab work with
words       what the notebooks say               widgets   boards to click
grading     submissions, judged where no answer can reach
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.extras import need
from mqlab.lazy_names import lazy_names

if TYPE_CHECKING:
    from mqlab.course.teach import CheckFailed, answer, check, hint, keep, old_questions, predict, reveal, show_me

__all__ = ["CheckFailed", "answer", "check", "hint", "keep", "old_questions", "predict", "reveal", "show_me"]

need("course")

__getattr__, __dir__ = lazy_names(__name__, {"teach": tuple(__all__)})  # a board alone needs none of them

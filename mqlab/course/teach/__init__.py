"""The functions of a lab's notebook: predict, see it next to the run, check an answer, ask for a hint.

Every lab uses these.

    predict("lab00.after_ack", "stays")      notes an answer before the run
    reveal("lab00.after_ack", "stays")       shows the answer and what the run did, side by side
    check("lab00.find")                      not started │ its cell failed │ wrong: which rule, first bad thing │ passes
    show_me("lab00.find")                    what the last check failed on: the call, or the world in the explorer
    hint("lab00.find")                       the next of three
    answer("lab00.waiting", 2, lab)          a question about a world that the learner has changed
    old_questions("lab05")                   three questions of labs done before
    keep("lab04.process_queue")              writes an answer that passes into the learner's own broker

Questions, cases, hints and notes are data: mqlab.course.cases has one package per lab.
Hidden cases and points are not in this package: mqlab.course.grading has them.
"""

from mqlab.course.teach.answering import answer
from mqlab.course.teach.asked_again import old_questions
from mqlab.course.teach.checking import CheckFailed, CheckInterrupted, check
from mqlab.course.teach.failed_cells import watch_cells
from mqlab.course.teach.first_look import show_failures
from mqlab.course.teach.hints import hint
from mqlab.course.teach.keeping import keep
from mqlab.course.teach.predictions import predict, reveal
from mqlab.course.teach.showing import show_me

__all__ = ["CheckFailed", "answer", "check", "hint", "keep", "old_questions", "predict", "reveal", "show_me"]

watch_cells()
show_failures(CheckFailed, CheckInterrupted)

"""The functions of a lab's notebook: predict, see it beside the run, check an answer, ask for a hint.

Every lab uses these four.

    predict("lab00.after_ack", "stays")      notes an answer before the run
    reveal("lab00.after_ack", "stays")       shows the answer and what the run did, side by side
    check("lab00.find")                      not started │ its cell failed │ wrong: which rule, first bad thing │ passes
    hint("lab00.find")                       the next of three

Questions, cases, hints and notes are data: mqlab.teach.cases has one package per lab.
Hidden cases and points are not in this package: mqlab.grading has them.
"""

from mqlab.teach.checking import CheckFailed, check
from mqlab.teach.failed_cells import watch_cells
from mqlab.teach.hints import hint
from mqlab.teach.predictions import predict, reveal

__all__ = ["CheckFailed", "check", "hint", "predict", "reveal"]

watch_cells()

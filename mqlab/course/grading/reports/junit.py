"""Grades as JUnit XML: one suite per submission, one test per exercise, for systems that show test results.

Reports of mqlab.course.grading.

    failed ─▶ <failure>    stopped, not judged ─▶ <error>    not started, missing ─▶ <skipped>; all of them score 0

nbval's own JUnit file is not used: its names are numbers of cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from mqlab.course.grading.judging.verdict import FAILED, NOT_JUDGED, PASSED, STOPPED, ExerciseResult, GradeRecord
from mqlab.course.grading.reports.redaction import told_cases, told_reason, told_status
from mqlab.course.grading.reports.tables import points

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """A text without the characters that XML 1.0 cannot hold."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def junit_xml(records: Sequence[GradeRecord], show_hidden: str) -> str:
    """One document for a class."""
    root = ElementTree.Element("testsuites", name="mqlab grade")
    for record in records:
        states = [exercise.state for exercise in record.exercises]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=clean(f"{record.student} {record.lab}"),
            tests=str(len(states)),
            failures=str(states.count(FAILED)),
            errors=str(states.count(STOPPED) + states.count(NOT_JUDGED)),
            skipped=str(sum(state not in (PASSED, FAILED, STOPPED, NOT_JUDGED) for state in states)),
        )
        _properties(
            suite,
            student=record.student,
            status=record.status,
            reason=told_status(record, show_hidden),
            score=points(record.scored),
            max=str(record.points),
        )
        for exercise in record.exercises:
            _test(suite, record, exercise, show_hidden)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _properties(parent: ElementTree.Element, **values: str) -> None:
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=clean(value))


def _test(suite: ElementTree.Element, record: GradeRecord, exercise: ExerciseResult, show_hidden: str) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname=clean(record.lab), name=clean(exercise.id), time="0")
    _properties(test, points=str(exercise.points), scored=points(exercise.scored), state=exercise.state)
    if exercise.state == PASSED:
        return
    tag = {FAILED: "failure", STOPPED: "error", NOT_JUDGED: "error"}.get(exercise.state, "skipped")
    node = ElementTree.SubElement(
        test, tag, type=exercise.state, message=clean(told_reason(exercise, show_hidden) or exercise.state)
    )
    cases = told_cases(exercise, show_hidden)
    lines = [f"{case.kind}: {case.name}: {case.state} {case.rule}".rstrip() for case in cases]
    node.text = clean("\n".join(lines))

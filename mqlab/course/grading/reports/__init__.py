"""The reports for instructors, students and other systems. All are made of records, and none is a source of grades.

``write_reports`` is the last thing ``mqlab grade`` does.

    index.html        the class at a glance               grades.csv          one row per student
    heat_map.html     which cases fail for whom           grades.json         everything, for programs
    tampering.html    possible manipulation               junit.xml           for CI systems
    feedback/*.html   one page per student                gradescope/*.json   results.json, one per submission
    attempts.csv      from logs that were handed in       heat_map.csv, tampering.csv
    predictions.html  what the class predicted            predictions.csv
    class.html        points, difficulty, wrong ideas     class.csv, ideas.csv

The same records give the same bytes.
Nothing is sent anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqlab.course.grading.judging.verdict import GradeRecord
from mqlab.course.grading.reports import (
    feedback,
    gradescope,
    heat_map,
    junit,
    overview,
    predictions,
    statistics,
    tables,
    tampering,
)
from mqlab.course.grading.running.attempts import Effort
from mqlab.course.grading.running.gradebook import private_folder, write_private
from mqlab.course.grading.submissions.predictions import PredictionHistogram
from mqlab.errors import UsageError

REDACTIONS = ("none", "name", "message", "full")


def write_predictions(out: Path, histograms: Sequence[PredictionHistogram]) -> None:
    """Write what the class predicted, which is known before the first answer is judged."""
    write_private(out / "predictions.html", predictions.page(histograms))
    write_private(out / "predictions.csv", predictions.csv_text(histograms))


def write_reports(
    out: Path,
    records: Sequence[GradeRecord],
    *,
    seed: str,
    show_hidden: str,
    efforts: Sequence[Effort] = (),
    histograms: Sequence[PredictionHistogram] = (),
) -> None:
    """Write all reports of a class. ``show_hidden``: how much students see of hidden cases, one of REDACTIONS."""
    if show_hidden not in REDACTIONS:
        raise UsageError(f"cannot show hidden cases as {show_hidden!r}", hint=f"choose one of {', '.join(REDACTIONS)}")
    # 1. Sort, so that the same records give the same bytes.
    ordered = sorted(records, key=lambda record: (record.student, record.lab))
    # 2. Remove pages of an earlier run: its students may have left the class.
    for folder, suffix in (("feedback", ".html"), ("gradescope", ".json")):
        private_folder(out / folder)
        for old in (out / folder).glob(f"*{suffix}"):
            old.unlink()
    # 3. Make all texts before the first is written, so that an error in one of them writes none.
    texts = {
        "grades.csv": tables.grades_csv(ordered),
        "grades.json": tables.grades_json(ordered, seed),
        "junit.xml": junit.junit_xml(ordered, show_hidden),
        "index.html": overview.page(ordered, seed),
        "predictions.html": predictions.page(histograms),
        "predictions.csv": predictions.csv_text(histograms),
        "class.html": statistics.page(ordered),
        "class.csv": statistics.csv_text(ordered),
        "ideas.csv": statistics.ideas_csv(ordered),
        "heat_map.html": heat_map.page(ordered, efforts),
        "attempts.csv": tables.attempts_csv(efforts),
        "heat_map.csv": heat_map.csv_text(ordered),
        "tampering.html": tampering.page(ordered),
        "tampering.csv": tampering.csv_text(ordered),
    }
    for record in ordered:
        name = overview.base_name(record)
        texts[f"feedback/{name}.html"] = feedback.page(record, show_hidden)
        texts[f"gradescope/{name}.json"] = gradescope.results(record, show_hidden)
    # 4. Write them. Grades are for their owner's eyes only.
    for name, text in texts.items():
        write_private(out / name, text)

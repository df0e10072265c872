"""What the class predicted: a bar chart per question, as a page and as CSV.

Reports of mqlab.course.grading; for the instructor, before the first answer is judged.

    lab07.first_retry   How long until the first retry?
      1 s      ▇▇▇▇▇▇ 12
      10 s     ▇▇▇ 6     ✓ right

Then what a later lab's old questions got, per question and per belief: how many knew it at first, how many know it now.
Students are not named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mqlab.course.grading.reports.page import filled
from mqlab.course.grading.reports.tables import csv_of
from mqlab.course.grading.submissions.predictions import Bar, PredictionHistogram
from mqlab.course.teach.asked_again import question_of
from mqlab.course.words import PredictionWords, has_words, words_of


def page(histograms: Sequence[PredictionHistogram]) -> str:
    """The page, with the right answer and the refutations where the lab's source gives them."""
    words = {histogram.prediction: _words(histogram) for histogram in histograms}
    right = {
        name: prediction_words.right if prediction_words is not None else "" for name, prediction_words in words.items()
    }
    refutations = {name: _refutations(prediction_words) for name, prediction_words in words.items()}
    return str(
        filled(
            "predictions.html",
            title="What the class predicted",
            histograms=[histogram for histogram in histograms if _was_predicted(histogram)],
            again=[_recalled(histogram) for histogram in histograms if histogram.again],
            right=right,
            refutations=refutations,
        )
    )


def _was_predicted(histogram: PredictionHistogram) -> bool:
    """Whether the labs that were handed in ask it before a run; the others were asked again only."""
    return bool(histogram.bars) or not histogram.again


@dataclass(frozen=True, slots=True)
class AskedAgainRow:
    """One question or belief over the term: how many knew it at first, and how many in a later lab; "3 of 20".

    ``belief`` is its id; ``still`` is the wrong answer that most students gave in the later lab, "" without one.
    """

    belief: str
    question: str
    at_first: str
    later: str
    still: str


def _recalled(histogram: PredictionHistogram) -> AskedAgainRow:
    question = question_of(histogram.prediction)
    right = question.right if question is not None else ""
    wrong = [bar for bar in histogram.again if bar.key != right and bar.students]
    most = max(wrong, key=lambda bar: bar.students).text if wrong else ""
    first, later = _share(histogram.bars, right), _share(histogram.again, right)
    return AskedAgainRow(histogram.prediction, histogram.question, first, later, most)


def _share(bars: Sequence[Bar], right: str) -> str:
    of = sum(bar.students for bar in bars)
    return f"{sum(bar.students for bar in bars if bar.key == right)} of {of}" if of else ""


def csv_text(histograms: Sequence[PredictionHistogram]) -> str:
    """One row per answer of each question."""
    head: list[object] = ["lab", "prediction", "answer", "text", "students", "asked_again"]
    rows = [
        [histogram.lab, histogram.prediction, bar.key, bar.text, *_students(histogram, bar.key)]
        for histogram in histograms
        for bar in histogram.bars or histogram.again
    ]
    silent = [
        [histogram.lab, histogram.prediction, "", "no answer", histogram.silent, 0]
        for histogram in histograms
        if _was_predicted(histogram)
    ]
    return csv_of([head, *sorted([*rows, *silent], key=lambda row: (row[0], row[1]))])


def _students(histogram: PredictionHistogram, key: str) -> list[int]:
    """How many gave an answer at first, and how many gave it in a later lab."""
    return [sum(bar.students for bar in bars if bar.key == key) for bars in (histogram.bars, histogram.again)]


def _words(histogram: PredictionHistogram) -> PredictionWords | None:
    lab = histogram.prediction.partition(".")[0]
    return words_of(lab).predictions.get(histogram.prediction) if has_words(lab) else None


def _refutations(words: PredictionWords | None) -> Mapping[str, str]:
    return {} if words is None else {choice.key: choice.refutation for choice in words.choices if choice.refutation}

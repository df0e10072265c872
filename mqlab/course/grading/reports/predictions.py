"""What the class predicted: a bar chart per question, as a page and as CSV.

Reports of mqlab.course.grading; for the instructor, before the first answer is judged.

    lab07.first_retry   How long until the first retry?
      1 s      ▇▇▇▇▇▇ 12
      10 s     ▇▇▇ 6     ✓ right

Students are not named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mqlab.course.grading.reports.page import filled
from mqlab.course.grading.reports.tables import csv_of
from mqlab.course.grading.submissions.predictions import PredictionHistogram
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
            histograms=histograms,
            right=right,
            refutations=refutations,
        )
    )


def csv_text(histograms: Sequence[PredictionHistogram]) -> str:
    """One row per answer of each question."""
    head: list[object] = ["lab", "prediction", "answer", "text", "students"]
    rows = [
        [histogram.lab, histogram.prediction, bar.key, bar.text, bar.students]
        for histogram in histograms
        for bar in histogram.bars
    ]
    silent = [[histogram.lab, histogram.prediction, "", "no answer", histogram.silent] for histogram in histograms]
    return csv_of([head, *sorted([*rows, *silent], key=lambda row: (row[0], row[1]))])


def _words(histogram: PredictionHistogram) -> PredictionWords | None:
    lab = histogram.prediction.partition(".")[0]
    return words_of(lab).predictions.get(histogram.prediction) if has_words(lab) else None


def _refutations(words: PredictionWords | None) -> Mapping[str, str]:
    return {} if words is None else {choice.key: choice.refutation for choice in words.choices if choice.refutation}

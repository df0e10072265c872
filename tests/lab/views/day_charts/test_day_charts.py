"""Charts of a day as views: well formed in a notebook, the same drawing for a page, a text twin with the numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import numpy
import pandas
import pytest

from mqlab.errors import UsageError
from mqlab.lab.views.day_charts import Areas, DrawnSpan, Ecdf, Heat, Lines, Spans, Stacked
from mqlab.lab.views.day_charts.day_chart import DayChart, time_ms

SVG = "{http://www.w3.org/2000/svg}"
NOON = 1_767_268_800_000
MINUTES = [NOON + 60_000 * n for n in range(5)]
CHARTS: list[DayChart] = [
    Lines({"p50": zip(MINUTES, [20, 25, None, 30, 22], strict=True), "<&>": {NOON: 90_000}}, unit="ms", title="a & b"),
    Lines({"": dict.fromkeys(MINUTES, 0)}),
    Lines({}),
    Areas({"paid": zip(MINUTES, [3, 4, 5, 4, 3], strict=True), "shipped": {NOON: 2}}, unit="messages", title="orders"),
    Areas({}),
    Stacked({"billing <b>": {"consumed": 97, "lost": 3}, "audit": {"consumed": 100}}, title="outcomes"),
    Stacked({}),
    Heat({"broker-a": {"0": 12, "1": None}, "broker-b": {"1": 3}}, title="queues"),
    Heat({f"stored {row}": {f"{column}": row * column for column in range(200)} for row in range(3)}),
    Heat({}),
    Spans([DrawnSpan("burst", NOON, None, "told"), DrawnSpan("no time", None, None, "told")], (NOON, NOON + 3_600_000)),
]


def test_an_empty_chart_says_so_and_does_not_only_show_its_title() -> None:
    empty = [chart for chart in CHARTS if not len(chart.table())]
    assert {type(chart) for chart in empty} >= {Lines, Areas, Stacked, Heat}
    for chart in empty:
        shown = [text.text for text in ElementTree.fromstring(chart.svg()).iter(f"{SVG}text")]
        assert shown[-1] == chart.said()


@pytest.mark.parametrize("chart", CHARTS, ids=repr)
def test_each_is_well_formed_and_inside_its_card(chart: DayChart) -> None:
    root = ElementTree.fromstring(chart.svg())
    left, top, width, height = map(int, root.get("viewBox", "").split())
    assert (left, width, height) == (0, int(root.get("width", "")), int(root.get("height", "")))
    for node in [*root.iter(SVG + "rect"), *root.iter(SVG + "text")]:
        assert 0 <= float(node.get("x", "0")) <= width
        assert top <= float(node.get("y", "0")) <= top + height
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", chart.svg()):
        assert float(x) <= width and float(y) <= height
    assert root.findtext(SVG + "desc") == chart.alt
    # The page's drawing is the same without colours of its own.
    inner = str(chart.drawing())
    assert inner[inner.index(">") + 1 : -len("</svg>")] in chart.svg() and "#" not in inner
    html = str(chart.html())
    assert "<details><summary>the same as text</summary>" in html and "<b>" not in html


def test_a_line_takes_what_a_notebook_has() -> None:
    """A pandas Series with times or with ms, pairs in any order; what is not a number is a gap."""
    times = pandas.to_datetime(MINUTES, unit="ms", utc=True)
    of_series = Lines({"x": pandas.Series([1.0, 2.0, numpy.nan, 4.0, 5.0], index=times)})
    of_pairs = Lines({"x": reversed(list(zip(MINUTES, [1, 2, None, 4, 5], strict=True)))})
    assert of_series.lines == of_pairs.lines
    assert of_series.table().rows == of_pairs.table().rows
    assert of_series.table().column("x") == [1, 2, None, 4, 5]
    naive = datetime(2026, 1, 1, 12)
    assert {time_ms(naive), time_ms(naive.replace(tzinfo=UTC)), time_ms(numpy.datetime64(naive))} == {NOON}
    with pytest.raises(UsageError, match="9 lines in one chart cannot be distinguished"):
        Lines({f"group {n}": {NOON: n} for n in range(9)})


def test_the_upper_edge_of_areas_is_the_sum() -> None:
    chart = Areas({"a": {NOON: 6}, "b": {NOON: 7, NOON + 60_000: 1}})
    assert re.findall(r'class="tick" text-anchor="end">([^<]*)<', str(chart.drawing()))[-1] == "15"
    assert chart.table().column("b") == [7, 1] and chart.table().column("a") == [6, None]


def test_durations_that_may_be_0_have_an_axis_from_0() -> None:
    axis = str(Lines({"": {NOON: 0, NOON + 60_000: 180_000}}, unit="ms", log=False).drawing())
    assert re.findall(r'class="tick" text-anchor="end">([^<]*)<', axis)[:2] == ["0", "30 s"]


def test_small_cells_have_no_text_and_gaps_no_cell() -> None:
    few, many = (ElementTree.fromstring(str(CHARTS[at].drawing())) for at in (7, 8))
    assert [node.text for node in few.iter("text") if node.get("class") == "cell"] == ["12", "3"]
    assert len(list(few.iter("rect"))) == 2
    assert not [node for node in many.iter("text") if node.get("class") == "cell"]
    names = [node for node in many.iter("text") if node.get("class") == "tick"]
    assert 5 < len(names) < 100  # of 200 columns those that fit


def test_a_frame_of_pandas_is_cells() -> None:
    frame = pandas.DataFrame({"0": [12, 9], "1": [3, numpy.nan]}, index=["broker-a", "broker-b"])
    assert Heat(frame).cells == {"broker-a": {"0": 12.0, "1": 3.0}, "broker-b": {"0": 9.0}}


def test_percentiles_of_an_ecdf_count_what_is_not_known() -> None:
    """One of four waits goes on: the median is known, the worst is not; leaving it out would say 30."""
    waits = Ecdf({"q": [30, 10, 20, None], "r": []}, unit="ms")
    assert [waits.quantile("q", share) for share in (0.25, 0.5, 0.75, 0.76, 1)] == [10, 20, 30, None, None]
    assert Ecdf({"q": [30, 10, 20]}).quantile("q", 1) == 30 and waits.quantile("r", 0.5) is None
    assert waits.table().column("share") == [0.25, 0.5, 0.75]
    with pytest.raises(UsageError, match="no sample 's'"):
        waits.quantile("s", 0.5)

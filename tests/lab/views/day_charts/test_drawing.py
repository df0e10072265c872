"""How charts of a day are drawn: where things stand, what is written beside them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from mqlab.lab.views.day_charts import drawing as charts
from mqlab.scales import DAY, HOUR, MINUTE, Scale, durations, linear, time_ticks

FRAME = charts.ChartFrame(0, 100, linear(10), width=300, height=100, right=20)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


@pytest.mark.parametrize("most", [0, 0.4, 1, 3, 7, 10, 99, 100, 101, 12_345, 9_999_999])
def test_a_linear_axis_reaches_its_most_in_few_round_steps(most: float) -> None:
    scale = linear(most)
    assert scale.ticks[-1] == scale.high >= most
    assert 2 <= len(scale.ticks) <= 6
    assert (scale.part(0), scale.part(scale.high)) == (0, 1)


@pytest.mark.parametrize(
    ("least", "most"), [(0, 0), (1, 1), (3, 7), (20, 900), (5, 40 * DAY), (2 * HOUR, 3 * HOUR), (40 * DAY, 50 * DAY)]
)
def test_an_axis_of_durations_holds_them(least: int, most: int) -> None:
    scale = durations(least, most)
    assert scale.low <= max(least, 1) and scale.low < scale.high
    assert 0 <= scale.part(least) <= 1
    assert most > scale.high or scale.part(most) <= 1


@pytest.mark.parametrize("long", [1_000, 50 * MINUTE, HOUR, DAY, 30 * DAY])
def test_times_are_round_and_few(long: int) -> None:
    start = 1_731_283_200_123
    ticks, step = time_ticks(start, start + long)
    assert len(ticks) <= 10
    assert all(tick % step == 0 and start <= tick <= start + long for tick in ticks)


def test_a_line_is_broken_where_nothing_was() -> None:
    series = [charts.Series("p50 订单", [(0, 1.0), (10, 2.0), (20, None), (30, 5.0), (40, None)])]
    svg = str(charts.lines(FRAME, series, "<latency> & more"))
    lines = re.findall(r'<path class="line[^>]*>', svg)
    assert len(lines) == 1 and lines[0].count("L") == 1
    assert svg.count("<circle") == 1
    assert "&lt;latency&gt; &amp; more" in svg
    ElementTree.fromstring(svg)


def test_areas_stand_on_each_other() -> None:
    series = [charts.Series("a", [(0, 4.0), (100, 4.0)]), charts.Series("b", [(0, 6.0), (100, None)], 1)]
    svg = str(charts.areas(FRAME, series, "alt"))
    (low, high) = re.findall(r'<path class="area[^"]*" d="M([^"]*)Z"', svg)
    top = [float(point.split()[1]) for point in high.split("L")[:2]]
    assert top == [round(FRAME.y(10), 1), round(FRAME.y(4), 1)]
    assert [float(point.split()[1]) for point in low.split("L")[:2]] == [round(FRAME.y(4), 1)] * 2


def test_spans_without_an_end_last_and_names_are_cut() -> None:
    rows = [
        charts.DrawnSpan("a name that is far too long for the place it has in the picture", 20, None, "told"),
        charts.DrawnSpan("no times", None, None, "told"),
        charts.DrawnSpan("before the day", -50, 10, "told"),
    ]
    svg = str(charts.spans(0, 100, rows, "alt"))
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
    assert len(widths) == 2 and widths[0] > 5 * widths[1]
    assert any(text.endswith("…") for text in texts(svg))


def test_bars_are_as_long_as_their_values() -> None:
    svg = str(charts.bars([("x", [(30, 0, "a"), (10, 1, "b")], "40"), ("y", [(20, 0, "a")], "20")], "alt"))
    first, second, third = (float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', svg))
    assert first == pytest.approx(3 * second, rel=0.01) and third == pytest.approx(2 * second, rel=0.01)
    assert str(charts.bars([], "alt")).startswith("<svg")


def test_a_heat_map_is_darker_for_more() -> None:
    svg = str(charts.heat([("broker-a", [("1", 0.1, "q0"), ("9", 0.9, "q1")])], "alt"))
    faint, strong = (float(o) for o in re.findall(r'fill-opacity="([\d.]+)"', svg))
    assert faint < strong <= 1
    assert texts(svg) == ["broker-a", "1", "9"]


def test_an_axis_may_be_a_point() -> None:
    point = charts.ChartFrame(5, 5, Scale(0, 1, (0, 1)))
    assert point.x(5) == charts.LEFT

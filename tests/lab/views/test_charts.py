from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from mqlab.errors import UsageError
from mqlab.lab.views import Bars, Curve, Histogram, ranked
from mqlab.lab.views.charts import MAX_BARS_DRAWN, MAX_POINTS_DRAWN
from mqlab.lab.views.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"
CHARTS: list[Picture] = [
    Bars({"заказ <b>": 12, "订单": 3, "": 0}, title="A & B", unit="messages"),
    Bars({}),
    Bars({"one": 0.25}),
    Bars((f"key-{n}", n) for n in range(5_000)),
    Curve(ranked([1000 // n for n in range(1, 3_000)]), log_x=True, log_y=True, x="rank", y="messages <&>"),
    Curve({"Spark": [(1, 3.2), (4, 1.6)], "DuckDB": [(1, 1.1)]}, x="cores", y="s", title="A & B"),
    Curve([]),
    Curve([(-3, -2), (3, 2)]),
    Curve([(5, 5)], log_x=True),
    Histogram([]),
    Histogram([7, 7, 7], unit="ms"),
    Histogram([0, 1, 10, 100, 100_000], log=True, bins=5, title="<latency>"),
    Histogram(range(100_000)),
]


def svg(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg())


def bars(picture: Picture) -> list[ElementTree.Element]:
    return [node for node in svg(picture).iter(SVG + "rect") if node.find(SVG + "title") is not None]


@pytest.mark.parametrize("chart", CHARTS, ids=repr)
def test_every_chart_is_well_formed_named_and_inside_its_card(chart: Picture) -> None:
    root = svg(chart)
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    for node in [*root.iter(SVG + "rect"), *root.iter(SVG + "text")]:
        assert 0 <= int(node.get("x", "0")) <= width and 0 <= int(node.get("y", "0")) <= height
    for x, y in re.findall(r"[ML](\d+) (\d+)", chart.svg()):
        assert int(x) <= width and int(y) <= height
    assert root.findtext(SVG + "title") and root.findtext(SVG + "desc") == chart.alt
    html = str(chart.html())
    assert 'role="img"' in html and "<details><summary>the same as text</summary>" in html
    assert "<b>" not in html and "<latency>" not in html and len(html) < 300_000


def test_bars_are_as_long_as_their_numbers_and_nothing_has_no_bar() -> None:
    drawn = bars(CHARTS[0])
    assert [int(node.get("width", "")) for node in drawn] == [320, 80]
    assert str(CHARTS[0]).splitlines()[1:] == [
        "заказ <b>  " + "█" * 40 + "  12 messages",
        "订单       " + "█" * 10 + " " * 30 + "  3 messages",
        " " * 11 + " " * 40 + "  0 messages",
    ]
    assert "12 messages" in CHARTS[0].svg() and "0 messages" in CHARTS[0].svg()


def test_one_of_very_many_is_still_a_bar() -> None:
    assert [node.get("width") for node in bars(Bars({"a": 10**9, "b": 1}))] == ["320", "1"]


def test_many_bars_are_cut_with_a_word_and_the_table_has_all() -> None:
    many = CHARTS[3]
    assert len(many.table()) == 5_000 and "… 4,960 more bars; .table() has all 5,000" in str(many)
    assert len(bars(many)) == MAX_BARS_DRAWN - 1  # that of 0 is not drawn


def test_bars_take_a_pandas_series() -> None:
    import pandas

    series = pandas.Series([4, 2], index=["paid", "new"])
    assert Bars(series).values == [("paid", 4), ("new", 2)]


@pytest.mark.parametrize("wrong", [{"a": -1}, [1, 2], {"a": "many"}, {"a": float("nan")}, 7])
def test_what_is_no_bar_is_refused_with_a_hint(wrong: object) -> None:
    with pytest.raises(UsageError):
        Bars(wrong)  # type: ignore[arg-type]


def places(curve: Picture) -> list[tuple[int, int]]:
    (path,) = [node for node in svg(curve).iter(SVG + "path") if node.get("fill") == "none"]
    return [(int(x), int(y)) for x, y in re.findall(r"(\d+) (\d+)", path.get("d", ""))]


def test_a_zipf_curve_is_a_straight_line_on_logarithmic_axes() -> None:
    drawn = places(Curve([(rank, 1_000 / rank) for rank in (1, 10, 100, 1_000)], log_x=True, log_y=True))
    steps = {(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in pairwise(drawn)}
    assert all(abs(dx - 173) <= 1 and abs(dy - 80) <= 1 for dx, dy in steps)


def test_a_logarithmic_axis_leaves_out_what_it_has_no_place_for() -> None:
    curve = Curve([(0, 5), (1, 0), (1, 10), (100, 1)], log_x=True, log_y=True)
    assert len(places(curve)) == 2 and len(curve.table()) == 4


def test_a_curve_of_very_many_points_draws_some_hundreds_with_both_ends() -> None:
    curve = Curve([(x, x) for x in range(100_000)])
    drawn = places(curve)
    assert len(drawn) <= MAX_POINTS_DRAWN and len(str(curve).splitlines()) < 30
    assert drawn[0][1] > drawn[-1][1] and len(curve.table()) == 100_000


def test_a_linear_axis_ends_where_its_line_ends() -> None:
    curve = Curve([(hour, hour % 5) for hour in range(25)], x="hour of the day")
    words = {node.text for node in svg(curve).iter(SVG + "text")}
    ends = [int(node.get("x2", "")) for node in svg(curve).iter(SVG + "line")]
    assert "20" in words and "30" not in words and places(curve)[-1][0] == max(ends)


def test_lines_have_dashes_and_names_beside_their_colours() -> None:
    root = svg(CHARTS[5])
    lines = [node for node in root.iter(SVG + "path") if node.get("fill") == "none"]
    assert len({(node.get("stroke"), node.get("stroke-dasharray")) for node in lines}) == 2
    words = [node.text for node in root.iter(SVG + "text")]
    assert "Spark" in words and "DuckDB" in words
    with pytest.raises(UsageError):
        Curve({str(n): [(0, 0)] for n in range(9)})


def test_a_histogram_counts_every_value_once() -> None:
    values = [0, 1, 10, 100, 100_000]
    for histogram in (Histogram(values, bins=5), Histogram(values, bins=5, log=True)):
        assert sum(histogram.table().column("count")) == 5
    assert Histogram([1, 2, 3, 4], bins=4).table().column("count") == [1, 1, 1, 1]
    assert Histogram([0, 10, 1_000], bins=2, log=True).table().column("count") == [2, 1]
    assert str(Histogram([])) == "no values"
    with pytest.raises(UsageError):
        Histogram([1], bins=0)

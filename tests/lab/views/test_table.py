from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from markupsafe import Markup

from mqlab.durations import calendar
from mqlab.errors import UsageError
from mqlab.lab.views import Row, Table
from mqlab.lab.views.table import FIRST_CALENDAR_MS, MAX_ROWS_SHOWN, shown_value
from mqlab.lab.views.text_width import width

ROWS = [
    {"topic": "订单", "tags": "已支付", "body": "готово 🙂".encode(), "queue_offset": 3},
    {"topic": "orders", "tags": None, "body": b"\xff\x00", "queue_offset": 12},
]


def test_text_lines_up_with_chinese_cyrillic_and_emoji() -> None:
    assert str(Table(ROWS, title="Messages")).splitlines() == [
        "Messages",
        "topic   tags    body       queue_offset",
        "------  ------  ---------  ------------",
        "订单    已支付  готово 🙂             3",
        "orders  -       ff00                 12",
    ]


def test_every_line_of_a_numbers_table_takes_the_same_columns() -> None:
    lines = str(Table([{"名": "🙂" * n, "lag": n} for n in range(5)])).splitlines()
    assert len({width(line) for line in lines}) == 1


def test_html_is_escaped_and_paints_nothing() -> None:
    html = Table([{"keys": "<b>&\"'", "n": 1}], title="<i>").html()
    assert isinstance(html, Markup)
    assert "&lt;b&gt;&amp;&#34;&#39;" in html and "&lt;i&gt;" in html
    assert "color" not in html  # the notebook's own colours, light or dark


def test_a_long_name_of_a_column_may_break_where_the_table_is_too_wide() -> None:
    assert ">ORIGIN_<wbr>MESSAGE_<wbr>ID</th>" in Table([{"ORIGIN_MESSAGE_ID": 1}]).html()
    assert ">a_<wbr>&lt;b</th>" in Table([{"a_<b": 1}]).html()


def test_rows_by_name_by_attribute_and_in_order() -> None:
    row = Table(ROWS)[1]
    assert (row.topic, row["queue_offset"], row[0]) == ("orders", 12, "orders")
    assert tuple(row) == ("orders", None, b"\xff\x00", 12)
    assert row == Row(ROWS[1]) and len(row) == 4
    assert pickle.loads(pickle.dumps(row)) == row


def test_a_column_may_be_called_like_a_method_of_a_dictionary() -> None:
    assert Table([{"keys": "order-1", "items": 2, "values": 3}])[0].keys == "order-1"


def test_a_wrong_column_is_named_with_those_there_are() -> None:
    table = Table(ROWS)
    with pytest.raises(AttributeError, match="no column 'lag'; there are: topic, tags"):
        _ = table[0].lag
    with pytest.raises(KeyError, match="no column 'lag'"):
        _ = table[0]["lag"]
    with pytest.raises(UsageError, match="its columns: topic, tags, body, queue_offset"):
        table.column("lag")


def test_rows_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        Table(ROWS)[0].topic = "x"


def test_rows_of_dataclasses_named_tuples_and_nothing_else() -> None:
    @dataclass(slots=True)
    class Lag:
        queue_id: int
        lag: int

    class Pair(NamedTuple):
        queue_id: int
        lag: int

    assert Table([Lag(0, 5)]) == Table([Pair(0, 5)]) == Table([{"queue_id": 0, "lag": 5}])
    with pytest.raises(UsageError, match="not of int"):
        Table([3])


def test_missing_values_empty_tables_slices_and_status() -> None:
    table = Table([{"a": 1}, {"b": 2}], title="T")
    assert table.columns == ("a", "b") and table.column("a") == [1, None]
    assert "-" in str(table)
    assert str(Table([], title="Lag")) == "Lag: no rows"
    assert "<i>nothing yet</i>" in Table([], empty="nothing yet").html()
    assert isinstance(table[:1], Table) and len(table[:1]) == 1
    assert repr(table) == "<Table 'T' of 2 rows: a, b>"


def test_long_tables_say_how_much_more_there_is() -> None:
    table = Table([{"n": n} for n in range(MAX_ROWS_SHOWN + 940)])
    assert str(table).splitlines()[-1] == "… 940 more rows; .to_pandas() has all 1,000"
    assert "940 more rows" in table.html()
    assert len(table.to_pandas()) == 1000


def test_to_pandas_has_the_raw_values() -> None:
    frame = Table([{"store_timestamp": 1767225600012, "body": b"\xff"}]).to_pandas()
    assert frame.store_timestamp[0] == 1767225600012 and frame.body[0] == b"\xff"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("started_ms", 1767225600012, "2026-01-01 00:00:00.012"),
        ("waited_ms", 17_140_000, "17140000"),
        ("store_timestamp", FIRST_CALENDAR_MS, "1973-03-03 09:46:40.000"),
        ("physical_offset", 1767225600012, "1767225600012"),
        ("ok", True, "True"),
        ("share", 0.25, "0.25"),
        ("tags", ["a", "b"], "a, b"),
        ("properties", {"KEYS": "k", "n": None}, "KEYS=k n=-"),
        ("body", "多行\n".encode(), "多行\\n"),
    ],
)
def test_values(name: str, value: object, shown: str) -> None:
    assert shown_value(name, value) == shown


def test_a_time_behind_the_calendar_is_shown_as_its_number() -> None:
    assert calendar(2**62) == str(2**62)

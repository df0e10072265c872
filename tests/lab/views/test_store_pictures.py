"""Pages, waits and the map of a store, from plain data."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from mqlab.errors import UsageError
from mqlab.lab.views.fates import Fate, Fates
from mqlab.lab.views.page_grid import MAX_CELLS, FilePages, PageGrid
from mqlab.lab.views.picture import Picture
from mqlab.lab.views.store_map import MAX_UNITS_DRAWN, IndexEntry, StoreMap, Unit
from mqlab.lab.views.waits import MAX_ROWS_DRAWN, ListenerCall, MessageWaits, Wait

SVG = "{http://www.w3.org/2000/svg}"
HOUR = 3_600_000
UNITS = [Unit(0, 90, "订单 0", "<заказ>"), Unit(90, 80, "orders 1"), Unit(170, 70, "orders 1", "🙂")]
QUEUES = {"订单 0": [(0, 0)], "orders 1": [(0, 90), (1, 170)]}
INDEX = [IndexEntry(1, 3, 0, 0), IndexEntry(2, 0, 90, 0), IndexEntry(3, 3, 170, 1)]
FAILS = [ListenerCall(0, 5, "RECONSUME_LATER", 0), ListenerCall(10_005, 10_006, "RECONSUME_LATER", 1)]
PICTURES: list[Picture] = [
    StoreMap(UNITS, QUEUES, INDEX, lit=[170], title="<broker>"),
    StoreMap([]),
    StoreMap([Unit(n * 100, 100, "orders 0", str(n)) for n in range(3_000)], {"orders 0": [(2_999, 299_900)]}),
    PageGrid([FilePages("<commitlog>/0", 256, 3, (1, 2)), FilePages("config/a.json", 1, 1, whole=True)], title="A"),
    PageGrid([]),
    PageGrid([FilePages(f"file {n}", 5_000, 5_000, tuple(range(5_000))) for n in range(60)], others=["create <x>"]),
    MessageWaits(
        FAILS, [Wait(5, 10_005, "<level> 3"), Wait(10_006, 2 * HOUR, "level 17")], dead_ms=2 * HOUR, title="m"
    ),
    MessageWaits([], []),
    Fates(
        [Fate(0, n, "<tag> 标签", "FILTERED_BY_CLIENT", "a") for n in range(40)], {0: "<a>", 1: ""}, title="<broker>"
    ),
    Fates([], {}),
    MessageWaits(FAILS[:1], [Wait(5, None, "level 3")], now_ms=50),
    MessageWaits(FAILS, [Wait(5, 5, "level 0")], scale="linear"),
    MessageWaits([ListenerCall(n * 1000, None, "RUNNING", n) for n in range(4_000)], scale="linear"),
]


@pytest.mark.parametrize("picture", PICTURES, ids=repr)
def test_every_picture_is_well_formed_escaped_and_of_a_size_to_look_at(picture: Picture) -> None:
    root = ElementTree.fromstring(picture.svg())
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    assert width < 2_500 and height < 9_000
    for node in [*root.iter(SVG + "rect"), *root.iter(SVG + "text")]:
        assert 0 <= int(node.get("x", "0")) <= width and 0 <= int(node.get("y", "0")) <= height
    html = str(picture.html())
    assert "<details>" in html and not any(word in html for word in ("<broker>", "<level>", "<заказ>", "<commitlog>"))
    assert len(str(picture).splitlines()) < 120 and picture.alt in html.replace("&lt;", "<").replace("&gt;", ">")


def titles(picture: Picture) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture.svg()).iter(SVG + "title")]


def test_a_map_has_a_box_for_each_unit_entry_and_slot_and_an_arrow_for_each_link() -> None:
    drawing = PICTURES[0].svg()
    told = titles(PICTURES[0])
    assert "entry 1 of orders 1: unit at 170" in told and "slot 3: entry 3" in told
    assert "entry 3 in slot 3: unit at 170, the one before it is 1" in told
    arrows = drawing.count(' Z" fill=')
    # three queue entries, three index entries, two slots, a bow for the chain, two keys of the legend
    assert arrows == 3 + 3 + 2 + 1 + 2 and len(re.findall(r"M\d+ \d+ C", drawing)) == 1


def test_one_message_is_lit_up_everywhere_by_a_sign_and_by_thick_lines() -> None:
    root = ElementTree.fromstring(PICTURES[0].svg())
    lit = [node.text for node in root.iter(SVG + "text") if (node.text or "").startswith("◆")]
    assert [words.split()[1] for words in lit if words] == ["170", "1", "3", "slot", "the"]
    assert "◆ 170: orders 1" in str(PICTURES[0]) and PICTURES[0].svg().count('stroke-width="3"') > 4
    assert "◆" not in str(StoreMap(UNITS, QUEUES, INDEX))


def test_a_long_log_is_drawn_from_its_newest_units_and_the_table_has_all() -> None:
    long = PICTURES[2]
    assert f"… {3_000 - MAX_UNITS_DRAWN:,} earlier units" in str(long) and len(long.table()) == 3_000


def test_a_page_has_a_sign_and_a_colour_for_what_a_power_cut_does_to_it() -> None:
    grid = PICTURES[3]
    lines = str(grid).splitlines()
    assert lines[1].startswith("<commitlog>/0  ■▲▲·  1 synced, 2 written and not synced, 253 never written")
    assert [(row.file, row.what, row.page) for row in grid.table()] == [
        ("<commitlog>/0", "page", 1),
        ("<commitlog>/0", "page", 2),
        ("config/a.json", "content", None),
    ]
    assert "page 2, bytes 8192 to 12288: written, not synced: a power cut undoes it" in titles(grid)
    assert str(PICTURES[4]) == "everything written is synced"


def test_a_file_of_many_pages_is_cut_and_counted() -> None:
    file = FilePages("f", 100_000, 100_000, ())
    assert file.drawn == MAX_CELLS and "100000 synced" in file.words


def bars(picture: Picture) -> list[tuple[int, int]]:
    found = ElementTree.fromstring(picture.svg()).iter(SVG + "rect")
    return [(int(n.get("x", "")), int(n.get("width", ""))) for n in found if n.find(SVG + "title") is not None]


def test_ten_seconds_and_two_hours_are_both_seen_and_differ() -> None:
    (_, short), (_, long) = bars(PICTURES[6])
    assert short > 40 and long - short > 100
    lines = [line for line in str(PICTURES[6]).splitlines() if "waits" in line]
    assert 1 < lines[0].count("█") < lines[1].count("█")


def test_on_the_linear_axis_bars_stand_where_the_message_waited() -> None:
    waits = [Wait(0, HOUR, "a"), Wait(3 * HOUR, 4 * HOUR, "b")]
    (first, one), (second, other) = bars(MessageWaits([ListenerCall(0, 1, "x", 0)], waits, scale="linear"))
    assert abs(one - other) <= 1 and abs((second - first) - 3 * one) <= 3


def test_a_wait_that_is_not_over_and_a_death_are_told() -> None:
    assert "and longer" in str(PICTURES[10]) and "and longer" in PICTURES[10].svg()
    assert str(PICTURES[6]).splitlines()[-1].endswith("+2:00:00  dead letter")
    assert PICTURES[6].table().column("what") == ["delivery", "wait", "delivery", "wait", "dead"]
    with pytest.raises(UsageError):
        MessageWaits([], scale="logarithmic")


def test_a_message_delivered_thousands_of_times_is_cut_with_a_word() -> None:
    assert f"… {4_000 - MAX_ROWS_DRAWN:,} more rows; .table() has all 4,000" in str(PICTURES[12])

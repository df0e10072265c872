from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import pytest

from mqlab.durations import exact_text
from mqlab.lab.views.diagram import HINT, Diagram
from mqlab.lab.views.offset_strip import OffsetStrip
from mqlab.lab.views.picture import Picture
from mqlab.lab.views.queue import QueueView
from mqlab.lab.views.theme import PALETTE
from mqlab.lab.views.timeline import LOOKS, MAX_ROWS_DRAWN, Moment, MomentsOnDemand, Timeline, after
from mqlab.lab.views.view import image

START = 1767225600000
DAY = [
    Moment(START, "shop", "frame", "SEND 订单 <&>", to="broker-a", step=3),
    Moment(START + 1, "broker-a", "message.stored", "stored at byte 0", "stored", step=4, values=(("queue_id", 2),)),
    Moment(START + 1, "broker-a", "frame", "SEND_OK", to="shop"),
    Moment(START + 5001, "billing-1", "listener.started", "готово 🙂", "read"),
    Moment(START + 5002, "billing-1", "offset.updated", "next is 1", "progress"),
    Moment(START + 5002, "billing-1", "fault", "killed", "trouble"),
]
ENTRIES = [{"queue_offset": n, "label": f"订单-{n}", "physical_offset": n * 200} for n in range(3)]
PROGRESS = [
    {"topic": "orders", "queue_id": 0, "broker_offset": 20, "consumer_offset": 7, "pull_offset": 10, "lag": 13},
    {"topic": "orders", "queue_id": 1, "broker_offset": 0, "consumer_offset": -1, "pull_offset": None, "lag": 0},
]
PICTURES = [
    Timeline(DAY, title="A message's day"),
    QueueView("orders, queue 0", ENTRIES, {"audit": 1, "billing": 3}),
    OffsetStrip(PROGRESS, title="billing"),
    Diagram({"p": "shop", "b": "broker-a"}, [("p", "b", "sends")], title="World"),
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: type(p).__name__)
def test_every_picture_is_an_image_with_a_text_twin_and_a_table(picture: Picture) -> None:
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == str(picture) == picture.text()
    if picture.svg():
        found = re.search(
            r'<img class="mqlab-image" alt="[^"]+" style="[^"]+" src="data:image/svg\+xml;base64,([^"]+)">',
            bundle["text/html"],
        )
        assert found is not None
        assert base64.b64decode(found[1]).decode() == picture.svg()
        assert "<summary>the same as text</summary>" in bundle["text/html"]
    assert len(picture.table()) and len(picture.to_pandas()) == len(picture.table())
    assert repr(picture).count("\n") == 0


@pytest.mark.parametrize("picture", PICTURES[:3], ids=lambda p: type(p).__name__)
def test_our_drawings_are_well_formed_with_whole_numbers_inside_the_card(picture: Picture) -> None:
    root = ElementTree.fromstring(picture.svg())
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    for node in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= int(node.get("x", "")) <= width and 0 <= int(node.get("y", "")) <= height
        assert re.fullmatch(
            r"var\(--mq-[a-z-]+,#[0-9a-f]{6}\)", node.get("fill", "")
        )  # the theme's, else the light one


def test_timeline_text() -> None:
    assert str(PICTURES[0]).splitlines() == [
        "A message's day",
        "      time  shop                  broker-a              billing-1",
        "     +0 ms  SEND 订单 <&> ─────▶",
        "     +1 ms                        stored at byte 0",
        "     +1 ms  ◀─────────── SEND_OK",
        "         ⋮  5 s later",
        "  +5.001 s                                              готово 🙂",
        "  +5.002 s                                              next is 1",
        "  +5.002 s                                              killed",
    ]


def test_a_timeline_of_hours_has_room_for_its_times() -> None:
    hours = [Moment(1_000, "broker-a", "x", "first"), Moment(17_141_589, "broker-a", "x", "позже")]
    timeline = Timeline(hours)
    assert str(timeline).splitlines()[1:] == [
        "       +0 ms  first",
        "           ⋮  4:45:40.589 later",
        "+4:45:40.589  позже",
    ]
    root = ElementTree.fromstring(timeline.svg())
    texts = [node for node in root.iter("{http://www.w3.org/2000/svg}text") if "later" in (node.text or "")]
    assert int(texts[0].get("x", "")) >= 6 * len("4:45:40.589 later") and texts[0].get("text-anchor") == "end"
    (dashed,) = (node for node in root.iter("{http://www.w3.org/2000/svg}line") if node.get("stroke-dasharray"))
    assert int(dashed.get("x1", "")) > int(texts[0].get("x", ""))


def test_timeline_table_keeps_step_node_kind_and_values() -> None:
    row = PICTURES[0].table()[1]
    assert (row.step, row.node, row.kind, row.after_ms, row["values"]) == (
        4,
        "broker-a",
        "message.stored",
        1,
        {"queue_id": 2},
    )


def test_timeline_lanes_can_be_chosen_and_long_ones_are_cut_with_a_word() -> None:
    only = Timeline(DAY, lanes=["billing-1"])
    assert "broker-a" not in str(only).splitlines()[0] and "… 3 more moments; .table() has all 6" in str(only)
    long = Timeline([Moment(START + n, "broker-a", "x", str(n)) for n in range(MAX_ROWS_DRAWN + 5)])
    assert "… 5 more moments" in str(long) and "… 5 more moments" in long.svg()
    assert str(Timeline([], title="Day")) == "Day: nothing happened"
    ElementTree.fromstring(Timeline([]).svg())


def test_every_look_has_its_own_colour_or_shape() -> None:
    assert len({look.shape for look in LOOKS.values()}) == len(LOOKS)


def test_durations_are_exact() -> None:
    texts = [exact_text(duration_ms) for duration_ms in (0, 999, 1000, 59_999)]
    assert texts == ["0 ms", "999 ms", "1 s", "59.999 s"]
    assert after(17_140_001) == "+4:45:40.001" and after(-3) == "-3 ms"


def test_queue_text_says_next_and_never_last() -> None:
    assert str(PICTURES[1]).splitlines() == [
        "orders, queue 0",
        "0: 订单-0",
        "1: 订单-1  ◀ audit reads this next",
        "2: 订单-2",
        "3: (next)  ◀ billing reads this next",
    ]


def test_queue_table_says_who_passed_each_entry() -> None:
    table = PICTURES[1].table()
    assert table.column("passed_by") == [["audit", "billing"], ["billing"], ["billing"]]
    assert table.column("next_of") == [[], ["audit"], []]


def test_long_and_empty_queues() -> None:
    long = QueueView("q", [{"queue_offset": n} for n in range(100)], {"slow": 2, "fast": 100})
    assert "… 84 earlier entries" in str(long) and "slow reads 2 next, before what is shown" in str(long)
    ElementTree.fromstring(long.svg())
    capitals = QueueView("SCHEDULE_TOPIC_XXXX, queue 2 of broker-a", [{"queue_offset": 0}])
    assert int(ElementTree.fromstring(capitals.svg()).get("width", "")) > 7 * len(capitals.name) + 2 * 18
    empty = QueueView("q", [], {"new": 0})
    assert str(empty) == "q\n0: (next)  ◀ new reads this next"
    ElementTree.fromstring(empty.svg())


def test_offset_strip_words_and_shares() -> None:
    lines = str(PICTURES[2]).splitlines()
    assert lines[1] == "orders 0  ██████████▒▒▒▒▒░░░░░░░░░░░░░░░  next is 7, 3 in flight, 10 waiting of 20"
    assert lines[2] == "orders 1                                  nothing stored"


def test_one_done_of_very_many_is_still_seen() -> None:
    strip = OffsetStrip([{"topic": "t", "queue_id": 0, "broker_offset": 10**9, "consumer_offset": 1}])
    assert "█" in str(strip)


def test_a_diagram_without_graphviz_is_text_with_one_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.lab.views.diagram._drawn_by_dot", lambda source: "")
    monkeypatch.setattr("mqlab.lab.views.diagram._drawn_by_wheel", lambda source: "")
    html = Diagram(["订单 <shop>", "broker-a"], [("订单 <shop>", "broker-a", "sends")])._repr_mimebundle_()["text/html"]
    assert "订单 &lt;shop&gt; ── sends ──▶ broker-a" in html and HINT in html and "<img" not in html


def test_a_diagram_is_drawn_by_whichever_program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.lab.views.diagram._drawn_by_dot", lambda source: "")
    monkeypatch.setattr("mqlab.lab.views.diagram._drawn_by_wheel", lambda source: "<svg/>")
    assert "<img" in Diagram(["a"], [])._repr_mimebundle_()["text/html"]


def test_a_picture_shrinks_to_four_fifths_and_then_scrolls() -> None:
    html = image('<?xml version="1.0"?><svg xmlns="x" width="1000" height="5"><rect/></svg>', "<b>")
    assert 'style="display:none;overflow-x:auto"><svg role="img" aria-label="&lt;b&gt;"' in html
    assert 'style="max-width:100%;min-width:800px' in html
    assert "<?xml" not in html and 'alt="&lt;b&gt;"' in html


def test_without_style_sheets_and_svg_only_the_still_image_is_left() -> None:
    """What JupyterLab leaves of a picture in a notebook that is not trusted: no style, no svg, but the words in it."""
    html = str(PICTURES[0].html())
    left = re.sub(r"<style>.*?</style>", "", html)
    live = left[left.index('<div class="mqlab-drawing"') :]
    assert live.startswith(
        '<div class="mqlab-drawing" tabindex="0" style="display:none;'
    )  # the words of the drawing stay hidden
    assert '<img class="mqlab-image"' in left and left.count("display:none") == 1
    assert ".mqlab-drawing{display:block!important}" in html and ".mqlab-image{display:none!important}" in html


def test_style_sheets_in_drawings_do_not_reach_the_page() -> None:
    for picture in PICTURES[:3]:
        for style in re.findall(r"<style>(.*?)</style>", picture.svg()):
            assert all(rule.startswith(".mq ") for rule in re.findall(r"(?:^|})([^{}]+){", style))


def test_every_colour_can_be_told_from_the_paper_in_both_themes() -> None:
    def light(hexadecimal: str) -> float:
        parts = [int(hexadecimal[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for theme in (0, 1):
        paper = light(PALETTE["paper"][theme])
        for name in ("ink", "muted", "blue", "green", "violet", "red", "amber"):
            found = light(PALETTE[name][theme])
            assert (max(found, paper) + 0.05) / (min(found, paper) + 0.05) >= 4.5, (name, theme)


def test_strips_of_several_brokers_name_them_and_an_empty_queue_says_so() -> None:
    rows = [
        {"topic": "订单", "broker": broker, "queue_id": 0, "broker_offset": most, "consumer_offset": 0}
        for broker, most in (("broker-a", 0), ("broker-b", 2))
    ]
    lines = str(OffsetStrip(rows)).splitlines()
    assert lines[0].startswith("订单 broker-a 0") and lines[0].endswith("nothing stored") and "░" not in lines[0]
    assert lines[1].startswith("订单 broker-b 0") and lines[1].endswith("2 waiting of 2")
    assert "nothing stored" in OffsetStrip(rows).svg()


def test_a_picture_of_a_long_day_makes_only_the_moments_it_draws() -> None:
    made: list[int] = []

    def make(number: int) -> Moment:
        made.append(number)
        return Moment(number, "broker-a", "x", "заказ")

    timeline = Timeline(MomentsOnDemand(range(1_000_000), make, ["broker-a"]))
    assert "1,000,000" in str(timeline) and timeline.html() and len(timeline.table().html()) < 50_000
    assert len(made) < 2_000
    assert timeline.table()[999_999].now_ms == 999_999

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from mqlab.errors import UsageError
from mqlab.lab.views.picture import text_pixels
from mqlab.lab.views.timeline import SCALES, Moment, Timeline

SVG = "{http://www.w3.org/2000/svg}"
START = 1767225600000


def at(after_ms: int, lane: str, text: str, **more: object) -> Moment:
    return Moment(START + after_ms, lane, "x", text, **more)  # type: ignore[arg-type]


DAY = [
    at(0, "billing", "PULL", to="broker", step=1, sent_ms=START - 1, sent_step=0),
    at(0, "broker", "billing waits", look="held", step=1, until_ms=START + 5_000, until_step=7),
    at(5_000, "shop", "SEND <b>", to="broker", step=6, sent_ms=START + 4_400, sent_step=5),
    at(5_000, "broker", "stored", look="stored", step=7),
    at(5_601, "broker", "FOUND", to="billing", step=9, sent_ms=START + 5_000, sent_step=7),
    at(5_601, "billing", "listener starts", look="read", step=9),
]
LANES = ["shop", "broker", "billing"]


def drawing(moments: list[Moment], scale: str = "rows") -> ElementTree.Element:
    return ElementTree.fromstring(Timeline(moments, lanes=LANES, scale=scale).svg())


def arrows(root: ElementTree.Element) -> list[tuple[int, int, int, int]]:
    """Those lines that are neither level nor upright."""
    found = [[int(node.get(name, "")) for name in ("x1", "y1", "x2", "y2")] for node in root.iter(SVG + "line")]
    return [(x1, y1, x2, y2) for x1, y1, x2, y2 in found if abs(x1 - x2) > 20 and y1 != y2]


def bars(root: ElementTree.Element) -> list[tuple[int, int]]:
    """(top, bottom) of each held pull."""
    held = [node for node in root.iter(SVG + "rect") if node.find(SVG + "title") is not None]
    return [(int(n.get("y", "")), int(n.get("y", "")) + int(n.get("height", ""))) for n in held]


def height_of(root: ElementTree.Element, words: str) -> int:
    return next(int(node.get("y", "")) for node in root.iter(SVG + "text") if node.text == words)


@pytest.mark.parametrize("scale", SCALES)
def test_every_arrow_falls_from_its_sending_to_its_arrival(scale: str) -> None:
    found = arrows(drawing(DAY, scale))
    assert len(found) == 3 and all(y2 > y1 for _, y1, _, y2 in found)


def test_an_answer_leaves_the_row_of_the_step_that_sent_it() -> None:
    root = drawing(DAY)
    (answer,) = [arrow for arrow in arrows(root) if arrow[3] > height_of(root, "stored") + 10]
    assert abs(answer[1] - (height_of(root, "stored") - 4)) <= 1


@pytest.mark.parametrize("scale", SCALES)
def test_a_held_pull_is_a_bar_until_it_is_answered(scale: str) -> None:
    root = drawing(DAY, scale)
    ((top, bottom),) = bars(root)
    held = height_of(root, "billing waits, answered after 5 s") - 4
    assert abs(top - held) <= 1 and abs(bottom - (height_of(root, "stored") - 4)) <= 20 and bottom - top > 20


def test_a_pull_that_nobody_answered_is_a_bar_to_the_end_and_says_so() -> None:
    open_pull = [at(0, "broker", "billing waits", look="held", step=1), *DAY[2:4]]
    root = drawing(open_pull)
    ((_, bottom),) = bars(root)
    lanes = [int(node.get("y2", "")) for node in root.iter(SVG + "line") if node.get("x1") == node.get("x2")]
    assert bottom == max(lanes) and "billing waits, not answered yet" in str(Timeline(open_pull))


def test_time_to_scale_is_to_scale() -> None:
    moments = [at(ms, "broker", str(ms)) for ms in (0, 1_000, 4_000)]
    marks = [height_of(drawing(moments, "linear"), str(ms)) for ms in (0, 1_000, 4_000)]
    assert abs((marks[2] - marks[0]) - 4 * (marks[1] - marks[0])) <= 4
    hours = [at(ms, "broker", str(ms)) for ms in (0, 10_000, 17_000_000)]
    first, second, last = (height_of(drawing(hours, "log"), str(ms)) for ms in (0, 10_000, 17_000_000))
    assert second - first > 100 and last - second > 50  # ten seconds and hours both show


def test_another_scale_is_refused_and_the_text_is_the_same_for_all() -> None:
    with pytest.raises(UsageError):
        Timeline(DAY, scale="time")
    assert len({str(Timeline(DAY, scale=scale)) for scale in SCALES}) == 1
    assert "SEND <b> (sent +4.400 s)" in str(Timeline(DAY))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [0, 1, 3_000])
def test_extremes_are_well_formed_and_inside_the_card(scale: str, count: int) -> None:
    moments = [at(n % 7 and n * 1_000, "broker", f"<{n}>", step=n) for n in range(count)]
    root = drawing(moments, scale)
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    assert height < 6_000
    for node in root.iter(SVG + "text"):
        assert 0 <= int(node.get("x", "")) <= width and 0 <= int(node.get("y", "")) <= height


def test_a_long_legend_has_rows_and_widens_nothing() -> None:
    looks = ["stored", "read", "progress", "trouble", "other"]
    short = Timeline([at(n, "broker", "x", look=look, step=n) for n, look in enumerate(looks)], lanes=["broker"])
    root = ElementTree.fromstring(short.svg())
    meanings = [node for node in root.iter(SVG + "text") if node.get("font-size") == "11"]
    rows = sorted({int(node.get("y", "")) for node in meanings})
    assert len(meanings) == 5 and int(root.get("width", "")) < 450
    assert len(rows) > 1 and rows[-1] < int(root.get("height", ""))
    for node in meanings:
        assert int(node.get("x", "")) + 6 * len(node.text or "") < int(root.get("width", ""))


SENT_BACK = [
    at(0, "broker", "sent back by billing", step=3),
    at(1, "broker", "SCHEDULE_TOPIC_XXXX 2: entry 0 points there", step=4),
    at(1, "broker", "SUCCESS to CONSUMER_SEND_MSG_BACK", to="billing", step=5, sent_ms=START, sent_step=3),
    at(2, "broker", "%RETRY%billing 0: entry 0 points there", step=6),
    at(3, "broker", "SUCCESS to PULL_MESSAGE", to="billing", step=7, sent_ms=START + 2, sent_step=6),
]


def test_words_of_arrows_cover_no_other_words_and_arrows_are_under_all_words() -> None:
    root = drawing(SENT_BACK)
    texts = [node for node in root.iter(SVG + "text") if node.text in [moment.text for moment in SENT_BACK]]
    boxes = []
    for node in texts:
        wide, x = text_pixels(node.text or "") * int(node.get("font-size", 12)) // 12, int(node.get("x", ""))
        boxes.append((x - wide // 2 if node.get("text-anchor") else x, int(node.get("y", "")), wide))
    for (x1, y1, wide1), (x2, y2, wide2) in combinations(boxes, 2):
        assert abs(y1 - y2) >= 12 or x1 + wide1 < x2 or x2 + wide2 < x1
    drawn = list(root)
    long = [line for line in root.iter(SVG + "line") if abs(int(line.get("x1", "")) - int(line.get("x2", ""))) > 20]
    assert len(long) == 2 and max(map(drawn.index, long)) < min(map(drawn.index, texts))


def test_words_of_an_arrow_lie_on_no_arrow_where_there_is_another_place() -> None:
    words = "TOPIC_NOT_EXIST to GET_ROUTEINFO_BY_TOPIC"
    asked = [
        at(0, "billing", words, to="broker", step=1, sent_ms=START - 1, sent_step=0),
        at(1, "broker", "GET_ROUTEINFO_BY_TOPIC", to="billing", step=2, sent_ms=START, sent_step=1),
        at(2, "billing", words, to="broker", step=3, sent_ms=START + 1, sent_step=2),
    ]
    root = drawing(asked)
    for node in [node for node in root.iter(SVG + "text") if node.text == words]:
        wide, x, y = text_pixels(words) * 11 // 12, int(node.get("x", "")), int(node.get("y", "")) - 4
        for x1, y1, x2, y2 in arrows(root):
            heights = [y1 + (y2 - y1) * (end - x1) / (x2 - x1) for end in (x - wide // 2, x + wide // 2)]
            assert y + 4 < min(heights) or y - 4 > max(heights)

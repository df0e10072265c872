"""The board of a stream's state: bars, watermark, dropped rows; and the ledger of a log and its sink."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from mqlab.errors import UsageError
from mqlab.lab.views.streams.ledger import Ledger
from mqlab.lab.views.streams.state_board import BAR_CHARACTERS, BAR_PIXELS, MOST_BATCHES, StateBoard

SVG = "{http://www.w3.org/2000/svg}"


def batch(number: int, kept: int, dropped: int = 0, watermark: str = "2024-11-11 09:09:45") -> dict[str, Any]:
    return {"batch": number, "new": 5, "rows_in_state": kept, "dropped": dropped, "watermark": watermark}


def test_bars_are_as_long_as_what_is_kept() -> None:
    lines = str(
        StateBoard([batch(0, 20, watermark=""), batch(1, 40), batch(2, 20, dropped=1), batch(3, 0)])
    ).splitlines()
    assert [line.count("█") for line in lines] == [BAR_CHARACTERS // 2, BAR_CHARACTERS, BAR_CHARACTERS // 2, 0]
    assert "no watermark" in lines[0] and "✗" not in lines[1]
    assert "watermark 09:09:45  ✗ 1 row dropped" in lines[2] and "0 rows kept" in lines[3]


def test_the_picture_has_the_same_facts() -> None:
    board = StateBoard([batch(0, 1), batch(1, 40, dropped=9)], title="A & <B>")
    drawn = ElementTree.fromstring(board.svg())
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert texts[0] == "A & <B>" and {"1 row kept", "40 rows kept", "9 rows dropped", "batch 1"} <= set(texts)
    widths = [int(box.attrib["width"]) for box in drawn.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    assert widths == [round(BAR_PIXELS / 40), BAR_PIXELS]
    assert "batch 1: 40 rows kept, watermark 09:09:45, 9 rows dropped" in board.alt


def test_a_long_job_shows_its_last_batches() -> None:
    lines = str(StateBoard([batch(number, number) for number in range(50)])).splitlines()
    assert len(lines) == MOST_BATCHES and lines[-1].startswith("batch 49")
    assert len(StateBoard([batch(number, number) for number in range(50)]).table().rows) == 50


def test_a_board_says_what_it_needs() -> None:
    with pytest.raises(UsageError, match="needs the column rows_in_state"):
        StateBoard([{"batch": 1}])
    assert str(StateBoard([])) == "no batches" and "no batches" in StateBoard([]).svg()


@pytest.mark.parametrize(
    ("sink", "verdict"),
    [
        (["a", "b", "c"], "✓ each message is there once"),
        (["a", "c"], "✗ first missing: b"),
        (["a", "b", "b", "c", "c"], "✗ first double: b, 2 times"),
        (["a", "b", "c", "d"], "✗ not in the log: d"),
        (["c", "c"], "✗ first missing: a; first double: c, 2 times"),
    ],
)
def test_a_ledger_names_the_first_message_of_each_error(sink: list[str], verdict: str) -> None:
    ledger = Ledger(["a", "b", "c"], sink, title="The list")
    assert ledger.verdict == verdict and ledger.is_right == (sink == ["a", "b", "c"])
    assert str(ledger).splitlines()[0] == f"The list: {verdict}" and verdict in ledger.alt
    assert [row.as_dict()["value"] for row in ledger.table().rows] == [3, len(sink), len(set(sink))]


def test_a_message_of_several_parts_is_one_name() -> None:
    assert Ledger([("broker-a", 281)], []).verdict == "✗ first missing: broker-a 281"

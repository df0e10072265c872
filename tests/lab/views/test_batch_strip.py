from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from mqlab.errors import UsageError
from mqlab.lab.views.batch_strip import BAR_CHARACTERS, BAR_PIXELS, BatchStrip

SVG = "{http://www.w3.org/2000/svg}"


def row(**changed: Any) -> dict[str, Any]:
    return {
        "broker_name": "broker-a",
        "source": 0,
        "batch_id": 3,
        "finished": True,
        "log_start": 0,
        "batch_start": 400,
        "committed": 600,
        "batch_end": 600,
        "confirmed_end": 1000,
        "file_end": 1100,
        "units_behind": 4,
        "seconds_behind": 3.44,
        "lost_bytes": 0,
        **changed,
    }


def line(**changed: Any) -> str:
    return str(BatchStrip([row(**changed)])).splitlines()[0]


def test_a_strip_shows_what_is_read_the_batch_and_the_rest_in_proportion() -> None:
    assert line(file_end=1000, confirmed_end=1100) == (
        "broker-a  " + "█" * 16 + "▓" * 8 + "░" * 20 + "  batch 3 read 400..600; 4 units, 3.4 s behind"
    )
    unfinished = line(finished=False, committed=400)
    assert "▒" in unfinished and "▓" not in unfinished
    assert "batch 3 reads 400..600, not finished; 4 units, 3.4 s behind" in unfinished


def test_free_space_of_a_new_file_does_not_hide_the_log() -> None:
    drawn = line(file_end=1 << 30)
    assert [drawn.count(letter) for letter in "█▓░·"] == [16, 7, 15, BAR_CHARACTERS // 7]


def test_a_single_unit_of_a_large_log_stays_visible() -> None:
    drawn = line(batch_start=10**9 - 200, batch_end=10**9 - 100, confirmed_end=10**9, file_end=10**9)
    assert drawn.count("▓") == drawn.count("░") == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"batch_end": None, "batch_start": None, "committed": None}, "no batch has read it; 4 units, 3.4 s behind"),
        ({"batch_start": 600}, "batch 3 read nothing of it; 4 units, 3.4 s behind"),
        ({"units_behind": 0, "seconds_behind": 0.0}, "nothing behind"),
        ({"units_behind": 1, "seconds_behind": None}, "; 1 unit behind"),
        ({"log_start": 700, "lost_bytes": 100}, "; 100 bytes were deleted before they were read; 4 units"),
        ({"log_start": 0, "batch_start": 0, "batch_end": 0, "committed": 0, "confirmed_end": 0, "file_end": 0}, "log"),
    ],
)
def test_what_a_strip_says(changed: dict[str, Any], words: str) -> None:
    assert words in line(**changed)


def test_the_drawing_is_inside_its_card_and_the_parts_fill_the_ribbon() -> None:
    strip = BatchStrip([row(), row(broker_name="брокер-🚚", finished=False), row(batch_start=None)], title="A & <B>")
    root = ElementTree.fromstring(strip.svg())
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    for node in root.iter():
        assert 0 <= int(node.get("x", "0")) <= width and 0 <= int(node.get("y", "0")) <= height
    parts = [node for node in root.iter(SVG + "rect") if node.find(SVG + "title") is not None]
    assert sum(int(node.get("width", "")) for node in parts) == 3 * BAR_PIXELS
    assert strip.alt.startswith("A & <B>: broker-a batch 3 read 400..600")
    assert [found["broker_name"] for found in strip.table()] == ["broker-a", "брокер-🚚", "broker-a"]


def test_rows_of_something_else_are_refused() -> None:
    with pytest.raises(UsageError, match="needs the column log_start"):
        BatchStrip([{"broker_name": "broker-a"}])
    assert str(BatchStrip([], title="nothing")) == "nothing\nno brokers"

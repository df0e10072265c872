"""`mqlab slides`: the file is opened in Chromium without a network, every slide is shown, a board moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site.slides import write_slides
from mqlab.errors import MqlabError
from tests.course.browser.conftest import ROOT
from tests.course.browser.live_boards import page_of

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_slides_of_a_lab_open_without_a_network(chromium: Any, tmp_path: Path) -> None:
    try:
        path = write_slides("04a", ROOT, tmp_path)
    except MqlabError as missing:
        pytest.skip(f"reveal.js cannot be had here: {missing.text}")
    page = page_of(chromium, width=1280, offline=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.get_by_role("heading", name="04a Offsets").wait_for()

    # 1. Keys move from a question to its answer.
    page.keyboard.press("ArrowRight")
    current = page.locator("section.present section.present")
    current.get_by_text("Predict.").wait_for()
    assert current.get_by_text("✓").count() == 0
    page.keyboard.press("ArrowRight")
    current.get_by_text("✓ 12, the next order to read").wait_for()

    # 2. Every slide fits the screen or can be scrolled, and the board is alive.
    last = page.evaluate("Reveal.getTotalSlides()")
    boards = 0
    for number in range(last):
        page.evaluate(f"Reveal.slide({number})")
        assert current.evaluate("slide => slide.getBoundingClientRect().height") <= 900
        for board in current.locator("[data-mqlab]").all():
            board.locator("input, button").first.wait_for()
            assert board.get_attribute("data-alive") is not None
            boards += 1
    assert last > 25 and boards > 0
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.problems == []

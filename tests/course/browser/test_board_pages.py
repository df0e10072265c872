"""A board alone in its page: a link has its settings and its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site.board_pages import board_page

pytestmark = pytest.mark.browser

TEXT = "() => document.querySelector('[data-mqlab] > div').innerText"


@pytest.mark.parametrize(("name", "slider"), [("retry-clock", "Delivery"), ("tag-trap", None), ("lanes", None)])
def test_a_link_leads_to_the_settings_and_the_moment_shown(
    chromium: Any, tmp_path: Path, name: str, slider: str | None
) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(board_page(name), "utf-8")
    page = chromium.new_page()
    page.goto(path.as_uri())
    choice = page.locator("[data-mqlab] select").first
    choice.wait_for()
    beginning = page.evaluate(TEXT)
    choice.select_option(index=1)
    if slider:
        page.get_by_role("slider", name=slider).first.focus()
        page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.length > 1")
    link, shown = page.url, page.evaluate(TEXT)
    assert shown != beginning
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function(f"(text) => ({TEXT})() === text", arg=shown, timeout=20_000)
    assert page.url == link
    page.close()

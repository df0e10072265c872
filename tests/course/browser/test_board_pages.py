"""A board alone in its page: a link has its settings and its state."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqlab.course import widgets
from mqlab.course.site.board_pages import board_page
from tests.course.browser.live_boards import still_page, words_without_room

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


SAMPLES = {"mail": [2.0] * 95 + [1500.0] * 5, "billing": [2.0] * 90 + [12_000.0] * 8 + [60_000.0] * 2}
DRAWN = {
    "backlog": widgets.backlog_tank,
    "knows": widgets.knows_board,
    "lanes": widgets.lanes_board,
    "leases": widgets.lease_board,
    "long polls": widgets.long_poll_scope,
    "retry clock": widgets.retry_clock,
    "percentiles": lambda: widgets.percentile_board(SAMPLES, unit="ms"),
    "tag trap": widgets.tag_trap_board,
}


@pytest.mark.parametrize("name", DRAWN)
def test_words_of_a_drawing_and_controls_have_room_in_a_narrow_page(chromium: Any, tmp_path: Path, name: str) -> None:
    page = still_page(chromium, DRAWN[name](), tmp_path, width=330)
    assert words_without_room(page) == []


def test_words_under_an_axis_do_not_lie_on_each_other(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, widgets.percentile_board(SAMPLES, unit="ms"), tmp_path, width=700)
    spans = page.evaluate(
        "() => [...document.querySelectorAll('text.pb-small')].map((node) => node.getBoundingClientRect())"
        ".map((box) => [Math.round(box.top), box.left, box.right])"
    )
    lowest = max(top for top, _, _ in spans)
    below = sorted((left, right) for top, left, right in spans if top == lowest)
    assert len(below) > 5 and all(right < left for (_, right), (left, _) in pairwise(below))


def test_the_number_of_a_call_does_not_lie_on_a_bar(chromium: Any, tmp_path: Path) -> None:
    page = still_page(chromium, widgets.lease_board(), tmp_path, width=700)
    tops = "(nodes) => nodes.map((node) => node.getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    numbers = page.locator(".ls-time text", has_text=re.compile("^[12]$")).evaluate_all(tops)
    bars = page.locator(".ls-time rect").evaluate_all(tops)
    assert len(numbers) == 8 and not [(n, b) for n in numbers for b in bars if n[0] < b[1] and b[0] < n[1]]


@pytest.mark.parametrize("name", ["knows", "lanes", "long polls", "retry clock", "tag trap"])
def test_a_table_fits_a_phone(chromium: Any, tmp_path: Path, name: str) -> None:
    page = still_page(chromium, DRAWN[name](), tmp_path, width=398)  # of a page of 420 pixels, a cell has so many
    assert page.locator("table").first.evaluate(
        "(table) => table.parentElement.scrollWidth <= table.parentElement.clientWidth"
    )

"""Lab 00 as a student meets it: opened in JupyterLab, run to its end, its explorer clicked, in both themes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import open_and_run_all, ran_to_its_end

pytestmark = pytest.mark.browser

LAB = "labs/00-a-messages-day.ipynb"


def cells_for_the_eye(page: Any, folder: Path) -> None:
    """A picture of every cell, kept with the test's other files (``--basetemp`` says where)."""
    cells = page.locator(".jp-Cell")
    for number in range(cells.count()):
        cell = cells.nth(number)
        cell.scroll_into_view_if_needed()
        path = folder / f"cell-{number:02d}.png"
        cell.screenshot(path=path)
        assert path.stat().st_size > 1000


def test_lab00_is_run_looked_at_and_clicked(
    chromium: Any, jupyterlab: JupyterLab, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = open_and_run_all(chromium, jupyterlab, LAB)
    ran_to_its_end(page, exercises=4)

    pictures = page.locator("img[src^='data:image/svg+xml']")
    assert pictures.count() >= 6
    for number in range(pictures.count()):
        assert pictures.nth(number).evaluate("img => img.complete && img.naturalWidth > 100")
        assert pictures.nth(number).get_attribute("alt")

    stop = page.get_by_role("status").filter(has_text="stop ")
    page.get_by_role("button", name="Step", exact=True).scroll_into_view_if_needed()
    stop.filter(has_text="stop 0 of").wait_for()
    for expected in ("stop 1 of", "stop 2 of"):
        page.get_by_role("button", name="Step", exact=True).click()
        stop.filter(has_text=expected).wait_for()
    page.get_by_role("button", name="Back", exact=True).click()
    stop.filter(has_text="stop 1 of").wait_for()
    page.get_by_role("button", name="Step", exact=True).focus()
    page.keyboard.press("Space")  # the keyboard is enough
    stop.filter(has_text="stop 2 of").wait_for()
    page.get_by_role("button", name="Play", exact=True).click()
    stop.filter(has_text="stop 4 of").wait_for()
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="End", exact=True).click()
    stop.filter(has_text=re.compile(r"stop (\d+) of \1,")).wait_for()
    if request.node.get_closest_marker("long"):
        cells_for_the_eye(page, tmp_path)
    page.get_by_role("button", name="Start", exact=True).click()
    stop.filter(has_text="stop 0 of").wait_for()

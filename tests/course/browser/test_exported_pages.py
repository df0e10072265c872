"""A solution exported as a page, opened without network and kernel: small, whole on a telephone, explorers alive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.course.browser.conftest import ROOT
from tests.course.browser.live_boards import page_of

pytestmark = pytest.mark.browser

FIRST_PARTS = ("00-", "05a", "10a")
"""Those of every fifth lab: the frame of all pages is the same, and each explorer has tests of its own."""

SOLUTIONS = [
    pytest.param(path.name, marks=() if path.name.startswith(FIRST_PARTS) else pytest.mark.long, id=path.name)
    for path in sorted((ROOT / "solutions").glob("*.ipynb"))
]
MEGABYTES = 3_000_000
BRIGHTNESS = """(node, name) => {
  const [red, green, blue] = getComputedStyle(node)[name].match(/[0-9.]+/g).map(Number);
  return (red + green + blue) / 3;
}"""


@pytest.fixture(scope="module")
def exporter() -> Any:
    """What ``jupyter nbconvert --to html`` writes pages with; it reads its templates once."""
    from nbconvert import HTMLExporter

    return HTMLExporter()


def exported(exporter: Any, name: str, folder: Path) -> Path:
    text, _ = exporter.from_filename(str(ROOT / "solutions" / name))
    page = folder / f"{name}.html"
    page.write_text(text, "utf-8")
    return page


@pytest.mark.parametrize("name", SOLUTIONS)
def test_an_exported_solution_is_alive_without_a_kernel(
    chromium: Any, exporter: Any, tmp_path: Path, name: str
) -> None:
    path = exported(exporter, name, tmp_path)
    assert path.stat().st_size < MEGABYTES
    page = page_of(chromium, width=420, dark=True, offline=True)
    page.goto(path.as_uri())

    # 1. Every explorer of the solution has woken up, and moves.
    boards = page.locator("[data-mqlab]")
    for number in range(boards.count()):
        board = boards.nth(number)
        board.locator("input, button, select").first.wait_for()
        assert board.get_attribute("data-alive") is not None
        bars = board.get_by_role("slider", disabled=False)  # virtual nodes move nothing under another strategy
        for bar in (bars.nth(each) for each in range(min(bars.count(), 1))):
            before = board.inner_text()
            bar.focus()
            # One that stands at its end moves the other way only.
            at_its_end = bar.evaluate("bar => bar.value === bar.max")
            page.keyboard.press("ArrowLeft" if at_its_end else "ArrowRight")
            page.wait_for_function("([box, text]) => box.innerText !== text", arg=[board.element_handle(), before])
    if name.startswith(("00", "07")):
        assert boards.count() >= 1

    # 2. Every picture can be seen, and nothing makes the page wider than the telephone.
    pictures = page.locator("img:visible")
    for number in range(pictures.count()):
        assert pictures.nth(number).evaluate("img => img.complete && img.naturalWidth > 0")
    assert boards.evaluate_all("boxes => boxes.every(box => box.getBoundingClientRect().width <= innerWidth)")
    cut = "cells => cells.filter(cell => getComputedStyle(cell).overflowX !== 'auto').length"
    assert page.locator(".jp-InputArea-editor, .jp-RenderedMarkdown").evaluate_all(cut) == 0

    # 3. It is dark in a browser that prefers so: paper, prose and code.
    assert page.locator("body").evaluate(BRIGHTNESS, "backgroundColor") < 60
    for each in (".jp-RenderedMarkdown p", ".jp-InputArea-editor pre"):
        assert page.locator(each).first.evaluate(BRIGHTNESS, "color") > 180
    # MathJax and require.js are looked for in the network by nbconvert's own page: their absence is no problem of ours.
    of_nbconvert = ("MathJax", "require", "net::ERR_")
    assert [text for text in page.problems if not any(word in text for word in of_nbconvert)] == []

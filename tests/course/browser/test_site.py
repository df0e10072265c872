"""The site in a Chromium that reaches loopback only: first pages, boards by their address, and labs that run.

The short form builds the site with one lab and plays its first cells and a kill. ``make long`` runs all solved labs.
Pyodide and JupyterLite come from npm and PyPI at the first build; where they cannot be had the tests are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site.build import LABS, build
from tests.course.browser.conftest import ROOT
from tests.course.browser.served_site import (
    errors_of,
    has_a_kernel,
    notebook_of,
    open_lab,
    reader,
    run_cells,
    run_code,
    served,
    write,
)
from tests.lab.runtime import in_a_browser

pytestmark = pytest.mark.browser

FIRST = "00-a-messages-day.ipynb"
SAYS_SOMETHING_ELSE = {
    "01a": {'files.map("order-1")'},  # an index that has fewer slots
    "16d": {'mine = ("SEND_MESSAGE_V2", "PULL_MESSAGE", "QUERY_CONSUMER_OFFSET")'},  # frames in virtual time
}
"""A line of each cell whose text is another one in a browser."""
ASKS_ABOUT_OTHER_LABS = "old_questions("
"""Here all labs are solved and lie together, so there is something to ask; a lab alone has nothing."""
TAKES_JSPI_AWAY = "delete WebAssembly.Suspending; delete WebAssembly.promising;"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as url:
        yield url


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    """A page without cookies and caches, which may ask this server alone."""
    with reader(chromium) as (opened, foreign):
        yield opened
    assert foreign == []


def test_the_first_page_leads_to_lab_00_and_its_first_exercise_passes(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Begin with 00").click()
    has_a_kernel(page)
    solved = json.loads((ROOT / "solutions" / FIRST).read_text("utf-8"))
    answers = {cell["id"]: "".join(cell["source"]) for cell in solved["cells"]}
    cells = notebook_of(page)["cells"]
    first = next(at for at, cell in enumerate(cells) if "".join(cell["source"]).startswith("# exercise:"))
    run_cells(page, 0, first)
    assert errors_of(notebook_of(page)) == []

    right = answers[cells[first]["id"]]
    name = re.search(r"^def (\w+)", right, re.MULTILINE)
    assert name is not None
    wrong = f"{right.splitlines()[0]}\ndef {name[1]}(*arguments):\n    return []"
    for source, says in ((wrong, "✗"), (right, "✓")):
        write(page, first, source)
        run_cells(page, first, first + 2)
        assert says in json.dumps(notebook_of(page)["cells"][first + 1]["outputs"], ensure_ascii=False)

    # A kill in the middle of a listener, a power cut, a pause and every crash point: the same journals as here.
    code = Path(in_a_browser.__file__).read_text("utf-8").partition("\nif __name__")[0]
    assert run_code(page, f"{code}\nprint(*digests(), sep='\\n')").split("\n")[:-1] == in_a_browser.digests()

    # The list of files leaves the notebook its room when the window becomes narrow.
    page.evaluate("jupyterapp.shell.expandLeft()")
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function("jupyterapp.shell.leftCollapsed")


def test_a_link_opens_a_board_at_its_state_and_the_address_follows(page: Any, address: str) -> None:
    page.goto(f"{address}/boards/log-xray.html#position=3&unknown=1")
    board = page.locator("[data-mqlab][data-alive]")
    board.locator("select, button, input").first.wait_for()
    shown = board.inner_text()
    page.goto("about:blank")
    page.goto(f"{address}/boards/log-xray.html")
    board.locator("select, button, input").first.wait_for()
    assert board.inner_text() != shown
    slider = board.get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("location.hash.length > 1")
    link, now = page.url, board.inner_text()
    page.goto("about:blank")
    page.goto(link)
    board.locator("select, button, input").first.wait_for()
    page.wait_for_function("([box, text]) => box.innerText === text", arg=[board.element_handle(), now])


@pytest.mark.long
def test_a_browser_without_jspi_gets_words_and_the_pages(page: Any, address: str) -> None:
    page.add_init_script(TAKES_JSPI_AWAY)
    page.goto(address)
    assert page.get_by_role("alert").inner_text().startswith("This browser cannot run the labs")
    assert not page.get_by_role("link", name="Begin with").is_visible()
    assert page.locator("a[href^='lab/']").evaluate_all("links => links.every(link => !link.offsetParent)")
    page.get_by_role("link", name="00 Message flow").click()
    page.get_by_role("heading", name="00 Message flow").wait_for()
    page.goto(f"{address}/lab/index.html?path=labs/{FIRST}")
    page.get_by_role("alert").get_by_text("JSPI").wait_for()


@pytest.mark.long
@pytest.mark.parametrize(
    "name", sorted(path.name for path in (ROOT / "solutions").glob("*.ipynb") if path.name[:2] in LABS)
)
def test_a_solved_lab_runs_to_its_end(chromium: Any, solved_site: str, name: str) -> None:
    with reader(chromium) as (page, foreign):
        open_lab(page, solved_site, name)
        has_a_kernel(page)
        run_cells(page, 0, len(notebook_of(page)["cells"]))
        ran = notebook_of(page)
        assert errors_of(ran) == []
        recorded = json.loads((ROOT / "solutions" / name).read_text("utf-8"))
        assert said(ran, name) == said(recorded, name)
        assert foreign == []


@pytest.mark.long
def test_the_tour_of_the_explorers_runs_to_its_end(chromium: Any, solved_site: str) -> None:
    with reader(chromium) as (page, foreign):
        open_lab(page, solved_site, "explorers.ipynb")
        has_a_kernel(page)
        run_cells(page, 0, len(notebook_of(page)["cells"]))
        assert errors_of(notebook_of(page)) == []
        assert foreign == []


def said(notebook: dict[str, Any], name: str) -> dict[str, list[str]]:
    """What each cell shows as text, by the cell's id; without what says something else in a browser."""
    other = SAYS_SOMETHING_ELSE.get(name.partition("-")[0], set())
    return {
        cell["id"]: [
            text
            for output in cell["outputs"]
            if output["output_type"] != "error"
            and (text := "".join(output["text"] if "text" in output else output["data"].get("text/plain", "")))
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and not other & {*(source := "".join(cell["source"])).splitlines()}
        if ASKS_ABOUT_OTHER_LABS not in source
    }


@pytest.fixture(scope="module")
def solved_site(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site whose labs are the solved ones."""
    course, out = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("solved") / "out"
    for folder in ("labs", "solutions", "datasets"):
        shutil.copytree(ROOT / folder, course / folder)
    for path in (course / "solutions").glob("*.ipynb"):
        shutil.copyfile(path, course / "labs" / path.name)
    build(out, course)
    with served(out) as url:
        yield url

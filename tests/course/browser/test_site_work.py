"""A learner's work on the site: kept over a second visit, an update and without a network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.course.browser.served_site import (
    errors_of,
    has_a_kernel,
    notebook_of,
    open_lab,
    reader,
    run_cells,
    save,
    served,
    write,
)

pytestmark = [pytest.mark.browser, pytest.mark.long]

FIRST = "00-a-messages-day.ipynb"
MINE = "mine = 'моё 我的 ✓'"


def sources(page: Any) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook_of(page)["cells"]]


def test_work_survives_a_second_visit_and_an_update_of_the_site(chromium: Any, site: Path, tmp_path: Path) -> None:
    published = shutil.copytree(site, tmp_path / "published")
    with served(published) as address, reader(chromium) as (page, foreign):
        open_lab(page, address, FIRST)
        at = next(at for at, cell in enumerate(notebook_of(page)["cells"]) if cell["cell_type"] == "code")
        write(page, at, MINE)
        save(page)
        open_lab(page, address, FIRST)
        assert sources(page)[at] == MINE

        for name in (FIRST, "glossary.ipynb"):
            path = published / "files" / "labs" / name
            notebook = json.loads(path.read_text("utf-8"))
            notebook["cells"][0]["source"] = "# Of the next edition"
            path.write_text(json.dumps(notebook), "utf-8")
        open_lab(page, address, "glossary.ipynb")  # shows what it has, and asks the server for the next visit
        open_lab(page, address, FIRST)
        assert sources(page)[at] == MINE and sources(page)[0].startswith("# 00 ")
        open_lab(page, address, "glossary.ipynb")
        assert sources(page)[0] == "# Of the next edition"
    assert foreign == []


def test_a_second_visit_needs_no_server(chromium: Any, site: Path) -> None:
    with reader(chromium) as (page, foreign):
        with served(site) as address:
            page.goto(address)
            page.get_by_role("link", name="Begin with 00").click()
            has_a_kernel(page)
            first = next(at for at, cell in enumerate(notebook_of(page)["cells"]) if cell["cell_type"] == "code")
            run_cells(page, 0, first + 1)
            assert errors_of(notebook_of(page)) == []
        open_lab(page, address, FIRST)
        has_a_kernel(page)
        write(page, first, sources(page)[first] + "\nfrom mqlab import Lab\nLab(seed=1).journal.digest()")
        run_cells(page, 0, first + 1)
        assert errors_of(notebook_of(page)) == []
        assert notebook_of(page)["cells"][first]["outputs"]
    assert foreign == []

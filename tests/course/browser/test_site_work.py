"""A learner's work on the site: kept over a reload, an update and without a network; counted, downloaded and graded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from tests.course.browser.conftest import ROOT, JupyterLab
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


def work(page: Any) -> int:
    """Lab 00 as a student works it who has one exercise right and one wrong, saved; returns how many it has."""
    solved = json.loads((ROOT / "solutions" / FIRST).read_text("utf-8"))
    answers = {cell["id"]: "".join(cell["source"]) for cell in solved["cells"]}
    cells = notebook_of(page)["cells"]
    exercises = [at for at, cell in enumerate(cells) if "".join(cell["source"]).startswith("# exercise:")]
    assert len(exercises) >= 2
    right, wrong = exercises[0], exercises[1]
    write(page, right, answers[cells[right]["id"]])
    write(page, wrong, answers[cells[wrong]["id"]].partition("\n    ")[0] + "\n    return []")
    run_cells(page, 0, wrong + 2)
    save(page)
    return len(exercises)


def test_work_is_counted_downloaded_and_graded_as_that_of_jupyterlab(
    chromium: Any, site: Path, jupyterlab_server: JupyterLab, tmp_path: Path
) -> None:
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    with served(site) as address, reader(chromium) as (page, foreign):
        open_lab(page, address, FIRST)
        has_a_kernel(page)
        count = work(page)
        with page.expect_download() as download:
            page.get_by_role("menuitem", name="File", exact=True).click()
            page.get_by_role("menuitem", name="Download", exact=True).click()
        assert download.value.suggested_filename.endswith(FIRST)  # JupyterLite puts the folder before it
        download.value.save_as(handed_in / "site" / download.value.suggested_filename)

        open_lab(page, address, "progress.ipynb")
        has_a_kernel(page)
        run_cells(page, 0, 2)
        counted = json.dumps(notebook_of(page)["cells"][1]["outputs"], ensure_ascii=False)
        assert f"2 of {count}" in counted and f"1 of {count}" in counted  # tried, passed
        assert foreign == []

    jupyterlab_server.theme = "JupyterLab Light"
    work(jupyterlab_server.open(chromium, f"labs/{FIRST}"))
    jupyterlab_server.leave()
    (handed_in / "jupyterlab").mkdir()
    shutil.copyfile(jupyterlab_server.folder / "labs" / FIRST, handed_in / "jupyterlab" / FIRST)

    run = CliRunner().invoke(
        main, ["grade", str(handed_in), "--lab", "00", "--out", str(tmp_path / "out"), "--seed", "autumn", "--json"]
    )
    assert run.exit_code == 0, run.output
    records = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    graded = {one["student"]: one for one in records}
    assert set(graded) == {"site", "jupyterlab"}
    assert graded["site"]["exercises"] == graded["jupyterlab"]["exercises"]

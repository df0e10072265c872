"""The site in Chromium: what its first load costs, and how long each solved lab takes beside CPython.

    first load      bytes and seconds from the first page's link until the first cell of lab 00 is done
    labs            seconds of the whole solved lab in the page, and CPython's processor time for the same cells

Needs Chromium and playwright, and the site's materials. Each lab has a browser of its own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TIMED = """async () => {
  const notebook = jupyterapp.shell.currentWidget, seconds = [];
  for (let at = 0; at < notebook.content.widgets.length; at++) {
    notebook.content.activeCellIndex = at;
    notebook.content.deselectAll();
    const began = performance.now();
    await jupyterapp.commands.execute("notebook:run-cell");
    seconds.push((performance.now() - began) / 1000);
  }
  return seconds;
}"""


def main(arguments: list[str]) -> None:
    """Measure and print two tables."""
    from mqlab.course.site.build import LABS, build

    parser = argparse.ArgumentParser(prog="benchmarks site", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--labs", nargs="*", default=list(LABS), help="which labs are timed, as 00 01a; none: only load"
    )
    parser.add_argument("--largest", type=int, default=0, help="name so many of the largest files of the first load")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "site"
        build(out, solved_course(Path(folder) / "course"))
        with chromium() as browser:
            first_load(browser, out, wanted.largest)
            names = [
                path.name
                for path in sorted((out / "files" / "labs").glob("[0-9]*.ipynb"))
                if path.name.startswith(tuple(wanted.labs))
            ]
            if names and wanted.labs:
                labs(browser, out, names)


def solved_course(folder: Path) -> Path:
    """A course whose labs are the solved ones."""
    for name in ("labs", "solutions", "datasets"):
        shutil.copytree(ROOT / name, folder / name)
    for path in (folder / "solutions").glob("*.ipynb"):
        shutil.copyfile(path, folder / "labs" / path.name)
    return folder


@contextmanager
def chromium() -> Iterator[Any]:
    """Playwright's Chromium type with the machine's own browser."""
    from playwright.sync_api import sync_playwright

    from tests.course.browser.conftest import BROWSERS, OPTIONS

    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


def first_load(browser: Any, out: Path, largest: int) -> None:
    """Print what the first cell of lab 00 costs a reader who comes for the first time."""
    from tests.course.browser.served_site import has_a_kernel, notebook_of, reader, run_cells, served

    sent: dict[str, int] = {}
    with served(out, sent) as address, reader(browser) as (page, foreign):
        page.goto(address)
        began = time.monotonic()
        page.get_by_role("link", name="Begin with 00").click()
        has_a_kernel(page)
        kernel = time.monotonic() - began
        first = next(at for at, cell in enumerate(notebook_of(page)["cells"]) if cell["cell_type"] == "code")
        run_cells(page, 0, first + 1)
        done = time.monotonic() - began
        loaded = dict(sent)
    print(f"first load: {sum(loaded.values()) / 1e6:.1f} MB in {len(loaded)} files; elsewhere: {len(foreign)}")
    print(f"kernel ready after {kernel:.0f} s, first cell done after {done:.0f} s")
    for path, size in sorted(loaded.items(), key=lambda item: -item[1])[:largest]:
        print(f"{size:>10,}  {path}")


def labs(browser: Any, out: Path, names: list[str]) -> None:
    """Print a row for each lab."""
    from tests.course.browser.served_site import errors_of, has_a_kernel, notebook_of, open_lab, reader, served

    print(f"{'lab':<6}{'page, s':>9}{'CPython, s':>12}{'times':>7}{'heaviest cell, s':>18}")
    whole = [0.0, 0.0]
    for name in names:
        with served(out) as address, reader(browser) as (page, _):
            open_lab(page, address, name)
            has_a_kernel(page)
            seconds = page.evaluate(TIMED)
            problems = errors_of(notebook_of(page))
        here = processor_seconds(out / "files" / "labs" / name)
        whole = [whole[0] + sum(seconds), whole[1] + here]
        spent, part = sum(seconds), name[:3].rstrip("-")
        row = f"{part:<6}{spent:>9.1f}{here:>12.1f}{spent / here:>7.1f}{max(seconds):>18.1f}"
        print(row, *problems, flush=True)
    print(f"{'all':<6}{whole[0]:>9.1f}{whole[1]:>12.1f}{whole[0] / whole[1]:>7.1f}")


def processor_seconds(path: Path) -> float:
    """CPython's processor time for the cells of a notebook, without the start of its kernel."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.reads(path.read_text("utf-8"), 4)  # type: ignore[no-untyped-call]
    clock = "import time as _time\n_time.process_time()"
    for at in (0, len(notebook.cells) + 1):
        notebook.cells.insert(at, nbformat.v4.new_code_cell(clock))  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("labs", "datasets"):
            (Path(folder) / name).symlink_to(ROOT / name)
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, allow_errors=True, resources=resources).execute()
    began, ended = (float(notebook.cells[at].outputs[0].data["text/plain"]) for at in (0, -1))
    return ended - began

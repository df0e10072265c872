"""The site in Chromium: what its first load costs, and how long each solved lab takes beside CPython.

    first load      bytes and seconds from the first page's link until the first cell of lab 00 is done
    plain Python    a few loops without mqlab, in the page and in CPython
    labs            seconds of the whole solved lab in the page, processor time of the page's busiest thread, which
                    is the kernel's, and CPython's processor time for the same cells

Needs Linux, Chromium and playwright, and the site's materials. Each lab has a browser of its own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
EMPTY_CELLS = 20
LOOPS = {
    "numbers": "total = 0\nfor n in range(5_000_000): total += n & 7",
    "methods": "kept = []\nadd = kept.append\nfor n in range(3_000_000): add((n, n))",
    "objects": "class Two:\n    def __init__(self, n): self.n = n\nfor n in range(2_000_000): Two(n)",
    "calls": "class Two:\n    def add(self, n): self.n = n\ntwo = Two()\nfor n in range(2_000_000): two.add(n)",
    "built-in calls": "steps = iter(range(2_000_000))\nfor n in range(2_000_000): next(steps)",
    "generators": "def every():\n    for n in range(3_000_000): yield n\nfor n in every(): pass",
    "dictionaries": "rows = {}\nfor n in range(1_500_000): rows[str(n)] = n",
    "packing": "import struct\nfor n in range(1_500_000): struct.unpack('>iq', struct.pack('>iq', 7, n))",
    "text": "for n in range(1_000_000): f'{n}:{n:>8}'.split(':')",
    "heap": "import heapq\nheap = []\nfor n in range(800_000): heapq.heappush(heap, (n * 7919 % 100_003, n))",
}
"""What plain Python does in a step of a world; each is a program of its own."""


def main(arguments: list[str]) -> None:
    """Measure and print the tables."""
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
            plain_python(browser, out)
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


def plain_python(browser: Any, out: Path) -> None:
    """Print how much longer loops without mqlab take in the page, and what an empty cell takes there."""
    from tests.course.browser.served_site import has_a_kernel, open_lab, reader, run_cells, run_code, served, write

    print(f"{'plain Python':<15}{'page, s':>9}{'CPython, s':>12}{'times':>7}")
    with served(out) as address, reader(browser) as (page, _):
        open_lab(page, address, "progress.ipynb")
        has_a_kernel(page)
        write(page, 1, "pass")
        began = time.monotonic()
        for _ in range(EMPTY_CELLS):
            run_cells(page, 1, 2)
        print(f"an empty cell takes {(time.monotonic() - began) / EMPTY_CELLS * 1000:.0f} ms")
        for name, source in LOOPS.items():
            with busiest_thread() as there:
                run_code(page, source)
            began = time.process_time()
            exec(source, {})
            here = time.process_time() - began
            print(f"{name:<15}{there[0]:>9.2f}{here:>12.2f}{there[0] / here:>7.1f}")


@contextmanager
def busiest_thread() -> Iterator[list[float]]:
    """Processor seconds of the thread that has most of them, in the browsers that this process started."""
    spent = [0.0]
    before = thread_seconds()
    yield spent
    spent[0] = max(seconds - before.get(thread, 0.0) for thread, seconds in thread_seconds().items())


def thread_seconds() -> dict[int, float]:
    """Processor seconds of each thread of the browsers that this process started."""
    import psutil

    spent = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            spent.update({thread.id: thread.user_time + thread.system_time for thread in process.threads()})
    return spent


def labs(browser: Any, out: Path, names: list[str]) -> None:
    """Print a row for each lab."""
    from tests.course.browser.served_site import errors_of, has_a_kernel, notebook_of, open_lab, reader, served

    print(f"{'lab':<6}{'page, s':>9}{'its thread, s':>15}{'CPython, s':>12}{'times':>7}{'heaviest cell, s':>18}")
    whole = [0.0, 0.0, 0.0]
    for name in names:
        with served(out) as address, reader(browser) as (page, _):
            open_lab(page, address, name)
            has_a_kernel(page)
            with busiest_thread() as thread:
                seconds = page.evaluate(TIMED)
            problems = errors_of(notebook_of(page))
        row = [sum(seconds), thread[0], processor_seconds(out / "files" / "labs" / name)]
        whole = [total + part for total, part in zip(whole, row, strict=True)]
        print(_row(name[:3].rstrip("-"), row), f"{max(seconds):>17.1f}", *problems, flush=True)
    print(_row("all", whole))


def _row(name: str, seconds: list[float]) -> str:
    page, thread, here = seconds
    return f"{name:<6}{page:>9.1f}{thread:>15.1f}{here:>12.1f}{thread / here:>7.1f}"


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
        quiet = ["--log-level=ERROR"]  # the kernel's warnings would stand between the rows of the table
        NotebookClient(notebook, timeout=600, allow_errors=True, resources=resources, extra_arguments=quiet).execute()
    began, ended = (float(notebook.cells[at].outputs[0].data["text/plain"]) for at in (0, -1))
    return ended - began

"""How long a submission takes to grade: with and without the wall, and beside running the notebook once.

    python -m benchmarks grading --lab 07 --submissions 4

The submissions are the solution, so every case of every exercise runs. The peer is nbclient: it executes the
solution's notebooks from top to bottom once, without judging anything. Processor time of all processes, one job.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def spent(run: Callable[[], object]) -> float:
    """Processor seconds of this process and of the children that ended, while it ran."""

    def so_far() -> float:
        each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used.ru_utime + used.ru_stime for used in each)

    before = so_far()
    run()
    return so_far() - before


def parts(lab: str) -> list[Path]:
    """The solution's notebooks of a lab."""
    found = sorted((REPOSITORY / "solutions").glob(f"{lab}*.ipynb"))
    if not found:
        raise SystemExit(f"solutions/ has no notebook of lab {lab}")
    return found


def submitted(lab: str, count: int, directory: Path) -> Path:
    """A folder with so many students, each with the solution's notebooks."""
    for number in range(count):
        student = directory / "in" / f"s{number:03d}"
        student.mkdir(parents=True)
        for part in parts(lab):
            shutil.copy(part, student / part.name)
    return directory / "in"


def graded(submissions: Path, lab: str, out: Path, *options: str) -> None:
    """One run of `mqlab grade` in this process; what it prints is dropped."""
    from mqlab.cli import main as command

    words = ["grade", str(submissions), "--lab", lab, "--out", str(out), "-j", "1", "--seed", "bench", *options]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            command(words, standalone_mode=False)
        except SystemExit as ended:
            assert not ended.code, f"mqlab {' '.join(words)} ended with {ended.code}"


def executed(lab: str) -> None:
    """The peer: every notebook of the solution once, from top to bottom."""
    import nbformat
    from nbclient import NotebookClient

    for part in parts(lab):
        notebook = nbformat.read(part, as_version=4)  # type: ignore[no-untyped-call]
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(REPOSITORY / "labs")}}).execute()


def main(arguments: list[str]) -> None:
    """Parse the options, grade, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks grading", description=__doc__.splitlines()[0])
    parser.add_argument("--lab", default="07")
    parser.add_argument("--submissions", type=int, default=4)
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="mqlab-bench-"))
    try:
        people = submitted(options.lab, options.submissions, directory)
        rows = {"nbclient, the notebooks run once": spent(lambda: executed(options.lab))}
        if shutil.which("bwrap"):
            walls = spent(lambda: graded(people, options.lab, directory / "walls"))
            rows["mqlab grade, behind the wall"] = walls / options.submissions
        process = spent(lambda: graded(people, options.lab, directory / "process", "--unsafe-no-sandbox"))
        rows["mqlab grade, without it"] = process / options.submissions
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    peer = next(iter(rows.values()))
    print(f"lab {options.lab}, {options.submissions} submissions of the solution, one job")
    print(f"{'':<36}{'CPU s each':>12}  ratio to: nbclient")
    for name, seconds in rows.items():
        print(f"{name:<36}{seconds:>12.1f}{seconds / peer:>8.2f}")

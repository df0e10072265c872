"""Where the labs, the data sets and the hidden cases are: the one place that knows.

    a clone, or a release unpacked    labs/  datasets/  next to mqlab/, and in a clone solutions/grading
    an installed wheel                mqlab/course/shipped/labs  datasets: the wheel carries them, and no solutions
    a course of your own              labs/  cases/  solutions/grading  in the folder that --course names

A learner's own notebooks are in ``my-labs``, in the folder that ``working_root`` finds.
"""

from __future__ import annotations

from pathlib import Path

import mqlab
from mqlab.errors import UsageError

LABS, DATASETS, ORIGINALS, COPIES = "labs", "datasets", "originals", "my-labs"
PACKAGE = Path(mqlab.__file__).resolve().parent
SHIPPED = PACKAGE / "course" / "shipped"
"""What pyproject.toml puts into the wheel; a clone has no such folder."""
JUPYTERLAB = PACKAGE / "course" / "jupyterlab"
"""What JupyterLab's own page gets, on a computer and in the site: narrow.js, and overrides.json of its settings."""


def is_installed() -> bool:
    """Whether this package came as a wheel: it has the labs and data sets in it, and no solutions next to it."""
    return SHIPPED.is_dir()


def home() -> Path:
    """The folder with mqlab's own ``labs`` and ``datasets``: the clone, the release, or a folder of the package."""
    return SHIPPED if is_installed() else PACKAGE.parent


def course_folder(named: str | Path | None = None) -> Path:
    """The course's folder: the one given, or mqlab's own. UsageError if it has no labs."""
    folder = Path(named).absolute() if named is not None else home()
    if not (folder / LABS).is_dir():
        raise UsageError(f"there is no labs folder in {folder}", hint="name the course's folder with --course DIR")
    return folder


def hidden_cases(course: Path, number: str) -> Path | None:
    """The file with a lab's hidden cases, by its two digits; None where the course has none, as in a wheel."""
    path = course / "solutions" / "grading" / f"lab{number}.py"
    return path if path.is_file() else None


def working_root(start: Path) -> Path:
    """Where a learner works: ``start`` or a folder above it that holds labs, else the clone; with a wheel ``start``."""
    for folder in (start, *start.parents):
        if any(any((folder / name).glob("*.ipynb")) for name in (COPIES, LABS)):
            return folder
    return start if is_installed() else home()


def labs_for(root: Path) -> Path:
    """The labs that are handed out in a folder: its own, else mqlab's."""
    return root / LABS if (root / LABS).is_dir() else home() / LABS


def working_folder(here: Path) -> Path:
    """The folder for dated copies: ``labs`` or ``my-labs`` if it exists, so that links work; else ``here``."""
    return next((here / name for name in (LABS, COPIES) if (here / name).is_dir()), here)

"""What must be hidden from a worker inside the folders it can read: every copy of judges and right answers.

Called by mqlab.course.grading.sandbox.walled and by ``mqlab grade``.

    mqlab/course/cases            the right answers of exercises; with byte code, in every copy of the package
    solutions  tests  .git       of the clone that mqlab came with, and of the course
    cases                        of the course
    *.whl *.zip *.egg *.pyz      that hold a package's cases

``mqlab.course.teach``, ``mqlab.course.teach.datasets`` and ``mqlab.data.spark`` stay: answers import them.
Not found: copies under other names, or in the system's folders (/usr) outside its Python packages.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from mqlab.course.material import PACKAGE, home

CASES = Path("mqlab", "course", "cases")
OF_A_CLONE = ("solutions", "tests", ".git", "cases")
ARCHIVES = (".whl", ".zip", ".egg", ".pyz", ".pex")
PACKAGES_OF_THE_SYSTEM = ("/usr/lib*/python3*/*-packages", "/usr/local/lib*/python3*/*-packages")


def own_judges() -> str:
    """The folder of the judges that belong to the package that is running."""
    return str(PACKAGE.parent / CASES)


def judges_of(course: Path, folders: Iterable[str]) -> tuple[str, ...]:
    """Folders and archives with judges or right answers: of a course, of mqlab's clone, and below some folders."""
    clones = (course.resolve(), home())
    named = [clone / name for clone in clones for name in OF_A_CLONE]
    # Byte code kept apart from its sources contains the judges too.
    if sys.pycache_prefix is not None:
        named.append(Path(sys.pycache_prefix).resolve())
    roots = [*folders, *(path for pattern in PACKAGES_OF_THE_SYSTEM for path in glob.glob(pattern))]
    roots += [str(clone) for clone in (clones[0], PACKAGE.parent) if clone.is_relative_to("/usr")]
    copies = [copy for root in roots for copy in _copies_below(root)]
    return tuple(dict.fromkeys([*(str(path) for path in named if path.is_dir()), *copies]))


@functools.cache
def _copies_below(root: str) -> tuple[str, ...]:
    """Copies of the judges in a folder. Links are not followed: their targets are in other folders."""
    copies: list[str] = []
    for folder, folders, files in os.walk(root):
        if folder.endswith(str(CASES)):
            copies.append(folder)
            # The whole folder is hidden, so there is no need to look further down.
            folders.clear()
        copies += [path for name in files if name.endswith(ARCHIVES) and _holds_judges(path := f"{folder}/{name}")]
    return tuple(copies)


def _holds_judges(archive: str) -> bool:
    try:
        with zipfile.ZipFile(archive) as opened:
            return any(f"{CASES.as_posix()}/" in name for name in opened.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False

"""The zip that students get: no solutions, tests or benchmarks, and an untouched copy of each lab.

``mqlab release``.

    mqlab-labs/ mqlab/ labs/ datasets/ docs/ README.md Makefile pyproject.toml requirements.lock .ci/setup ..
                originals/    the labs again, for restore, check and grade when labs/ was worked in

An installed mqlab packs labs/, datasets/, originals/ and a requirements.txt that names its version.

The same commit gives the same bytes. Before it is written, every lab is looked through for solution text and outputs.
It is written to a file; uploading it is up to the instructor.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path

from mqlab.course.grading.submissions.lab_files import COPY, part_names, pristine
from mqlab.course.material import LABS, ORIGINALS, home, is_installed
from mqlab.errors import UsageError
from mqlab.whole_files import whole_file

TOP = "mqlab-labs"
KEPT_BACK = ("solutions", "tests", "benchmarks", ORIGINALS, ".git", ".github")
KEPT_BACK_FILES = (".gitignore", ".gitattributes", ".ci/run")
SOLUTION_MARKS = ("### BEGIN SOLUTION", "### END SOLUTION", "### STARTER")
MOMENT = (2026, 1, 1, 0, 0, 0)


def write_release(course: Path, target: Path) -> list[str]:
    """Write the zip atomically; returns the names in it. UsageError if a lab must not be handed out as it is."""
    # 1. What git tracks, or what the wheel brought, with every lab replaced by its untouched version.
    ours = is_installed() and course == home()
    names = _brought(course) if ours else _tracked(course)
    files = {name: (course / name).read_bytes() for name in names if not _kept_back(name)}
    if ours:
        files["requirements.txt"] = f"mqlab[all]=={version('mqlab')}\n".encode()
    for name in part_names(course):
        path, notebook = pristine(course, name)
        files[f"{ORIGINALS}/{path.name}"] = files[f"{LABS}/{path.name}"] = notebook.data
    # 2. No solution may be handed out by mistake.
    for name, data in files.items():
        if name.endswith(".ipynb"):
            _must_be_clean(name, data)
    # 3. Names in order and one fixed date, so that the same commit gives the same bytes.
    with whole_file(target, suffix=".draft") as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{TOP}/{name}", MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if os.access(course / name, os.X_OK) else 0o644) << 16
            archive.writestr(entry, files[name])
    return sorted(files)


def _brought(course: Path) -> list[str]:
    return [path.relative_to(course).as_posix() for path in course.rglob("*") if path.is_file()]


def _tracked(course: Path) -> list[str]:
    try:
        listed = subprocess.run(
            ["git", "-C", str(course), "ls-files", "-z", "--cached"], capture_output=True, check=True
        ).stdout.decode("utf-8")
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(f"{course} is not a git clone", hint="run mqlab release in the instructor's clone") from None
    return [name for name in listed.split("\0") if name and (course / name).is_file()]


def _kept_back(name: str) -> bool:
    return name.split("/")[0] in KEPT_BACK or name in KEPT_BACK_FILES or COPY.search(name) is not None


def _must_be_clean(name: str, data: bytes) -> None:
    text = data.decode("utf-8")
    for mark in SOLUTION_MARKS:
        if mark in text:
            raise UsageError(f"{name} holds solution text ({mark})", hint="build the labs again: make labs")
    if any(cell.get("outputs") for cell in json.loads(text)["cells"]):
        raise UsageError(f"{name} holds outputs", hint="build the labs again: make labs")

"""The files that a case hands over: a worker sees these, under their own names, and none of the judge's others.

Used by mqlab.course.grading.sandbox.answer_process; the walls bind its mirror where the originals are.

    judge's temporary folder            what is bound in its place
      mqlab-a1/broker-a/commitlog/..      mqlab-a1/broker-a/commitlog/..    listed(".../mqlab-a1/broker-a") was called
      mqlab-b2/broker-a/..                (not there)

The mirror is made of hard links, so that it costs nothing and what is written later shows. It is brought up to date at
each call that names a path.
Files outside that folder, and symbolic links, are not handed over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_DEPTH = 8


class HandedOver:
    """What was handed over of one folder, in a mirror of it."""

    def __init__(self, folder: Path, mirror: Path) -> None:
        self._folder = folder.resolve()
        self._mirror = mirror
        self._shown: list[Path] = []
        mirror.mkdir(exist_ok=True)
        mirror.chmod(0o755)

    def show(self, values: Any) -> None:
        """Show every path among the values of a call; remove those that no longer exist."""
        # 1. What a case has deleted must go from the mirror too: a hard link would keep it.
        for path in [path for path in self._shown if not path.exists()]:
            self._shown.remove(path)
            _remove(self._twin(path))
        # 2. Bring every named path up to date: files were added to it since the last call.
        for path in paths_in(values, self._folder):
            if path not in self._shown:
                self._shown.append(path)
            _make_folder(self._twin(path).parent, self._mirror)
            _mirror(path, self._twin(path))

    def _twin(self, path: Path) -> Path:
        return self._mirror / path.relative_to(self._folder)


def paths_in(values: Any, folder: Path, depth: int = 0) -> Iterator[Path]:
    """The existing paths of a folder that a value contains, also inside lists and dictionaries."""
    if isinstance(values, (str, Path)):
        path = Path(values)
        # Resolve it: ".." or a link could lead to another file of the judge.
        if str(values).startswith(f"{folder}/") and "\0" not in str(values) and path.exists():
            path = path.resolve()
            if path.is_relative_to(folder) and path != folder:
                yield path
    elif depth < MAX_DEPTH and isinstance(values, (list, tuple, set, frozenset)):
        for value in values:
            yield from paths_in(value, folder, depth + 1)
    elif depth < MAX_DEPTH and isinstance(values, dict):
        yield from paths_in([*values.keys(), *values.values()], folder, depth + 1)


def let_read(values: Any) -> None:
    """Make files readable whose paths an answer gets, if the judge is root and the worker is not."""
    root = Path(tempfile.gettempdir()).resolve()
    for path in paths_in(values, root):
        above = [folder for folder in path.parents if folder.is_relative_to(root) and folder != root]
        for entry in (*above, path, *(path.rglob("*") if path.is_dir() else ())):
            if not entry.is_symlink():
                entry.chmod(entry.stat().st_mode | (0o055 if entry.is_dir() else 0o044))


def _make_folder(folder: Path, top: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent, top)
        _remove(folder)
        folder.mkdir()
        folder.chmod(0o755)


def _mirror(original: Path, twin: Path) -> None:
    """Make one folder or file look like another, with links to the same files."""
    if original.is_symlink() or not (original.is_dir() or original.is_file()):
        return
    if original.is_file():
        if not (twin.exists() and twin.samefile(original)):
            _remove(twin)
            _link(original, twin)
        return
    _make_folder(twin, twin)
    names = set(os.listdir(original))
    for name in names:
        _mirror(original / name, twin / name)
    for name in set(os.listdir(twin)) - names:
        _remove(twin / name)


def _link(original: Path, twin: Path) -> None:
    try:
        os.link(original, twin)
    except OSError:  # a file system without hard links
        shutil.copyfile(original, twin)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

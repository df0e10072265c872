"""What a worker must not be able to do, tried from inside before any answer runs.

Called by ``probe`` of mqlab.course.grading.sandbox.walled.

    read a forbidden folder    import a judge    reach a network    write into Python, mqlab or the root    be root
    see the grader             make a user namespace

This is not a proof: it finds a missing wall, but not every hole in a wall.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import socket
import sys
from pathlib import Path

from mqlab.course.grading.sandbox import user_namespaces
from mqlab.course.material import PACKAGE

ALL_WELL = "walled in"
CASES = ("mqlab", "course", "cases")


def try_walls(forbidden: list[str]) -> str:
    """``ALL_WELL``, or the first thing that should have been impossible."""
    for path in forbidden:
        with contextlib.suppress(OSError):
            if os.listdir(path):
                return f"an answer could read {path}"
    if judges := _judges():
        return f"an answer could import the judges {', '.join(judges)}"
    if _has_network():
        return "an answer could use the network"
    for folder in (PACKAGE, Path(sys.prefix), Path("/"), Path("/usr"), Path("/dev")):
        if _can_write(folder):
            return f"an answer could write into {folder}"
    if os.geteuid() == 0:
        return "an answer would be root"
    if len([name for name in os.listdir("/proc") if name.isdigit()]) > 8:
        return "an answer could see other processes"
    if not user_namespaces.is_off():
        return "an answer could make a user namespace"
    return ALL_WELL


def _judges() -> list[str]:
    """What an import would find of the judges: modules, and folders, which need no ``__init__.py`` to be imported."""
    places = [Path(folder, *CASES) for folder in (str(PACKAGE.parent), *sys.path)]
    modules = {name for _, name, _ in pkgutil.iter_modules(map(str, places))}
    folders = {entry.name for folder in places if folder.is_dir() for entry in folder.iterdir() if entry.is_dir()}
    return sorted(modules | folders)


def _has_network() -> bool:
    interfaces = [name for _, name in socket.if_nameindex()]
    return any(name != "lo" for name in interfaces)


def _can_write(folder: Path) -> bool:
    mark = folder / ".mqlab-wall-test"
    try:
        mark.write_text("")
    except OSError:
        return False
    with contextlib.suppress(OSError):
        mark.unlink()
    return True

"""What lab 16d starts: a copy of the learner's folder mybroker, and ``mqlab serve --parts mybroker`` on it.

home = copy_of_mybroker(globals())        mybroker as it is, today's handlers, mqlab's own for the rest
process, addresses = served(home)         a server in a process of its own
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqlab.course.mybroker import fill
from mqlab.course.teach.checking import is_untouched
from mqlab.course.teach.keeping import written
from mqlab.errors import MqlabError
from mqlab.lab.parts import FOLDER

PATIENCE_S = 30.0


def copy_of_mybroker(names: Mapping[str, Any]) -> Path:
    """Returns a new folder with a complete mybroker in it. ``names`` are the notebook's, of which HANDLERS is taken."""
    home = Path(tempfile.mkdtemp(prefix="mqlab-16d-"))
    if Path(FOLDER).is_dir():
        shutil.copytree(FOLDER, home / FOLDER)
    with contextlib.chdir(home):
        fill()
        if not is_untouched(names.get("HANDLERS")):
            written("lab16.handlers", names, again=True)
    return home


def served(home: Path, *options: str | Path) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Returns a server's process and its addresses: a name server and a broker on the parts of ``home``.

    MqlabError with the last thing it said where it does not start.
    """
    ports = home / "ports.json"
    free = ("--namesrv", "127.0.0.1:0", "--broker", "127.0.0.1:0", "--port-file", ports)
    command = [sys.executable, "-m", "mqlab.cli", "serve", "--parts", FOLDER, *free, *options]
    said = home / "serve.log"
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, stderr=log)
    until = time.monotonic() + PATIENCE_S
    while not (ports.exists() and ports.read_text("utf-8")):
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            last = said.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise MqlabError(f"mqlab serve did not start on {home / FOLDER}", hint="".join(last))
        time.sleep(0.05)
    addresses: dict[str, Any] = json.loads(ports.read_text("utf-8"))
    return process, addresses

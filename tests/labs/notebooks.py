"""Running a notebook in a fresh kernel, and reading what its cells put out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def execute(notebook: Any, folder: str = "labs") -> Any:
    """The notebook with the outputs of a fresh run; errors stay in the cells that raised them."""
    NotebookClient(
        notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(ROOT / folder)}}
    ).execute()
    return notebook


def texts(cell: Any) -> str:
    """What a cell put out, as plain text; of an error what the notebook shows."""
    found = []
    for output in cell.get("outputs", ()):
        if output.output_type == "error":
            found.append("\n".join(output.traceback))
        else:
            found.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(found)


def errors(notebook: Any) -> list[str]:
    """``id: exception: text`` of every cell that raised."""
    return [
        f"{cell.id}: {output.ename}: {output.evalue}"
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    ]


def nbval(path: Path, *options: str) -> str:
    """Runs nbval on a notebook as an instructor would; its report, AssertionError when something failed."""
    command = [
        sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(path.parent), "-p", "no:cacheprovider", "-q",
        "--nbval-current-env", "--nbval-cell-timeout", "300", *options, str(path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def source(cell: Any) -> str:
    return "".join(cell["source"])


def load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))

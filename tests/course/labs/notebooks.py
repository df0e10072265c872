"""Running a notebook in a fresh kernel, and reading what its cells put out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbval.plugin import IPyNbCell, coalesce_streams, nocolors

from mqlab.course.grading.sandbox.walled import SHORT_LIVED_JAVA as JAVA_OPTIONS

NOT_COMPARED = (
    "metadata",
    "traceback",
    "prompt_number",
    "output_type",
    "name",
    "execution_count",
    "image/png",
    "image/jpeg",
    "application/vnd.jupyter.widget-view+json",
)
"""What nbval leaves out of its comparison."""

ROOT = Path(__file__).resolve().parents[3]
SHORT_LIVED_JAVA = {"JDK_JAVA_OPTIONS": JAVA_OPTIONS}
"""For a JVM that ends with its notebook: without the second compiler."""

SECONDS = 900
"""For a cell, on the busiest machine."""

NO_OTHER_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Those of this environment, such as hypothesis, take a second of each run of nbval and do nothing in it."""


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def write(notebook: Any, path: Path) -> None:
    nbformat.write(notebook, path)


def execute(notebook: Any, folder: str = "labs") -> Any:
    """The notebook with the outputs of a fresh run; errors stay in the cells that raised them."""
    where = {"metadata": {"path": str(ROOT / folder)}}
    client = NotebookClient(notebook, timeout=SECONDS, allow_errors=True, resources=where)
    client.execute(env={**os.environ, **SHORT_LIVED_JAVA})
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


def without_java(folder: Path) -> dict[str, str]:
    """This process's environment, but no JAVA_HOME and no ``java`` on the path: its folders are given without it."""
    places = []
    for number, place in enumerate(os.environ["PATH"].split(os.pathsep)):
        if (Path(place) / "java").exists():
            copy = folder / str(number)
            copy.mkdir(parents=True)
            for program in Path(place).iterdir():
                if not program.name.startswith("java"):
                    (copy / program.name).symlink_to(program)
            place = str(copy)
        places.append(place)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return kept | {"PATH": os.pathsep.join(places)}


def nbval(path: Path, *options: str, environment: dict[str, str] | None = None) -> str:
    """Runs nbval on a notebook as an instructor would; its report, AssertionError when something failed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "--rootdir",
        str(path.parent),
        "-p",
        "no:cacheprovider",
        "-q",
        "-p",
        "nbval.plugin",
        "--nbval-current-env",
        "--nbval-cell-timeout",
        str(SECONDS),
        *options,
        str(path),
    ]
    for _ in range(2):
        with tempfile.TemporaryDirectory() as scratch:  # nbval kills its kernel: what that left goes with this
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=path.parent,
                check=False,
                env={**(environment or os.environ), **SHORT_LIVED_JAVA, **NO_OTHER_PLUGINS, "TMPDIR": scratch},
            )
        if "Kernel died before replying" not in done.stdout:  # its ports were taken between choosing and binding them
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def differences(ran: Any, committed: Any) -> list[str]:
    """Where the outputs of a run are not those of the committed notebook, as nbval compares them."""
    found = []
    for now, then in zip(ran.cells, committed.cells, strict=True):
        if then.cell_type == "code" and "nbval-ignore-output" not in then.metadata.get("tags", ()):
            comparing = _Comparing()
            if not IPyNbCell.compare_outputs(
                comparing, coalesce_streams(now.outputs), coalesce_streams(then.outputs), NOT_COMPARED
            ):
                found.append(f"{then.id}: " + "\n".join(comparing.comparison_traceback))
    return found


class _Comparing:
    """What nbval's comparison of a cell uses of its cell."""

    colors = nocolors

    def __init__(self) -> None:
        self.comparison_traceback: list[str] = []

    def sanitize(self, text: Any) -> Any:
        return text

    def format_output_compare(self, key: str, committed: Any, now: Any) -> None:
        self.comparison_traceback.append(f"{key} was\n{committed}\nand is\n{now}")


def source(cell: Any) -> str:
    return "".join(cell["source"])


def load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))

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
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from nbformat.v4 import new_output
from traitlets.config import Config

from mqlab.grading.sandbox import SHORT_LIVED_JAVA as JAVA_OPTIONS

ROOT = Path(__file__).resolve().parents[2]
SHORT_LIVED_JAVA = {"JDK_JAVA_OPTIONS": JAVA_OPTIONS, "MQLAB_SPARK_SHARED_CLASSES": "0"}
"""For a JVM that ends with its notebook: without the second compiler, and without an archive of classes at its end."""


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def execute(notebook: Any, folder: str = "labs") -> Any:
    """The notebook with the outputs of a fresh run; errors stay in the cells that raised them."""
    NotebookClient(
        notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(ROOT / folder)}}
    ).execute(env={**os.environ, **SHORT_LIVED_JAVA})
    return notebook


def execute_here(notebook: Any) -> Any:
    """The notebook with the outputs of a run in a shell of this process: what is open here, it uses as well."""
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    try:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = _outputs(shell, cell.source)
    finally:
        InteractiveShell.clear_instance()
    return notebook


def _outputs(shell: InteractiveShell, source: str) -> list[Any]:
    with capture_output() as shown:
        result = shell.run_cell(source, store_history=True)
    outputs = [new_output("stream", text=shown.stdout)] if shown.stdout else []
    outputs += [new_output("display_data", data=one.data) for one in shown.outputs]
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        outputs.append(new_output("error", ename=type(error).__name__, evalue=str(error), traceback=[shown.stdout]))
    return outputs


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
        sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(path.parent), "-p", "no:cacheprovider", "-q",
        "--nbval-current-env", "--nbval-cell-timeout", "300", *options, str(path),
    ]  # fmt: skip
    for _ in range(2):
        with tempfile.TemporaryDirectory() as scratch:  # nbval kills its kernel: what that left goes with this
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=path.parent, check=False,
                env={**(environment or os.environ), **SHORT_LIVED_JAVA, "TMPDIR": scratch},
            )  # fmt: skip
        if "Kernel died before replying" not in done.stdout:  # its ports were taken between choosing and binding them
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def source(cell: Any) -> str:
    return "".join(cell["source"])


def load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))

"""A cell that fails: its names are remembered until another cell defines them; a check says so in a real notebook."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import nbformat
from nbclient import NotebookClient

from mqlab.course.teach.failed_cells import FailedCells, names_in
from tests.course.labs.notebooks import texts

STARTED = "from mqlab.course import check"
RIGHT = """import struct

def read_unit(log, start):
    return {"size": 7}
"""


def run(*sources: str) -> list[str]:
    """What each cell of a fresh notebook puts out."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return [texts(cell) for cell in notebook.cells]


def test_names_that_a_cell_is_to_define() -> None:
    source = "A = 1\nB: int = 2\nA == 3\nclass C(:\n    async def d(self)\nprint(e=5)\ndef f(x):\n    return (\n"
    assert names_in(source) == ["A", "B", "C", "d", "f"]
    assert names_in("a.b = 1\nx[0] = 2\ny += 1") == []


def cell(watch: FailedCells, names: dict[str, Any], source: str, after: dict[str, Any], **errors: Any) -> None:
    watch.before(SimpleNamespace(raw_cell=source))
    names.update(after)
    watch.after(SimpleNamespace(**{"error_before_exec": None, "error_in_exec": None, **errors}))


def test_a_name_is_failed_until_a_cell_defines_it() -> None:
    names: dict[str, Any] = {}
    watch = FailedCells(names)
    broken = SyntaxError("'(' was never closed")
    cell(watch, names, "def f(x): return (", {}, error_before_exec=broken)
    assert watch.errors == {"f": broken}
    cell(watch, names, "g = 1", {"g": 1})
    assert watch.errors == {"f": broken}
    cell(watch, names, "def f(x): return x\n1 / 0", {"f": len}, error_in_exec=ZeroDivisionError())
    assert watch.errors == {}  # it was defined before the cell failed
    early = NameError("nmae")
    cell(watch, names, "nmae\ndef f(x): return 2 * x", {}, error_in_exec=early)
    assert watch.errors == {"f": early}  # what f is now is an older answer
    cell(watch, names, "def f(x): return 2 * x", {"f": abs})
    assert watch.errors == {}


def test_in_a_notebook_a_check_says_that_the_cell_failed() -> None:
    broken = RIGHT.replace("}\n", "\n")
    late = "nmae\n" + RIGHT
    said = run(
        STARTED,
        'check("lab01.unit")',
        broken,
        'check("lab01.unit")',
        RIGHT,
        'check("lab01.unit")',
        late,
        'check("lab01.unit")',
        'check("lab01.tags")',
    )
    assert "not started" in said[1]
    assert "the cell that defines read_unit failed" in said[3] and "not started" not in said[3]
    assert "SyntaxError: incomplete input: a bracket" in said[3] and 'line 4: return {"size": 7' in said[3]
    assert "nothing new" not in said[5] and "✗ lab01.unit" in said[5]  # judged, and wrong
    assert "the cell that defines read_unit failed" in said[7] and "NameError: name 'nmae'" in said[7]
    assert "at      line 1: nmae" in said[7]
    assert "not started" in said[8]

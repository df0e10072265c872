"""Every row of runtime.md section 14 has a test that is named after it, and no number is used twice."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROWS = range(1, 85)


def row_numbers() -> list[int]:
    """The numbers in the names of the tests beside this file."""
    names = [
        node.name
        for path in sorted(Path(__file__).parent.glob("test_rows_*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_row_")
    ]
    return [int(name.split("_")[2]) for name in names]


def test_all_84_rows_have_a_test() -> None:
    assert Counter(row_numbers()) == dict.fromkeys(ROWS, 1)


def test_each_file_holds_the_rows_it_is_named_after() -> None:
    for path in sorted(Path(__file__).parent.glob("test_rows_*.py")):
        _, _, first, _, last = path.stem.split("_")
        names = [node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
        numbers = [int(name.split("_")[2]) for name in names if name.startswith("test_row_")]
        assert numbers == list(range(int(first), int(last) + 1)), path.name

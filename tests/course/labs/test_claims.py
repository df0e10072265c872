"""Each common claim about RocketMQ that belongs to a lab is met by a cell of it; claims.toml says which."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.course.labs.notebooks import ROOT, read

CLAIMS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
TEXTBOOKS = ROOT / "tests" / "lab" / "scenarios" / "textbooks"


def notebook(part: str) -> Path:
    """The notebook of a part, such as 06a."""
    (path,) = (ROOT / "labs").glob(f"{part}-*.ipynb")
    return path


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_cell_that_meets_a_claim_exists(claim: str) -> None:
    part, wanted = CLAIMS[claim]
    cells = read(notebook(part)).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    if wanted.startswith("sentence: "):
        text = [cell.source for cell in cells if cell.cell_type == "markdown"]
        assert any(wanted.removeprefix("sentence: ") in source for source in text)
    elif re.fullmatch(r"lab\d\d\.\w+", wanted):
        # A prediction is answered, an exercise checked, a task asked by a cell of its own.
        assert any(re.search(rf'^(# )?(reveal|check|answer)\("{wanted}"', source, re.MULTILINE) for source in code)
    else:
        assert any(source.strip().splitlines()[:1] == [wanted] for source in code)


def test_every_claim_that_is_tested_is_met_by_a_lab() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in TEXTBOOKS.glob("test_*.py")]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert sorted(CLAIMS) == sorted(name.removeprefix("test_") for name in names if name.startswith("test_"))

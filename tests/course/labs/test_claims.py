"""Each common claim about RocketMQ that belongs to a lab is met by a cell of it; claims.toml says which."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.course.labs.notebooks import ROOT, read

CLAIMS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
OF_LABS = {
    "01": {1, 2, 3, 4, 8, 9, 73, 81, 83},
    "02": {7, 10, 11, 17, 26, 27, 28, 29, 30, 46, 79, 80, 82},
    "03": {12, 13, 14, 15, 16, 35, 75},
    "04": {5, 19, 20, 21, 22, 23, 24, 41, 42, 49, 50, 51, 52, 53, 57, 58, 59, 60, 61, 62, 66, 76, 77},
    "05": {34, 37, 38, 39, 78, 84},
    "06": {6, 18, 25, 63, 64, 65, 67, 68, 69, 70, 74},
    "07": {31, 32, 33, 40, 43, 44, 45, 47, 48, 54, 56, 71, 72},
    "08": {55},
    "09": {36},
}
"""Numbers of the claims that each lab meets."""
COUNT = 84


def notebook(part: str) -> Path:
    """The notebook of a part, such as 06a."""
    (path,) = (ROOT / "labs").glob(f"{part}-*.ipynb")
    return path


@pytest.mark.parametrize("number", CLAIMS)
def test_the_cell_that_meets_a_claim_exists(number: str) -> None:
    part, wanted = CLAIMS[number]
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


@pytest.mark.parametrize("lab", sorted({part[:2] for part, _ in CLAIMS.values()}))
def test_a_lab_meets_all_its_claims(lab: str) -> None:
    assert {int(number) for number, (part, _) in CLAIMS.items() if part[:2] == lab} == OF_LABS[lab]


def test_every_claim_is_met_by_a_lab() -> None:
    assert sorted(map(int, CLAIMS)) == list(range(1, COUNT + 1))

"""A picture of what an answer gives is drawn, empty, also while the answer gives rows of another form."""

from __future__ import annotations

from collections import Counter
from unittest.mock import MagicMock

import pytest

from solutions.build import SOURCES
from solutions.cells import read

STRANGE = [{"another": "column"}]
GIVES = ("entries", "rows_of_calls", "rows_of_life", "rows_of_board", "whom")
PICTURES = [
    pytest.param(cell.source, id=f"{path.stem[:3]}:{cell.line}")
    for path in sorted(SOURCES.glob("1[1-3]a_*.py"))
    for cell in read(path.read_text("utf-8"), path.name)
    if cell.kind == "code" and "is open" in cell.source
]


@pytest.mark.parametrize("source", PICTURES)
def test_a_strange_answer_stops_no_picture(source: str) -> None:
    names = {name: lambda *_: STRANGE for name in GIVES}
    world = {name: MagicMock() for name in ("bodies", "day", "calls", "life", "lag_now", "shop", "disks_of", "Bars")}
    exec(source, {"Counter": Counter, **world, **names})
    assert world["Bars"].called

"""Reads a lab's source into cells: py:percent text, in which cells of words stand between prose and code.

The builder's page, solutions/build.py, says how a source is written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from mqlab.errors import UsageError
from solutions.words import KINDS, Typed, predict_cell, text_of, typed

KIND = rf"\[(?P<kind>markdown|{'|'.join(KINDS)})\]"
HEADER = re.compile(rf"# %%(?: {KIND}(?P<id> lab\d\d\.\w+)?)?(?P<options>(?: \w+=\S.*)?)$")
OPTION = re.compile(r'(\w+)=("[^"]*"|\[[^\]]*\]|\d+)')


@dataclass(slots=True)
class Cell:
    """One cell of a source: ``line`` is the number of its header's line; ``id`` names what a cell of words is about."""

    kind: str
    source: str
    line: int
    tags: list[str] = field(default_factory=list)
    id: str = ""


def read(text: str, where: str) -> list[Cell]:
    """The cells of a py:percent text. UsageError for text before the first cell, and for a header of another form."""
    cells: list[Cell] = []
    lines: list[str] = []

    # A cell ends where the next header begins, so its text is known only then.
    def finish() -> None:
        if cells:
            body = "\n".join(lines).strip("\n")
            cells[-1].source = body if cells[-1].kind == "code" else _uncommented(body, where, cells[-1].line)
        elif any(line.strip() for line in lines):
            raise UsageError(f"{where}: text before the first cell", hint="begin with '# %%' or '# %% [markdown]'")
        lines.clear()

    # Headers divide the text; every other line belongs to the cell above it.
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("# %%"):
            lines.append(line)
            continue
        header = HEADER.match(line)
        if header is None or bool(header["id"]) != (header["kind"] in KINDS):
            raise UsageError(f"{where} line {number}: not a cell header: {line!r}")
        finish()
        options = {name: json.loads(value) for name, value in OPTION.findall(header["options"])}
        unknown = sorted(options.keys() - {"tags"})
        if unknown:
            raise UsageError(f"{where} line {number}: unknown option {unknown[0]!r}", hint="there is: tags")
        kind, identity = header["kind"] or "code", (header["id"] or "").strip()
        cells.append(Cell(kind, "", number, options.get("tags", []), identity))
    finish()
    return cells


def _uncommented(body: str, where: str, line: int) -> str:
    lines = body.splitlines()
    wrong = next((text for text in lines if text != "#" and text.strip() and not text.startswith("# ")), None)
    if wrong is not None:
        raise UsageError(f"{where}, cell of line {line}: every line of a text cell begins with '# ', found {wrong!r}")
    return "\n".join(text[2:] for text in lines)


def read_words(cell: Cell, where: str) -> Typed:
    """A cell of words, read."""
    return typed(cell.kind, cell.id, cell.source, f"{where} line {cell.line}")


def shown(cell: Cell, where: str) -> list[Cell]:
    """The cells of the notebook that a cell becomes: one, but two of a prediction and none of a belief."""
    if cell.kind not in KINDS:
        return [cell]
    spelled = read_words(cell, where)
    text = Cell("markdown", text_of(spelled), cell.line, cell.tags, cell.id)
    if cell.kind == "prediction":
        return [text, Cell("code", predict_cell(spelled), cell.line, [], cell.id)]
    return [] if cell.kind == "belief" else [text]

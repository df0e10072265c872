"""Reads a notebook that a student may have written or broken: its cells, or why it cannot be read.

``mqlab grade`` and ``mqlab check`` begin here.

    path ─▶ read_notebook ─▶ Notebook(cells=[CellText(kind, source, id, grade_id, tags)], metadata)
                          ─▶ NotANotebook: not a file, too large, not JSON, no cells, ...
    over 32 MB            the pictures in it (attached, pasted, or drawn by a cell) are left out before it is read

Formats 3 and 4, with or without cell ids and metadata, as Jupyter, VS Code and Colab write them.
Outputs are not read: grading does not need them.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mqlab.errors import MqlabError, UsageError

MAX_FILE_BYTES = 256 << 20
MAX_READ_BYTES = 32 << 20
"""What may be left of a file without its pictures."""
PIECE_BYTES = 1 << 20
BASE64 = re.compile(rb'(?:\A|(?<=[",]))(?:[A-Za-z0-9+/=]++(?:\\n)*+)++')
"""What may be a picture in a JSON string, or the rest of it at the beginning of a piece."""
PICTURE_BYTES = 64 << 10
"""No code has a word as long as that."""
LONGEST_ESCAPE = 6
MAX_SOURCE_CHARACTERS = 400_000
MAX_CELLS = 10_000


class NotANotebook(MqlabError):
    """A file cannot be read as a notebook; the text gives the reason."""

    code = "notebook"


@dataclass(frozen=True, slots=True)
class CellText:
    """What grading uses of a cell. ``part`` is the part of a lab whose notebook it is from, as in "01a"."""

    kind: str
    source: str
    id: str = ""
    grade_id: str = ""
    tags: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of a notebook, and the bytes it was read from."""

    cells: tuple[CellText, ...]
    data: bytes

    @property
    def code(self) -> list[CellText]:
        return [cell for cell in self.cells if cell.kind == "code"]


def read_notebook(path: Path) -> Notebook:
    """The notebook in a file. NotANotebook for everything else; links are not followed."""
    return parse_notebook(_read(path))


def named_notebook(path: Path) -> Notebook:
    """The notebook that a command line names. UsageError has the path and what is wrong with it."""
    try:
        return read_notebook(path)
    except NotANotebook as error:
        hint = "it is a folder: name a notebook in it" if path.is_dir() else error.hint
        raise UsageError(f"cannot read {path} as a notebook: {error.text}", hint=hint) from error


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise NotANotebook(f"it cannot be opened: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotANotebook("it is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > MAX_FILE_BYTES:
            raise _too_large(f"it is larger than {MAX_FILE_BYTES >> 20} MB")
        return file.read(MAX_READ_BYTES) if status.st_size <= MAX_READ_BYTES else _without_pictures(file)


def _without_pictures(file: BinaryIO) -> bytes:
    data, rest = bytearray(), b""
    while piece := file.read(PIECE_BYTES):
        text = rest + piece
        # An escape such as \u00e9 is not divided.
        cut = text.rfind(b"\\", max(0, len(text) - LONGEST_ESCAPE))
        text, rest = (text, b"") if cut < 0 else (text[:cut], text[cut:])
        data += BASE64.sub(lambda word: b"" if len(word[0]) >= PICTURE_BYTES else word[0], text)
        if len(data) > MAX_READ_BYTES:
            raise _too_large(f"without its pictures it is larger than {MAX_READ_BYTES >> 20} MB")
    return bytes(data) + rest


def _too_large(problem: str) -> NotANotebook:
    return NotANotebook(problem, hint="clear its outputs, remove pasted pictures and save it")


def parse_notebook(data: bytes) -> Notebook:
    """The notebook in some bytes. NotANotebook gives the reason if it is not one."""
    if not data.strip():
        raise NotANotebook("it is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotANotebook(f"it is not UTF-8 text (byte {error.start})") from error
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise NotANotebook("it is nested too deep") from error
    except ValueError as error:
        raise NotANotebook(f"it is not JSON: {str(error)[:120]}") from error
    if not isinstance(content, dict):
        raise NotANotebook("it is JSON, but not a notebook: the top level is not an object")
    cells = [cell for item in _raw_cells(content) if (cell := _cell(item)) is not None]
    if sum(len(cell.source) for cell in cells if cell.kind == "code") > MAX_SOURCE_CHARACTERS:
        raise NotANotebook(f"its cells hold more than {MAX_SOURCE_CHARACTERS:,} characters")
    return Notebook(tuple(cells), data)


def _raw_cells(content: dict[str, Any]) -> list[Any]:
    cells = content.get("cells")
    if cells is None and isinstance(content.get("worksheets"), list):  # format 3
        cells = [
            cell
            for sheet in content["worksheets"]
            if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
            for cell in sheet["cells"]
        ]
    if not isinstance(cells, list):
        raise NotANotebook("it has no list of cells")
    if len(cells) > MAX_CELLS:
        raise NotANotebook(f"it has more than {MAX_CELLS:,} cells")
    return cells


def _cell(item: Any) -> CellText | None:
    if not isinstance(item, dict):
        return None
    source = item.get("source", item.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    grading = metadata.get("nbgrader")
    tags = metadata.get("tags")
    return CellText(
        kind=_text(item.get("cell_type")),
        source=source.replace("\r\n", "\n").replace("\r", "\n"),
        id=_text(item.get("id")),
        grade_id=_text(grading.get("grade_id")) if isinstance(grading, dict) else "",
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

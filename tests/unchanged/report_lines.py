"""What the Spark pipeline made of a day, and its page, as lines: facts, numbers, curves.

Words for the reader may become better words: of the page and of the column ``told``, only the numbers are compared.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.dataset

from mqlab.data.spark.report import write_report

NUMBER = re.compile(r"-?\d[\d.,:]*")
RUN = "source"  # the section about the run itself
DRAWN = {"d", "points", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}


class Numbers(HTMLParser):
    """The numbers of a page: those of its texts and those that its charts are drawn with.

    Left out is the last section, which says how many seconds this run took, and the queries for the rows behind the
    numbers: a test runs them.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._is_left_out = self._is_query = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_query = tag == "pre"
        if tag in ("style", "section", "body"):
            self._is_left_out = tag == "style" or ("id", RUN) in attrs
        if self._is_left_out:
            return
        self.lines += [f"{tag} {name} {value}" for name, value in attrs if name in DRAWN]

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        self._is_query = self._is_query and tag != "pre"

    def handle_data(self, data: str) -> None:
        if not (self._is_left_out or self._is_query):
            self.lines += NUMBER.findall(data)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "told": NUMBER.findall(row["told"])} if "told" in row else row


def lines_of_report(out: Path, folder: Path) -> list[str]:
    """Every row of every fact table of a finished run in a fixed order, then the numbers of its page.

    The page is written to ``folder``. Where the run's own folder is named, the line says FOLDER.
    """
    lines = []
    for facts in sorted((out / "facts").iterdir()):
        table = pyarrow.dataset.dataset(facts).to_table()
        lines.append(f"{facts.name} {table.column_names}")
        lines += sorted(json.dumps(_plain(row), default=str, ensure_ascii=False) for row in table.to_pylist())
    lines += Numbers(write_report(out, folder / "report.html").read_text("utf-8")).lines
    return [line.replace(str(out.parent), "FOLDER") for line in lines]

"""The pages of reports, as Jinja2 templates in the folder ``html``; every value is escaped.

    frame("Grades", body)                       a page around what was made already
    filled("predictions.html", title=…, …)      a page of its own

A page is one file without a script, readable on paper, on a dark screen and on a narrow one. It fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

FOLDER = Path(__file__).parent / "html"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def filled(name: str, **values: Any) -> Markup:
    """A template with its values. A value that it lacks is an error."""
    return Markup(_environment().get_template(name).render(values))


def frame(title: str, *body: Markup) -> str:
    """A whole page. Everything but markup is escaped."""
    return str(filled("page.html", title=title, body=Markup("\n").join(body)))


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = (), kind: str = ""
) -> Markup:
    """A table; the columns of ``numbers`` are set to the right. ``kind`` "grid": many narrow columns, heads upright."""
    return filled("table.html", head=head, rows=rows, numbers=numbers, kind=kind)


def mark(passed: bool) -> Markup:
    """A sign that does not rest on colour."""
    return Markup('<span class="good">✓</span>') if passed else Markup('<span class="bad">✗</span>')

"""The pages of reports, as Jinja2 templates in the folder ``html``; every value is escaped.

    frame("Grades", body)                       a page around what was made already
    filled("predictions.html", title=…, …)      a page of its own

A page is one file without a script, readable on paper, on a dark screen and on a narrow one. It fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mqlab.lab.views.templates import environment_of

FOLDER = Path(__file__).parent / "html"


def filled(name: str, **values: Any) -> Markup:
    """A template with its values. A value that it lacks is an error."""
    return Markup(environment_of(FOLDER).get_template(name).render(values))


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

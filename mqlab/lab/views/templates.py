"""The HTML of views that is more than a line, as Jinja2 templates in the folder ``html``; every value is escaped.

Tables and hexdumps of all labs are written with it.

    filled("table.html", title="<b>", …)      Markup with &lt;b&gt;

Jinja2 is imported when the first view is shown in a notebook, so that ``import mqlab`` does not pay for it.
Left out: pictures, which are SVG (mqlab.lab.views.picture).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mqlab.lab.views.theme import COLOURS, SCHEMES

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "html"


@cache
def environment_of(folder: Path) -> Environment:
    """The templates of a folder: every value is escaped, and a template does not go without one that it names."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def filled(name: str, **values: Any) -> Markup:
    """A template with its values; ``theme`` is the style sheet with the colours. A value that it lacks is an error."""
    return Markup(environment_of(FOLDER).get_template(name).render(values, theme=Markup(SCHEMES + COLOURS)))

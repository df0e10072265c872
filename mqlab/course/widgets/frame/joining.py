"""A board's module as one plain ES module: shared pieces in front, the frame behind; no build step, no network.

    // uses: theme, slider          ->   frame/page/element.js  (a piece may use pieces, too)
    export default { render… }           frame/page/theme.js
                                         frame/page/slider.js
                                         the board's module, its export kept as ``board``
                                         frame/page/frame.js: alive in a notebook (live) or in a page (still)

A shared piece declares functions and exports nothing. A module's names and those of its pieces must differ.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

from mqlab.errors import UsageError

USES = re.compile(r"// uses: *(?P<names>[\w, ]+)")
EXPORT = re.compile(r"^export default \{", re.MULTILINE)
FRAME = "frame"
LIVE = """
export default {{
  initialize: ({{ model }}) => offerBoard(board, model),
  render: (context) => live(board, context, {label}),
}};
"""
STILL = "\nstill(board, {name}, {label});\n"


@functools.cache
def joined(module: str, *more: str) -> str:
    """A board's module as text, with its pieces, the frame and ``more`` pieces; its export is the constant ``board``.

    Raises UsageError for a module or piece that does not exist, and for a module without ``export default {``.
    """
    names: dict[str, None] = {}
    text = _read(f"boards/{module}/{module}.js")
    for name in (*_used(text), FRAME, *more):
        _add(name, names)
    if len(EXPORT.findall(text)) != 1:
        raise UsageError(f"{module}.js must have one line that begins with 'export default {{'")
    pieces = [piece(name) for name in names]
    whole = "\n".join([*pieces, EXPORT.sub("const board = {", text)])
    # A script element ends at this text, wherever it is.
    if "</script" in whole:
        raise UsageError(f"{module}.js or one of its pieces contains the end of a script element")
    return whole


def piece(name: str) -> str:
    """The text of one shared piece. Raises UsageError for one that does not exist."""
    return _read(f"frame/page/{name}.js")


def _add(name: str, names: dict[str, None]) -> None:
    """Add a piece after the pieces that it uses itself."""
    if name not in names:
        for other in _used(piece(name)):
            _add(other, names)
        names[name] = None


def _used(text: str) -> list[str]:
    match = USES.match(text)
    return [name.strip() for name in match["names"].split(",")] if match else []


def _read(name: str) -> str:
    path = files("mqlab.course.widgets").joinpath(*name.split("/"))
    if not path.is_file():
        raise UsageError(f"there is no module {name} in mqlab/course/widgets")
    return path.read_text("utf-8")

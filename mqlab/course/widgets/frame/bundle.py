"""Many JavaScript modules as one: an output of a notebook, a widget and a page have no place to import from.

    // frame/page/slider.js                        const widgets_frame_page_slider = (() => {
    import { element } from "./element.js";          const { element } = widgets_frame_page_element;
    export function slider(…) { … }                  function slider(…) { … }
                                                     return { slider };
                                                   })();

Each module keeps its own names, so two modules may use the same ones. The text that is bundled comes last and stays
a module: its ``export default`` is what anywidget gets.

Understood are ``import name from "./x.js";``, ``import { a, b } from "./x.js";``, ``export function``, ``export async
function``, ``export const``, ``export class`` and one ``export default``, each at the beginning of a line. node and the
linter read the same files as they are; they are not needed to run a board.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Sequence
from importlib.resources import files

from mqlab.errors import UsageError

IMPORT = re.compile(
    r"^import (?:(?P<whole>\w+)|\{(?P<names>[^}]*)\}) from \"(?P<path>\.[^\"]+)\";(?: *//.*)?\n", re.MULTILINE
)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (?P<name>\w+))", re.MULTILINE)
DEFAULT = re.compile(r"^export default ", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
FORMS = "write import name from, import { a } from, export function, const or class, or one export default"
MODULE = "const {name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"


def bundled(entry: str, folder: str) -> str:
    """``entry``, the text of a module that stands in a folder of mqlab/course, behind all modules that it imports.

    Raises UsageError for modules that do not exist or import each other in a circle, and for what is not understood.
    """
    body, imported = _inside(entry, folder)
    order: dict[str, str] = {}
    for path in imported:
        _add(path, order, ())
    whole = "".join([*order.values(), body])
    # A script element ends at this text, wherever it is.
    if "</script" in whole:
        raise UsageError("a board's module contains the end of a script element")
    return whole


def with_board(module: str, ending: str) -> str:
    """A board's module and what shows it: ``ending`` is a module in mqlab/course/widgets, in which it is ``board``."""
    return bundled(f'import board from "./boards/{module}/{module}.js";\n{ending}', "widgets")


def _add(path: str, order: dict[str, str], importing: Sequence[str]) -> None:
    """Add a module behind those that it imports itself."""
    if path in importing:
        raise UsageError(f"JavaScript modules import each other in a circle: {' -> '.join([*importing, path])}")
    if path not in order:
        text, imported = _wrapped(path)
        for other in imported:
            _add(other, order, [*importing, path])
        order[path] = text


@functools.cache
def _wrapped(path: str) -> tuple[str, tuple[str, ...]]:
    """A module as a constant, and the paths of the modules that it imports."""
    body, imported = _inside(_read(path), posixpath.dirname(path))
    exports = [match["name"] for match in EXPORT.finditer(body)]
    body, has_default = DEFAULT.subn("const theDefault = ", EXPORT.sub("", body))
    if has_default:
        exports.append("default: theDefault")
    if strange := OTHER.search(body):
        raise UsageError(f"{path}: this form is not bundled: {strange[0]}", hint=FORMS)
    return MODULE.format(name=_constant(path), body=body, exports=", ".join(exports)), imported


def _inside(text: str, folder: str) -> tuple[str, tuple[str, ...]]:
    """A module's text with constants for its imports, and the paths of the modules that it imports."""
    imported: dict[str, None] = {}

    def as_constant(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["path"]))
        imported[path] = None
        names = f"default: {match['whole']}" if match["whole"] else match["names"].replace(" as ", ": ")
        return f"const {{ {' '.join(names.split())} }} = {_constant(path)};\n"

    return IMPORT.sub(as_constant, text), tuple(imported)


def _constant(path: str) -> str:
    return re.sub(r"\W", "_", path.removesuffix(".js"))


def _read(path: str) -> str:
    file = files("mqlab.course").joinpath(*path.split("/"))
    if not file.is_file():
        raise UsageError(f"there is no module {path} in mqlab/course")
    return file.read_text("utf-8")

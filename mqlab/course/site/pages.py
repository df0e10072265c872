"""Every lab as a page to read: as it is handed out, with the pictures and boards of a run, and without answers.

A cell of the handed-out lab has the output that the same cell has in the solved one, unless that would tell an answer:

    check, show_me, predict, reveal, answer, hint           their outputs speak about answers
    a cell that uses a name which an answer defines         its output is what the answer gives
    a cell that uses a name which such a cell defines       the same
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import symtable
from pathlib import Path
from typing import Any

from mqlab.course.grading.submissions.lab_files import ANSWER_MARK
from mqlab.course.site.repository import with_links

SPEAKS_OF_ANSWERS = frozenset({"check", "show_me", "predict", "reveal", "answer", "hint"})
FOREIGN_SCRIPT = re.compile(
    r'<script[^>]*\bsrc="https?://[^>]*></script>|<script type="text/x-mathjax.*?</script>', re.S
)
MODULES_FROM_ELSEWHERE = re.compile(
    r"<script type=\"module\">(?:(?!</script>).)*https://(?:(?!</script>).)*</script>", re.S
)
WAY_BACK = '<p style="padding:1em"><a href="../index.html" style="text-decoration:underline">mqlab</a></p>'


def shown(handed_out: dict[str, Any], solved: dict[str, Any]) -> dict[str, Any]:
    """The notebook as it is handed out, with the outputs that tell no answer."""
    run = {cell["id"]: cell for cell in solved["cells"]}
    handed_cells = {cell["id"]: cell for cell in handed_out["cells"]}
    telling: set[str] = set()
    imported = {name for cell in solved["cells"] if cell["cell_type"] == "code" for name in _imported(cell)}
    for cell in solved["cells"]:  # in their order: what a cell defines from an answer tells it, too
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        defined, used = _names(source)
        mine = handed_cells.get(cell["id"])
        is_changed = mine is None or "".join(mine["source"]) != source
        if ANSWER_MARK in source or is_changed or used & telling:
            telling |= defined - imported
        elif mine is not None and not used & SPEAKS_OF_ANSWERS:
            mine["outputs"], mine["execution_count"] = run[cell["id"]]["outputs"], None
    return handed_out


def _names(source: str) -> tuple[set[str], set[str]]:
    """The names of the notebook that a cell defines, and those that it reads; a function's own names are neither.

    What is not Python has no output in a page.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set(), set(SPEAKS_OF_ANSWERS)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    defined = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    defined |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    changed = {  # rows.append(…), table["x"] = …: the object is another one afterwards
        part.value.id
        for part in ast.walk(tree)
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.value, ast.Name)
    }
    used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    of_the_notebook = _outer(symtable.symtable(source, "", "exec"))
    changed -= set(dir(builtins))  # list[int] changes nothing
    return (defined | changed) & of_the_notebook, used & of_the_notebook


def _outer(scope: symtable.SymbolTable) -> set[str]:
    """The names of a scope, and of those in it, that belong to the notebook."""
    is_top = scope.get_type() == "module"
    names = {symbol.get_name() for symbol in scope.get_symbols() if is_top or symbol.is_global()}
    return names.union(*map(_outer, scope.get_children()))


def _imported(cell: dict[str, Any]) -> set[str]:
    """What a cell imports: no answer changes it."""
    try:
        tree = ast.parse("".join(cell["source"]))
    except SyntaxError:
        return set()
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(name.asname or name.name).partition(".")[0] for node in imports for name in node.names}


def put_pages(out: Path, root: Path) -> list[str]:
    """Write a page for every notebook of ``root/labs`` to a folder that does not exist yet; returns their names."""
    from nbconvert import HTMLExporter

    exporter: Any = HTMLExporter(require_js_url="", jquery_url="", mathjax_url="", mermaid_js_url="")  # type: ignore[no-untyped-call]
    out.mkdir()
    names = []
    for path in sorted((root / "labs").glob("*.ipynb")):
        notebook = with_links(json.loads(path.read_text("utf-8")))
        solved = root / "solutions" / path.name
        if solved.is_file():
            notebook = shown(notebook, json.loads(solved.read_text("utf-8")))
        text, _ = exporter.from_notebook_node(_node(notebook), {"metadata": {"name": path.stem}})
        name = f"{path.stem}.html"
        (out / name).write_text(readable(text), "utf-8")
        names.append(name)
    return names


def _node(notebook: dict[str, Any]) -> Any:
    from nbformat import reads

    return reads(json.dumps(notebook), 4)  # type: ignore[no-untyped-call]


def readable(text: str) -> str:
    """An exported page that asks no other server, with links to pages where the notebook has links to notebooks."""
    text = re.sub(r'href="([\w-]+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', without_other_servers(text))
    return re.sub(r"(<body[^>]*>)", r"\1" + WAY_BACK, text, count=1)


def without_other_servers(text: str) -> str:
    """An exported page without the scripts that nbconvert takes from other servers."""
    return MODULES_FROM_ELSEWHERE.sub("", FOREIGN_SCRIPT.sub("", text))

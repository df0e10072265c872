"""keep(id): writes an answer that passed its check into ``mybroker``, as a file that can be imported and run on.

    keep("lab04.process_queue")               mybroker/process_queue.py, next to the notebooks
    keep("lab04.process_queue", again=True)   the file of before is kept next to it: process_queue-1.py

The file has the answer's cell and what it needs of other cells: imports, functions, classes, and constants. What an
answer remembers in a list or an object of another cell cannot be kept.
"""

from __future__ import annotations

import ast
import datetime
import dis
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mqlab.course.teach.exercises import is_table
from mqlab.course.teach.lives import text_of_cell
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.lab.parts import ANSWERS, FOLDER
from mqlab.whole_files import whole_file

INIT = '"""Your broker: the parts that you wrote and kept."""\n\nfrom mqlab.course.mybroker import fill, parts\n'
PLAIN = (int, float, str, bytes, bool, type(None))


def keepable(exercise_id: str) -> bool:
    """Whether an answer is a part of your broker."""
    return exercise_id in ANSWERS


def keep(exercise_id: str, *, again: bool = False) -> Said:
    """Check an answer once more and write it to ``mybroker``; ``again`` replaces a file that is there.

    Raises CheckFailed for a wrong answer, UsageError for one that is not a part, is kept already, or cannot be.
    """
    from mqlab.course.teach.checking import check

    names = sys._getframe(1).f_globals
    _must_be_part(exercise_id)
    said = check(exercise_id, names)
    return written(exercise_id, names, again=again) if said.state == "good" else said


def written(exercise_id: str, names: Mapping[str, Any], *, again: bool = False) -> Said:
    """Write an answer that has passed into ``mybroker`` in the current folder."""
    _must_be_part(exercise_id)
    kind, folder = ANSWERS[exercise_id], Path(FOLDER)
    text = source_of(exercise_id, kind.name, names)
    folder.mkdir(exist_ok=True)
    if not (folder / "__init__.py").exists():
        (folder / "__init__.py").write_text(INIT, "utf-8")
    path, facts = folder / f"{kind.file}.py", []
    if path.exists():
        if not again and not is_filled(path):
            raise AskedWrongly(f"{path} is there already", hint=f'keep("{exercise_id}", again=True) keeps both')
        facts = [("before", str(path.rename(_free(path))))]
    write_part(path, exercise_id, text, "kept")
    facts = [("file", str(path)), ("import", f"from {FOLDER} import {kind.file}"), *facts]
    return Said("good", f"{exercise_id} is a part of your broker", facts, "play(story, mine=True) runs a world on it.")


def write_part(path: Path, exercise_id: str, text: str, how: str) -> None:
    """Write one part's file, with its exercise, how it came there ("kept", say) and the date at its head."""
    today = datetime.date.today().isoformat()
    with whole_file(path) as draft:
        draft.write_text(f'"""{exercise_id}, {how} {today}."""\n\n{text.rstrip()}\n', "utf-8")


def is_filled(path: Path) -> bool:
    """Whether a part's file has mqlab's own part, which ``mybroker.fill`` has put there."""
    return FILLED in path.read_text("utf-8").partition("\n")[0]


FILLED = "not yours: mqlab's own, filled in"


def _must_be_part(exercise_id: str) -> None:
    if not keepable(exercise_id):
        raise AskedWrongly(f"{exercise_id} is not a part of a broker", hint=f"parts are {', '.join(ANSWERS)}")


def _free(path: Path) -> Path:
    numbers = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, 1000))
    return next(path for path in numbers if not path.exists())


def source_of(exercise_id: str, name: str, names: Mapping[str, Any]) -> str:
    """A module's text that defines ``name`` as the notebook does. UsageError for what only a running notebook has."""
    gathering = _Gathering(exercise_id, names)
    gathering.take(name)
    imports = [line for line, is_import in gathering.pieces if is_import]
    rest = [text for text, is_import in gathering.pieces if not is_import]
    return "\n".join(sorted(set(imports))) + "\n\n" + "\n\n\n".join(rest)


class _Gathering:
    """The statements that a name needs, those it is built on first."""

    def __init__(self, exercise_id: str, names: Mapping[str, Any]) -> None:
        self._exercise_id, self._names = exercise_id, names
        self._taken: set[str] = set()
        self.pieces: list[tuple[str, bool]] = []

    def take(self, name: str) -> None:
        """The statement that binds a name, after what it uses."""
        if name in self._taken or name not in self._names or name.startswith("__"):
            return
        self._taken.add(name)
        value = self._names[name]
        if isinstance(value, types.ModuleType):
            alias = "" if value.__name__ == name else f" as {name}"
            self.pieces.append((f"import {value.__name__}{alias}", True))
        elif _is_own(value):
            self._take_definition(name, value)
        elif _is_plain(value):
            self.pieces.append((f"{name} = {value!r}", False))
        else:
            home, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
            if not home or getattr(sys.modules.get(home), own, None) is not value:
                raise AskedWrongly(
                    f"{self._exercise_id} uses {name}, {type(value).__name__} of another cell, which cannot be kept",
                    hint="make it in the cell of your answer, inside the class or function",
                )
            alias = "" if own == name else f" as {name}"
            self.pieces.append((f"from {home} import {own}{alias}", True))

    def _take_definition(self, name: str, value: Any) -> None:
        cell = text_of_cell(value)
        tree = ast.parse(cell) if cell else ast.Module([], [])
        binding = [
            statement for statement in ast.walk(tree) if isinstance(statement, ast.stmt) and name in _binds(statement)
        ]
        if not binding:
            raise AskedWrongly(f"the cell that defines {name} is not known", hint="run that cell again, then keep")
        definition = min(
            reversed(binding), key=lambda statement: statement.col_offset
        )  # the last one that is not inside another
        for used in _names_in(definition):
            self.take(used)
        first = min([definition.lineno, *(decorator.lineno for decorator in getattr(definition, "decorator_list", ()))])
        self.pieces.append((textwrap.dedent("\n".join(cell.splitlines()[first - 1 : definition.end_lineno])), False))


def _is_own(value: Any) -> bool:
    if is_table(value):
        return any(map(_is_own, value.values()))
    return isinstance(value, type | types.FunctionType) and value.__module__ == "__main__"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain, value))
    return type(value) in PLAIN


def _binds(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _names_in(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement looks for outside of itself."""
    yield from _looked_up(compile(ast.Module([statement], []), "<kept>", "exec"))


def _looked_up(code: types.CodeType) -> Iterator[str]:
    steps = list(dis.get_instructions(code))
    own = {step.argval for step in steps if step.opname == "STORE_NAME"}
    for step in steps:
        if step.opname == "LOAD_GLOBAL" or (step.opname == "LOAD_NAME" and step.argval not in own):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _looked_up(inner)

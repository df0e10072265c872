"""A solution and its unsolved lab, run in one shell: a cell that no answer and no guess can change runs once for both.

    the solution          the lab
    lab = play(day)                             once: no answer is in it
    def due(row): ...     def due(row): pass    in both: the texts differ
    Table(map(due, …))                          in both: it names what an answer defines
    lab.run_for("5m")
    reveal("lab08.due", lab.now_ms)             its last line in both: it asks what the learner did

Each of the two has its own values for the names that such cells bind, and for what mqlab.teach keeps of its learner.
"""

from __future__ import annotations

import ast
import os
import symtable
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell

from tests.labs.notebooks import outputs_of

ASK_THE_LEARNER = {"answer", "check", "hint", "predict", "reveal", "show_me"}
NOTHING = object()
"""Stands for the value of a name that is not bound."""


def run(
    shell: InteractiveShell, solution: Any, lab: Any, folders: tuple[Path, Path], answers: Iterable[str],
    passed_over: Collection[str] = (),
) -> None:  # fmt: skip
    """Put the outputs of a fresh run into the cells of both, each run in its folder; ``answers``: what they define.

    Each cell of the solution has its processor time as ``metadata.user_seconds``; those whose id is in ``passed_over``
    are not run and keep their outputs. The lab's cells that ran for the solution alone get no outputs.
    """
    again = run_again(solution, lab, answers)
    unsolved = _Unsolved(shell)
    for number, (cell, of_the_lab) in enumerate(zip(solution.cells, lab.cells, strict=True)):
        if cell.cell_type != "code":
            continue
        before = dict(shell.user_ns)
        os.chdir(folders[0])
        began = os.times().user  # the system's time is that of the disk, and no cell's
        if cell.id not in passed_over:
            cell.outputs = outputs_of(shell, cell.source)
            cell.execution_count = shell.execution_count - 1
        cell.metadata["user_seconds"] = os.times().user - began
        text = again.get(number, "")
        unsolved.solution_went_on(before, same=text != of_the_lab.source)
        if text:
            os.chdir(folders[1])
            of_the_lab.outputs = unsolved.outputs_of(text)
            of_the_lab.execution_count = cell.execution_count


def run_again(solution: Any, lab: Any, answers: Iterable[str]) -> dict[int, str]:
    """What the lab runs for itself: by the cell's number its text, or those of its lines that ask what the learner did.

    A whole cell may do something else in the lab: its text is another one, or it names what an answer has changed.
    """
    changed, found = set(answers), {}
    for number, (cell, of_the_lab) in enumerate(zip(solution.cells, lab.cells, strict=True)):
        if cell.cell_type != "code":
            continue
        names = [_Names(text) for text in {cell.source, of_the_lab.source}]
        used = set[str]().union(*(one.used for one in names))
        if len(names) == 2 or used & changed:
            changed |= set[str]().union(*(one.bound | one.acted_on(changed) for one in names))
            found[number] = of_the_lab.source
        elif used & ASK_THE_LEARNER:
            found[number] = names[0].asking
    return found


class _Names:
    """The notebook's names in a cell: ``used`` are those that it reads, ``bound`` those that it gives a value."""

    def __init__(self, text: str) -> None:
        python = TransformerManager().transform_cell(text)
        self._text = python
        self._statements = ast.parse(python).body
        top = symtable.symtable(python, "cell", "exec")
        inner = [name for table in _inside(top) for name in table.get_symbols() if name.is_global()]
        self.used = {name.get_name() for name in (*top.get_symbols(), *inner) if name.is_referenced()}
        self.bound = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}

    @property
    def asking(self) -> str:
        """The statements that ask what the learner did."""
        asks = [one for one in self._statements if any(name.id in ASK_THE_LEARNER for name in _names_in(one))]
        return "\n".join(ast.get_source_segment(self._text, one) or "" for one in asks)

    def acted_on(self, changed: set[str]) -> set[str]:
        """Whose value may be another after the cell: of ``lab.run_for("5s")`` and ``an_answer(lab)`` the lab."""
        found = set()
        for statement in self._statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                function = statement.value.func
                if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                    found.add(function.value.id)
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found |= _arguments_of(changed, statement)
        return found


def _names_in(statement: ast.stmt) -> list[ast.Name]:
    return [node for node in ast.walk(statement) if isinstance(node, ast.Name)]


def _inside(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for inner in table.get_children():
        yield inner
        yield from _inside(inner)


def _arguments_of(functions: set[str], statement: ast.stmt) -> set[str]:
    """The names that a statement hands to some functions."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    of_them = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in functions]
    return {one.id for call in of_them for one in call.args if isinstance(one, ast.Name)}


class _Unsolved:
    """The unsolved run: those of its names that have another value than in the solution's, and its own learner."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._own: dict[str, Any] = {}
        self._learner: tuple[Any, Any] = ({}, {})

    def solution_went_on(self, before: dict[str, Any], *, same: bool) -> None:
        """After a cell of the solution. ``same``: the lab's cell has done the same, so its values are the lab's too."""
        for name, value in self._shell.user_ns.items():
            if before.get(name, NOTHING) is not value:
                if same:
                    self._own.pop(name, None)
                else:
                    self._own.setdefault(name, before.get(name, NOTHING))

    def outputs_of(self, text: str) -> list[Any]:
        """What a cell of the lab puts out; afterwards names and learner are the solution's again."""
        names = self._shell.user_ns
        solutions = dict(names)
        _bind(names, self._own)
        self._change_places()
        try:
            return outputs_of(self._shell, text)
        finally:
            self._change_places()
            self._own = {name: value for name, value in names.items() if solutions.get(name, NOTHING) is not value}
            self._own |= dict.fromkeys(solutions.keys() - names.keys(), NOTHING)
            names.clear()
            names.update(solutions)

    def _change_places(self) -> None:
        from mqlab.teach import predictions, showing

        there = predictions._noted, showing._failed
        (predictions._noted, showing._failed), self._learner = self._learner, there


def _bind(names: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is NOTHING:
            names.pop(name, None)
        else:
            names[name] = value

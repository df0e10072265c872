"""Runs the cell of an answer anew, as the start of a process does: what the cell kept in its variables is gone.

Mirrors: a process that ended and was started again. Lab 07's killer; any case whose answer has to survive a death.

    anew(never_again)   in a notebook       the text of its cell, run among fresh variables
                        behind the wall     a new process, in which all cells were run and nothing was called
                        in a Python file    the function itself: there is no cell

Fresh variables are what the other cells imported and defined (modules, functions, classes, constants), without what
can remember: lists, dictionaries, iterators, objects of the learner's own.
Left out: what an answer keeps elsewhere, in an attribute of a module, say; behind the wall that is gone too.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONTAINERS = (list, dict, set, bytearray)
ROOMS_OF_MEMORY = ("__main__", "mqlab", "collections", "itertools", "queue", "array", "threading", "sqlite3")
"""Packages whose objects can remember; a library's modules, functions and classes are none of their objects."""

_under_way: list[str] = []


def anew(answer: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same answer in its next life. ``name``: what its cell calls it. Raises what the cell raises."""
    behind_the_wall = getattr(answer, "_mqlab_anew", None)
    if behind_the_wall is not None:
        return behind_the_wall()  # type: ignore[no-any-return]
    function = _function_of(answer)
    source = "" if function is None else _cell_of(function.__code__.co_filename)
    if function is None or not source:
        return answer
    names = fresh(function.__globals__)
    with contextlib.redirect_stdout(io.StringIO()), _cell_under_way(name):
        exec(compile(source, function.__code__.co_filename, "exec", dont_inherit=True), names)
    return names.get(name, answer)  # type: ignore[no-any-return]


def cell_is_run_anew() -> bool:
    """Whether a check that is called now stands in the very cell that another check runs anew."""
    return bool(_under_way)


@contextlib.contextmanager
def _cell_under_way(name: str) -> Iterator[None]:
    _under_way.append(name)
    try:
        yield
    finally:
        _under_way.pop()


def fresh(names: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook's names without what can remember; its own functions see these names, too."""
    kept: dict[str, Any] = {}
    for name, value in names.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is names:
            again = types.FunctionType(value.__code__, kept, value.__name__, value.__defaults__, value.__closure__)
            again.__kwdefaults__ = value.__kwdefaults__
            kept[name] = again
        elif name.startswith("__") or not _remembers(value):
            kept[name] = value
    return kept


def _remembers(value: Any) -> bool:
    """True for what may hold something else later: containers, iterators, objects of the learner's or of mqlab."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
        return False
    if isinstance(value, tuple):
        return any(map(_remembers, value))
    room = type(value).__module__.partition(".")[0]
    return isinstance(value, CONTAINERS) or room in ROOMS_OF_MEMORY or hasattr(value, "__next__")


def _function_of(answer: Any) -> types.FunctionType | None:
    """A function that tells where an answer was written: itself, or the first method of its class."""
    answer = getattr(answer, "__func__", answer)
    if isinstance(answer, types.FunctionType):
        return answer
    kind = answer if isinstance(answer, type) else type(answer)
    return next((item for item in vars(kind).values() if isinstance(item, types.FunctionType)), None)


def _cell_of(filename: str) -> str:
    """The text of a notebook's cell, which IPython keeps under the name of a file that is not there; else nothing."""
    return "" if os.path.exists(filename) else "".join(linecache.getlines(filename))

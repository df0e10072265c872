"""Runs the cell of an answer again, as the start of a process does: all its variables are lost.

For cases whose answer has to survive a crash, such as lab 07's killer.

    anew(never_again)    in a notebook       the text of its cell, run among fresh variables
                        behind the wall     a new process, in which all cells were run and nothing was called
                        in a Python file    the function itself: there is no cell

    elsewhere(sticky)   the same answer in another process, with all its variables: there hash() gives other numbers

Fresh variables are what the other cells imported and defined (modules, functions, classes, constants), without anything
that can remember: lists, dictionaries, iterators, objects of the learner's own. In each life, hash() of a text gives
other numbers. In a notebook, what an answer keeps elsewhere (in an attribute of a module, for example) survives; behind
the wall that is gone too.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import linecache
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONTAINERS = (list, dict, set, bytearray)
ROOMS_OF_MEMORY = ("__main__", "mqlab", "collections", "itertools", "queue", "array", "threading", "sqlite3")
"""Packages whose objects can remember. Modules, functions and classes of a library do not count as such objects."""

_under_way: list[str] = []
_lives = itertools.count(2)  # 1 is the process of ``elsewhere``


def anew(answer: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same answer in its next life. ``name``: its name in its cell. Raises what the cell raises."""
    behind_the_wall = getattr(answer, "_mqlab_anew", None)
    if behind_the_wall is not None:
        return behind_the_wall()  # type: ignore[no-any-return]
    function, source = _function_of(answer), text_of_cell(answer)  # all that a restarted process would have
    if function is None or not source:
        return answer
    names = fresh(function.__globals__)
    with contextlib.redirect_stdout(io.StringIO()), _cell_under_way(name):
        exec(compile(source, function.__code__.co_filename, "exec", dont_inherit=True), names)
    return names.get(name, answer)  # type: ignore[no-any-return]


def elsewhere(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same answer in another process, where hash() of a text gives other numbers (PYTHONHASHSEED).

    In a notebook it is a copy of a function with the same variables; an object and a closure stay as they are, and so
    does the order of a set.
    """
    behind_the_wall = getattr(answer, "_mqlab_anew", None)
    if behind_the_wall is not None:
        return behind_the_wall()  # type: ignore[no-any-return]
    if not isinstance(answer, types.FunctionType):
        return answer
    names: dict[str, Any] = {"hash": hash_in_process(1)}
    names |= {name: _bound_to(names, value, answer.__globals__) for name, value in answer.__globals__.items()}
    there: Callable[..., Any] = _bound_to(names, answer, answer.__globals__)
    return there


def hash_in_process(number: int) -> Callable[[Any], int]:
    """Python's hash() as another process has it: numbers have the same, texts and what is made of them have not."""
    return lambda value: hash(value) if isinstance(value, int | float) else hash(("process", number, value))


def cell_is_run_anew() -> bool:
    """Whether the calling check is in the cell that another check is running again."""
    return bool(_under_way)


@contextlib.contextmanager
def _cell_under_way(name: str) -> Iterator[None]:
    _under_way.append(name)
    try:
        yield
    finally:
        _under_way.pop()


def fresh(names: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook's names without anything that can remember; its own functions are bound to these names."""
    kept: dict[str, Any] = {"__builtins__": vars(builtins) | {"hash": hash_in_process(next(_lives))}}
    for name, value in names.items():
        if name == "__builtins__":
            continue
        if isinstance(value, types.FunctionType) or name.startswith("__") or not _remembers(value):
            kept[name] = _bound_to(kept, value, names)
    return kept


def _bound_to(names: dict[str, Any], value: Any, before: Mapping[str, Any]) -> Any:
    """A function of the notebook must see the new names, not those before; everything else stays."""
    if not isinstance(value, types.FunctionType) or value.__globals__ is not before:
        return value
    again = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
    again.__kwdefaults__ = value.__kwdefaults__
    return again


def _remembers(value: Any) -> bool:
    """True for values that can change: containers, iterators, objects of the learner's own classes or of mqlab."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
        return False
    if isinstance(value, tuple):
        return any(map(_remembers, value))
    room = type(value).__module__.partition(".")[0]
    return isinstance(value, CONTAINERS) or room in ROOMS_OF_MEMORY or hasattr(value, "__next__")


def _function_of(answer: Any) -> types.FunctionType | None:
    """A function whose code shows where an answer was written: itself, the first method of its class or of a table."""
    answer = next(iter(answer.values()), None) if isinstance(answer, dict) else answer
    answer = getattr(answer, "__func__", answer)
    if isinstance(answer, types.FunctionType):
        return answer
    kind = answer if isinstance(answer, type) else type(answer)
    return next((item for item in vars(kind).values() if isinstance(item, types.FunctionType)), None)


def text_of_cell(answer: Any) -> str:
    """The text of the notebook's cell in which a function or class was defined; "" where that is not known."""
    function = _function_of(answer)
    return "" if function is None else _cell_of(function.__code__.co_filename)


def _cell_of(filename: str) -> str:
    """The text of a notebook's cell, which IPython keeps under a file name that does not exist; "" for a real file."""
    return "" if os.path.exists(filename) else "".join(linecache.getlines(filename))

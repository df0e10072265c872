"""The notebook's side of ``Exercise.forbids``: an answer that uses what does the exercise for it is told so, kindly.

``check`` asks it; behind the wall the code itself is missing (mqlab.course.grading.sandbox.withheld).

    refuse_named(answers, forbids)       what the answers' code names, whether it is run or not
    run_watched(case, answers, forbids)  what is called while an answer runs, under whatever name, by whatever function

Both raise NotGiven. Everything else in the notebook uses the same functions freely: the lab's own cells, the judges,
another exercise.
Not seen: what runs in another process or thread, and what a cache knows already.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import mqlab
from mqlab.course.teach.exercises import Answers, Case, Finding, is_table
from mqlab.errors import NotGiven

PACKAGE = Path(mqlab.__file__).resolve().parent
THE_SIMULATION = str(PACKAGE / "lab" / "runtime")
THE_IMPORT_SYSTEM = "<frozen importlib"


class Forbidden:
    """What some names of mqlab stand for: functions, classes, and modules with all that they define."""

    def __init__(self, forbids: Iterable[str]) -> None:
        self._codes: dict[CodeType, str] = {}
        self._objects: list[tuple[object, str]] = []
        self._places: dict[str, str] = {}
        self._known_files: dict[str, str] = {}
        self.harmless_files: set[str] = set()
        """Files with nothing forbidden in them, as far as they have been asked for by ``name_of_code``."""
        for name in forbids:
            path = PACKAGE.joinpath(*name.split(".")[1:])
            if path.is_dir() or path.with_suffix(".py").is_file():
                self._places[name] = str(path) if path.is_dir() else str(path.with_suffix(".py"))
            else:
                self._add(name, _object_of(name))

    def _add(self, name: str, value: Any) -> None:
        function = getattr(value, "__func__", value)
        self._objects.append((function, name))
        # A cache would answer without a call that can be seen.
        getattr(function, "cache_clear", lambda: None)()
        function = getattr(function, "__wrapped__", function)
        if isinstance(function, FunctionType):
            self._codes[function.__code__] = name
        elif isinstance(value, type):
            self._codes.update((item.__code__, name) for item in vars(value).values() if isinstance(item, FunctionType))

    @property
    def is_empty(self) -> bool:
        return not (self._objects or self._places)

    def name_of(self, value: object) -> str:
        """The forbidden name that an object goes by; empty for everything else."""
        value = getattr(value, "__func__", value)
        name = next((name for known, name in self._objects if known is value), "")
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if name or not isinstance(home, str) or not isinstance(value, ModuleType | FunctionType | type):
            return name
        inside = next((name for name in self._places if home == name or home.startswith(f"{name}.")), "")
        return inside if isinstance(value, ModuleType) or not inside else f"{home}.{value.__qualname__}"

    def name_of_code(self, code: CodeType) -> str:
        """The forbidden name that code belongs to; empty for all other code."""
        if code in self._codes:
            return self._codes[code]
        file = code.co_filename
        if file not in self._known_files:
            inside = next((name for name, path in self._places.items() if Path(file).is_relative_to(path)), "")
            self._known_files[file] = inside
            if not inside and all(code.co_filename != file for code in self._codes):
                self.harmless_files.add(file)
        return self._known_files[file]


def _object_of(name: str) -> Any:
    """The object of a dotted name: modules as far as there are any, attributes from there."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        if PACKAGE.joinpath(*parts[1:count]).with_suffix(".py").is_file() or count == 1:
            break
    return reduce(getattr, parts[count:], importlib.import_module(".".join(parts[:count])))


def refuse_named(answers: Mapping[str, Any], forbids: Iterable[str]) -> None:
    """Look for forbidden names in the code of some answers, and of the notebook's own helpers that they call.

    Raises NotGiven for the first one.
    """
    forbidden = Forbidden(forbids)
    seen: set[int] = set()
    waiting = [value for answer in answers.values() for value in _functions_of(answer)]
    while waiting:
        function = waiting.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for value in _values_named(function.__code__, function.__globals__):
            if name := forbidden.name_of(value):
                raise NotGiven(name)
            # A helper of the notebook's own is part of the answer.
            waiting += [other for other in _functions_of(value) if other.__globals__ is function.__globals__]


def _functions_of(value: Any) -> list[FunctionType]:
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        return [value]
    if is_table(value):
        return [function for item in value.values() for function in _functions_of(item)]
    if isinstance(value, type):
        return [item for item in vars(value).values() if isinstance(item, FunctionType)]
    return []


def _values_named(code: CodeType, names: Mapping[str, Any]) -> Iterator[object]:
    """The objects that code names: globals, what it imports, and attributes of modules and classes among them."""
    value: object = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = names.get(step.argval, getattr(builtins, str(step.argval), None))
        elif step.opname == "IMPORT_NAME":
            value = sys.modules.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") and isinstance(value, ModuleType | type):
            whole, value = value, vars(value).get(step.argval)
            if step.opname == "IMPORT_FROM":  # the next name is taken out of the same module
                yield value
                value = whole
        else:
            continue
        yield value
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _values_named(constant, names)


def run_watched(case: Case, answers: Answers, forbids: Iterable[str]) -> Finding | None:
    """What a case finds. NotGiven if an answer called what is forbidden, even if it caught the error."""
    finding = None
    case.prepare()
    with Watch(answers, forbids) as watch:
        try:
            finding = case.run(answers)
        except Exception:
            if not watch.used:
                raise
    if watch.used:
        raise NotGiven(watch.used)
    return finding


class Watch:
    """While it is open, a forbidden function that an answer calls, itself or through others, raises NotGiven."""

    def __init__(self, answers: Mapping[str, Any], forbids: Iterable[str]) -> None:
        self.used = ""
        self._forbidden = Forbidden(forbids)
        functions = [function for answer in answers.values() for function in _functions_of(answer)]
        functions += [function for answer in answers.values() for function in _functions_of(type(answer))]
        self._globals = {id(function.__globals__) for function in functions if not _is_ours(function)}
        # "<string>" is the file of every method that dataclass makes, too: those are known by their globals alone.
        self._files = {function.__code__.co_filename for function in functions if not _is_ours(function)} - {"<string>"}
        self._before: Any = None
        self._traced_before: Any = None
        self._outside: FrameType | None = None

    def __enter__(self) -> Watch:
        self._before, self._traced_before = sys.getprofile(), sys.gettrace()
        self._outside = sys._getframe(1)
        if self._globals and not self._forbidden.is_empty:
            if self._beside_a_profiler_in_c:
                sys.settrace(self._watcher())
            else:
                sys.setprofile(self._watcher())
        return self

    def __exit__(self, *error: object) -> None:
        if self._beside_a_profiler_in_c:
            sys.settrace(self._traced_before)
        else:
            sys.setprofile(self._before)
        self._outside = None

    @property
    def _beside_a_profiler_in_c(self) -> bool:
        """True under ``%prun`` before Python 3.12: that profiler can be called, and put back, from C alone."""
        return self._before is not None and not callable(self._before)

    def _watcher(self) -> Callable[[FrameType, str, Any], None]:
        """What Python calls at every call and return. A day has a million of them, so most end at the first line."""
        harmless, before = self._forbidden.harmless_files, self._before

        def called(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code.co_filename not in harmless:
                self._look_at(frame)

        def called_beside(frame: FrameType, event: str, argument: Any) -> None:
            before(frame, event, argument)
            called(frame, event, argument)

        return called_beside if callable(before) else called

    def _look_at(self, frame: FrameType) -> None:
        name = self._forbidden.name_of_code(frame.f_code)
        if name and self._is_for_an_answer(frame.f_back):
            self.used = self.used or name
            raise NotGiven(name)

    def _is_for_an_answer(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self._outside:
            # Beyond a step of a simulated world are those who play it, not those who act in the step. A module that is
            # imported for the first time runs its own text, for any importer.
            if frame.f_code.co_filename.startswith((THE_SIMULATION, THE_IMPORT_SYSTEM)):
                return False
            if id(frame.f_globals) in self._globals or frame.f_code.co_filename in self._files:
                return True
            frame = frame.f_back
        return False


def _is_ours(function: types.FunctionType) -> bool:
    """True for a function of the package, such as the stand-in for an answer behind the wall."""
    return Path(function.__code__.co_filename).is_relative_to(PACKAGE)

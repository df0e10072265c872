"""Which names a learner's cell sees behind the wall: its own first, then the lab's, then those of the other answers.

Used by mqlab.course.grading.sandbox.worker.

    set-up cells    one namespace: what the lab gives, the imports, the functions and classes of cells that were added
    answer cell A   a copy of it, in which A's own definitions win
    what A lacks    builtins, then the answer cells above A (the nearest first), then those below

So three cells that each define ``helper`` use three of them, as in a notebook that is run from top to bottom.
What a cell changes elsewhere (an attribute of a module, a file) is shared: all cells run in one process.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

Names = dict[str, Any]


class Namespaces:
    """The namespaces of one worker. Each is the ``__main__`` of its own cells."""

    def __init__(self) -> None:
        self._given = _new_main({})
        self._answers: dict[str, types.ModuleType] = {}
        self._own: dict[str, Names] = {}

    def begin(self, exercise: str, *, is_answer: bool) -> Names:
        """The globals for a cell that is to be run now; an answer's are new each time."""
        if not is_answer:
            sys.modules["__main__"] = self._given
            return self._given.__dict__
        # Removed first, so that a cell that is loaded again becomes the last one.
        self._answers.pop(exercise, None)
        self._answers[exercise] = module = _new_main(self._given.__dict__)
        self._link()
        sys.modules["__main__"] = module
        return module.__dict__

    def find(self, exercise: str, names: list[str]) -> Names:
        """Those of the names that a cell has after it was run: its own, the lab's, or another answer's."""
        module = self._answers.get(exercise, self._given)
        seen = {**self._names_of_others(exercise), **module.__dict__}
        return {name: seen[name] for name in names if name in seen}

    def end(self, exercise: str) -> None:
        """Record that a cell was run: other answers that lack its names find them from now on."""
        module = self._answers.get(exercise)
        if module is not None:
            loaded = self._given.__dict__
            self._own[exercise] = {
                name: value
                for name, value in module.__dict__.items()
                if not name.startswith("__") and loaded.get(name, _ABSENT) is not value
            }
        self._link()

    def go_elsewhere(self, its_hash: Callable[[Any], int]) -> None:
        """From now on the cells' hash() is that of another process. See mqlab.course.teach.lives."""
        for module in (self._given, *self._answers.values()):
            module.__dict__["__builtins__"]["hash"] = its_hash

    def _names_of_others(self, exercise: str) -> Names:
        order = list(self._answers)
        index = order.index(exercise) if exercise in order else len(order)
        others: Names = {}
        # Later ones win: the cells below from the last to the first, then those above down to the nearest.
        for other in (*reversed(order[index + 1 :]), *order[:index]):
            others |= self._own.get(other, {})
        return others

    def _link(self) -> None:
        """CPython looks a global up in the function's own globals, then in their ``__builtins__``."""
        for exercise, module in (("", self._given), *self._answers.items()):
            fallback: Names = module.__dict__["__builtins__"]
            wanted = {**self._names_of_others(exercise), **vars(builtins)}
            # The dictionary is changed in place: functions that exist already refer to it.
            for name in fallback.keys() - wanted.keys():
                del fallback[name]
            fallback.update(wanted)


_ABSENT: Any = object()


def _new_main(names: Names) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update({name: value for name, value in names.items() if not name.startswith("__")})
    module.__dict__["__builtins__"] = dict(vars(builtins))
    module.__dict__["display"] = lambda *values, **settings: None
    return module

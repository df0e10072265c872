"""Stand-ins: what a check holds instead of an answer. The function, class or object itself works behind the wall.

A check, a Lab or a consumer uses a stand-in as if it were the learner's own function, class or object.

    decode_unit            AnswerFunction    called with values, returns values
    ProcessQueue           answer_class(..)  a class; calling it makes an object in the worker
    ProcessQueue(mq)       AnswerObject      each method call and attribute is one message to the worker

A stand-in is equal only to itself: an answer's own ``__eq__`` is never called. Of operators and special methods, a
stand-in supports calling, ``len``, ``in`` and ``[]``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

ATTRIBUTE_ACCESS = ("__getattr__", "__setattr__")
"""What runs no line of an answer, because its objects also keep what the judge's side gives them."""


class Calls(Protocol):
    """What a stand-in needs of the desk: one call, the place of a name today, and a new process."""

    def call(self, exercise: str, target: tuple[int, int], method: str | None, args: Any, kwargs: Any) -> Any: ...

    def locate(self, exercise: str, name: str) -> tuple[int, int]: ...

    def renew(self, exercise: str) -> None: ...


class _Anew:
    """``stand_in._mqlab_anew()``, of an object or a class: the same in a new process. See mqlab.course.teach.lives."""

    def __get__(self, stand_in: Any, kind: type) -> Callable[[], Any]:
        def renewed() -> Any:
            if stand_in is None:
                desk, exercise = kind.__dict__["_mqlab_class"][:2]
            else:
                desk, exercise = object.__getattribute__(stand_in, "_mqlab_where")[:2]
            desk.renew(exercise)
            return kind if stand_in is None else stand_in

        return renewed


class AnswerFunction:
    """A function of an answer. ``by_name``: it is looked up by its name after the worker was replaced."""

    def __init__(
        self,
        desk: Calls,
        exercise: str,
        life: int,
        number: int,
        name: str,
        parameters: tuple[str, ...],
        by_name: bool = False,
    ) -> None:
        self._mqlab_where = (desk, exercise)
        self._desk = desk
        self._exercise = exercise
        self._life = life
        self._number = number
        self._by_name = by_name
        self.__name__ = name
        self.__qualname__ = name
        self.parameters = parameters
        self.__signature__ = signature(parameters)

    _mqlab_anew = _Anew()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._desk.call(self._exercise, self.locate(), None, args, kwargs)

    def locate(self) -> tuple[int, int]:
        """The life of the worker and the function's number in it, as they are now."""
        return self._desk.locate(self._exercise, self.__name__) if self._by_name else (self._life, self._number)

    def __repr__(self) -> str:
        return f"<answer {self.__name__} of {self._exercise}>"


class AnswerObject:
    """An object of an answer, or the base of the classes that make them."""

    _mqlab_where: tuple[Calls, str, int, int]
    _mqlab_methods: frozenset[str] = frozenset()
    _mqlab_anew = _Anew()
    _mqlab_name = ""  # the name that the answer's cell binds the object to; a new worker finds it by that name

    @classmethod
    def standing_for(
        cls, desk: Calls, exercise: str, life: int, number: int, methods: frozenset[str], name: str = ""
    ) -> AnswerObject:
        """The stand-in for an object that the worker already has; ``name``: its name in its cell, if it has one."""
        stand_in = object.__new__(cls)
        object.__setattr__(stand_in, "_mqlab_where", (desk, exercise, life, number))
        object.__setattr__(stand_in, "_mqlab_methods", methods)
        object.__setattr__(stand_in, "_mqlab_name", name)
        return stand_in

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._mqlab_methods:

            def method(*args: Any, **kwargs: Any) -> Any:
                return _ask(self, name, args, kwargs)

            method.__name__ = name
            return method
        return _ask(self, "__getattr__", (name,), {})

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "__setattr__", (name, value), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _ask(self, "__call__", args, kwargs)

    def __len__(self) -> int:
        return int(_ask(self, "__len__", (), {}))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, item: Any) -> bool:
        return bool(_ask(self, "__contains__", (item,), {}))

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "__getitem__", (key,), {})

    def __repr__(self) -> str:
        return f"<object of an answer to {self._mqlab_where[1]}>"


def _ask(stand_in: AnswerObject, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    desk, exercise, _, _ = object.__getattribute__(stand_in, "_mqlab_where")
    return desk.call(exercise, _place_of(stand_in), method, args, kwargs)


def _place_of(stand_in: AnswerObject) -> tuple[int, int]:
    """The life of the worker and the object's number in it, as they are now."""
    desk, exercise, life, number = object.__getattribute__(stand_in, "_mqlab_where")
    name = object.__getattribute__(stand_in, "_mqlab_name")
    return desk.locate(exercise, name) if name else (life, number)


def answer_class(
    desk: Calls, exercise: str, life: int, number: int, name: str, methods: frozenset[str], by_name: bool = False
) -> type[AnswerObject]:
    """A class whose instances are made in the worker; ``isinstance`` is true for them."""

    def make(cls: type[AnswerObject], *args: Any, **kwargs: Any) -> Any:
        where = desk.locate(exercise, name) if by_name else (life, number)
        answer = desk.call(exercise, where, None, args, kwargs)
        if not isinstance(answer, AnswerObject):
            return answer
        _, _, its_life, its_number = object.__getattribute__(answer, "_mqlab_where")
        return cls.standing_for(desk, exercise, its_life, its_number, answer._mqlab_methods)

    members = {
        "__new__": make,
        "__init__": lambda self, *args, **kwargs: None,
        "__module__": "answer",
        "_mqlab_class": (desk, exercise, life, number, name, by_name),
    }
    return type(name, (AnswerObject,), members)


class AnswerTable(dict[Any, Any]):
    """A table of functions that an answer defines, such as handlers by their codes. Each is found again by its key."""

    def __init__(self, desk: Calls, exercise: str, entries: dict[Any, Any]) -> None:
        super().__init__(entries)
        self._desk, self._exercise = desk, exercise

    def _mqlab_anew(self) -> AnswerTable:
        self._desk.renew(self._exercise)
        return self


def number_of(value: Any) -> int | None:
    """The worker's number for the original of a stand-in; None for anything that is not a stand-in."""
    if isinstance(value, AnswerFunction):
        return value.locate()[1]
    if isinstance(value, AnswerObject):
        return _place_of(value)[1]
    if isinstance(value, type) and issubclass(value, AnswerObject) and value is not AnswerObject:
        desk, exercise, _, number, name, by_name = value.__dict__["_mqlab_class"]
        return int(desk.locate(exercise, name)[1] if by_name else number)
    return None


def signature(parameters: tuple[str, ...]) -> inspect.Signature:
    """The signature of an answer as ``inspect`` shows it. "=" follows an optional parameter, "*" means any number more.

    >>> str(signature(("messages", "context="))), str(signature(("*",)))
    ('(messages, context=Ellipsis)', '(*args)')
    """
    accepted = []
    for name in dict.fromkeys(parameters):
        if name == "*":
            accepted.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
        else:
            default = ... if name.endswith("=") else inspect.Parameter.empty
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            accepted.append(inspect.Parameter(name.removesuffix("="), kind, default=default))
    try:
        return inspect.Signature(accepted)
    except ValueError:  # no function has such parameters: the worker's message is forged
        return inspect.Signature()

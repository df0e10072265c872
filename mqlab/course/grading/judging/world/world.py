"""The judge's objects that an answer may use from behind the wall, each with the verbs it may use.

Labs need it whose answers are listeners, strategies or stories.

    an answer asks   world 3, verb run_for, ["10s"]  ─▶ is it in the table? ─▶ lab.run_for("10s")

The table is the wall: what it does not name does not exist for an answer. A Lab's directory, journal, world and the
insides of a broker are not named.
Objects that cross by value are in mqlab.course.grading.sandbox.values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mqlab.course.grading.judging.world.verbs import Role, role_of
from mqlab.course.grading.sandbox.values import Codec, Malformed
from mqlab.errors import NotGiven, UsageError
from mqlab.rocketmq.wire.message import MessageExt


class JudgeWorld:
    """Numbers for objects of the judge, and the one way to use them."""

    def __init__(self) -> None:
        self._objects: list[tuple[Any, Role]] = []
        self._numbers: dict[int, int] = {}
        self._messages: list[MessageExt] = []

    def refer(self, value: Any) -> dict[str, Any] | None:
        """The reference by which an answer gets an object; None for an object without a role."""
        if isinstance(value, MessageExt):
            self._messages.append(value)
            return {"given": [len(self._messages) - 1, Codec().encode(value)]}
        role = role_of(value)
        if role is None:
            return None
        number = self._numbers.get(id(value))
        if number is None:
            number = len(self._objects)
            self._objects.append((value, role))
            self._numbers[id(value)] = number
        return {"world": [number, role.name, sorted(role.verbs), sorted(role.readable | role.writable)]}

    def forget(self) -> None:
        """A new process of answers: it has been given nothing, and cannot get it from what the one before had."""
        self._objects.clear()
        self._numbers.clear()
        self._messages.clear()

    def find(self, number: Any) -> Any:
        """The object of a number; Malformed for a number that was never given out."""
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise Malformed("a reference that was never given out")
        return self._objects[number][0]

    def given(self, number: Any) -> MessageExt:
        """The message that an answer got under this number: the same object, when the answer passes it back."""
        if type(number) is not int or not 0 <= number < len(self._messages):
            raise Malformed("a message that was never given out")
        return self._messages[number]

    def perform(
        self, number: int, verb: str, args: list[Any], kwargs: dict[str, Any], forbids: Collection[str] = ()
    ) -> Any:
        """Call one verb of one object.

        UsageError for a verb that its role does not have, NotGiven for one that the exercise ``forbids``.
        """
        target, role = self.find(number), self._objects[number][1]
        if verb in role.verbs and (name := _forbidden(target, verb, forbids)):
            raise NotGiven(name)
        if verb == "__getattr__" and len(args) == 1 and args[0] in role.readable | role.writable:
            return role.shown(getattr(target, args[0]))
        if verb == "__setattr__" and len(args) == 2 and args[0] in role.writable:
            return setattr(target, args[0], args[1])
        if verb in role.verbs:
            return role.shown(role.verbs[verb](target, *args, **kwargs))
        raise UsageError(f"an answer cannot use {role.name}.{verb}", hint=f"it has {', '.join(sorted(role.verbs))}")


def _forbidden(target: Any, verb: str, forbids: Collection[str]) -> str:
    """The full name of a verb's function, if it or its module is forbidden; empty otherwise."""
    node = target.node if type(target).__name__ == "NodeHandle" else target
    function = getattr(type(node), verb, None)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return name if any(name == forbidden or name.startswith(f"{forbidden}.") for forbidden in forbids) else ""

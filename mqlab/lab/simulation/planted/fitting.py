"""How a defect gets into a node: one part of it becomes a twin of itself that does one thing in another way.

Mirrors: nothing of RocketMQ. Used through ``lab.fit_nodes``.

    swap(node.pull_loop, {"_failed": change})      change(original, self, *arguments) takes the method's place
    class of the part    PullLoop ─▶ a subclass with the same name, of this one object

Functions, classes and files of the package stay as they are: other nodes and other Labs of the process are as before,
and the source of a changed method is that of the original, as far as Python's own tools show it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Change = Callable[..., Any]
"""(original method, self, *arguments) -> what the method now gives"""
Part = Callable[[Any], Any]
"""node -> one part of it; None where this node has no such part"""

STORE, BROKER, CLIENT = "store", "broker", "client"
TWIN = "__twin_of__"
ROLES = {STORE: "broker", BROKER: "broker", CLIENT: "consumer"}


@dataclass(frozen=True, slots=True, repr=False)
class Defect:
    """One defect: the room of the code that it is in, the rule that it breaks first, the part and its changed methods.

    ``in_service``: the part is a push consumer's consume service, which is made when the consumer starts.
    """

    room: str
    breaks: str
    part: Part
    changes: Mapping[str, Change] = field(default_factory=dict)
    in_service: bool = False

    def fit(self, role: str, node: Any) -> None:
        """Change the part of a node, if it is a node of the right role. For ``lab.fit_nodes``."""
        if role != ROLES[self.room]:
            return
        if self.in_service:
            swap(node, {"_started_service": self._service})
            return
        part = self.part(node)
        if part is not None:
            swap(part, self.changes)

    def _service(self, original: Callable[[Any], Any], node: Any) -> Any:
        service = original(node)
        if self.part(service) is not None and not is_twin(service):
            swap(service, self.changes)
        return service


def is_twin(part: Any) -> bool:
    """Whether this object has been given other methods."""
    return TWIN in vars(type(part))


def swap(part: Any, changes: Mapping[str, Change]) -> None:
    """Give one object other methods; a name may be that of a property. A second swap adds to the first."""
    base = type(part)
    methods = {name: _changed(getattr(base, name), change) for name, change in changes.items()}
    like_base = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    make: Callable[..., type] = type(base)
    part.__class__ = make(base.__name__, (base,), {**like_base, "__slots__": (), TWIN: base, **methods})


def _changed(original: Any, change: Change) -> Any:
    if isinstance(original, property):
        return property(functools.wraps(original.fget or change)(lambda self: change(original.fget, self)))

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return change(original, self, *arguments, **named)

    return method

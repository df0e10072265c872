"""The stand-in, in an answer's process, for an object of the judge's world: a Lab, a consumer, a listener's context.

Like a remote reference of RMI, over one pipe. An answer uses it as if it were the object itself.

    context.sleep("20ms")      ─▶ ask: world 9, verb sleep
    context.ack_index = 2      ─▶ ask: world 9, verb __setattr__
    lab.now_ms                 ─▶ ask: world 3, verb __getattr__

The verbs and attributes listed here only give clear errors; the judge keeps the list that is enforced.
Nothing is kept on this side: each use asks the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Ask = Callable[[int, str, tuple[Any, ...], dict[str, Any]], Any]


class WorldObject:
    """A stand-in; its class is made for its role, so that ``type(context).__name__`` reads well."""

    _mqlab_ask: Ask
    _mqlab_number: int
    _mqlab_verbs: frozenset[str]
    _mqlab_attributes: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        if name in self._mqlab_verbs:
            number, ask = self._mqlab_number, self._mqlab_ask

            def verb(*args: Any, **kwargs: Any) -> Any:
                return ask(number, name, args, kwargs)

            verb.__name__ = name
            return verb
        if name in self._mqlab_attributes:
            return self._mqlab_ask(self._mqlab_number, "__getattr__", (name,), {})
        role = type(self).__name__
        # Python itself asks for such names and expects no explanation.
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(sorted(self._mqlab_verbs | self._mqlab_attributes))
        raise AttributeError(f"an answer cannot use {role}.{name}; it has {known}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "__call__" not in self._mqlab_verbs:
            raise TypeError(f"a {type(self).__name__} cannot be called")
        return self._mqlab_ask(self._mqlab_number, "__call__", args, kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        self._mqlab_ask(self._mqlab_number, "__setattr__", (name, value), {})

    def __enter__(self) -> Any:
        return self._mqlab_ask(self._mqlab_number, "__enter__", (), {})

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> Any:
        failed = None if error is None else type(error).__name__
        return self._mqlab_ask(self._mqlab_number, "__exit__", (failed,), {})

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mqlab_ask(self._mqlab_number, "__iter__", (), {}))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the judge>"


def make_world_object(ask: Ask, number: int, role: str, verbs: list[str], attributes: list[str]) -> WorldObject:
    """The stand-in for one object; the same number is always the same stand-in."""
    kind: type[WorldObject] = type(role, (WorldObject,), {"__module__": "mqlab"})
    stand_in = kind()
    for name, value in {
        "_mqlab_ask": ask,
        "_mqlab_number": number,
        "_mqlab_verbs": frozenset(verbs),
        "_mqlab_attributes": frozenset(attributes),
    }.items():
        # The class's own __setattr__ would ask the judge.
        object.__setattr__(stand_in, name, value)
    return stand_in

"""The stand-in for everything of a module that an exercise forbids, in the process of its answers.

Modules that mqlab.course.grading.sandbox.withheld writes consist of it.

    from mqlab.rocketmq.store import MessageStore     works: the lab's own import cell does it
    MessageStore.open("run")                 NotGiven, with the words that a notebook's check has for it
"""

from __future__ import annotations

from typing import Any, NoReturn

from mqlab.errors import NotGiven


class NotGivenName:
    """A name of a module that is withheld: it can be imported and passed on; every use raises NotGiven."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotGiven(object.__getattribute__(self, "_name"))

    __call__ = __setattr__ = __getitem__ = __len__ = __enter__ = __exit__ = _refuse
    __mro_entries__ = __instancecheck__ = __subclasscheck__ = _refuse

    def __getattr__(self, name: str) -> Any:
        # Python itself looks such names up, of anything that is imported or shown.
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __iter__(self) -> Any:
        self._refuse()

    def __repr__(self) -> str:
        return f"<{object.__getattribute__(self, '_name')}: not given in this exercise>"


def stand_in(module: str, name: str) -> NotGivenName:
    """The stand-in for a name of a module. AttributeError for names that Python itself looks up."""
    if name.startswith("__"):
        raise AttributeError(name)
    return NotGivenName(f"{module}.{name}")

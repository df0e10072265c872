"""The names that a package gives, each loaded from its module when it is first asked for.

So that a package is imported for one of its names without the cost of the others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package calls ``__getattr__`` and ``__dir__``: ``modules`` says which names each of its modules has.

    AttributeError from ``__getattr__``, for a name that none of them has, as from any module.

    >>> get, names = lazy_names("mqlab", {"durations": ("milliseconds",), "errors": ("UsageError",)})
    >>> names()
    ['UsageError', 'milliseconds']
    >>> get("UsageError").__module__
    'mqlab.errors'
    >>> get("Kafka")
    Traceback (most recent call last):
    AttributeError: module 'mqlab' has no attribute 'Kafka'
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)

    return load, lambda: sorted(module_of)

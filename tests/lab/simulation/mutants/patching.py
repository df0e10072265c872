"""How a mutant replaces a part of mqlab: a method by one that is handed the original."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def wrapped(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a method by ``change(original, *arguments)``."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *arguments, **named: change(original, *arguments, **named))


def does_nothing(patch: Patch, owner: Any, name: str) -> None:
    """Replace a method by one without an effect."""
    patch.setattr(owner, name, lambda *_, **__: None)

"""A part that raises, answers in another form, or breaks a rule: the world stops at that step, with the rule's words.

✗ MyStore.put: the first message of a queue has number 0, and each further one the next number
    where     put("orders", 0, 243 bytes)
    expected  2
    found     1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

ANSWERS = "it answers in the form that docs/your-broker.md names"
RAISES = "it raises nothing"
LONGEST = 200


class BrokenPart(BaseException):
    """Why a part cannot continue. Not an Exception: no node answers it as a request that failed.

    ``part`` is the method, such as "MyStore.put"; ``rule`` what it breaks; ``where`` the call.
    """

    def __init__(self, part: str, rule: str, where: str, expected: object, found: object) -> None:
        super().__init__(part, rule, where, expected, found)
        self.part, self.rule, self.where, self.expected, self.found = part, rule, where, expected, found

    def __str__(self) -> str:
        rows = (("where", self.where), ("expected", self.expected), ("found", self.found))
        return "\n".join([f"{self.part}: {self.rule}", *(f"    {name:<8}  {value}" for name, value in rows)])

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback."""
        return [f"✗ {self}"]


def broken(part: str, rule: str, arguments: Sequence[Any], expected: object, found: object) -> BrokenPart:
    """What to raise for a call of ``part``, such as "MyStore.put"."""
    where = f"{part.rpartition('.')[2]}({', '.join(map(_short, arguments))})"
    return BrokenPart(part, rule, where, _clipped(expected), _clipped(found))


def ask(part: str, method: Callable[..., Any], *arguments: Any, fits: Callable[[Any], bool], form: str) -> Any:
    """What a part's method answers. BrokenPart for what it raised, and for another form than ``form`` says in words."""
    try:
        answer = method(*arguments)
    except Exception as error:
        raise broken(part, RAISES, arguments, form, f"{type(error).__name__}: {error}") from error
    if not fits(answer):
        raise broken(part, ANSWERS, arguments, form, answer)
    return answer


def is_whole(value: object) -> bool:
    """Whether a value is an int, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def anything(value: object) -> bool:
    """True: for methods whose answer is not read."""
    return True


def _clipped(value: object) -> object:
    text = value if isinstance(value, str) else _short(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _short(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_short, value)) + "]"
    if hasattr(value, "queue_offset"):
        return f"message {value.queue_offset}"
    return repr(value)

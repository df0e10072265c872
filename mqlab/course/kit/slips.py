"""Likely misunderstandings: what an answer with one returns, and what to say about it.

Pure and Fields exercises list them; the first that fits explains a wrong answer.

    Slip("starts at 1 s", lambda call: plan(call, first_level=1), "The first retry waits for level 3 …")
         name             what such an answer returns                what is said

A slip is said only when it is really so: an own slip when the answer is the slip's at every call of the case, a general
one when the part that is wrong shows it and no other call contradicts it. Each can be tried: the test of an exercise
answers as the slip would and must be told its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqlab.course.kit.shapes import Parts
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation

SIZES = (8, 4, 2)


class OneOf(tuple[Any, ...]):
    """Several values, each of which a slip might have returned."""


ANY: Final = object()
"""What a slip returns for a call that it says nothing about; never at the call where it is to be told."""


@dataclass(frozen=True)
class Slip:
    """A misunderstanding of this exercise. ``would(call)``: what it returns, or OneOf; ``belief``: the belief's id.

    Without ``says``, the belief's refutation in the lab's source is what is said.
    """

    name: str
    would: Callable[[Call], object]
    says: str = ""
    belief: str = ""

    def __post_init__(self) -> None:
        if not self.says:
            object.__setattr__(self, "says", refutation(self.belief))

    def values(self, call: Call) -> Sequence[Any]:
        """What an answer with this misunderstanding may have returned."""
        would = self.would(call)
        return would if isinstance(would, OneOf) else (would,)


@dataclass(frozen=True)
class PartSlip:
    """A misunderstanding that shows in one part of a value, whatever the exercise.

    ``wrong(right)`` are the values in place of a right one. ``alone``: one sight of it is proof; otherwise every other
    call must show it too.
    """

    name: str
    wrong: Callable[[Any], Sequence[Any]]
    says: str
    alone: bool = False

    def sign(self, right: Any, actual: Any) -> int | None:
        """Which of its wrong values was found; None if none was. In a list every value must show it."""
        if isinstance(right, list) and isinstance(actual, list):
            pairs = zip(right, actual, strict=False) if len(right) == len(actual) else ()
            signs = {self.sign(*pair) for pair in pairs}
            return min((number for number in signs if number is not None), default=None) if None not in signs else None
        wrong = list(self.wrong(right))
        return wrong.index(actual) if actual in wrong else None


def is_number(value: object) -> bool:
    """True for an int that is not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _neighbours(right: Any) -> Sequence[Any]:
    return (right + 1, right - 1) if is_number(right) else ()


def _times_1000(right: Any) -> Sequence[Any]:
    return (right * 1000,) if is_number(right) and right else ()


def _seconds(right: Any) -> Sequence[Any]:
    return (right // 1000, right / 1000) if is_number(right) and right >= 1000 else ()


def _turned(right: Any) -> Sequence[Any]:
    """A number with the bytes of its field in the opposite order, for each size of field; bytes turned round."""
    if isinstance(right, bytes):
        return (right[::-1],) if 1 < len(right) <= 8 and right != right[::-1] else ()
    return tuple(_turned_numbers(right)) if is_number(right) else ()


def _turned_numbers(right: int) -> Iterator[int]:
    for size in SIZES:
        for signed in (True, False):
            try:
                turned = int.from_bytes(right.to_bytes(size, "big", signed=signed), "little", signed=signed)
            except OverflowError:
                continue
            if turned != right:
                yield turned


off_by_one = PartSlip(
    "off_by_one",
    _neighbours,
    "Every number is one off: is the first one number 0, and does the count take the last one in?",
)
milliseconds = PartSlip(
    "milliseconds", _times_1000, "The numbers are 1,000 times too large: seconds are asked for, not milliseconds"
)
seconds = PartSlip(
    "seconds", _seconds, "The numbers are 1,000 times too small: milliseconds are asked for, not seconds"
)
little_endian = PartSlip(
    "little_endian",
    _turned,
    'Numbers in the files are big-endian, the most significant byte comes first: ">" in struct',
    alone=True,
)

NOTHING = "{name} returned nothing: a function gives its result with return"
SOMETIMES_NOTHING = "{name} returned nothing for this call: each way through a function gives its result with return"
PRINTED = "{name} printed its result and returned nothing: write return where print is"
REMEMBERS = (
    "{name} gives the right value when this is its first call, and not after others: nothing that one call leaves "
    "behind (in a global name, or in a default argument such as []) may reach the next"
)
AS_TEXT = "{name} gave a string where a whole number is asked for: int(…) turns it into one"
TRANSPOSED = "{name} gave the right values in another order: ({parts}) is the order that is asked for"


def transposed(shape: Any, right: Any, actual: Any) -> bool:
    """Whether a tuple holds the right values at other places."""
    if not isinstance(shape, Parts) or shape.keyed or not isinstance(actual, list | tuple):
        return False
    same = len(actual) == len(right) and sorted(map(repr, actual)) == sorted(map(repr, right))
    return same and list(actual) != list(right)


def number_as_text(right: Any, actual: Any) -> bool:
    """Whether a value is the right one, but for numbers that are texts."""
    if is_number(right):
        return isinstance(actual, str) and actual.strip() == str(right)
    if isinstance(right, list | tuple) and isinstance(actual, list | tuple) and len(right) == len(actual):
        pairs = list(zip(right, actual, strict=True))
    elif isinstance(right, dict) and isinstance(actual, dict) and right.keys() == actual.keys():
        pairs = [(right[key], actual[key]) for key in right]
    else:
        return False
    same = [wanted == got or number_as_text(wanted, got) for wanted, got in pairs]
    return all(same) and any(wanted != got for wanted, got in pairs)

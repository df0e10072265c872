"""lab06.collide: another tag with the same hash code. Any tag that collides is right, not only the reference's."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import Any

from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire.java_hash import string_hash

LETTERS = string.ascii_letters
BASE = 31

SAME_RULE = "A tag does not collide with itself: find another one"
LENGTH_RULE = "The other tag has as many letters as the tag"
LETTERS_RULE = (
    "The other tag has letters only, a to z and A to Z: between Z and a there are six other characters, so look for a "
    "pair of neighbours for which both new characters are letters"
)
CODE_RULE = (
    "The code of the other tag is the code of the tag. A letter counts 31 times as much as the letter after "
    "it: one more here is balanced by 31 less there"
)
ORDER_RULE = (
    "The code is not a sum of letters: each letter counts 31 times as much as the one after it, so the same letters in "
    "another order have another code"
)


def pairs_that_move(tag: str) -> list[int]:
    """The places of neighbours of which one can be raised by 1 and the next lowered by 31, or the reverse.

    >>> pairs_that_move("paid"), pairs_that_move("zz")
    ([0, 1, 2], [])
    """
    return [index for index in range(len(tag) - 1) if any(_moved(tag, index))]


def _moved(tag: str, at: int) -> Iterator[str]:
    for step in (1, -1):
        pair = chr(ord(tag[at]) + step) + chr(ord(tag[at + 1]) - BASE * step)
        if all(letter in LETTERS for letter in pair):
            yield tag[:at] + pair + tag[at + 2 :]


def colliding(tag: str) -> str:
    """One tag that collides."""
    return next(_moved(tag, pairs_that_move(tag)[0]))


def call_for(tag: str, about: str = "") -> Call:
    """The call for a tag."""
    return Call(tag=tag, right=colliding(tag), about=f"tag {tag!r}" + (f", {about}" if about else ""))


def random_tag(rng: random.Random, length: int) -> str:
    """Letters by lot, such that there is a tag that collides."""
    while True:
        tag = "".join(rng.choices(LETTERS, k=length))
        if pairs_that_move(tag):
            return tag


def only_at_the_end(rng: random.Random, length: int) -> str:
    """A tag of which only the last two letters can be changed."""
    return rng.choice("zZ") * (length - 2) + rng.choice("bcde") + rng.choice("abcdef")


def downwards_only(rng: random.Random) -> str:
    """Two letters of which the first can only be lowered: the second is a capital."""
    return rng.choice("bcdefgBCDEFG") + rng.choice("BCDEFG")


def first_pair_stays(rng: random.Random) -> str:
    """A word of which the first two letters give no pair, and the second and third do."""
    return rng.choice("zZ") + rng.choice("bcde") + rng.choice("bcde") + rng.choice(LETTERS)


def tags(seed: int) -> list[Call]:
    """A well-known tag first; then tags by lot; then those of which only the end, or one direction, will do."""
    rng = random.Random(f"lab06.collide {seed}")
    return [
        call_for(rng.choice(("paid", "shipped", "created", "refunded"))),
        *(call_for(random_tag(rng, rng.randint(2, 9))) for _ in range(4)),
        call_for(only_at_the_end(rng, rng.randint(4, 7)), "whose beginning cannot be changed"),
        call_for(downwards_only(rng), "whose second letter is a capital"),
        call_for(first_pair_stays(rng), "whose first two letters cannot be changed together"),
    ]


def _first_wrong(call: Call, other: str) -> Difference | None:
    tag = call["tag"]
    code, other_code = string_hash(tag), string_hash(other)
    if other == tag:
        return Difference((), "same", "another tag", other)
    if len(other) != len(tag):
        return Difference((), "length", f"{len(tag)} letters", other)
    if code != other_code:
        part = "order" if sorted(other) == sorted(tag) else "code"
        return Difference((), part, f"a tag with the code {code}", f"{other}, code {other_code}")
    if not all(letter in LETTERS for letter in other):
        return Difference((), "letters", "letters only", other)
    return None


def _place(call: Call, seen: Difference | None) -> str:
    return call.about


def _shown(part: str, value: Any) -> object:
    return value


COLLIDE = Pure(
    "lab06.collide",
    "collide(tag)",
    points=2,
    about="tags that collide",
    calls=tags,
    returns=str,
    compares=_first_wrong,
    place_of=_place,
    shows=_shown,
    rules={
        "same": SAME_RULE,
        "length": LENGTH_RULE,
        "code": CODE_RULE,
        "order": ORDER_RULE,
        "letters": LETTERS_RULE,
    },
    weights={"": 1, "two letters": 1, "the last two letters": 1},
)

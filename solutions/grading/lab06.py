"""Hidden cases of lab 06: how many seeded cases each exercise is judged by, and cases that are special.

The known-wrong answers are in wrong/lab06.*.diff, one file per exercise.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlab.course.cases.lab06 import collide, detector, scan, three_valued, who_gets
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call, Case

SEEDED = {
    "lab06.collide": 3,
    "lab06.who_gets": 3,
    "lab06.detector": 1,
    "lab06.scan": 2,
    "lab06.three_valued": 3,
    "lab06.migrate": 2,
}


def _by_lot(name: str, make: Callable[[random.Random], list[Call]]) -> Callable[[int], list[Call]]:
    """Calls made with a generator of the class's seed."""
    return lambda seed: make(random.Random(f"lab06 {name} {seed}"))


def _two_letters(rng: random.Random) -> list[Call]:
    return [collide.call_for(collide.random_tag(rng, 2)) for _ in range(12)]


def _the_end(rng: random.Random) -> list[Call]:
    return [collide.call_for(collide.only_at_the_end(rng, length)) for length in range(3, 12)]


def _groups(text_in_pull: bool) -> Callable[[random.Random], list[Call]]:
    kinds = (who_gets.three_members, who_gets.two_tags, who_gets.with_a_star)
    return lambda rng: [kind(rng, text_in_pull) for kind in kinds for _ in range(4)]


def _one_code(rng: random.Random) -> list[Call]:
    return [who_gets.colliding(rng, text_in_pull) for text_in_pull in (False, True) for _ in range(6)]


FROM_SEED: dict[str, Callable[[int], tuple[Case, ...]]] = {
    "lab06.collide": variants(
        collide.COLLIDE,
        Variant("two letters", _by_lot("two letters", _two_letters)),
        Variant("the last two letters", _by_lot("the end", _the_end)),
    ),
    "lab06.who_gets": variants(
        who_gets.WHO_GETS,
        Variant("the default setting", _by_lot("default", _groups(False))),
        Variant("the text in the pull", _by_lot("text", _groups(True))),
        Variant("tags with one code", _by_lot("one code", _one_code)),
    ),
    "lab06.detector": variants(
        detector.DETECTOR,
        Variant("two changes, one after another", lambda seed: (detector.two_changes(seed), seed)),
        Variant("the first member is new", lambda seed: (detector.first_is_new(seed), seed)),
    ),
    "lab06.scan": variants(
        scan.SCAN,
        Variant("a rare tag", _by_lot("rare", lambda rng: [scan.sparse(rng)])),
        Variant("many matches", _by_lot("dense", lambda rng: [scan.dense(rng), scan.mixed(rng)])),
        Variant("a part on disk", _by_lot("cold", lambda rng: [scan.cold(rng), scan.cold(rng, 1)])),
    ),
    "lab06.three_valued": variants(
        three_valued.THREE_VALUED,
        Variant("nothing is missing", lambda seed: three_valued.of_kind(seed, with_unknown=False)),
        Variant("something is missing", lambda seed: three_valued.of_kind(seed, with_unknown=True)),
    ),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}

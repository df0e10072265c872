"""Hidden cases of lab 12: how many seeded days each exercise is judged by, streams that begin at the ends
of a log, and films in which things come less late than in the public ones.

The known-wrong answers are in wrong/lab12.*.diff, one file per exercise.
"""

from __future__ import annotations

import functools

from mqlab.course.cases.lab12 import begin, no_answer, per_minute, repeats
from mqlab.course.cases.lab12.moments import NINE
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call
from mqlab.scales import HOUR

SEEDED = {
    "lab12.begin": 3,
    "lab12.once": 1,
    "lab12.lag_now": 2,
    "lab12.per_minute": 1,
    "lab12.without_repeats": 1,
    "lab12.no_answer": 1,
}


def _from(hours: int, most_bytes: int, seed: int) -> list[Call]:
    return [begin.stream_from(begin.stores(seed % begin.STORES), NINE + hours * HOUR, most_bytes)]


FROM_SEED = {
    "lab12.begin": variants(
        begin.BEGIN,
        Variant("from before the first message", functools.partial(_from, -1, 50_000)),
        Variant("from after the last message", functools.partial(_from, 4, 50_000)),
    ),
    "lab12.per_minute": variants(
        per_minute.PER_MINUTE, Variant("half an hour late", lambda seed: [per_minute.call_of(seed, 30)])
    ),
    "lab12.without_repeats": variants(
        repeats.WITHOUT_REPEATS, Variant("copies within six minutes", lambda seed: [repeats.call_of(seed, 6)])
    ),
    "lab12.no_answer": variants(
        no_answer.NO_ANSWER, Variant("entries that are hardly late", lambda seed: [no_answer.call_of(seed, 4)])
    ),
}

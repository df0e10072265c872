"""Hidden cases of lab 12: how many seeded days each exercise is judged by, and streams that begin at the ends of a log.

The known-wrong answers are in wrong/lab12.*.diff, one file per exercise.
"""

from __future__ import annotations

import functools

from mqlab.scales import HOUR
from mqlab.teach.cases.lab12 import begin
from mqlab.teach.cases.lab12.moments import NINE
from mqlab.teach.exercises import Call
from mqlab.teach.kit import Variant, variants

SEEDED = {"lab12.begin": 3, "lab12.once": 2, "lab12.lag_now": 2}


def _from(hours: int, most_bytes: int, seed: int) -> list[Call]:
    return [begin.stream_from(begin.stores(seed % begin.STORES), NINE + hours * HOUR, most_bytes)]


FROM_SEED = {
    "lab12.begin": variants(
        begin.BEGIN,
        Variant("from before the first message", functools.partial(_from, -1, 50_000)),
        Variant("from after the last message", functools.partial(_from, 4, 50_000)),
    )
}

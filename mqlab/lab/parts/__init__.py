"""A learner's own parts in a broker and its clients: what they are, where they are kept, how they take part.

    mybroker/store.py       MyStore ─┐
    mybroker/pulls.py       MyPulls ─┤
    …                                ├─▶ OwnParts ─▶ Lab(parts=…), play(story, mine=True), mqlab serve --parts mybroker
    mybroker/sticky.py      sticky  ─┘

docs/your-broker.md says what each part is called with, when, and what must be true.
"""

from mqlab.lab.parts.folder import ANSWERS, FOLDER, KINDS, OwnParts, PartKind, parts_in
from mqlab.lab.parts.units import copied, placed, stored_ms, tag_of, unit_of

__all__ = [
    "ANSWERS",
    "FOLDER",
    "KINDS",
    "OwnParts",
    "PartKind",
    "copied",
    "parts_in",
    "placed",
    "stored_ms",
    "tag_of",
    "unit_of",
]

"""A number and what it counts, in the singular where it is 1: "1 message", "2 messages", "1,200 retries".

Left out: nouns with a plural of their own (children), which nothing here counts.
"""

from __future__ import annotations

import re

_PLURAL = re.compile(r"^(?P<before>(?:[a-z-]+ )??)(?P<stem>[a-z-]{2,}?)(?P<end>ies|(?<=ss|sh|ch)es|(?<=x)es|s)(?= |$)")
"""The first plural of a text, its first word or its second; abbreviations such as "ms" are too short to be one."""


def counted(number: float, things: str, thing: str = "") -> str:
    """Returns the number and ``things``, or ``thing`` if it is 1; by default the first noun of ``things`` loses its s.

    >>> counted(2, "messages"), counted(1, "messages"), counted(1, "queue entries"), counted(1_200, "bytes")
    ('2 messages', '1 message', '1 queue entry', '1,200 bytes')
    >>> counted(1, "copies in the retry topic"), counted(1, "ms a call"), counted(1, "orders are left", "order is left")
    ('1 copy in the retry topic', '1 ms a call', '1 order is left')
    >>> counted(47_657.5, "ms"), counted(2.5, "ms")
    ('47,658 ms', '2.5 ms')
    """
    text = f"{number:,}" if isinstance(number, int) else f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return f"{text} {(thing or _singular(things)) if text == '1' else things}".rstrip()


def _singular(things: str) -> str:
    return _PLURAL.sub(lambda noun: noun["before"] + noun["stem"] + ("y" if noun["end"] == "ies" else ""), things)

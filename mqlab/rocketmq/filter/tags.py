"""Tag expressions: what a subscription's expression means, and which messages it accepts.

Mirrors: FilterAPI.buildSubscriptionData and DefaultMessageFilter.

    None  ""  "*"          everything
    "TagA || TagB"         texts {TagA, TagB}, Java hashes {2598919, 2598920}
    "|| ||"  " "           nothing at all: no parts, and not the star
    "* || TagA"            the tags "*" and "TagA": the star is only a star alone

The broker compares 32-bit hashes (``Aa`` and ``BB`` are equal to it), the client compares strings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.errors import FilterError
from mqlab.rocketmq.wire.java_hash import string_hash

ALL = "*"  # SubscriptionData.SUB_ALL
_TRIMMED = "".join(map(chr, range(33)))  # what String.trim takes away; a Chinese full-width blank stays


@dataclass(frozen=True, slots=True)
class TagFilter:
    """A parsed expression. ``tags_set`` and ``code_set`` keep the order of the text, each tag once."""

    sub_string: str
    tags_set: tuple[str, ...] = ()
    code_set: tuple[int, ...] = ()

    @property
    def passes_all(self) -> bool:
        return self.sub_string == ALL

    def matches_code(self, tags_code: int | None) -> bool:
        """The broker's test, on the code in the consume queue; no code given counts as a match."""
        if tags_code is None or self.passes_all:
            return True
        return (tags_code + 0x80000000) % 0x100000000 - 0x80000000 in self.code_set

    def matches_text(self, tags: str | None) -> bool:
        """The client's test, on the message's TAGS; an empty set of tags lets everything pass."""
        return not self.tags_set or (tags is not None and tags in self.tags_set)


def parse(expression: str | None) -> TagFilter:
    """The meaning of a tag expression. Raises FilterError when ``||`` is all there is.

    >>> parse(" TagA||  TagB ||")
    TagFilter(sub_string=' TagA||  TagB ||', tags_set=('TagA', 'TagB'), code_set=(2598919, 2598920))
    >>> parse("").passes_all
    True
    """
    if expression is None or expression in ("", ALL):
        return TagFilter(ALL)
    parts = expression.split("||")
    while parts and not parts[-1]:  # Java's split drops trailing empty parts
        parts.pop()
    if not parts:
        raise FilterError(f"a tag expression without tags: {expression!r}", position=0, hint='"TagA || TagB", or "*"')
    trimmed = [part.strip(_TRIMMED) for part in parts]
    texts = tuple(dict.fromkeys(part for part in trimmed if part))
    return TagFilter(expression, texts, tuple(dict.fromkeys(map(string_hash, texts))))

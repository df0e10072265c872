"""The words of a SQL92 filter expression.

Mirrors: the token section of SelectorParser.jj.

    keyword  any case     AND OR NOT IS NULL IN BETWEEN TRUE FALSE CONTAINS STARTSWITH ENDSWITH
    name     [A-Za-z_$][A-Za-z0-9_$]*, case matters
    integer  0, or 1-9 and digits, then l or L       so 007 is three integers and 0x1F an integer and a name
    float    5.  5.0  .5  5e3
    text     'it''s'
    comment  /* … */   -- … line end                 at the very end of the text "--" is two minus signs
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mqlab.errors import FilterError

KEYWORDS = frozenset(
    ("AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "TRUE", "FALSE", "CONTAINS", "STARTSWITH", "ENDSWITH")
)
END = "end"

_SKIP = re.compile(r"(?:[ \t\n\r\f]|--[^\r\n]*(?:\r\n|\r|\n)|/\*(?:[^*]|\*(?!/))*\*/)+")
_TOKEN = re.compile(
    r"""(?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
      | (?P<integer>[1-9][0-9]*[lL]?|0)
      | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
      | '(?P<text>(?:[^']|'')*)'
      | (?P<sign><>|<=|>=|[<>=(),+-])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """``kind`` is float, integer, name, text, end, the keyword in capitals, or the sign itself."""

    kind: str
    text: str
    position: int


def token_at(expression: str, position: int) -> tuple[Token, int]:
    """The token at or after a position and where the next may start. Raises FilterError for anything else."""
    # 1. Blanks and comments have no token of their own.
    skipped = _SKIP.match(expression, position)
    if skipped:
        position = skipped.end()
    if position == len(expression):
        return Token(END, "", position), position
    # 2. The longest token that begins here.
    match = _TOKEN.match(expression, position)
    if match is None:
        raise FilterError(
            f"unexpected {expression[position]!r} at position {position} of {expression!r}",
            position=position,
            hint="operators are = <> < <= > >= AND OR NOT IN BETWEEN IS NULL CONTAINS STARTSWITH ENDSWITH",
        )
    # 3. Keywords look like names, and every sign is a kind of its own.
    kind = match.lastgroup
    assert kind is not None
    text = match[kind]
    if kind == "name" and text.upper() in KEYWORDS:
        kind = text.upper()
    elif kind == "sign":
        kind = text
    elif kind == "text":
        text = text.replace("''", "'")
    return Token(kind, text, position), match.end()

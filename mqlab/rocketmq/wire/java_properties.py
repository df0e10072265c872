"""Property files as Java reads them: broker.conf, namesrv.conf, and the bodies that change a configuration.

Mirrors: java.util.Properties.load(InputStream).

    brokerName=b1     brokerName: b1     brokerName b1      one setting, three ways to write it
    # comment         ! comment                             blanks may come before, not a setting
    name=a\\           b                                     a backslash at the end continues the line: "ab"
    name=C:\\\\dir      \\u0041 \\t \\n \\= \\:                 escapes; a backslash before any other letter vanishes
    name=b1␠          blanks at the end belong to the value

Bytes are Latin-1: letters of other scripts have to be written as \\uXXXX.
"""

from __future__ import annotations

import re

from mqlab.rocketmq.wire.java_hash import joined_surrogates

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_NAME = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def loads(data: bytes) -> dict[str, str]:
    r"""The names and values in a file's bytes; the last one of a name counts. Raises ValueError for a bad \u escape.

    >>> loads(b"! comment\nbrokerName : b\\u0031\nnamesrvAddr=10.0.0.1:9876;\\\n  10.0.0.2:9876\n")
    {'brokerName': 'b1', 'namesrvAddr': '10.0.0.1:9876;10.0.0.2:9876'}
    """
    return {name: value for _, name, value in entries(data)}


def entries(data: bytes) -> list[tuple[int, str, str]]:
    """Line number, name and value of each entry, in the file's order. Raises ValueError for a bad \\u escape."""
    rows = []
    for number, line in _logical_lines(data.decode("latin-1")):
        name = _NAME.match(line)
        assert name is not None
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None
        try:
            rows.append((number, _unescaped(name[0]), _unescaped(line[separator.end() :])))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return rows


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines that hold an entry, continued ones joined, each with the number of its first line."""
    lines: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    for number, natural in enumerate(_LINE_END.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if begun is None and (not line or line[0] in "#!"):
            continue
        first, before = begun or (number, "")
        line, begun = before + line, None
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = first, line[:-1]
        else:
            lines.append((first, line))
    # A backslash at the end of the file continues with nothing.
    return lines if begun is None else [*lines, begun]


def _unescaped(text: str) -> str:
    return joined_surrogates(_ESCAPE.sub(_meant, text)) if "\\" in text else text


def _meant(escape: re.Match[str]) -> str:
    letter = escape[1]
    if letter == "u":
        raise ValueError("Malformed \\uxxxx encoding.")
    if letter[0] == "u":
        return chr(int(letter[1:], 16))
    return _CONTROL.get(letter, letter)

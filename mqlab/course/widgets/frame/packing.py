"""What the browser gets: JSON in few bytes, and texts that several stops share written once.

    Pool       texts -> numbers: a picture that stays the same over 30 stops is sent once
    packed     JSON -> zlib -> base64, which a page can hold inside a script element
    unpacked   the way back, for tests and for tools

The browser unpacks with DecompressionStream("deflate"), so no library is needed there.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

LEVEL = 9


class TextPool:
    """Texts by number: each different text is kept once, in the order in which it was first added.

    >>> pool = TextPool(); pool.add("a"), pool.add("b"), pool.add("a"), pool.texts
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The number of a text; a new text gets the next number."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def packed(data: Any) -> str:
    """JSON data as base64 of a zlib stream. Raises TypeError for what JSON cannot hold.

    >>> unpacked(packed({"key": ["заказ", 1]}))
    {'key': ['заказ', 1]}
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()


def unpacked(text: str) -> Any:
    """The data of a packed text."""
    return json.loads(zlib.decompress(base64.b64decode(text)))

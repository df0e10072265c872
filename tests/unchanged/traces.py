"""What a Lab did, as lines that a change of the code's structure or of its words must leave equal.

One line per step: virtual time, node, kind, cause, and of a frame its code, flag, opaque, extension fields and body.
One more line per change: its kind, its names and its numbers. Left out are remarks and every text that a person reads
(a string with a blank in it), because better words must not count as another behaviour.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mqlab import Lab

LINES_PER_CHUNK = 250
TEXT = "<text>"
ADDRESS_IN_MEMORY = re.compile(r" at 0x[0-9a-f]+")


def value_text(value: Any) -> str:
    """A value of a change: numbers, names and bytes as they are, texts for people without their words."""
    if isinstance(value, str):
        if " " in value:
            return TEXT
        return value.rpartition("/")[2] if value.startswith("/") else value  # a path: its folder is of one run
    if isinstance(value, bytes):
        return f"{len(value)} bytes {zlib.crc32(value)}"
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, dict):
        return "{" + ",".join(f"{value_text(name)}:{value_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(value_text, value)) + "]"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return ADDRESS_IN_MEMORY.sub("", str(value))


def lines_of(lab: Lab) -> Iterator[str]:
    """The lines of one Lab's journal, in order."""
    for record in lab.journal:
        line = f"{record.step} {record.now_ms} {record.node} {record.kind} {record.cause}"
        frame = record.about
        if frame is not None:
            fields = ",".join(f"{name}={text}" for name, text in (frame.ext_fields or {}).items())
            line += f" frame {frame.code} {frame.flag} {frame.opaque} {fields} {zlib.crc32(frame.body or b'')}"
        yield line
        for change in record.changes:
            values = " ".join(f"{name}={value_text(value)}" for name, value in change.values.items())
            yield f"{record.step}   {change.kind} {values}"


def digest(lines: Iterable[str]) -> dict[str, Any]:
    """How many lines, and a short hash for each chunk of them: the first unequal chunk says where to look."""
    hashes, chunk, count = [], hashlib.sha256(), 0
    for line in lines:
        chunk.update(line.encode("utf-8", "backslashreplace") + b"\n")
        count += 1
        if count % LINES_PER_CHUNK == 0:
            hashes.append(chunk.hexdigest()[:8])
            chunk = hashlib.sha256()
    return {"lines": count, "chunks": [*hashes, chunk.hexdigest()[:8]]}


@contextmanager
def captured_labs() -> Iterator[list[Lab]]:
    """Every Lab that is made inside, in order of making, kept alive."""
    labs: list[Lab] = []
    original = Lab.__init__

    def noted(self: Lab, *args: Any, **settings: Any) -> None:
        original(self, *args, **settings)
        labs.append(self)

    Lab.__init__ = noted  # type: ignore[method-assign]
    try:
        yield labs
    finally:
        Lab.__init__ = original  # type: ignore[method-assign]


def is_repeatable(lab: Lab) -> bool:
    """Whether the Lab runs under the simulated driver; real threads never have the same history twice."""
    return type(lab.world).__name__ == "SimWorld"

"""Holds a few files of a store open at a time, so that a directory with thousands of files can be read.

RocketMQ's MappedFileQueue keeps every file mapped; a reader of any store must not.

    view(path) ─▶ 64 newest in memory ─▶ the one that was not used for longest is closed

Left out: writing.
"""

from __future__ import annotations

from collections import OrderedDict

from mqlab.rocketmq.ports import Files, Mapping

KEPT_OPEN = 64


class OpenFiles:
    """Reads files through ``files`` and keeps the last used ones mapped. A deleted file reads as empty.

    A file that was cut, replaced or written to since is mapped again: reading after the end of a cut file would end the
    process.
    """

    __slots__ = ("_files", "_open")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: OrderedDict[str, tuple[tuple[int, int], Mapping]] = OrderedDict()

    def view(self, path: str) -> memoryview:
        """The present bytes of a file."""
        try:
            state = (self._files.size(path), self._files.modified_ms(path))
            known = self._open.get(path)
            if known is None or known[0] != state:
                known = self._open[path] = (state, self._files.map(path, state[0], create=False))
        except FileNotFoundError:  # a running broker removes files whenever it likes
            self._open.pop(path, None)
            return memoryview(b"")
        self._open.move_to_end(path)
        if len(self._open) > KEPT_OPEN:
            self._open.popitem(last=False)
        return known[1].view

    def close(self) -> None:
        """Let go of all files."""
        while self._open:
            self._open.popitem()[1][1].close()

    def __repr__(self) -> str:
        return f"<OpenFiles {len(self._open)} open>"

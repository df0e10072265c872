"""Writes down what passes over the connections of a process: every piece of bytes, when, from where to where.

Mirrors: tcpdump at one end. The file is read by mqlab.cluster.connected.Recording.

    {"at_ms": 1767225600000, "connection": 3, "from": "127.0.0.1:50122", "to": "broker-a", "data": "<base64>"}

One JSON object a line, written when it happens, so that a file of a killed process can be read up to its last line.
Left out: encryption (the file holds what was inside), limits of size.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path


class Recorder:
    """An open recording of one run; a file that is there is replaced."""

    def __init__(self, path: str | Path, now_ms: Callable[[], int]) -> None:
        self._file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed with the process
        self._now_ms = now_ms
        self.connections = 0

    def next_connection(self) -> int:
        """A number for a connection that has just been opened."""
        self.connections += 1
        return self.connections

    def add(self, connection: int, sender: str, receiver: str, data: bytes) -> None:
        """Write one piece of bytes."""
        row = {
            "at_ms": self._now_ms(),
            "connection": connection,
            "from": sender,
            "to": receiver,
            "data": b64encode(data).decode("ascii"),
        }
        self._file.write(json.dumps(row) + "\n")

    def close(self) -> None:
        """Write what is left."""
        self._file.close()

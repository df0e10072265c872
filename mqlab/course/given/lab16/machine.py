"""A machine with one disk and a switch, and orders as a broker hands them to a store.

machine = TrialMachine()
machine.disk()          the disk as a process that has just started gets it
machine.power_cut()     what was written and not synced is gone
"""

from __future__ import annotations

import tempfile

from mqlab.lab.parts.disk import Disk
from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.wire.record import Record, encode


class TrialMachine:
    """A machine; its files are removed together with it."""

    def __init__(self) -> None:
        self._files, self._folder = CrashFiles(), tempfile.TemporaryDirectory()

    def disk(self) -> Disk:
        """Returns the disk as a process that has just started gets it."""
        self._files.process_ended()
        return Disk(self._files, f"{self._folder.name}/store")

    def power_cut(self) -> None:
        """Undoes whatever was written and not synced."""
        self._files.power_cut()


def unit_of_order(number: int, queue_id: int = 0, tag: str = "paid") -> bytes:
    """An order as the broker hands it to ``put``: a unit without number and place, stored ``number`` seconds in."""
    properties = f"KEYS\x01order-{number}\x02TAGS\x01{tag}\x02".encode()
    return encode(Record("orders", b"a book", queue_id, properties=properties, store_timestamp=1_000 * number))

"""Which parts there are, and the folder ``mybroker`` in which a learner's own are kept, one file per part.

mybroker/__init__.py           makes it importable: from mybroker import process_queue
mybroker/process_queue.py      the cell of lab04.process_queue, with what it needs
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlab.errors import UsageError

FOLDER = "mybroker"


@dataclass(frozen=True, slots=True)
class PartKind:
    """One kind of part: its file, the name that the file defines, the exercise whose answer it is."""

    file: str
    name: str
    exercise: str


KINDS = (
    PartKind("strategy", "MyFaults", "lab02.strategy"),
    PartKind("sticky", "sticky", "lab03.sticky"),
    PartKind("process_queue", "MyProcessQueue", "lab04.process_queue"),
    PartKind("store", "MyStore", "lab16.store"),
    PartKind("pulls", "MyPulls", "lab16.pulls"),
    PartKind("groups", "MyGroups", "lab16.groups"),
    PartKind("retries", "MyRetries", "lab16.retries"),
    PartKind("handlers", "HANDLERS", "lab16.handlers"),
)
"""Every kind of part, in the order of the exercises whose answers they are."""

ANSWERS: Mapping[str, PartKind] = {kind.exercise: kind for kind in KINDS}
"""The parts that ``keep`` writes, by their exercises."""


Renew = Callable[[str, Any], Any]
"""(name of a part, the part) -> the same for the next life of its process"""


def as_it_is(name: str, part: Any) -> Any:
    """What a part is in its next life where nothing else is said: the same class."""
    return part


@dataclass(frozen=True)
class OwnParts:
    """A learner's parts; what is None is mqlab's own.

    ``sticky`` is a function (queues, members) -> {member: queues}, ``handlers`` a table, the others are classes.
    ``renew`` gives a broker's part for each further life of its process.
    """

    strategy: Callable[[], Any] | None = None
    sticky: Callable[..., Any] | None = None
    process_queue: Callable[[], Any] | None = None
    store: Callable[..., Any] | None = None
    pulls: Callable[..., Any] | None = None
    groups: Callable[..., Any] | None = None
    retries: Callable[..., Any] | None = None
    handlers: Mapping[int, Callable[..., Any]] | None = None
    renew: Renew = as_it_is

    @property
    def of_a_broker(self) -> bool:
        """Whether one of them belongs to a broker."""
        return any((self.store, self.pulls, self.groups, self.retries, self.handlers))

    @property
    def names(self) -> list[str]:
        """The parts that are there."""
        return [kind.file for kind in KINDS if getattr(self, kind.file) is not None]


def parts_in(folder: Path) -> OwnParts:
    """The parts in a folder, each file run again. UsageError for no folder, no part, or a file without its name."""
    parts = {}
    for kind in KINDS:
        path = folder / f"{kind.file}.py"
        if path.is_file():
            parts[kind.file] = _defined(path, kind.name)
    if not parts:
        raise UsageError(f"there is no part in {folder}", hint='keep("lab04.process_queue") writes one')
    return OwnParts(**parts)


def _defined(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{FOLDER}.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise UsageError(f"{path} does not define {name}", hint="run keep(…, again=True) after a check that passes")
    return getattr(module, name)

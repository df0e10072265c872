"""Which parts there are, and the folder ``mybroker`` in which a learner's own are kept, one file per part.

mybroker/__init__.py           makes it importable: from mybroker import process_queue
mybroker/process_queue.py      the cell of lab04.process_queue, with what it needs
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mqlab.errors import UsageError

FOLDER = "mybroker"


@dataclass(frozen=True, slots=True)
class PartKind:
    """One kind of part: the file and the field of OwnParts, the exercise that it answers, the name that it defines."""

    file: str
    exercise: str
    name: str

    @property
    def lab(self) -> str:
        """The lab of its exercise: "lab04"."""
        return self.exercise.partition(".")[0]


KINDS: Mapping[str, PartKind] = {
    kind.exercise: kind
    for kind in (
        PartKind("strategy", "lab02.strategy", "MyFaults"),
        PartKind("sticky", "lab03.sticky", "sticky"),
        PartKind("process_queue", "lab04.process_queue", "MyProcessQueue"),
        PartKind("store", "lab16.store", "MyStore"),
        PartKind("pulls", "lab16.pulls", "MyPulls"),
        PartKind("groups", "lab16.groups", "MyGroups"),
        PartKind("retries", "lab16.retries", "MyRetries"),
        PartKind("handlers", "lab16.handlers", "HANDLERS"),
    )
}
"""Every kind of part by its exercise, in the order of the labs."""


@dataclass(frozen=True)
class OwnParts:
    """A learner's parts; what is None is mqlab's own.

    ``sticky`` is a function (queues, members) -> {member: queues}, ``handlers`` a table, the others are classes.
    """

    strategy: Callable[[], Any] | None = None
    sticky: Callable[..., Any] | None = None
    process_queue: Callable[[], Any] | None = None
    store: Callable[..., Any] | None = None
    pulls: Callable[..., Any] | None = None
    groups: Callable[..., Any] | None = None
    retries: Callable[..., Any] | None = None
    handlers: Mapping[int, Callable[..., Any]] | None = None

    @property
    def of_a_broker(self) -> bool:
        """Whether one of them belongs into a broker."""
        return any((self.store, self.pulls, self.groups, self.retries, self.handlers))

    @property
    def names(self) -> list[str]:
        """The parts that are there."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]


def parts_in(folder: Path) -> OwnParts:
    """The parts in a folder, each file run anew. UsageError for no folder, no part, or a file without its name."""
    parts = {}
    for kind in KINDS.values():
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

"""The tables of a finished run, small enough for a page, as pandas; no Spark is started to read them.

    out/pipeline.json  out/facts/*      what `mqlab spark run` left

Left out: the big tables (messages, deliveries, life): the page shows facts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.spark.small_tables import read_small
from mqlab.errors import UsageError

if TYPE_CHECKING:
    import pandas

MANIFEST = "pipeline.json"
FACTS = (
    "traffic",
    "queues",
    "keys",
    "groups",
    "group_tags",
    "lost",
    "dead_letters",
    "lag",
    "backlog",
    "latency",
    "duplicates",
    "calls",
    "slowest",
    "producers",
    "islands",
    "suspicions",
)


@dataclass(frozen=True, slots=True)
class Facts:
    """The input of the page: the manifest, the facts by name, and when the day began and ended."""

    manifest: dict[str, Any]
    tables: dict[str, pandas.DataFrame]
    directory: str = ""

    def __getitem__(self, name: str) -> Any:
        """The DataFrame of a fact; untyped, because the schema states what its cells hold and the stubs cannot."""
        return self.tables[name]

    @property
    def has_rules(self) -> bool:
        """Whether rules were applied; a run can leave them out."""
        return "suspicions" in self.tables

    @property
    def start_ms(self) -> int:
        """Store time of the first message that a producer sent."""
        return int(self.manifest["span_ms"][0])

    @property
    def end_ms(self) -> int:
        """Store time of the last message that a producer sent."""
        return int(self.manifest["span_ms"][1])

    @property
    def stretch_ms(self) -> int:
        """Length of the stretches of time by which facts are counted."""
        return int(self.manifest["stretch_ms"])


def read_facts(directory: Path) -> Facts:
    """The facts in the output of a run. Raises UsageError for another directory, or a run that is not finished."""
    path = directory / MANIFEST
    if not path.exists():
        raise UsageError(
            f"{directory} is not an output of 'mqlab spark run'",
            hint="run it first:  mqlab spark run STORES --out DIR, then give this DIR",
        )
    manifest = json.loads(path.read_text("utf-8"))
    wanted = [name for name in FACTS if name not in manifest.get("without", ())]
    missing = [name for name in wanted if not (directory / "facts" / name).is_dir()]
    if missing:
        raise UsageError(
            f"the run in {directory} is not finished: {', '.join(missing)} are missing",
            hint="run the same 'mqlab spark run' again; it continues where it stopped",
        )
    return Facts(manifest, {name: read_small(directory / "facts" / name) for name in wanted}, str(directory))

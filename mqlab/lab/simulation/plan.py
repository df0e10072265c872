"""A plan says what happens in one simulated run, as plain data: it can be printed, kept, cut and played again.

Mirrors: nothing of RocketMQ.

    {"seed": 7, "world": {"brokers": 2, ...}, "members": [{"name": "billing-1", ...}],
     "events": [{"at": 900, "do": "send", "number": 3, "topic": "orders"},
                {"at": 1200, "do": "power_off", "node": "broker-a", "for": 4000}]}

Times are ms after the members have started. A fault ends by itself after ``for`` ms, so that any event can be left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.whole_files import whole_file

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

Event = dict[str, Any]
PARTS = ("seed", "world", "members", "events")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run: the seed of its Lab, the cluster, who consumes, what is sent and what breaks."""

    seed: int
    world: dict[str, Any]
    members: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        """The keywords of ``play`` and ``explore`` for this plan."""
        from mqlab.lab.simulation.running import lab_settings

        return {"seed": self.seed, **lab_settings(self)}

    def story(self, lab: Lab) -> None:
        """The run as a story, for ``play`` and the time machine."""
        from mqlab.lab.simulation.running import tell

        tell(self, lab)

    def as_json(self) -> str:
        """The plan as text, an event per line."""
        head = {"seed": self.seed, "world": self.world}
        lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
        for name, rows in (("members", self.members), ("events", self.events)):
            inner = ",\n  ".join(json.dumps(row) for row in rows)
            lines.append(f' "{name}": [\n  {inner}\n ]' + ("," if name == "members" else ""))
        return "{\n" + "\n".join(lines) + "\n}\n"

    def save(self, path: Path) -> None:
        """Write the plan to a file."""
        with whole_file(path) as draft:
            draft.write_text(self.as_json(), "utf-8")

    @classmethod
    def load(cls, path: Path | str) -> RunPlan:
        """The plan in a file. UsageError, with the place, for what is not a plan."""
        try:
            parts = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} is not a plan: {error}", hint="mqlab sim writes one for a seed that fails"
            ) from None
        if not isinstance(parts, dict) or sorted(parts) != sorted(PARTS):
            raise UsageError(f"{path} is not a plan: it needs exactly {', '.join(PARTS)}")
        for number, event in enumerate(parts["events"]):
            if not isinstance(event, dict) or not {"at", "do"} <= event.keys():
                raise UsageError(f"{path}: event {number} has no 'at' and 'do': {event!r}")
        return cls(**parts)

"""One thing that goes wrong on a day of traffic: its kind, its place, its time and its magnitude.

Mirrors: a line of an operator's diary.

    Incident("slow_consumer", start_ms, end_ms, group="billing", member=1, cost_ms=180, percent=40)

mqlab.data.traffic.trouble.incidents has the kinds, and places them by the seed. A model takes kinds and Incidents.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.data.traffic.model import Asked


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that goes wrong. Times are ms since the epoch; fields that do not apply to the kind are None.

    A magnitude that is None has the kind's usual value. A ``decoy`` looks like an incident and harms no message.
    """

    kind: str
    start_ms: int
    end_ms: int
    broker: int | None = None
    group: str | None = None
    queue_id: int | None = None
    customer: int | None = None  # rank at its broker
    tags: tuple[str, ...] = ()  # that do not arrive any more
    factor: int | None = None
    back_ms: int | None = None  # how far offsets are behind what was done
    member: int | None = None  # the group's process concerned: 0 or 1; 2 for one that joins
    client: int | None = None  # number of a process, see mqlab.data.traffic.clients
    skew_ms: int | None = None  # how far its clock is ahead
    percent: int | None = None  # of calls, messages or orders, depending on the kind
    cost_ms: int | None = None  # what a call takes
    restarts: int | None = None
    decoy: bool = False

    def concerns(self, broker: int) -> bool:
        """True when it can be seen in this broker's store."""
        return self.broker is None or self.broker == broker

    def public_fields(self, asked: Asked) -> dict[str, Any]:
        """The fields that apply to this kind, for the instructor's file."""
        values = asdict(self) | {"tags": list(self.tags), "customer": None, "client": None}
        fields = {name: v for name, v in values.items() if v is not None and v is not False and v != []}
        if self.broker is not None:
            fields["broker"] = asked.broker_name(self.broker)
        return fields

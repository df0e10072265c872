"""A cluster's day in the time machine, with what happened to one message next to it.

    machine = hunt(cluster("Bern"), day=1, follow=9)        seed: the number of the day; follow: number of a message
    machine.play_again(seed=3, follow=2, first_events=10)   what its knobs do
    message_ids(lab)[9]                                     the id of the message that alarms call 9

Lab 14 uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqlab.course.widgets import Explorer, explore
from mqlab.lab.simulation.notes import number_of
from mqlab.lab.simulation.plan import Event
from mqlab.lab.simulation.planted import PlantedCluster, history
from mqlab.lab.simulation.scene import ORDERS, STEPS
from mqlab.lab.views.table import Table
from mqlab.lab.world.lab import Lab

NO_MESSAGE = -1
MOST_EVENTS = 40
SHOWN_ROWS = 12
NOT_SHOWN = ("step", "ms", "node", "what", "ids", "id")


def message_ids(lab: Lab) -> dict[int, str]:
    """Number of a message -> its id, which all of its copies have."""
    units = (
        unit for handle in lab.handles.values() if handle.role == "broker" for unit in lab.store(handle.name).messages()
    )
    return {number_of(unit.body): unit.msg_id for unit in units if unit.topic in (ORDERS, STEPS)}


def named_rows(lab: Lab, number: int, msg_id: str | None) -> Table:
    """The last rows of the history that name a message by its id, without what they say about others."""
    rows = [row for row in history(lab) if msg_id is not None and msg_id in (row.get("id"), *row.get("ids", ()))]
    return Table(
        [
            {
                "step": row["step"],
                "node": row["node"],
                "what": row["what"],
                "queue": row.get("queue", ""),
                "more": ", ".join(f"{name} {row[name]}" for name in row if name not in (*NOT_SHOWN, "queue")),
            }
            for row in rows[-SHOWN_ROWS:]
        ],
        title=f"Message {number}",
    )


def hunt(it: PlantedCluster, *, day: int, follow: int = NO_MESSAGE, events: Sequence[Event] | None = None) -> Explorer:
    """The time machine over a day of a cluster, where a message is stored. Its seed is the number of the day.

    ``follow``: the number of a message whose rows stand next to each stop. ``events``: another schedule than the day's;
    without one, a knob says how many of the day's first events happen.
    """
    followed = [follow]
    ids: dict[tuple[int, int], str] = {}  # day and number of a message -> its id; the same whenever the day is played

    def show(lab: Lab) -> Any:
        number = followed[0]
        if number == NO_MESSAGE:
            return []
        if (lab.seed, number) not in ids:
            ids.update({(lab.seed, number): msg_id for number, msg_id in message_ids(lab).items()})
        return [named_rows(lab, number, ids.get((lab.seed, number)))]

    def whole_day(lab: Lab, follow: int = follow, first_events: int = MOST_EVENTS) -> None:
        followed[0] = follow
        plan = it.day(lab.seed)
        it.story(plan, plan.events[:first_events])(lab)

    def schedule(lab: Lab, follow: int = follow) -> None:
        followed[0] = follow
        it.story(it.day(lab.seed), events)(lab)

    settings = it.settings(it.day(day))
    if events is not None:
        machine = explore(schedule, show=show, **settings)
    else:
        machine = explore(whole_day, show=show, knobs={"first_events": (0, MOST_EVENTS)}, **settings)
    machine.set("position", _first_stop(machine, follow))
    return machine


def _first_stop(machine: Explorer, number: int) -> int:
    """The stop at which a message has been stored first; 0 without one."""
    msg_id = message_ids(machine.recording.lab).get(number)
    rows = (row for row in history(machine.recording.lab) if row["what"] == "message.stored")
    step = next((row["step"] for row in rows if row["id"] == msg_id), None)
    return 0 if step is None else 1 + sum(other < step for other in machine.recording.steps)

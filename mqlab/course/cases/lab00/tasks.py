"""Lab 00's your-turn tasks: what is right is read from the world that the learner's own cell has played.

    lab00.next_byte  an order of the learner's own; at which byte will the next one begin?
    lab00.held       billing waits before there are orders; how long does an order wait for billing?
    lab00.between    a stop of the time machine: billing is done, and the broker has not been told
    lab00.lives      billing lives longer before it is killed; how many orders does it get again?

What is said to a wrong answer is in the lab's source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.course.teach.tasks import Task

if TYPE_CHECKING:
    from mqlab.course.widgets.boards.time_machine.explorer import Explorer
    from mqlab.lab.world.lab import Lab
    from mqlab.rocketmq.wire.message import MessageExt

GROUP, TOPIC = "billing", "orders"
SHORT_LIFE_MS = 4_000


def _newest(lab: Lab) -> MessageExt:
    return list(lab.store().messages(TOPIC))[-1]


def _next_byte(lab: Lab) -> int:
    return lab.store().max_physical_offset


def _second_order_ms(lab: Lab) -> tuple[int, int, int]:
    """When the second order was stored, and when billing's listener began and ended with it."""
    stored_ms = list(lab.store().messages(TOPIC))[1].store_timestamp
    delivery = next(row for row in lab.deliveries(GROUP) if row.queue_offset == 1)
    return stored_ms, delivery.started_ms, delivery.ended_ms


def _wait_ms(lab: Lab) -> int:
    stored_ms, started_ms, _ = _second_order_ms(lab)
    return started_ms - stored_ms


def _wait_and_work_ms(lab: Lab) -> int:
    stored_ms, _, ended_ms = _second_order_ms(lab)
    return ended_ms - stored_ms


def _holds_ms(lab: Lab) -> list[int]:
    """When the broker began to hold a pull for the second order. It holds one for 15 s or so, then the next."""
    return [
        step.now_ms
        for step, values in lab.journal.changes("pull.held")
        if (values["topic"], values["queue_offset"]) == (TOPIC, 1)
    ]


def _held_ms(lab: Lab) -> int:
    """How long the pull that the second order answered was held."""
    return _second_order_ms(lab)[0] - _holds_ms(lab)[-1]


def _nobody_waits(lab: Lab) -> str:
    if len(list(lab.store().messages(TOPIC))) < 2:
        return "there is no second order in your last run."
    if any(held_ms < _second_order_ms(lab)[0] for held_ms in _holds_ms(lab)):
        return ""
    return "in your last run no pull was waiting when the second order came. Set PAUSE to 2s or more and run it again."


def _stops(explorer: Explorer) -> tuple[range, range, range]:
    """The stops before billing has returned for the last order, those before its report, and those after it."""
    recording = explorer.recording
    ours = [moment for moment in recording.moments if dict(moment.values).get("group") == GROUP]
    done = max(moment.step or 0 for moment in ours if moment.kind == "listener.returned")
    committed = min(moment.step or 0 for moment in ours if moment.kind == "offset.committed")
    first_done, first_told = recording.steps.index(done) + 1, recording.steps.index(committed) + 1
    return range(first_done), range(first_done, first_told), range(first_told, len(recording.steps) + 1)


def _part(number: int) -> Callable[[Explorer], range]:
    return lambda explorer: _stops(explorer)[number]


def _is_among(value: object, others: object) -> bool:
    return isinstance(others, range) and isinstance(value, int) and value in others


def _killed_ms(lab: Lab) -> int:
    return int(lab.journal.of("fault.killed")[0].now_ms)


def _again(lab: Lab) -> int:
    return sum(row.started_ms > _killed_ms(lab) for row in lab.deliveries(GROUP))


def _in_both_lives(lab: Lab) -> int:
    return len(lab.deliveries(GROUP))


def _still_short(lab: Lab) -> str:
    began = min(row.started_ms for row in lab.deliveries(GROUP))
    if _killed_ms(lab) - began >= SHORT_LIFE_MS:
        return ""
    return "give billing a longer life first: change LIVES and run the cell again."


TASKS = (
    Task(
        "lab00.next_byte",
        right=_next_byte,
        wrong={
            "start": lambda lab: _newest(lab).physical_offset,
            "size": lambda lab: _newest(lab).store_size,
            "number": lambda lab: _newest(lab).queue_offset + 1,
        },
    ),
    Task("lab00.held", right=_wait_ms, wrong={"held": _held_ms, "listener": _wait_and_work_ms}, unready=_nobody_waits),
    Task("lab00.between", right=_part(1), wrong={"early": _part(0), "late": _part(2)}, same=_is_among),
    Task("lab00.lives", right=_again, wrong={"both": _in_both_lives}, unready=_still_short),
)

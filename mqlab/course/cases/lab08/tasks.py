"""Lab 08's your-turn tasks: what is right is counted in the learner's own world.

    too_high  worst  wave                the first part: a level beyond the table, the most levels, after a crash
    one_names_many  patience  your_way   the second: op messages, how long the broker asks, what comes twice
    precision  copies  recall_late  all_gone   the third: steps of the wheel, rolls, markers, its files

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab08.relay import fewest
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.wire import names

HIGH_LEVEL, HIGHEST_LEVEL, DOWN_S, WITHIN_MS = 40, 5, 120, 2_000
MANY, FEW = 40, 4


def _asked_level(lab: Any) -> str:
    # The broker writes the level that it took, not the one that was asked for.
    levels = [int(message.properties["DELAY"]) for message in lab.store().messages(names.SCHEDULE_TOPIC)]
    return "" if levels == [HIGHEST_LEVEL] else f"Set LEVEL to {HIGH_LEVEL} and run the cell first."


def _came_after_s(lab: Any) -> int:
    (waited,) = lab.store().messages(names.SCHEDULE_TOPIC)
    (came,) = lab.store().messages("orders")
    return int(came.store_timestamp - waited.store_timestamp + 500) // 1000


def _worst() -> int:
    counts = fewest()[:600]
    return counts.index(max(counts))


def _started_ms(lab: Any) -> int:
    return int(lab.journal.of("fault.start")[0].now_ms)


def _was_down(lab: Any) -> str:
    down_s = (_started_ms(lab) - lab.journal.of("fault.killed")[0].now_ms) // 1000
    return "" if down_s == DOWN_S else f"In your last run it was down for {down_s} s: set DOWN to {DOWN_S} first."


def _in_the_wave(lab: Any) -> int:
    start_ms = _started_ms(lab)
    return sum(0 <= message.store_timestamp - start_ms < WITHIN_MS for message in lab.store().messages("orders"))


def _sent_many(lab: Any) -> str:
    count = len(lab.journal.of("transaction.prepared"))
    return "" if count == MANY else f"Your last run had {counted(count, 'orders')}: set ORDERS to {MANY} first."


def _op_messages(lab: Any) -> int:
    return len(list(lab.store().messages(names.OP_HALF_TOPIC)))


def _questions(lab: Any) -> int:
    return sum("asked" in values for _, values in lab.journal.changes("transaction.checked"))


def _few_questions(lab: Any) -> str:
    times = counted(_questions(lab), "times")
    return "" if _questions(lab) == FEW else f"The broker asked {times}: set MOST to {FEW} first."


def _seconds_after_stored(lab: Any, kind: str) -> int:
    """From the half message to the last change of a kind."""
    half = next(iter(lab.store().messages(names.HALF_TOPIC)))
    return int(lab.journal.changes(kind)[-1][0].now_ms - half.store_timestamp) // 1000


def _seconds(number: Any, other: Any) -> bool:
    """The same number of seconds, give or take one: a look comes a few ms before or after a full second."""
    return isinstance(number, int | float) and isinstance(other, int | float) and abs(number - other) <= 1


def _broker_died(matrix: Any) -> str:
    return "" if matrix.data()["node"] == "broker-a" else 'On this board the shop dies: set DIES to "broker-a" first.'


def _cells(matrix: Any, *, twice: bool) -> int:
    rows = list(matrix.cells())
    return sum("twice" in str(row.outcome) for row in rows) if twice else len(rows)


FINE_MS, RECALLED_MS, COPIES = 100, 1_500, 5
REMINDERS = "reminders"


def _timer_config(lab: Any) -> Any:
    return lab.broker().store.config


def _fine_steps(lab: Any) -> str:
    precision_ms = _timer_config(lab).timer_precision_ms
    return (
        "" if precision_ms == FINE_MS else f"In your last run a step was {precision_ms} ms: set PRECISION to {FINE_MS}."
    )


def _late_ms(lab: Any) -> int:
    (reminder,) = lab.store().messages(REMINDERS)
    return int(reminder.store_timestamp) - int(reminder.properties["TIMER_DELIVER_MS"])


def _five_copies(lab: Any) -> str:
    count = sum(1 for _ in lab.store().messages(names.TIMER_TOPIC))
    copies = counted(count, "copies")
    return "" if count == COPIES else f"Your last run has {copies}: change WINDOW until there are {COPIES}."


def _recalled_from(lab: Any) -> str:
    asked = lab.journal.changes("timer.recall_asked")
    due_ms = max(int(message.properties["TIMER_DELIVER_MS"]) for message in lab.store().messages(names.TIMER_TOPIC))
    early_ms = due_ms - asked[0][0].now_ms if asked else 0
    near = abs(early_ms - RECALLED_MS) < FINE_MS
    return "" if near else f"In your last run the first recall was {early_ms} ms early: set EARLY to {RECALLED_MS:,}."


def _reminders(lab: Any) -> int:
    return sum(1 for _ in lab.store().messages(REMINDERS))


def _all_deleted(lab: Any) -> str:
    # Without its log and its check file the broker gives every message a place again, the delivered ones at once.
    own = [record for record, _ in lab.journal.changes("timer.enqueued")]
    started_ms = _started_ms(lab)
    again = sum(record.now_ms >= started_ms for record in own)
    units = len(lab.store().timer_units())
    return "" if again == units else "Put all three names into DELETED and run the cell first."


TASKS = (
    Task(
        "lab08.too_high",
        right=_came_after_s,
        wrong={"none": lambda lab: 0, "standard": lambda lab: 7_200},
        unready=_asked_level,
    ),
    Task("lab08.worst", right=_worst, wrong={"longest": lambda: 599}),
    Task("lab08.wave", right=_in_the_wave, wrong={"one_minute": lambda lab: 60}, unready=_was_down),
    Task(
        "lab08.one_names_many",
        right=_op_messages,
        wrong={"each": lambda lab: MANY, "one": lambda lab: 1},
        unready=_sent_many,
    ),
    Task(
        "lab08.patience",
        right=lambda lab: _seconds_after_stored(lab, "transaction.given_up"),
        wrong={"last": lambda lab: _seconds_after_stored(lab, "transaction.checked"), "standard": lambda lab: 480},
        unready=_few_questions,
        same=_seconds,
    ),
    Task(
        "lab08.your_way",
        right=lambda matrix: _cells(matrix, twice=True),
        wrong={"bad": lambda matrix: 0, "all": lambda matrix: _cells(matrix, twice=False)},
        unready=_broker_died,
    ),
    Task(
        "lab08.precision",
        right=_late_ms,
        wrong={"second": lambda lab: 750, "never": lambda lab: 0},
        unready=_fine_steps,
    ),
    Task(
        "lab08.copies",
        right=lambda lab: _timer_config(lab).timer_roll_window_slot,
        wrong={"equal": lambda lab: COPIES},
        unready=_five_copies,
    ),
    Task(
        "lab08.recall_late",
        right=_reminders,
        wrong={"none": lambda lab: 0, "one_step": lambda lab: len(lab.journal.changes("timer.recalled"))},
        unready=_recalled_from,
    ),
    Task(
        "lab08.all_gone",
        right=_reminders,
        wrong={"lost": lambda lab: 3, "once": lambda lab: 6},
        unready=_all_deleted,
    ),
)

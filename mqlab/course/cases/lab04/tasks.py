"""Lab 04's your-turn tasks: what is right is counted in the learner's own world.

    interval  strip  span_of  live   the first part: reports, a crash on the board, a cache, a timeout read live
    again  from_where  old           the second part: a reset by time, a new group without history, what is too old

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.lab04.offsets import GROUP, NODE, TOPIC
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.client.settings import PushConsumerConfig

MINUTE_MS = 60_000


def _moves_at_the_broker(lab: Any) -> int:
    changes = [values for _, values in lab.journal.changes("offset.committed")]
    return sum(values["group"] == GROUP and values["topic"] == TOPIC for values in changes)


def _moves_in_memory(lab: Any) -> int:
    return sum(values["queue"].topic == TOPIC for _, values in lab.journal.changes("offset.updated"))


def _setting(lab: Any, name: str) -> Any:
    return getattr(lab.node_handle(NODE).config, name)


def _reports_often(lab: Any) -> str:
    interval_ms = _setting(lab, "persist_consumer_offset_interval")
    if interval_ms == 1_000:
        return ""
    return f'Billing reports every {interval_ms / 1000:g} s in your last run: set INTERVAL to "1s" and run it again.'


READ_AGAIN = 4


def _four_again(strip: Any) -> str:
    count = len(strip.redelivered())
    if count == READ_AGAIN:
        return ""
    return (
        f"On your board {counted(count, 'finished orders are redelivered', 'finished order is redelivered')} "
        f"after the last crash. Make it {READ_AGAIN}."
    )


SPAN_OF_A_PULL = PushConsumerConfig().pull_batch_size - 1


def _minute_given_back(lab: Any) -> int:
    for step, values in lab.journal.changes("message.expired"):
        if values["queue"].topic == TOPIC:
            return int((step.now_ms - lab.began_ms) // MINUTE_MS)
    return -1


def _is_shorter(lab: Any) -> str:
    timeout_ms = _setting(lab, "consume_timeout")
    if timeout_ms == 2 * MINUTE_MS:
        return ""
    return f'The timeout is {timeout_ms // MINUTE_MS} minutes in your last run: set THEN to "2m" and run it again.'


RESET_TO_S, YOUNG_MS, BANK_MS = 95, 10 * MINUTE_MS, 200


def _calls(lab: Any) -> list[Any]:
    return list(lab.deliveries(GROUP, absences=False))


def _delivered_again(lab: Any) -> int:
    reset_ms = lab.journal.of("offset.reset")[0].now_ms
    return sum(row.started_ms > reset_ms for row in _calls(lab))


def _reset_to_95(lab: Any) -> str:
    """Nothing if the reset went to the first order at or after second 95."""
    stored = [message.store_timestamp for message in lab.store().messages(TOPIC)]
    wanted = sum(ms < stored[0] + RESET_TO_S * 1000 for ms in stored)
    offset = lab.journal.changes("offset.reset")[0][1]["queue_offset"]
    if offset == wanted:
        return ""
    return f"Your last run went to order {offset}: set SECOND to 95 and run it again."


def _paid(lab: Any) -> int:
    return sum(row.ended_ms - row.started_ms >= BANK_MS for row in _calls(lab))


def _younger_than_ten_minutes(lab: Any) -> int:
    return sum(
        row.started_ms - message.store_timestamp < YOUNG_MS for row in _calls(lab) for message in _stored(lab, row)
    )


def _stored(lab: Any, row: Any) -> list[Any]:
    return [message for message in lab.store().messages(TOPIC) if message.msg_id == row.msg_id]


def _sorts_by_ten_minutes(lab: Any) -> str:
    if _paid(lab) == _younger_than_ten_minutes(lab):
        return ""
    return f"Your last run has paid {_paid(lab)}: set MINUTES to 10 and run it again."


def _sent_after_the_start(lab: Any) -> int:
    started_ms = lab.journal.of("member.joined")[0].now_ms
    return sum(message.store_timestamp > started_ms for message in lab.store().messages(TOPIC))


def _reads_nothing_old(lab: Any) -> str:
    if len(_calls(lab)) == _sent_after_the_start(lab):
        return ""
    return (
        f"Your last run has read {counted(len(_calls(lab)), 'orders')}, "
        "old ones among them: put the verb into before_the_start "
        "and run the cell again."
    )


TASKS = (
    Task(
        "lab04.interval",
        right=_moves_at_the_broker,
        wrong={"default": lambda lab: 4, "memory": _moves_in_memory},
        unready=_reports_often,
    ),
    Task(
        "lab04.strip",
        right=lambda strip: READ_AGAIN,
        wrong={"unfinished": lambda strip: len(strip.messages()) - READ_AGAIN},
        unready=_four_again,
    ),
    Task(
        "lab04.span_of",
        right=lambda lab: SPAN_OF_A_PULL - 1,
        wrong={"just_that": lambda lab: SPAN_OF_A_PULL, "count": lambda lab: SPAN_OF_A_PULL + 1},
    ),
    Task(
        "lab04.live",
        right=_minute_given_back,
        wrong={"two": lambda lab: 2, "twenty": lambda lab: 20},
        unready=_is_shorter,
    ),
    Task(
        "lab04.again",
        right=_delivered_again,
        wrong={"from_the_one_before": lambda lab: _delivered_again(lab) + 1, "all": lambda lab: 6},
        unready=_reset_to_95,
    ),
    Task(
        "lab04.from_where",
        right=_sent_after_the_start,
        wrong={"everything": lambda lab: sum(1 for _ in lab.store().messages(TOPIC))},
        unready=_reads_nothing_old,
    ),
    Task(
        "lab04.old",
        right=_paid,
        wrong={
            "all_read": lambda lab: len(_calls(lab)),
            "ten_exactly": lambda lab: _paid(lab) + 1,
            "thrown_away": lambda lab: len(_calls(lab)) - _paid(lab),
        },
        unready=_sorts_by_ten_minutes,
    ),
)

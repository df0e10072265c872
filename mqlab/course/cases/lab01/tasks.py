"""Lab 01's your-turn tasks: what is right is read from the learner's own store, or from RocketMQ's settings.

    negative  overhead  unseen            01a: a tag's sign, a key's bytes, what dispatch makes visible
    roll  one_slot                        01b: units in a file, a chain without slots
    survivors  hole  age                  01c: a power cut, a missing page, an old file

Two answers are the same in every world: the page without which nothing is left, and the age of a file that may go.
What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.course.teach.tasks import Task
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire.java_hash import index_key_hash, tags_code

TOPIC = "orders"
FIRST_KEYS = "order-0"
OLD_ENOUGH_HOURS = StoreConfig().file_reserved_time
FIRST_PAGE, LAST_PAGE = 0, 3  # of the log in the run with a missing page
ROLLED_FILE_BYTES = 1152


def _units(lab: Any) -> list[Any]:
    return list(lab.store().messages(TOPIC))


def _tag(lab: Any) -> str:
    return str(_units(lab)[0].tags)


def _tag_is_negative(lab: Any) -> str:
    code = tags_code(_tag(lab))
    if code < 0:
        return ""
    return f"The tag of your last run, {_tag(lab)!r}, has the hash {code}, which is not negative. Change TAG, run it."


def _bytes_of_more_keys(lab: Any) -> int:
    return len(str(_units(lab)[0].keys).encode()) - len(FIRST_KEYS)


def _keys_were_changed(lab: Any) -> str:
    if _bytes_of_more_keys(lab):
        return ""
    return 'The order of your last run has its first key only. Change KEYS to "order-0 customer-7" and run the cell.'


def _readable(xray: Any) -> int:
    """How many units of the X-ray's step are in their queue."""
    return sum(bool(row["in its queue"]) for row in xray.units().to_dicts())


def _three_and_not_all(xray: Any) -> str:
    units = xray.units().to_dicts()
    if len(units) == 3 and 0 < _readable(xray) < 3:
        return ""
    there = f"{len(units)} units, {_readable(xray)} of them dispatched"
    return f"The step that is shown has {there}. Go to a step with three orders, one of them dispatched."


def _in_the_first_file(lab: Any) -> int:
    return sum(row["place"] < _log_file_bytes(lab) for row in lab.copies().to_dicts())


def _log_file_bytes(lab: Any) -> int:
    return int(lab.broker().store.config.mapped_file_size_commit_log)


def _file_is_small(lab: Any) -> str:
    size = _log_file_bytes(lab)
    return (
        ""
        if size == ROLLED_FILE_BYTES
        else f"The log files of your last run have {size} bytes. Set LOG_FILE = {ROLLED_FILE_BYTES} and run the cell."
    )


def _chain_length(lab: Any) -> int:
    index = lab.store().index
    table = index.table(index.names()[0])
    return len(list(table.chain(index_key_hash(f"{TOPIC}#order-0"))))


def _one_slot(lab: Any) -> str:
    slots = lab.broker().store.config.max_hash_slot_num
    return "" if slots == 1 else f"The index of your last run has {slots} slots. Set SLOTS = 1 and run the cell."


def _orders(lab: Any) -> int:
    return len(_units(lab))


def _orders_are_large(lab: Any) -> str:
    bodies = max((len(unit.body) for unit in _units(lab)), default=0)
    small = "The orders of your last run are small. Set BODY to 1,200 bytes, and play the day again."
    return "" if bodies >= 1000 else small


def _nothing_is_left(lab: Any) -> str:
    left = _orders(lab)
    left_over = (
        f"In your last run {counted(left, 'orders are left', 'order is left')}. Set MISSING, "
        "run the two cells above, and answer then."
    )
    return left_over if left else ""


TASKS = (
    Task("lab01.negative", right=_tag, unready=_tag_is_negative),
    Task(
        "lab01.overhead",
        right=_bytes_of_more_keys,
        wrong={"only_the_key": lambda lab: _bytes_of_more_keys(lab) - 1},
        unready=_keys_were_changed,
    ),
    Task(
        "lab01.unseen",
        right=_readable,
        wrong={"all": lambda xray: 3, "none": lambda xray: 0},
        unready=_three_and_not_all,
    ),
    Task(
        "lab01.roll",
        right=_in_the_first_file,
        wrong={"division": lambda lab: _log_file_bytes(lab) // _units(lab)[0].store_size},
        unready=_file_is_small,
    ),
    Task(
        "lab01.one_slot",
        right=_chain_length,
        wrong={"orders": lambda lab: _chain_length(lab) // 2, "one": lambda lab: 1},
        unready=_one_slot,
    ),
    Task(
        "lab01.survivors",
        right=_orders,
        wrong={"all": lambda lab: 40, "none": lambda lab: 0},
        unready=_orders_are_large,
    ),
    Task("lab01.hole", right=lambda lab: FIRST_PAGE, wrong={"last": lambda lab: LAST_PAGE}, unready=_nothing_is_left),
    Task(
        "lab01.age",
        right=lambda lab: OLD_ENOUGH_HOURS,
        wrong={"seen": lambda lab: 73, "morning": lambda lab: 76, "four": lambda lab: 4},
    ),
)

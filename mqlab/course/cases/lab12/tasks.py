"""Lab 12's your-turn tasks: what is right follows from what the learner's own cell has read, written or played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.course.cases.lab12.moments import NINE, shown
from mqlab.course.teach.tasks import Task
from mqlab.scales import MINUTE, SECOND

Row = Mapping[str, Any]
Places = Sequence[tuple[str, int]]
FIRST_LIMIT, FIRST_DEATH, BATCHES = 20_000, 40, 4
VARIANT = "looks first"


def _limit_of_four(most_bytes: int, progress: Sequence[Any]) -> int | None:
    return most_bytes if len(progress) == BATCHES else None


def _still_first_limit(most_bytes: int, _progress: object) -> str:
    return "these are still 20,000 bytes: change MOST_BYTES first" if most_bytes == FIRST_LIMIT else ""


def _twice(rows: Places) -> int:
    return len(rows) - len(set(rows))


def _same_death(rows: Places) -> str:
    return "the job still dies after 40 rows: change DIES_AFTER first" if _twice(rows) == FIRST_DEATH else ""


def _unsafe(matrix: Any) -> int:
    cells = [cell for cell in matrix.run().cells() if cell["variant"] == VARIANT]
    return sum(cell["outcome"] != "once" for cell in cells)


def _still_two(matrix: Any) -> str:
    return "looks_first still has two transactions: change it first" if _unsafe(matrix) else ""


def _behind(board: Sequence[Row], group: str = "") -> int:
    return max((row["behind_s"] for row in board if group in ("", row["group_name"])), default=0)


def _no_board(board: Sequence[Row], more_minutes: int) -> str:
    if not board:
        return "There is no board yet: solve exercise 3 first"
    return "the day has not continued: change MORE_MINUTES first" if more_minutes == 0 else ""


FIRST_DELAY, STEP_MINUTES, LONGEST_DELAY, WINDOW_MINUTES, FIRST_GAPS = 10, 10, 120, 10, [3, 400]
MINUTES_ASKED_FOR = 90


def _drops(looks: Sequence[Sequence[Row]], delay: int) -> bool:
    """Whether a count by ten minutes drops a row: its window ends before the newest of earlier looks, less delay."""
    newest, window = [0, 0], WINDOW_MINUTES * MINUTE
    for new in looks:
        watermark = newest[-2] - delay * MINUTE  # Spark compares with that of the batch before
        if any(row["store_timestamp"] // window * window + window <= watermark for row in new):
            return True
        newest.append(max([newest[-1], *(row["store_timestamp"] for row in new)]))
    return False


def _smallest_delay(looks: Sequence[Sequence[Row]], _delay: int) -> int:
    delays = range(STEP_MINUTES, LONGEST_DELAY, STEP_MINUTES)
    return next(delay for delay in delays if not _drops(looks, delay))


def _still_ten_minutes(_looks: object, delay: int) -> str:
    return "the delay is still ten minutes: change DELAY_MINUTES first" if delay == FIRST_DELAY else ""


def _rows_given(run: Mapping[str, Any]) -> int | None:
    return len(run["rows"]) if run["mode"] == "complete" else None


def _not_complete(run: Mapping[str, Any]) -> str:
    return "" if run["mode"] == "complete" else f"the mode is {run['mode']}: change MODE to complete first"


def _rows_of_last_batch(run: Mapping[str, Any]) -> int:
    return sum(row["batch"] == run["batches"][-1]["batch"] for row in run["rows"])


def _gap_of_the_copy(gaps: Sequence[int], run: Mapping[str, Any]) -> int | None:
    """The gap of the only copy of M1 that came out: M1 itself was stored a minute after nine."""
    out = {row["store_timestamp"] for row in run["rows"] if row["msg_id"] == "M1"}
    copies = [gap for gap in gaps if shown(NINE + MINUTE + gap * SECOND) in out]
    return copies[0] if len(copies) == 1 else None


def _no_copy(gaps: Sequence[int], run: Mapping[str, Any] | None) -> str:
    if run is None:
        return "There is no stream without repeats yet: solve exercise 2 first"
    if list(gaps) == FIRST_GAPS:
        return "no copy comes out again yet: change GAPS first"
    return "not exactly one copy comes out again: change GAPS" if _gap_of_the_copy(gaps, run) is None else ""


def _no_alarms(run: Mapping[str, Any], late: int, _hung: object) -> str:
    if not run["batches"]:
        return "No call is reported yet: solve exercise 3 first"
    return "ninety minutes are asked for: change LATE_MINUTES first" if late != MINUTES_ASKED_FOR else ""


TASKS = (
    Task("lab12.four_batches", right=_limit_of_four, unready=_still_first_limit),
    Task("lab12.rows_twice", right=_twice, unready=_same_death, wrong={"all": len}),
    Task("lab12.safe_sinks", right=_unsafe, unready=_still_two),
    Task(
        "lab12.waited",
        right=lambda board, _: _behind(board, "billing"),
        unready=_no_board,
        wrong={
            "messages": lambda board, _: sum(row["lag"] for row in board if row["group_name"] == "billing"),
            "all": lambda board, _: _behind(board),
        },
    ),
    Task(
        "lab12.smallest_delay",
        right=_smallest_delay,
        unready=_still_ten_minutes,
        wrong={"late": lambda looks, delay: delay if not _drops(looks, delay) else None},
    ),
    Task(
        "lab12.rows_given",
        right=_rows_given,
        unready=_not_complete,
        wrong={"last": _rows_of_last_batch},
    ),
    Task("lab12.too_far", right=_gap_of_the_copy, unready=_no_copy),
    Task(
        "lab12.alarms",
        right=lambda run, late, hung: len(run["rows"]),
        unready=_no_alarms,
        wrong={"all": lambda run, late, hung: len(hung)},
    ),
)

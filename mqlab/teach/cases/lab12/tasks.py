"""Lab 12's your-turn tasks: what is right follows from what the learner's own cell has read, written or played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.teach.tasks import Task

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
        return "there is no board yet: exercise 3 comes first"
    return "the day has not gone on: change MORE_MINUTES first" if more_minutes == 0 else ""


TASKS = (
    Task("lab12.four_batches", right=_limit_of_four, unready=_still_first_limit),
    Task("lab12.rows_twice", right=_twice, unready=_same_death, wrong={"all": len}),
    Task("lab12.safe_sinks", right=_unsafe, unready=_still_two),
    Task(
        "lab12.waited", right=lambda board, _: _behind(board, "billing"), unready=_no_board,
        wrong={
            "messages": lambda board, _: sum(row["lag"] for row in board if row["group_name"] == "billing"),
            "all": lambda board, _: _behind(board),
        },
    ),
)  # fmt: skip

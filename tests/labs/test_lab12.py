"""Lab 12: its predictions against runs of their own, and what is said to answers that are nearly right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from mqlab import play
from mqlab.teach import answer
from mqlab.teach.batch_job import BatchJob, job_story, sold
from mqlab.teach.cases.lab12.lag import LAG_NOW, board_of
from mqlab.teach.cases.lab12.once import ONCE, log_rows
from mqlab.teach.exercises import Finding, manifest
from mqlab.teach.lag_board import offsets_in
from mqlab.teach.words import refutation
from tests.labs.notebooks import ROOT, read, texts

QUESTIONS = {question.id: question for question in manifest("lab12").predictions}
SOLUTION = ROOT / "solutions" / "12a-every-number-twice.ipynb"
ROW = "(:broker_name, :physical_offset, :keys, :cents)"
KEYED = "broker_name, physical_offset, keys, cents, PRIMARY KEY (broker_name, physical_offset)"


def happened(question_id: str) -> str:
    """What the solution's page says that happened."""
    shown = [texts(cell) for cell in read(SOLUTION).cells if cell.cell_type == "code" and "reveal(" in cell.source]
    told = next(text for text in shown if "✓" in text and QUESTIONS[question_id].question.partition("`")[0] in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    beliefs = {
        "lab12.first_batch": "moment", "lab12.killed": "once", "lab12.no_memory": "same", "lab12.deleted_files": "goes",
        "lab12.lag_is_trouble": "analytics",
    }  # fmt: skip
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert belief != happened(question_id)


# the job in a Lab ---------------------------------------------------------------------------------------------------


def keyed(connection: sqlite3.Connection, batch_id: int, read: Callable[[], Any]) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS sold ({KEYED})")
    with connection:
        connection.executemany(f"INSERT OR IGNORE INTO sold VALUES {ROW}", read())


def test_a_job_gives_each_batch_to_the_sink_and_one_without_a_checkpoint_again() -> None:
    rows = log_rows(3, 6)

    def story(lab: Any) -> None:
        job = BatchJob(lab, [rows[:2], rows[2:]])
        job.run(lambda: keyed, forgets=[1])
        assert job.done == 2 and job.calls == {0: 1, 1: 2}

    lab = play(story, seed=1)
    assert sorted(sold(lab)) == sorted(tuple(row.values()) for row in rows)


def test_a_story_of_a_job_raises_what_its_sink_raises() -> None:
    def fails(connection: sqlite3.Connection, batch_id: int, read: Callable[[], Any]) -> None:
        raise ValueError("no such column")

    with pytest.raises(ValueError, match="no such column"):
        play(job_story(fails, [log_rows(1, 2)]), seed=1)


# what is said to a sink ---------------------------------------------------------------------------------------------

PLAIN = "broker_name, physical_offset, keys, cents"


def told(table: str, *lines: str) -> Finding | None:
    """The finding about a sink whose lines follow the making of its table."""
    body = [f'connection.execute("CREATE TABLE IF NOT EXISTS sold ({table})")', *lines]
    source = "import sqlite3\ndef once(connection, batch_id, read):\n" + "\n".join(f"    {line}" for line in body)
    names: dict[str, Any] = {}
    exec(compile(source, "sink.py", "exec"), names)
    found = ONCE.case(1).run(names)
    assert found is None or isinstance(found, Finding)
    return found


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (KEYED, [f'with connection: connection.executemany("INSERT OR REPLACE INTO sold VALUES {ROW}", read())']),
        (KEYED, [
            "for row in read():", "    try:",
            f'        with connection: connection.execute("INSERT INTO sold VALUES {ROW}", row)',
            "    except sqlite3.IntegrityError: pass",
        ]),
        (PLAIN, [
            "with connection:", "    for row in read():",
            '        known = "SELECT 1 FROM sold WHERE broker_name = ? AND physical_offset = ?"',
            '        place = row["broker_name"], row["physical_offset"]',
            "        if connection.execute(known, place).fetchone() is None:",
            f'            connection.execute("INSERT INTO sold VALUES {ROW}", row)',
        ]),
    ],
    ids=["replaces", "one by one", "looks in the same transaction"],
)  # fmt: skip
def test_other_sinks_that_are_safe_pass(table: str, lines: Sequence[str]) -> None:
    assert told(table, *lines) is None


@pytest.mark.parametrize(
    ("table", "lines", "words"),
    [
        (KEYED, [f'connection.executemany("INSERT OR IGNORE INTO sold VALUES {ROW}", read())'], "and commits them"),
        (KEYED, ["try:", f'    with connection: connection.executemany("INSERT INTO sold VALUES {ROW}", read())',
                 "except sqlite3.IntegrityError: pass"], "batches have other borders"),
        (KEYED, [f'with connection: connection.executemany("INSERT INTO sold VALUES {ROW}", read())'],
         "INSERT OR IGNORE leaves out"),
        (f"{PLAIN}, batch_id", [
            "with connection:", '    connection.execute("DELETE FROM sold WHERE batch_id = ?", (batch_id,))',
            '    connection.executemany("INSERT INTO sold VALUES (?, ?, ?, ?, ?)",'
            " [(*row.values(), batch_id) for row in read()])",
        ], "batches have other borders"),
        (PLAIN, ["for row in read():",
                 '    last = connection.execute("SELECT max(physical_offset) FROM sold WHERE broker_name = ?",'
                 ' (row["broker_name"],)).fetchone()[0]',
                 '    if last is None or row["physical_offset"] > last:',
                 f'        with connection: connection.execute("INSERT INTO sold VALUES {ROW}", row)'],
         "Every row that read() gave"),
    ],
    ids=["no commit", "a batch or nothing", "an error", "batches are replaced", "the largest place"],
)  # fmt: skip
def test_a_sink_that_is_not_safe_is_told_why(table: str, lines: Sequence[str], words: str) -> None:
    found = told(table, *lines)
    assert found is not None and words in found.rule


# what is said to a board --------------------------------------------------------------------------------------------


def test_the_file_of_offsets_is_read_as_one_row_per_group_and_queue() -> None:
    (call,) = LAG_NOW.form.calls(1)
    rows = offsets_in(str(call["messages"]))
    assert {row["broker_name"] for row in rows} == {"broker-a", "broker-b"} and len(rows) == 20
    assert {row["topic"] for row in rows if row["group_name"] == "billing"} == {"orders", "%RETRY%billing"}


def test_a_board_without_quiet_queues_is_told_to_keep_them() -> None:
    (call,) = LAG_NOW.form.calls(1)
    queues: Mapping[Any, Any] = board_of(call["messages"]).queues
    seen = [row for row in call.right if (row["broker_name"], row["topic"], row["queue_id"]) in queues]
    found = LAG_NOW.form.judge({"rows_of_board": lambda *given: seen, "lag_now": None}, [call])
    assert found is not None and found.rule == refutation("lab12.no_message_no_row")


def test_a_board_needs_all_of_its_situations() -> None:
    """Far behind with deleted messages, a little behind, nothing to do, never a message, offsets newer than the log."""
    (call,) = LAG_NOW.form.calls(1)
    lags = [row["lag"] for row in call.right]
    ends = {
        queue: max(messages) + 1 for queue, messages in board_of(call["messages"]).queues.items()
    }  # fmt: skip
    assert max(lags) > 50 and lags.count(0) >= 4 and {1, 2} & set(lags)
    newer = [
        row for row in call.right
        if row["committed"] > ends.get((row["broker_name"], row["topic"], row["queue_id"]), row["committed"])
    ]  # fmt: skip
    assert newer and all(row["lag"] == 0 for row in newer)


# your turn ----------------------------------------------------------------------------------------------------------

ROWS = [("broker-a", place) for place in (0, 281, 562, 0, 281)]
BOARD = [
    {"group_name": "billing", "lag": 3, "behind_s": 4_200}, {"group_name": "billing", "lag": 1, "behind_s": 7},
    {"group_name": "analytics", "lag": 90, "behind_s": 5_100},
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "value", "given", "state", "said"),
    [
        ("four_batches", 38_000, (38_000, [{}] * 4), "good", "in proportion"),
        ("four_batches", 38_000, (38_000, [{}] * 5), "bad", "Fewer bytes make more batches"),
        ("four_batches", 20_000, (20_000, [{}] * 8), "open", "change MOST_BYTES first"),
        ("rows_twice", 2, (ROWS,), "good", "committed before it died"),
        ("rows_twice", 5, (ROWS,), "bad", "number of all rows"),
        ("rows_twice", 40, ([*range(40), *range(40)],), "open", "change DIES_AFTER first"),
        ("waited", 4_200, (BOARD, 20), "good", "60 more"),
        ("waited", 4, (BOARD, 20), "bad", "lag in messages"),
        ("waited", 5_100, (BOARD, 20), "bad", "Look at billing only"),
        ("waited", 4_200, (BOARD, 0), "open", "change MORE_MINUTES first"),
        ("waited", 4_200, ([], 20), "open", "exercise 3 comes first"),
    ],
)
def test_your_turn_is_judged_by_what_the_learner_has_run(
    task: str, value: object, given: tuple[Any, ...], state: str, said: str
) -> None:
    reply = answer(f"lab12.{task}", value, *given)
    assert reply.state == state and said in f"{reply.headline} {reply.note}"

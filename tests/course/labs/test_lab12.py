"""Lab 12: its predictions against runs of their own, and what is said to answers that are nearly right."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from mqlab import play
from mqlab.course import answer
from mqlab.course.cases.lab12.lag import LAG_NOW, board_of
from mqlab.course.cases.lab12.moments import NINE
from mqlab.course.cases.lab12.no_answer import NO_ANSWER, PATIENCE_MS, traced
from mqlab.course.cases.lab12.once import ONCE, log_rows
from mqlab.course.cases.lab12.per_minute import PER_MINUTE, counted
from mqlab.course.cases.lab12.repeats import WITHOUT_REPEATS
from mqlab.course.given.lab11.lag_board import offsets_in
from mqlab.course.given.lab12.batch_job import BatchJob, job_story, sold
from mqlab.course.given.lab12.streams import run_of_film
from mqlab.course.teach.exercises import Exercise, Finding, manifest
from mqlab.course.widgets import watermark_board
from mqlab.course.words import refutation
from mqlab.errors import UsageError
from mqlab.scales import MINUTE
from tests.course.labs.notebooks import ROOT, read, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS = {question.id: question for question in manifest("lab12").predictions}
SOLUTIONS = [ROOT / "solutions" / f"{name}.ipynb" for name in ("12a-every-number-twice", "12b-what-comes-late")]
ROW = "(:broker_name, :physical_offset, :keys, :cents)"
KEYED = "broker_name, physical_offset, keys, cents, PRIMARY KEY (broker_name, physical_offset)"


def happened(question_id: str) -> str:
    """What the solution's page says that happened."""
    cells = [cell for solution in SOLUTIONS for cell in read(solution).cells if cell.cell_type == "code"]
    shown = [texts(cell) for cell in cells if "reveal(" in cell.source]
    told = next(text for text in shown if "✓" in text and QUESTIONS[question_id].question.partition("`")[0] in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    beliefs = {
        "lab12.first_batch": "moment",
        "lab12.killed": "once",
        "lab12.no_memory": "same",
        "lab12.deleted_files": "goes",
        "lab12.lag_is_trouble": "analytics",
        "lab12.late_rows": "all",
        "lab12.kept_groups": "same",
        "lab12.name_of_a_message": "keys",
        "lab12.hung_is_told": "next",
        "lab12.changed_count": "bytes",
        "lab12.two_sinks": "both",
    }
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert belief != happened(question_id)


def keyed(connection: sqlite3.Connection, batch_id: int, read: Callable[[], Any]) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS sold ({KEYED})")
    with connection:
        connection.executemany(f"INSERT OR IGNORE INTO sold VALUES {ROW}", read())


def test_a_job_gives_each_batch_to_the_sink_and_one_without_a_checkpoint_again() -> None:
    rows = log_rows(3, 6)
    processes: list[Any] = []

    def sink_of_a_process() -> Any:
        processes.append(keyed)
        return keyed

    def story(lab: Any) -> None:
        job = BatchJob(lab, [rows[:2], rows[2:]])
        job.run(sink_of_a_process, forgets=[1])
        assert job.done == 2 and job.calls == {0: 1, 1: 2}
        assert len(processes) == 2, "one process calls its sink for batch after batch"

    lab = play(story, seed=1)
    assert sorted(sold(lab)) == sorted(tuple(row.values()) for row in rows)


def test_a_story_of_a_job_raises_what_its_sink_raises() -> None:
    def fails(connection: sqlite3.Connection, batch_id: int, read: Callable[[], Any]) -> None:
        raise ValueError("no such column")

    with pytest.raises(ValueError, match="no such column"):
        play(job_story(fails, [log_rows(1, 2)]), seed=1)


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
        (
            KEYED,
            [
                "for row in read():",
                "    try:",
                f'        with connection: connection.execute("INSERT INTO sold VALUES {ROW}", row)',
                "    except sqlite3.IntegrityError: pass",
            ],
        ),
        (
            PLAIN,
            [
                "with connection:",
                "    for row in read():",
                '        known = "SELECT 1 FROM sold WHERE broker_name = ? AND physical_offset = ?"',
                '        place = row["broker_name"], row["physical_offset"]',
                "        if connection.execute(known, place).fetchone() is None:",
                f'            connection.execute("INSERT INTO sold VALUES {ROW}", row)',
            ],
        ),
    ],
    ids=["replaces", "one by one", "looks in the same transaction"],
)
def test_other_sinks_that_are_safe_pass(table: str, lines: Sequence[str]) -> None:
    assert told(table, *lines) is None


@pytest.mark.parametrize(
    ("table", "lines", "words"),
    [
        (KEYED, [f'connection.executemany("INSERT OR IGNORE INTO sold VALUES {ROW}", read())'], "and commits them"),
        (
            KEYED,
            [
                "try:",
                f'    with connection: connection.executemany("INSERT INTO sold VALUES {ROW}", read())',
                "except sqlite3.IntegrityError: pass",
            ],
            "batches have other ranges",
        ),
        (
            KEYED,
            [f'with connection: connection.executemany("INSERT INTO sold VALUES {ROW}", read())'],
            "INSERT OR IGNORE leaves out",
        ),
        (
            f"{PLAIN}, batch_id",
            [
                "with connection:",
                '    connection.execute("DELETE FROM sold WHERE batch_id = ?", (batch_id,))',
                '    connection.executemany("INSERT INTO sold VALUES (?, ?, ?, ?, ?)",'
                " [(*row.values(), batch_id) for row in read()])",
            ],
            "batches have other ranges",
        ),
        (
            PLAIN,
            [
                "for row in read():",
                '    last = connection.execute("SELECT max(physical_offset) FROM sold WHERE broker_name = ?",'
                ' (row["broker_name"],)).fetchone()[0]',
                '    if last is None or row["physical_offset"] > last:',
                f'        with connection: connection.execute("INSERT INTO sold VALUES {ROW}", row)',
            ],
            "Every row that read() gave",
        ),
    ],
    ids=["no commit", "a batch or nothing", "an error", "batches are replaced", "the largest place"],
)
def test_a_sink_that_is_not_safe_is_told_why(table: str, lines: Sequence[str], words: str) -> None:
    found = told(table, *lines)
    assert found is not None and words in found.rule


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
    ends = {queue: max(messages) + 1 for queue, messages in board_of(call["messages"]).queues.items()}
    assert max(lags) > 50 and lags.count(0) >= 4 and {1, 2} & set(lags)
    newer = [
        row
        for row in call.right
        if row["committed"] > ends.get((row["broker_name"], row["topic"], row["queue_id"]), row["committed"])
    ]
    assert newer and all(row["lag"] == 0 for row in newer)


def told_of_film(exercise: Exercise, body: str) -> Finding | None:
    """The finding about a stream with this body, whose arguments are called frame and late."""
    from pyspark.sql import functions

    source = "def asked(frame, late):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    names: dict[str, Any] = {"functions": functions}
    exec(compile(source, "stream.py", "exec"), names)
    found = exercise.case(1).run({exercise.form.name: names["asked"], "run_of_film": run_of_film})
    assert found is None or isinstance(found, Finding)
    return found


ROUNDED = """
minute = functions.date_trunc("minute", "store_timestamp")
timely = frame.withColumn("minute", minute).withWatermark("minute", late)
counted = timely.groupBy("minute", "broker_name").agg(functions.count("*").alias("messages"))
return counted, "update"
"""
TWO_WATERMARKS = """
one, other = frame.where("broker_name = 'broker-a'"), frame.where("broker_name = 'broker-b'")
parts = [part.withWatermark("store_timestamp", late) for part in (one, other)]
window = functions.window("store_timestamp", "1 minute")
counted = parts[0].union(parts[1]).groupBy(window, "broker_name").agg(functions.count("*").alias("messages"))
return counted.select(functions.col("window.start").alias("minute"), "broker_name", "messages"), "update"
"""
SESSIONS = """
call = functions.session_window("time", "2 minutes"), "request_id", "msg_id", "group_name"
is_answer = functions.expr("type = 'SubAfter'")
calls = frame.withWatermark("time", late).groupBy(*call).agg(
    functions.min("time").alias("called"), functions.bool_or(is_answer).alias("answered")
)
return calls.where("NOT answered").select("request_id", "msg_id", "group_name", "called"), "append"
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("exercise", "body"),
    [
        pytest.param(PER_MINUTE, ROUNDED, id="a rounded time with the watermark"),
        pytest.param(PER_MINUTE, TWO_WATERMARKS, id="a watermark for each broker", marks=pytest.mark.long),
        pytest.param(NO_ANSWER, SESSIONS, id="session windows", marks=pytest.mark.long),
    ],
)
def test_other_streams_that_are_right_pass(spark: SparkSession, exercise: Exercise, body: str) -> None:
    assert told_of_film(exercise, body) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("exercise", "body", "words"),
    [
        pytest.param(
            PER_MINUTE,
            TWO_WATERMARKS.replace('.col("window.start").alias(', '.col("window").alias('),
            "a timestamp",
            id="a window for a time",
            marks=pytest.mark.long,
        ),
        pytest.param(PER_MINUTE, ROUNDED.replace(", late", ', "3 days"'), "can come any more", id="three days"),
        pytest.param(
            PER_MINUTE,
            'return frame.groupBy("broker_name").count(), "update"',
            "with the columns minute",
            id="no minute",
            marks=pytest.mark.long,
        ),
        pytest.param(
            WITHOUT_REPEATS,
            'return frame.withWatermark("store_timestamp", "3 days")'
            '.dropDuplicatesWithinWatermark(["msg_id"]), "append"',
            "no copy comes any more",
            id="three days of copies",
            marks=pytest.mark.long,
        ),
        pytest.param(
            WITHOUT_REPEATS,
            'timely = frame.where("keys LIKE \'O%\'").withWatermark("store_timestamp", late)\n'
            'return timely.dropDuplicatesWithinWatermark(["msg_id"]), "append"',
            "Each message has",
            id="some of them",
            marks=pytest.mark.long,
        ),
        pytest.param(
            NO_ANSWER,
            'timely = frame.withWatermark("time", late)\nreturn timely.join(frame, "request_id", "leftAnti"), "append"',
            "no left anti join",
            id="anti join",
        ),
    ],
)
def test_a_stream_that_is_not_right_is_told_why(spark: SparkSession, exercise: Exercise, body: str, words: str) -> None:
    found = told_of_film(exercise, body)
    assert found is not None and words in found.rule


@pytest.mark.spark
def test_what_is_no_stream_with_a_mode_is_refused(spark: SparkSession) -> None:
    (call,) = PER_MINUTE.form.make(1)
    film = str(call["film"])
    for function, words in [
        (lambda frame, late: frame, "a DataFrame: expected a DataFrame and an output mode"),
        (lambda frame, late: (frame, "sometimes"), "the output mode 'sometimes'"),
        (lambda frame, late: (frame.sparkSession.range(1), "append"), "that is not a stream"),
        (lambda frame, late: None, "nothing"),
    ]:
        with pytest.raises(UsageError, match=words):
            run_of_film(function, film, "1 hour")


@pytest.mark.parametrize(("mode", "delay"), [("update", 10), ("append", 20)])
def test_a_watermark_board_reckons_what_spark_does(spark: SparkSession, mode: str, delay: int) -> None:
    from pyspark.sql import functions

    def by_ten_minutes(frame: Any, late: str) -> Any:
        window = functions.window("store_timestamp", "10 minutes")
        return frame.withWatermark("store_timestamp", late).groupBy(window, "broker_name").count(), mode

    film, folder = counted(3, 40)
    run = run_of_film(by_ten_minutes, folder, f"{delay} minutes")
    board = watermark_board(film.slices, delay_min=delay, mode=mode)
    told = [(one["rows_in_state"], one["dropped"], (one["watermark"] or "")[:19]) for one in map(dict, run["batches"])]
    mine = [
        (one.kept, one.dropped_groups, row.watermark) for one, row in zip(board.batches(), board.table(), strict=True)
    ]
    assert told == mine
    given = Counter(row["batch"] for row in run["rows"])
    assert [given[one.batch] for one in board.batches()] == [one.given for one in board.batches()]


LOOKS = [
    [{"store_timestamp": NINE + minute * MINUTE} for minute in minutes]
    for minutes in ([0, 20], [30, 52], [59], [21, 41, 70])
]  # the last one has what came late
COMPLETE = {
    "mode": "complete",
    "rows": [{"batch": 0}, {"batch": 1}, {"batch": 1}],
    "batches": [{"batch": 0}, {"batch": 1}],
}
OUT_AGAIN = {"rows": [{"msg_id": "M1", "store_timestamp": f"2024-11-11 09:{at}"} for at in ("01:00", "42:40")]}
TOLD = {"rows": [{}, {}], "batches": [{}]}

ROWS = [("broker-a", place) for place in (0, 281, 562, 0, 281)]
BOARD = [
    {"group_name": "billing", "lag": 3, "behind_s": 4_200},
    {"group_name": "billing", "lag": 1, "behind_s": 7},
    {"group_name": "analytics", "lag": 90, "behind_s": 5_100},
]


@pytest.mark.parametrize(
    ("task", "value", "given", "state", "said"),
    [
        ("four_batches", 38_000, (38_000, [{}] * 4), "good", "in proportion"),
        ("four_batches", 38_000, (38_000, [{}] * 5), "bad", "Fewer bytes make more batches"),
        ("four_batches", 20_000, (20_000, [{}] * 8), "open", "change MOST_BYTES first"),
        ("rows_twice", 2, (ROWS,), "good", "committed before the crash"),
        ("rows_twice", 5, (ROWS,), "bad", "number of all rows"),
        ("rows_twice", 40, ([*range(40), *range(40)],), "open", "change DIES_AFTER first"),
        ("waited", 4_200, (BOARD, 20), "good", "60 more"),
        ("waited", 4, (BOARD, 20), "bad", "lag in messages"),
        ("waited", 5_100, (BOARD, 20), "bad", "Look at billing only"),
        ("waited", 4_200, (BOARD, 0), "open", "change MORE_MINUTES first"),
        ("waited", 4_200, ([], 20), "open", "solve exercise 3 first"),
        ("smallest_delay", 30, (LOOKS, 30), "good", "Do not rely on such luck"),
        ("smallest_delay", 40, (LOOKS, 40), "bad", "A smaller one is also enough"),
        ("smallest_delay", 20, (LOOKS, 20), "bad", "rows are dropped"),
        ("smallest_delay", 10, (LOOKS, 10), "open", "change DELAY_MINUTES first"),
        ("rows_given", 3, (COMPLETE,), "good", "the sink writes it"),
        ("rows_given", 2, (COMPLETE,), "bad", "rows of the last batch"),
        ("rows_given", 3, ({**COMPLETE, "mode": "update"},), "open", "change MODE to complete first"),
        ("too_far", 2_500, ([3, 2_500], OUT_AGAIN), "good", "state is cleaned after a batch"),
        ("too_far", 3, ([3, 2_500], OUT_AGAIN), "bad", "the copy that has a bar"),
        ("too_far", 3, ([3, 400], OUT_AGAIN), "open", "change GAPS first"),
        ("too_far", 3, ([3, 900], OUT_AGAIN), "open", "not exactly one copy"),
        ("too_far", 3, ([3], None), "open", "solve exercise 2 first"),
        ("alarms", 2, (TOLD, 90, [1, 2, 3]), "good", "With sixty minutes all of them"),
        ("alarms", 3, (TOLD, 90, [1, 2, 3]), "bad", "That is how many hang"),
        ("alarms", 2, (TOLD, 20, [1, 2, 3]), "open", "change LATE_MINUTES first"),
        ("alarms", 2, ({"rows": [], "batches": []}, 90, []), "open", "solve exercise 3 first"),
    ],
)
def test_your_turn_is_judged_by_what_the_learner_has_run(
    task: str, value: object, given: tuple[Any, ...], state: str, said: str
) -> None:
    reply = answer(f"lab12.{task}", value, *given)
    assert reply.state == state and said in f"{reply.headline} {reply.note}"


def test_an_answer_comes_at_the_end_of_two_minutes() -> None:
    film, _ = traced(1, 4)
    entries = film.until(len(film.slices))
    began = {row["request_id"]: row["time"] for row in entries if row["type"] == "SubBefore"}
    waits = [row["time"] - began[row["request_id"]] for row in entries if row["type"] == "SubAfter"]
    assert PATIENCE_MS in waits and not any(PATIENCE_MS // 12 < wait < PATIENCE_MS for wait in waits)

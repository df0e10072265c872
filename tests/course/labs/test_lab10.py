"""Lab 10: its predictions against runs of their own, and what is said to answers that are nearly right."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import CheckFailed, answer, check
from mqlab.course.cases.lab10 import counting
from mqlab.course.cases.lab10 import questions as right
from mqlab.course.cases.lab10.days import even_day, mixed_keys, odd_day
from mqlab.course.cases.lab10.parts import IN_PARTS, ORDER_RULE, parts_of
from mqlab.course.teach.datasets import small_day
from mqlab.course.teach.exercises import Call, Exercise, Finding, manifest
from mqlab.course.words import refutation
from mqlab.data.arrow import read_table
from mqlab.data.spark import plan_of, rows_of
from mqlab.data.traffic import write
from tests.course.labs.notebooks import ROOT, read, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLUTIONS = [ROOT / "solutions" / f"{name}.ipynb" for name in ("10a-spark-reads-the-broker", "10b-what-a-query-costs")]
QUESTIONS = {question.id: question for question in manifest("lab10").predictions}


def code_cells() -> list[Any]:
    return [cell for path in SOLUTIONS for cell in read(path).cells if cell.cell_type == "code"]


def story_of_the_morning() -> Any:
    names: dict[str, Any] = {
        "CONSUME_SUCCESS": CONSUME_SUCCESS,
        "RECONSUME_LATER": RECONSUME_LATER,
        "Message": Message,
    }
    for cell in code_cells():
        if cell.source.startswith(("def send_everything", "FAILS = 1 ")):
            exec(cell.source, names)
    return names["work"]


def happened(question_id: str) -> str:
    """What the solution's page says that happened: a choice or a number."""
    shown = [texts(cell) for cell in code_cells() if "reveal(" in cell.source]
    told = next(text for text in shown if QUESTIONS[question_id].question in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    assert "✓ " + QUESTIONS[question_id].question in told
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_each_failure_is_two_more_messages() -> None:
    lab = play(story_of_the_morning(), seed=3, client={"enable_trace": False})
    topics = read_table(lab.store().directory, ["topic"])["topic"].to_pylist()
    assert len(topics) == 48 == int(happened("lab10.copies"))
    assert (topics.count("SCHEDULE_TOPIC_XXXX"), topics.count("%RETRY%billing")) == (3, 3)


def test_a_hash_of_customers_does_not_fill_queues_evenly() -> None:
    orders = [row for row in right.messages(str(small_day())) if row["topic"] == "orders"]
    queues = {(row["broker_name"], row["queue_id"]) for row in orders}
    (fullest,) = (row for row in right.fullest(right.messages(str(small_day()))) if row["topic"] == "orders")
    assert len(queues) == 16
    assert 1.1 < fullest["messages"] * 16 / len(orders) < 2 and happened("lab10.even") == "more"


def test_a_customer_belongs_to_one_queue_of_one_broker_and_an_order_to_one_customer() -> None:
    queue_of: dict[str, tuple[str, int]] = {}
    for row in right.messages(str(small_day())):
        if row["topic"] == "orders":
            for key in row["keys"].split():
                assert queue_of.setdefault(key, (row["broker_name"], row["queue_id"])) == (
                    row["broker_name"],
                    row["queue_id"],
                )


@pytest.mark.spark
def test_a_filter_looks_at_messages_that_were_decoded_and_an_option_chooses_before(spark: SparkSession) -> None:
    from pyspark.sql import Observation, functions

    names: dict[str, Any] = {"functions": functions, "Observation": Observation}
    cell = next(cell for cell in code_cells() if "def count_where" in cell.source)
    exec(cell.source.partition("\nfirst = ")[0], names)
    count_where: Any = names["count_where"]
    day = str(small_day())
    reader = spark.read.format("rocketmq")
    everything, stock = len(right.messages(day)), sum(row["topic"] == "stock" for row in right.messages(day))
    messages = reader.load(day)
    for _ in range(2):
        assert count_where(messages, "topic = 'stock'") == {"counted": stock, "decoded": everything}
    assert happened("lab10.read_again") == "all"
    told = count_where(reader.options(topic="stock", columns="queue_id").load(day), "true")
    assert told == {"counted": stock, "decoded": stock}


@pytest.mark.spark
def test_rows_move_twice(spark: SparkSession) -> None:
    messages = spark.read.format("rocketmq").load(str(small_day()))
    plan = plan_of(messages.groupBy("broker_name", "topic", "queue_id").count().orderBy("count"))
    assert plan.count("Exchange ") == int(happened("lab10.exchanges")) == 2


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    beliefs: dict[str, object] = {
        "lab10.copies": "42",
        "lab10.even": "even",
        "lab10.read_again": "nothing",
        "lab10.exchanges": "1",
        "lab10.more_queues": "quarter",
        "lab10.torn": "one less",
        "lab10.rows_cross": "queues",
        "lab10.join_moves": "all",
        "lab10.salt": "sixteen",
        "lab10.listens": "both",
        "lab10.flipped": "error",
    }
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert str(belief) != happened(question_id)


def test_the_ways_of_the_comparison_agree_and_are_shown_with_what_parquet_costs() -> None:
    shown = {cell.source.partition("\n")[0].partition(" = ")[0]: texts(cell) for cell in code_cells()}
    assert shown["loop"].count("True") == 6 and "False" not in shown["loop"]
    assert "(writing Parquet, once)" in shown["times"]


def test_more_queues_take_away_the_neighbours_of_a_hot_customer_and_nothing_else(tmp_path: Path) -> None:
    """What 10a says about four times as many queues, on a small day."""
    fullest, hottest = {}, set()
    for queues in (8, 32, 64):
        made = write(tmp_path / str(queues), messages=6_000, brokers=2, seed=7, commit_log_bytes=1 << 20, queues=queues)
        rows = read_table(made.directory, ["topic", "broker_name", "queue_id", "keys"]).to_pylist()
        orders = [row for row in rows if row["topic"] == "orders"]
        fullest[queues] = max(Counter((row["broker_name"], row["queue_id"]) for row in orders).values())
        (first,) = right.busiest(right.messages(str(made.directory)), 1)
        hottest.add(first["messages"])
    (most,) = hottest
    assert most <= fullest[64] <= fullest[32] < fullest[8] < 4 * fullest[32]
    assert happened("lab10.more_queues") == "less" and happened("lab10.torn") == "error"


TAGS = {"paid": 60, "shipped": 30, "cancelled": 10}
CUSTOMERS, FILL = {"C1": 500, "C2": 90}, {f"queue {number}": 700 - number for number in range(128)}
SIZES = [200, *[50] * 23]
SIDES = {"messages": 900, "customers": 30, "joined": 900}
PLAN = (
    "HashAggregate(keys)\n+- Exchange hashpartitioning(topic, 4)\n"
    "   +- HashAggregate(keys)\n      +- BatchScan rocketmq"
)


@pytest.mark.parametrize(
    ("task", "value", "given", "state", "said"),
    [
        ("share", 56, (560, 1000, "orders"), "good", "all topics in one file"),
        ("share", 100, (560, 1000, "orders"), "bad", "`where` decodes that much"),
        ("share", 44, (560, 1000, "orders"), "bad", "what it skips"),
        ("share", 56, (560, 1000, "stock"), "open", "change TOPIC first"),
        ("floor", 500, (CUSTOMERS, FILL), "good", "busiest customer"),
        ("floor", 700, (CUSTOMERS, FILL), "bad", "fullest queue of your run"),
        ("floor", 636, (CUSTOMERS, FILL), "bad", "That is the mean"),
        ("floor", 500, (CUSTOMERS, dict(list(FILL.items())[:64])), "open", "change QUEUES first"),
        ("looked", 10.0, (TAGS, ["cancelled"]), "good", "one message in fifty"),
        ("looked", 0.1, (TAGS, ["cancelled"]), "bad", "Divide the other way"),
        ("looked", 100, (TAGS, ["cancelled"]), "bad", "in total"),
        ("looked", 10, (TAGS, ["gift"]), "open", "no order has one of these tags"),
        ("looked", 10, (TAGS, ["shipped", "refunded", "cancelled"]), "open", "change WANTED first"),
        ("moves", 1, (PLAN,), "good", "move nothing"),
        ("moves", 2, (PLAN,), "bad", "the lines HashAggregate"),
        ("cores", 6.8, (SIZES,), "good", "cores do not help"),
        ("cores", 24, (SIZES,), "bad", "if all parts were equally full"),
        ("cores", 3.6, (SIZES,), "bad", "fuller the fullest part is than the mean"),
        ("cores", 16, ([1] * 16,), "open", "change PARTS first"),
        ("cores", "many", (SIZES,), "bad", "Divide the number of all messages"),
        ("pieces", 300, (SIDES, 10), "good", "the other table grows"),
        ("pieces", 30, (SIDES, 10), "bad", "needed once per piece"),
        ("pieces", 900, (SIDES, 10), "bad", "they are cut, not copied"),
        ("pieces", 31, (SIDES, 10), "bad", "Multiply the number of customers"),
        ("pieces", 120, (SIDES, 4), "open", "change PIECES first"),
    ],
)
def test_your_turn_is_judged_by_what_the_learner_has_counted(
    task: str, value: object, given: tuple[Any, ...], state: str, said: str
) -> None:
    told = answer(f"lab10.{task}", value, *given)
    assert told.state == state and said in f"{told.headline} {told.note}"


def test_a_worse_morning_is_counted_in_the_log() -> None:
    def worse(lab: Any) -> None:
        names = story_of_the_morning().__globals__
        names["FAILS"] = 2
        names["work"](lab)

    lab = play(worse, seed=3, client={"enable_trace": False})
    assert answer("lab10.amplify", 42 + 2 * 3 * 2, lab).state == "good"
    assert "The shop has sent that many" in answer("lab10.amplify", 42, lab).note
    assert "one copy per failure" in answer("lab10.amplify", 48, lab).note
    first = play(story_of_the_morning(), seed=3, client={"enable_trace": False})
    assert answer("lab10.amplify", 48, first).state == "open"


def failed(name: str, source: str) -> str:
    from pyspark.sql import functions

    names: dict[str, Any] = {"functions": functions, "rows_of": rows_of}
    exec(source, names)
    with pytest.raises(CheckFailed) as wrong:
        check(f"lab10.{name}", names)
    return str(wrong.value)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("messages.groupBy('topik').count()", "`topik` cannot be resolved"),
        ("messages.groupBy('topic').count().collect()", "fullest returned a list"),
        ("messages.select('topic').limit(3).toPandas()", "fullest returned a DataFrame of pandas"),
        ("messages.groupBy('topic').count()", "fullest returns the columns topic, broker_name, queue_id, messages"),
    ],
)
def test_a_slip_of_the_pen_is_told_in_a_few_lines(source: str, words: str, spark: SparkSession) -> None:
    told = failed("fullest", f"def fullest(messages):\n    return {source}")
    assert words in told and "RelationV2" not in told and "deco" not in told
    assert len(told.splitlines()) <= 7


def explained(asked: Exercise, calls: list[Call], rows: object) -> str:
    """The rule that is broken by an answer with these rows."""
    found = asked.form.judge({"rows_of": lambda function, path, *more: rows, asked.form.name: None}, calls)
    assert isinstance(found, Finding)
    return found.rule


def test_the_rule_is_about_the_row_that_is_shown() -> None:
    odd = right.messages(odd_day())
    failures = counting.asked(right.failures, odd_day())
    waiting = [*right.failures(odd), {"group_name": "SCHEDULE_TOPIC_XXXX", "messages": 4, "copies": 8}]
    assert explained(counting.FAILURES, failures, waiting) == refutation("lab10.waiting_came_back")

    busiest = counting.asked(right.busiest, odd_day(), most=3)
    # C7 has copies in other topics: an answer that counts some of them counts too many.
    some_copies = [row | {"messages": row["messages"] + (row["customer"] == "C7")} for row in right.busiest(odd, 3)]
    assert explained(counting.BUSIEST, busiest, some_copies) == refutation("lab10.all_are_events")
    nobody = [*right.busiest(odd, 2, is_counted=lambda topic: True), {"customer": "", "messages": 99}]
    assert explained(counting.BUSIEST, busiest, nobody) == refutation("lab10.all_are_events")
    right_but_one = [*right.busiest(odd, 2), {"customer": "", "messages": 99}]
    assert "belongs to no customer" in explained(counting.BUSIEST, busiest, right_but_one)


def test_orders_carry_different_texts_of_keys_on_a_hidden_day() -> None:
    """Who keeps messages with the same text together takes such orders apart."""
    texts_of: dict[str | None, set[str]] = {}
    for row in right.messages(mixed_keys()):
        texts_of.setdefault(right.order_in(row), set()).add(row["keys"])
    assert len(texts_of) == 200 and {len(texts) for texts in texts_of.values()} == {3}
    (call,) = parts_of(mixed_keys(), 4)
    by_text = [
        {"broker_name": place[0], "physical_offset": place[1], "part": zlib.crc32(row["keys"].encode()) % 4}
        for place, row in call.given.items()
    ]
    found = IN_PARTS.form.judge({"rows_of": lambda *given: by_text, "in_parts": None}, [call])
    assert found.rule == ORDER_RULE and found.belief == "lab10.same_keys"


@pytest.mark.spark
def test_messages_may_be_told_apart_by_their_id_as_well(spark: SparkSession) -> None:
    """A copy keeps the id that the client gave; the exercise's reference uses ORIGIN_MESSAGE_ID."""
    from pyspark.sql import functions

    def failures(messages: Any) -> Any:
        group = functions.replace("topic", functions.lit("%RETRY%"), functions.lit("")).alias("group_name")
        different = functions.count_distinct("msg_id").alias("messages")
        copies = messages.where("topic LIKE '!%RETRY!%%' ESCAPE '!'").groupBy(group)
        return copies.agg(different, functions.count("*").alias("copies"))

    given = {"rows_of": rows_of, "failures": failures}
    assert counting.FAILURES.form.judge(given, counting.asked(right.failures, odd_day())) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_small_store_has_equal_queues_and_equal_customers(seed: int) -> None:
    """An answer that takes another one of equal queues, or counts a column or the offsets, gives other rows."""
    (asked,) = counting.asked(right.fullest, even_day(seed))
    (bought,) = counting.asked(right.busiest, even_day(seed), most=2)
    more = right.busiest(right.messages(even_day(seed)), most=3)
    assert bought.right[-1]["messages"] == more[-1]["messages"]
    for slip in counting.FULLEST.form.slips:
        assert slip.name == "numbers" or asked.right not in slip.values(asked)

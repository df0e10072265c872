"""Lab 10: its predictions against runs of their own, and what is said to answers that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from mqlab import play
from mqlab.arrow import read_table
from mqlab.spark import plan_of, rows_of
from mqlab.teach import CheckFailed, check
from mqlab.teach.cases.lab10 import judges
from mqlab.teach.cases.lab10 import questions as right
from mqlab.teach.cases.lab10.days import odd_day
from mqlab.teach.datasets import small_day
from mqlab.teach.exercises import Finding, manifest
from tests.labs.notebooks import ROOT, read, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLUTION = ROOT / "solutions" / "10-spark-reads-the-broker.ipynb"
QUESTIONS = {question.id: question for question in manifest("lab10").predictions}


def defined(*beginnings: str) -> dict[str, Any]:
    """The names defined by the cells that begin so, and by the lab's imports from mqlab."""
    names: dict[str, Any] = {}
    for cell in read(SOLUTION).cells:
        if cell.cell_type == "code" and cell.source.startswith(("from mqlab import ", *beginnings)):
            exec(cell.source, names)
    return names


def happened(question_id: str) -> str:
    """What the solution's page says that happened: a choice or a number."""
    shown = [texts(cell) for cell in read(SOLUTION).cells if cell.cell_type == "code" and "reveal(" in cell.source]
    told = next(text for text in shown if QUESTIONS[question_id].question in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    assert "✓ " + QUESTIONS[question_id].question in told
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_each_failure_is_two_more_messages() -> None:
    work = defined("def send_everything", "def bill")["work"]
    lab = play(work, seed=3, client={"enable_trace": False})
    topics = read_table(lab.store().directory, ["topic"])["topic"].to_pylist()
    assert len(topics) == 48 == int(happened("lab10.copies"))
    assert (topics.count("SCHEDULE_TOPIC_XXXX"), topics.count("%RETRY%billing")) == (3, 3)


def test_a_hash_of_customers_does_not_fill_queues_evenly() -> None:
    orders = [row for row in right.rows(str(small_day())) if row["topic"] == "orders"]
    queues = {(row["broker_name"], row["queue_id"]) for row in orders}
    (fullest,) = (row for row in right.fullest(str(small_day())) if row["topic"] == "orders")
    assert len(queues) == 16
    assert 1.1 < fullest["messages"] * 16 / len(orders) < 2 and happened("lab10.even") == "more"


def test_a_customer_belongs_to_one_queue_of_one_broker_and_an_order_to_one_customer() -> None:
    queue_of: dict[str, tuple[str, int]] = {}
    for row in right.rows(str(small_day())):
        if row["topic"] == "orders":
            for key in row["keys"].split():
                assert queue_of.setdefault(key, (row["broker_name"], row["queue_id"])) == (
                    row["broker_name"],
                    row["queue_id"],
                )


@pytest.mark.spark
def test_a_filter_looks_at_messages_that_were_decoded_and_an_option_chooses_before(spark: SparkSession) -> None:
    from pyspark.sql import functions

    names = {"functions": functions}
    cell = next(cell for cell in read(SOLUTION).cells if "def count_where" in cell.source)
    exec(cell.source.partition("\nfirst = ")[0], names)
    count_where: Any = names["count_where"]
    day = str(small_day())
    reader = spark.read.format("rocketmq")
    everything, stock = len(right.rows(day)), sum(row["topic"] == "stock" for row in right.rows(day))
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
        "lab10.copies": 42, "lab10.even": "even", "lab10.read_again": "nothing", "lab10.exchanges": 1,
    }  # fmt: skip
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert str(belief) != happened(question_id)


def test_the_ways_of_the_comparison_agree_and_are_shown_with_what_parquet_costs() -> None:
    shown = {cell.source.partition("\n")[0].partition(" = ")[0]: texts(cell) for cell in read(SOLUTION).cells}
    assert shown["answers"].count("True") == 6 and "False" not in shown["answers"]
    assert "(writing Parquet, once)" in shown["times"]


# what is said to an answer -----------------------------------------------------------------------------------------


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


def explained(judge: Callable[..., Finding | None], name: str, rows: object, *arguments: Any) -> str:
    """The rule that is broken by an answer with these rows, on the odd day."""
    found = judge({"rows_of": lambda function, path, *more: rows, name: None}, odd_day(), *arguments)
    assert isinstance(found, Finding)
    return found.rule


def test_the_rule_is_about_the_row_that_is_shown() -> None:
    with_prefix = [{**row, "group_name": "%RETRY%" + row["group_name"]} for row in right.failures(odd_day())]
    assert explained(judges.judge_failures, "failures", with_prefix) == judges.GROUP_RULE
    waiting = [*right.failures(odd_day()), {"group_name": "SCHEDULE_TOPIC_XXXX", "messages": 4, "copies": 8}]
    assert explained(judges.judge_failures, "failures", waiting) == judges.WAITING_RULE

    one_copy = {"C7": 1}  # a customer with copies in other topics; whoever counts some of them, counts too many
    some_copies = [
        {**row, "messages": row["messages"] + one_copy.get(row["customer"], 0)} for row in right.busiest(odd_day(), 3)
    ]
    assert explained(judges.judge_busiest, "busiest", some_copies, 3) == judges.COPIES_RULE
    everywhere = right.customers(odd_day(), topics="").most_common(3)
    with_copies = [{"customer": customer, "messages": messages} for customer, messages in everywhere]
    nobody = [*with_copies[:2], {"customer": "", "messages": 99}]
    assert explained(judges.judge_busiest, "busiest", nobody, 3) == judges.COPIES_RULE
    right_but_one = [*right.busiest(odd_day(), 3)[:2], {"customer": "", "messages": 99}]
    assert explained(judges.judge_busiest, "busiest", right_but_one, 3) == judges.NO_CUSTOMER_RULE

    cost = right.cost(odd_day(), "letters", ["paid"])
    null = [{**row, "matched": None} for row in cost]
    assert explained(judges.judge_cost, "cost", null, "letters", ["paid"]) == judges.ZERO_RULE


@pytest.mark.spark
def test_messages_may_be_told_apart_by_their_id_as_well(spark: SparkSession) -> None:
    """A copy keeps the id that the client gave; the exercise's reference uses ORIGIN_MESSAGE_ID."""
    from pyspark.sql import functions

    def failures(messages: Any) -> Any:
        group = functions.replace("topic", functions.lit("%RETRY%"), functions.lit("")).alias("group_name")
        different = functions.count_distinct("msg_id").alias("messages")
        copies = messages.where("topic LIKE '!%RETRY!%%' ESCAPE '!'").groupBy(group)
        return copies.agg(different, functions.count("*").alias("copies"))

    assert judges.judge_failures({"rows_of": rows_of, "failures": failures}, odd_day()) is None

"""What lab 10 asks: predictions about a day of traffic, and six exercises over the DataFrames of a broker's store.

    lab10.fullest    all messages               ─▶ the fullest queue of each topic
    lab10.options    what a query uses          ─▶ the options of a read that decodes no more
    lab10.busiest    all messages               ─▶ the customers with the most events
    lab10.cost       all messages, some tags    ─▶ what each queue costs a group that wants them
    lab10.parts      all messages               ─▶ even parts of whole orders
    lab10.failures   all messages               ─▶ messages and copies that came back, for each group

The answers are functions DataFrame -> DataFrame; the lab's own ``rows_of`` reads a store, calls one and collects its
rows. The stores are in days, judging is in judges and reads. Reference and known-wrong answers are not in this package.
"""

from __future__ import annotations

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab10 import judges, reads
from mqlab.teach.cases.lab10.days import day
from mqlab.teach.exercises import Case, Exercise, Manifest, Prediction

PARTS = 16


def _fullest_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_fullest(answers, day(seed)))


def _options_case(seed: int) -> Case:
    name = f"three queries of a day, seed {seed}"
    return Case(name, lambda answers: reads.judge_options(answers, day(seed), reads.wanted(day(seed), seed)))


def _busiest_case(seed: int) -> Case:
    most = 3 + seed % 5
    return Case(f"a day, seed {seed}: {most}", lambda answers: judges.judge_busiest(answers, day(seed), most))


TAGS = (["paid", "created"], ["refunded"], ["shipped", "cancelled"])


def _cost_case(seed: int) -> Case:
    tags = TAGS[seed % len(TAGS)]
    name = f"a day, seed {seed}: {' || '.join(tags)}"
    return Case(name, lambda answers: judges.judge_cost(answers, day(seed), "orders", tags))


def _parts_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_parts(answers, day(seed), PARTS))


def _failures_case(seed: int) -> Case:
    return Case(f"a day, seed {seed}", lambda answers: judges.judge_failures(answers, day(seed)))


PREDICTIONS = (
    Prediction(
        "lab10.copies",
        "The shop sends 30 orders and 12 letters. Billing fails three of the orders once and handles them at the "
        "second try. How many messages does Spark find in the commit log?",
        "A retry is not the old message read again. The broker stores a copy to wait in SCHEDULE_TOPIC_XXXX and, when "
        "its time has come, another one in %RETRY%billing: two more messages for each failure.",
    ),
    Prediction(
        "lab10.read_again",
        "`messages` has been counted once. Now `messages.where(\"topic = 'stock'\").count()` is asked for. What of the "
        "log does Spark decode?",
        "A DataFrame is a recipe, not its result: each action goes through the log again, and a filter looks at rows "
        "that were decoded already. Only options tell the source what not to decode; only Parquet (or cache) keeps it.",
        (
            ("nothing", "nothing: that was done for the first count"),
            ("stock", "the messages of stock"),
            ("all", "all messages, once more"),
        ),
    ),
    Prediction(
        "lab10.exchanges",
        'Count the messages of each queue, sorted by the count: `groupBy(...).count().orderBy("count")`. How often do '
        "rows move between tasks (Exchange in the plan)?",
        "Once to bring each queue's counts together, once to sort them by ranges. What moves is not messages: every "
        "task counts its own first (partial_count), so a few dozen rows cross.",
    ),
    Prediction(
        "lab10.even",
        "A customer always gets the same queue of 8, by the hash of its number. With thousands of customers, how "
        "full is the fullest queue of orders, compared with the mean?",
        "Customers are spread evenly, messages are not: a few customers cause a large part of them (Zipf's law), and "
        "each of these makes its queue a hot one. More queues would not help: a customer cannot be in two.",
        (
            ("even", "within 10 % of it: a hash spreads evenly"),
            ("more", "clearly fuller, less than twice as full"),
            ("twice", "twice as full, or more"),
        ),
    ),
)

EXERCISES = (
    Exercise(
        "lab10.fullest",
        "The hot queue",
        3,
        ("fullest", "rows_of"),
        _fullest_case,
        (1, 2),
        (
            'groupBy("topic", "broker_name", "queue_id").count() is the number of messages of each queue. What is left '
            "is one row for each topic.",
            'A window does it: Window.partitionBy("topic").orderBy(...). functions.row_number().over(window) is 1 for '
            "the row you want.",
            'orderBy(desc("messages"), "broker_name", "queue_id") settles equal counts as asked.',
        ),
        "A broker can tell you this for one topic at a time. Note what you did not need: the bodies, the keys, the "
        "times. The next pages make the read cheaper by not decoding them.",
        forbids=FORBIDS["lab10.fullest"],
    ),
    Exercise(
        "lab10.options",
        "Read no more than the query uses",
        2,
        ("read_options",),
        _options_case,
        (1, 2),
        (
            "Five options: topic, queues, startTime, endTime, columns. Values are strings: lists are joined by commas.",
            "columns names those that the query uses afterwards. The source selects by topic, queue and time before it "
            "decodes anything, so these need not be in columns for that.",
            "Times are ms since the epoch as they are given; endTime itself is not part of the read.",
        ),
        "Why does Spark not do this for you? It would push filters to a source that asks for them; in this version a "
        "DataFrame used twice then gives wrong answers. So the source says no, and you say what you want.",
        forbids=FORBIDS["lab10.options"],
    ),
    Exercise(
        "lab10.busiest",
        "The hot key",
        3,
        ("busiest", "rows_of"),
        _busiest_case,
        (1, 2),
        (
            'Look at a few: messages.select("topic", "keys").show(truncate=False). One text holds several keys.',
            'functions.explode(functions.split("keys", " ")) makes a row of each key. Which of them are customers? And '
            "which messages should be counted at all?",
            'Keep topic = "orders" first; then keys that begin with C; groupBy, count, orderBy the count downwards and '
            "then the customer, limit.",
        ),
        "The customer decides the queue, so the hot key is why one queue is hot. More queues would not help: all of "
        "a customer's messages go to one.",
        forbids=FORBIDS["lab10.busiest"],
    ),
    Exercise(
        "lab10.cost",
        "What a tag costs",
        3,
        ("cost", "rows_of"),
        _cost_case,
        (1, 2),
        (
            "One groupBy by broker_name and queue_id, two counts: all rows, and those with a tag of the list.",
            'Count with a condition: functions.count_if(functions.col("tags").isin(tags)), or sum of '
            "when(..., 1).otherwise(0). where() before groupBy would drop what you want to count.",
            'functions.count("*") counts every row; functions.count("tags") leaves out those without tags.',
        ),
        "The broker reads entry after entry and compares tag codes; a group that wants one message in fifty moves on "
        "by fifty. What is filtered costs no network, but it is not free (lab 06).",
        forbids=FORBIDS["lab10.cost"],
    ),
    Exercise(
        "lab10.parts",
        "Even parts of whole orders",
        4,
        ("in_parts", "rows_of"),
        _parts_case,
        (1, 2),
        (
            "Which key gives parts that are even, and keeps an order together? Not the queue, and not the customer: "
            "look at the fullest of each.",
            'The order is the key that begins with O: key_of("O"), or functions.regexp_extract("keys", "O[0-9]+", 0). '
            "functions.hash of it spreads orders over all numbers.",
            "functions.pmod(functions.hash(order), functions.lit(parts)) is never negative. No rand(), no "
            "monotonically_increasing_id(): the same question must have the same answer.",
        ),
        "This is what repartition(parts, key) does with a key of yours. A key that is too coarse makes one task do "
        "the work of many: the last task of a stage is the stage.",
        forbids=FORBIDS["lab10.parts"],
    ),
    Exercise(
        "lab10.failures",
        "How often did it come back?",
        3,
        ("failures", "rows_of"),
        _failures_case,
        (1, 2),
        (
            "Every try after the first is a message of its own in %RETRY%<group>. The copies that wait for it are in "
            "another topic, and the dead are in a third.",
            'properties is a map: functions.col("properties")["ORIGIN_MESSAGE_ID"] names the message that a copy was '
            "made of.",
            'groupBy the group; countDistinct(origin) is "messages", count("*") is "copies". The group is the topic '
            "without %RETRY%.",
        ),
        "copies / messages is the retry amplification of a group: how many deliveries a failure costs. Together with "
        "the waiting copies, each retry is two more messages on the disk.",
        forbids=FORBIDS["lab10.failures"],
    ),
)

MANIFEST = Manifest("lab10", PREDICTIONS, EXERCISES)

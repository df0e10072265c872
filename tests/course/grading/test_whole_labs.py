"""Answers that take part in a Lab: the Lab is the judge's, the answer only says what it does next."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, MessageQueue, play
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.judging.world.settings import (
    LITE_PULL_CONSUMER,
    PRODUCER,
    PULL_CONSUMER,
    PUSH_CONSUMER,
    SIMPLE_CONSUMER,
)
from mqlab.course.grading.sandbox.values import NotPlain
from mqlab.errors import UsageError
from mqlab.lab.world.crashes import CrashPoint, every_crash
from mqlab.rocketmq.client.settings import (
    LitePullConsumerConfig,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    SimpleConsumerConfig,
)
from tests.course.grading.conftest import HASTY

LISTENER = """
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER

seen = []

def listener(messages, context):
    context.sleep("20ms")
    context.compute(5)
    seen.append([message.body.decode() for message in messages])
    if messages[0].reconsume_times == 0 and messages[0].keys == "bad":
        raise ValueError("не сейчас")
    return CONSUME_SUCCESS

def saw():
    return seen
"""


def names_of(source: str) -> dict[str, Any]:
    """The same source, run here: what a learner's own notebook does."""
    names: dict[str, Any] = {}
    exec(compile(source, "<cell>", "exec"), names)
    return names


def one_queue(listener: Any, count: int = 6, **settings: Any) -> Callable[[Lab], None]:
    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing", **settings)
        consumer.subscribe("orders")
        consumer.on_messages(listener)
        consumer.start()
        shop = lab.producer("shop")
        for number in range(count):
            shop.send(Message("orders", f"заказ {number} 🙂".encode(), keys="bad" if number == 2 else f"k{number}"))
        lab.run_for("40s")

    return story


def test_a_listener_behind_the_wall_gives_the_same_history_as_one_here(desk: Desk) -> None:
    answer = desk.load("lab.a", LISTENER, ["listener", "saw"])
    here = play(one_queue(names_of(LISTENER)["listener"]), seed=3)
    there = play(one_queue(answer["listener"]), seed=3)
    rows = [
        [(d.msg_id, d.started_ms, d.ended_ms, d.status) for d in lab.deliveries("billing")] for lab in (here, there)
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 7
    assert here.journal.next_step == there.journal.next_step
    assert sorted(answer["saw"]())[0] == ["заказ 0 🙂"]
    assert "не сейчас" in str(there.delivery_book.of("billing"))


def test_a_listeners_context_can_be_set(desk: Desk) -> None:
    source = (
        "def listener(messages, context):\n    context.ack_index = 0\n    assert context.ack_index == 0\n"
        "    context.delay_level_when_next_consume = 2\n    return 'CONSUME_SUCCESS'\n"
    )
    listener = desk.load("lab.a", source, ["listener"])["listener"]
    lab = play(one_queue(listener, consume_message_batch_max_size=4), seed=1)
    assert any(row.reconsume_times for row in lab.deliveries("billing"))


def test_a_class_as_listener_is_made_at_each_start(desk: Desk) -> None:
    source = (
        "made = []\nclass Listener:\n    def __init__(self):\n        made.append(self)\n        self.count = 0\n"
        "    def consume_message(self, messages, context):\n        self.count += 1\n        return 'CONSUME_SUCCESS'\n"
        "def counts():\n    return [one.count for one in made]\n"
    )
    answer = desk.load("lab.a", source, ["Listener", "counts"])

    def story(lab: Lab) -> None:
        one_queue(answer["Listener"])(lab)
        lab.kill("billing-1")
        lab.start("billing-1")
        lab.run_for("20s")

    play(story, seed=1)
    first, second = answer["counts"]()
    assert first == 6 and second <= 6


STORY = """
from mqlab import Message, MessageQueue

def story(lab):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    got = []

    def listener(messages, context):
        context.sleep("1s")
        got.extend(message.keys for message in messages)
        shop.send(Message("audit", messages[0].body))
        return "CONSUME_SUCCESS"

    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    consumer.on_messages(listener)
    consumer.start()
    result = shop.send(Message("orders", "книга".encode(), keys="a"))
    assert result.send_status == "SEND_OK" and isinstance(result.message_queue, MessageQueue)
    shop.send(Message("orders", b"x", keys="b"), selector=lambda queues, message, arg: queues[arg], arg=1)
    began = lab.now_ms
    lab.at("60s", lambda: got.append("at"))
    lab.run_until(lambda: len(got) >= 2, limit="30s")
    lab.run_until(lambda lab: lab.now_ms > began, limit="30s")
    lab.run_for("60s")
    rows = lab.deliveries("billing")
    assert {row.client for row in rows} == {"billing-1"}
    return sorted(got), len(rows), [row.lag for row in lab.progress("billing")]
"""


def test_a_story_plays_a_lab_it_cannot_reach_into(desk: Desk) -> None:
    story = desk.load("lab.a", STORY, ["story"])["story"]
    results: list[Any] = []
    there = play(lambda lab: results.append(story(lab)), seed=4)
    here = play(lambda lab: results.append(names_of(STORY)["story"](lab)), seed=4)
    assert results[0] == results[1] == (["a", "at", "b"], 2, [0, 0, 0])
    assert [r.kind for r in there.journal] == [r.kind for r in here.journal]
    assert there.journal.digest() == here.journal.digest()
    assert len(list(there.store().messages("audit"))) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lab.journal", "cannot use Lab.journal"),
        ("lab.directory", "cannot use Lab.directory"),
        ("lab.world.now_ms", "cannot use Lab.world"),
        ("lab.broker('broker-a').store", "cannot use Lab.broker"),
        ("lab.now_ms = 3", "cannot use Lab.__setattr__"),
        ("lab.producer('../evil')", "cannot be a name"),
        ("lab.push_consumer('g', name='a/../../b')", "cannot be a name"),
        ("lab.push_consumer('g', local_offset_store_dir='/tmp')", "the setting local_offset_store_dir"),
        ("lab.push_consumer('g', message_model='BROADCASTING', instance_name='../../x')", "cannot be a name"),
        ("lab.push_consumer('g', unit_name='a/../b')", "cannot be a name"),
        ("lab.push_consumer('g', message_model='BROADCASTING', client_ip='../x')", "cannot be a client_ip"),
        ("lab.producer('p', trace_topic='other')", "the setting trace_topic"),
        ("lab.seed", "cannot use Lab.seed"),
        ("lab.database('../x')", "cannot be a name"),
        ("lab.create_topic('a/b')", "cannot be a name"),
        ("lab.producer('p').ports", "cannot use Producer.ports"),
        ("lab._mqlab_ask(lab._mqlab_number, '__class__', (), {})", "cannot use Lab.__class__"),
        ("lab._mqlab_ask(99, 'run_for', ('1s',), {})", "never given out"),
        ("lab._mqlab_ask(lab._mqlab_number, '__getattr__', ('world',), {})", "cannot use Lab"),
    ],
)
def test_what_a_story_may_not_do_is_refused(desk: Desk, line: str, words: str) -> None:
    source = f"def story(lab):\n    try:\n        {line}\n    except Exception as error:\n        return str(error)\n"
    story = desk.load("lab.a", source, ["story"])["story"]
    said: list[str] = []
    play(lambda lab: said.append(story(lab)), seed=1)
    assert said[0] is not None and words in said[0]


@pytest.mark.parametrize(
    ("allowed", "config"),
    [
        (PRODUCER, ProducerConfig),
        (PUSH_CONSUMER, PushConsumerConfig),
        (PULL_CONSUMER, PullConsumerConfig),
        (LITE_PULL_CONSUMER, LitePullConsumerConfig),
        (SIMPLE_CONSUMER, SimpleConsumerConfig),
    ],
)
def test_the_settings_an_answer_may_give_exist_and_name_no_folder(allowed: frozenset[str], config: type) -> None:
    settings = {field.name for field in dataclasses.fields(config)}
    assert allowed - settings <= {"name", "cores"}
    assert settings - allowed <= {"local_offset_store_dir", "trace_topic"}


def test_a_strategy_object_allocates(desk: Desk) -> None:
    source = (
        "class Mine:\n    def allocate(self, group, client_id, queues, client_ids):\n"
        "        return [queue for queue in queues if queue.queue_id % 2 == client_ids.index(client_id)]\n"
        "    def get_name(self):\n        return 'MINE'\n"
    )
    mine = desk.load("lab.a", source, ["Mine"])["Mine"]

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
        for number in (1, 2):
            consumer = lab.push_consumer("billing", name=f"b-{number}", allocate_message_queue_strategy=mine())
            consumer.subscribe("orders")
            consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
            consumer.start()
        lab.run_for("60s")

    lab = play(story, seed=1)
    owned = {
        name: [q.queue_id for q in lab.handles[name].message_queues if q.topic == "orders"] for name in ("b-1", "b-2")
    }
    assert sorted(owned.values()) == [[0, 2], [1, 3]]


def test_a_learners_process_queue_runs_a_consumer(desk: Desk) -> None:
    source = (
        "from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue\n"
        "calls = []\nclass Mine(ProcessQueue):\n"
        "    def remove_message(self, messages):\n        calls.append(len(messages))\n"
        "        return super().remove_message(messages)\n"
        "def called():\n    return sum(calls)\n"
    )
    answer = desk.load("lab.a", source, ["Mine", "called"])
    lab = play(one_queue(lambda messages, context: CONSUME_SUCCESS, process_queue=answer["Mine"]), seed=1)
    assert answer["called"]() == 6
    assert [row.lag for row in lab.progress("billing") if row.topic == "orders"] == [0]


IDEMPOTENT = """
def make(lab):
    def listener(messages, context):
        connection = lab.database("billing").connect()
        with connection:
            for message in messages:
                connection.execute("INSERT OR IGNORE INTO paid VALUES (?)", (message.keys,))
                context.sleep("5ms")
        return "CONSUME_SUCCESS"
    return listener
"""


def crash_story(make: Callable[[Any], Any]) -> Callable[[Lab], None]:
    def story(lab: Lab) -> None:
        with sqlite3.connect(lab.database("billing").path) as connection:
            connection.execute("CREATE TABLE paid (key TEXT)")
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(make(lab))
        consumer.start()
        shop.send(Message("orders", b"x", keys="order-1"))
        lab.run_for("15s")

    return story


def paid(lab: Lab) -> list[str]:
    with sqlite3.connect(lab.database("billing").path) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM paid")]


def kind_of(lab: Lab) -> str:
    return lab.crash_point.kind if lab.crash_point is not None else ""


def a_line_or_some_step(point: CrashPoint) -> bool:
    """Steps are RocketMQ's, not the answer's: tests/lab/scenarios/test_every_crash.py dies at each of them."""
    return point.kind == "line" or point.number % 8 == 0


def test_every_line_of_an_answer_is_a_place_to_die(desk: Desk) -> None:
    make = desk.load("lab.a", IDEMPOTENT, ["make"])["make"]
    settings: Any = {"node": "billing-1", "seed": 1, "only": a_line_or_some_step}
    runs = [every_crash(crash_story(one), **settings) for one in (names_of(IDEMPOTENT)["make"], make)]
    here, there = (
        [(str(lab.crash_point).replace("<cell>", ""), paid(lab)) for lab in run if kind_of(lab) == "line"]
        for run in runs
    )
    assert here == there and len(here) >= 6
    assert {len(keys) for _, keys in there} == {1, 2}  # a unique key is missing: some deaths pay twice


def test_dying_runs_finally_and_gives_resources_back(desk: Desk) -> None:
    source = (
        "ended = []\ndef make(lab):\n    def listener(messages, context):\n        try:\n"
        "            with lab.resource('slot'):\n                context.sleep('1m')\n"
        "        finally:\n            ended.append('finally')\n"
        "            try:\n                context.sleep('1m')\n            except BaseException as error:\n"
        "                ended.append(type(error).__name__)\n                raise\n"
        "    return listener\n"
        "def told():\n    return ended\n"
    )
    answer = desk.load("lab.a", source, ["make", "told"])

    def story(lab: Lab) -> None:
        lab.resource("slot", slots=1)
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(answer["make"](lab))
        consumer.start()
        lab.producer("shop").send(Message("orders", b"x"))
        lab.run_for("20s")
        assert lab.resource("slot").in_use == 1
        lab.kill("billing-1")
        assert lab.resource("slot").in_use == 0

    play(story, seed=1)
    assert answer["told"]() == ["finally", "NodeDown"]


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH DATABASE 'evil.sqlite' AS evil",
        "VACUUM INTO 'evil.sqlite'",
        "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA journal_mode = OFF",
        "SELECT load_extension('evil')",
        "PRAGMA writable_schema = 1",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
        "SELECT zeroblob(100000000)",
    ],
)
def test_a_database_keeps_to_its_file_and_to_its_time(desk: Desk, statement: str) -> None:
    source = (
        "def use(lab):\n    connection = lab.database('mine').connect()\n    connection.execute('CREATE TABLE t (x)')\n"
        "    with connection:\n        connection.executemany('INSERT INTO t VALUES (?)', [(1,), ('два',)])\n"
        "    rows = [row for row in connection.execute('SELECT x FROM t')]\n"
        f"    try:\n        connection.execute({statement!r}).fetchall()\n"
        "    except Exception as error:\n        return rows, str(error)\n    return rows, ''\n"
    )
    use = desk.load("lab.a", source, ["use"])["use"]
    results: list[Any] = []
    lab = play(lambda lab: results.append(use(lab)), seed=1)
    rows, error = results[0]
    assert rows == [(1,), ("два",)] and error
    assert not list(lab.directory.rglob("evil*")) and not list(Path.cwd().glob("evil*"))


def test_an_answer_that_hangs_inside_a_lab_stops_the_lab(desk: Desk) -> None:
    source = "import time\ndef listener(messages, context):\n    while True: time.sleep(0.01)\n"
    listener = desk.load("lab.a", source, ["listener"], HASTY)["listener"]
    with pytest.raises(AnswerStopped, match="no answer within"):
        play(one_queue(listener), seed=1)


def test_messages_come_back_as_the_very_ones_that_were_given(desk: Desk) -> None:
    source = (
        "def same(messages):\n    return list(reversed(messages))\n"
        "def changed(messages):\n    messages[0].body = b'forged'\n    return messages[0]\n"
    )
    answer = desk.load("lab.a", source, ["same", "changed"])
    lab = play(one_queue(lambda messages, context: CONSUME_SUCCESS), seed=1)
    messages = list(lab.store().messages("orders"))
    again = answer["same"](messages)
    assert [id(message) for message in again] == [id(message) for message in reversed(messages)]
    forged = answer["changed"](messages)
    assert forged is not messages[0] and forged.body == b"forged" and messages[0].body != b"forged"


def test_what_has_no_role_does_not_cross(desk: Desk) -> None:
    use = desk.load("lab.a", "def use(thing):\n    return thing\n", ["use"])["use"]
    lab = Lab(seed=1)
    for thing in (lab.journal, lab.world, lab.broker(), lab.name_server(), lab.store()):
        with pytest.raises(NotPlain):
            use(thing)
    assert use(lab) is lab
    assert use(MessageQueue("t", "b", 1)) == MessageQueue("t", "b", 1)
    with pytest.raises(UsageError):
        lab.store("nowhere")
    lab.close()

"""Each row of the table of verbs, used behind the wall at least once; what the exercises of labs 02 to 09 need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.world.verbs import ROLES
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.errors import NotGiven
from mqlab.rocketmq.admin.admin import Admin
from tests.course.grading.conftest import PATIENT

ASK = "def ask(thing, verb, args, kwargs):\n    return getattr(thing, verb)(*args, **kwargs)\n"


@pytest.fixture
def behind(walls: Sandbox) -> Any:
    """A desk behind bubblewrap."""
    desk = Desk(Sandbox("bwrap", limits=PATIENT))
    yield desk
    desk.close()


def shop_day(lab: Lab, *, fail: bool = False) -> Any:
    """Two orders; one is billed, or fails until it is dead."""
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    consumer = lab.push_consumer("billing", max_reconsume_times=0)
    consumer.subscribe("orders", "paid")
    consumer.on_messages(lambda messages, context: "RECONSUME_LATER" if fail else CONSUME_SUCCESS)
    consumer.start()
    sent = [shop.send(Message("orders", b"x", tags="paid", keys=f"order-{n}")) for n in (1, 2)]
    lab.run_for("40s")
    return sent[0]


READING: dict[str, Callable[[Any, Lab], tuple[Any, ...]]] = {
    "examine_broker_cluster_info": lambda sent, lab: (),
    "cluster_list": lambda sent, lab: (),
    "ha_status": lambda sent, lab: ("broker-a",),
    "stats_all": lambda sent, lab: ("orders",),
    "fetch_all_topic_list": lambda sent, lab: (),
    "examine_topic_route_info": lambda sent, lab: ("orders",),
    "examine_topic_config": lambda sent, lab: ("orders",),
    "examine_topic_stats": lambda sent, lab: ("orders",),
    "query_topic_consume_by_who": lambda sent, lab: ("orders",),
    "query_all_groups": lambda sent, lab: (),
    "examine_subscription_group_config": lambda sent, lab: ("billing",),
    "examine_consume_stats": lambda sent, lab: ("billing",),
    "consumer_progress": lambda sent, lab: (),
    "lag": lambda sent, lab: ("billing",),
    "query_consume_time_span": lambda sent, lab: ("orders", "billing"),
    "examine_consumer_connection_info": lambda sent, lab: ("billing",),
    "examine_producer_connection_info": lambda sent, lab: ("shop",),
    "get_all_producer_info": lambda sent, lab: (),
    "get_consumer_running_info": lambda sent, lab: ("billing", lab.handles["billing-1"].client_id),
    "consumer_status": lambda sent, lab: ("billing",),
    "get_consume_status": lambda sent, lab: ("orders", "billing"),
    "consumer_problems": lambda sent, lab: ("billing",),
    "view_message": lambda sent, lab: (sent.offset_msg_id,),
    "query_message": lambda sent, lab: ("orders", "order-1"),
    "query_message_by_unique_key": lambda sent, lab: ("orders", sent.msg_id),
    "query_message_by_time": lambda sent, lab: ("orders",),
    "query_message_by_offset": lambda sent, lab: ("orders", "broker-a", sent.message_queue.queue_id, 0),
    "message_track_detail": lambda sent, lab: (lab.admin.view_message(sent.offset_msg_id),),
    "view_trace": lambda sent, lab: (sent.msg_id,),
    "query_dlq": lambda sent, lab: ("billing",),
}
CHANGING: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "resend_dlq": (("billing",), {}),
    "wipe_write_perm": (("broker-a",), {}),
    "add_write_perm": (("broker-a",), {}),
    "delete_expired_commit_log": ((), {}),
    "clean_expired_consumer_queue": ((), {}),
    "create_topic": (("parcels",), {"read_queue_nums": 3, "write_queue_nums": 3}),
    "update_topic": (("orders",), {"write_queue_nums": 1}),
    "create_and_update_subscription_group_config": (("audit",), {"retry_max_times": 3}),
    "clone_group_offset": (("billing", "audit", "orders"), {}),
    "reset_offset_by_timestamp": (("orders", "billing", 0), {"dry_run": True}),
    "skip_accumulated_message": (("orders", "billing"), {"dry_run": True}),
    "reset_offset_of_queue": (("orders", "billing", "broker-a", 0, 0), {}),
    "delete_subscription_group": (("audit",), {}),
    "delete_topic": (("parcels",), {}),
}
DIRECTLY = {"consume_message_directly"}


def test_every_admin_verb_of_the_table_is_tried_here() -> None:
    assert set(ROLES["Admin"].verbs) == {*READING, *CHANGING, *DIRECTLY}


def test_admin_verbs_that_read_answer_as_they_do_in_a_notebook(behind: Desk) -> None:
    ask = behind.load("lab.a", ASK, ["ask"])["ask"]

    def story(lab: Lab) -> None:
        sent = shop_day(lab)
        for verb, arguments in READING.items():
            args = arguments(sent, lab)
            there = ask(lab.admin, verb, args, {})
            here = getattr(lab.admin, verb)(*args)
            assert type(there) is type(here), verb
            # Asking is traffic too: what counts calls, or says when a client was last heard, has moved on.
            if verb not in ("cluster_list", "get_consumer_running_info", "stats_all"):
                assert str(there) == str(here), verb

    play(story, seed=2)


def test_admin_verbs_that_change_something_do_so(behind: Desk) -> None:
    ask = behind.load("lab.a", ASK, ["ask"])["ask"]

    def story(lab: Lab) -> None:
        sent = shop_day(lab, fail=True)
        assert len(lab.admin.query_dlq("billing")) == 2
        consumer = lab.handles["billing-1"].client_id
        directly = ("billing", consumer, "orders", sent.offset_msg_id)
        assert ask(lab.admin, "consume_message_directly", directly, {}).consume_result == "CR_LATER"
        lab.kill("billing-1")
        for verb, (args, kwargs) in CHANGING.items():
            ask(lab.admin, verb, args, kwargs)
            if verb == "update_topic":
                assert lab.admin.examine_topic_config("orders").write_queue_nums == 1
            if verb == "create_topic":
                assert lab.admin.examine_topic_config("parcels").read_queue_nums == 3
            if verb == "create_and_update_subscription_group_config":
                assert lab.admin.examine_subscription_group_config("audit").retry_max_times == 3
            if verb == "resend_dlq":
                lab.run_for("1s")
                assert sum(row.lag for row in lab.progress("billing") if row.topic == "%RETRY%billing") == 2
        assert "parcels" not in [row.topic for row in lab.admin.fetch_all_topic_list()]

    play(story, seed=2)


def test_what_names_a_folder_or_a_setting_of_the_broker_is_missing(desk: Desk) -> None:
    source = (
        "def story(lab):\n    said = []\n"
        "    for verb, args, kwargs in [('update_broker_config', ('broker-a',), {}), ('create_topic', ('../x',), {}),\n"
        "                               ('get_broker_config', ('broker-a',), {}),\n"
        "                               ('update_topic', ('orders',), {'attributes': '+a=b'}),\n"
        "                               ('create_and_update_subscription_group_config', ('a/b',), {})]:\n"
        "        try:\n            getattr(lab.admin, verb)(*args, **kwargs)\n"
        "        except Exception as error:\n            said.append(str(error).splitlines()[0][:30])\n"
        "    return said\n"
    )
    story = desk.load("lab.a", source, ["story"])["story"]
    results: list[Any] = []
    play(lambda lab: results.append(story(lab)), seed=1)
    assert len(results[0]) == 5 and len(set(results[0])) >= 4, results[0]


def test_a_verb_that_answers_an_exercise_is_missing_in_it(desk: Desk) -> None:
    source = (
        "def story(lab):\n    said = []\n"
        "    for verb in (lambda: lab.admin.consumer_problems('billing'), lambda: lab.kill('billing-1'),\n"
        "                 lambda: lab.admin.reset_offset_by_timestamp('orders', 'billing', 0),\n"
        "                 lambda: lab.run_for('1s'),\n"
        "                 lambda: lab.admin.examine_consumer_connection_info('billing')):\n"
        "        try:\n            verb()\n            said.append('')\n"
        "        except Exception as error:\n            said.append(f'{type(error).__name__} {error.name}')\n"
        "    return said\n"
    )
    desk.withhold(
        (
            "mqlab.rocketmq.admin.diagnosis.consumer_problems",
            "mqlab.lab.world.faults.Faults.kill",
            "mqlab.rocketmq.admin.offset_resets",
        )
    )
    story = desk.load("lab.a", source, ["story"])["story"]
    results: list[Any] = []

    def world(lab: Lab) -> None:
        shop_day(lab)
        results.append(story(lab))

    play(world, seed=1)
    assert results[0] == [
        "NotGiven mqlab.rocketmq.admin.diagnosis.consumer_problems",
        "NotGiven mqlab.lab.world.faults.Faults.kill",
        "NotGiven mqlab.rocketmq.admin.offset_resets.reset_offset_by_timestamp",
        "",
        "",
    ]


def test_a_function_of_the_case_is_called_over_the_wall(desk: Desk) -> None:
    source = "def first(read):\n    return read(0, 2) + read(position=4, size=1), callable(read)\n"
    first = desk.load("lab.a", source, ["first"])["first"]
    asked: list[tuple[int, int]] = []

    def read(position: int, size: int) -> bytes:
        asked.append((position, size))
        if position > 4:
            raise NotGiven("read")
        return b"abcdef"[position : position + size]

    assert first(read) == (b"abe", True)
    assert asked == [(0, 2), (4, 1)]


STRATEGY = """
class Mine:
    def __init__(self):
        self.slow = {}
        self.asked = 0
    def is_available(self, broker_name, now_ms):
        self.asked += 1
        return self.slow.get(broker_name, 0) <= now_ms
    def is_reachable(self, broker_name):
        return True
    def update(self, broker_name, latency_ms, now_ms, *, isolation, reachable):
        if latency_ms > 500 or isolation:
            self.slow[broker_name] = now_ms + 30_000
"""


def test_a_latency_fault_strategy_runs_in_a_producer(behind: Desk) -> None:
    mine = behind.load("lab.a", STRATEGY, ["Mine"])["Mine"]()

    def story(lab: Lab) -> list[str]:
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        shop = lab.producer("shop", send_latency_fault_enable=True, mq_fault_strategy=mine)
        lab.slow("broker-b", "600ms")
        return [shop.send(Message("orders", b"x")).message_queue.broker_name for _ in range(8)]

    chosen: list[list[str]] = []
    play(lambda lab: chosen.append(story(lab)), seed=1, brokers=2)
    assert chosen[0].count("broker-b") == 1 and mine.asked > 0 and list(mine.slow) == ["broker-b"]


TRANSACTION = """
from mqlab import COMMIT_MESSAGE, UNKNOW, Message

class Local:
    def __init__(self):
        self.checked = []
    def execute_local_transaction(self, message, arg):
        return COMMIT_MESSAGE if arg == 1 else UNKNOW
    def check_local_transaction(self, message):
        self.checked.append(message.body)
        return COMMIT_MESSAGE

def story(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    local = Local()
    shop = lab.transaction_producer("pay", local)
    states = [shop.send_message_in_transaction(Message("orders", b"%d" % n), n).local_transaction_state for n in (1, 2)]
    lab.run_for("2m")
    return states, local.checked, [q.max_offset for q in lab.admin.examine_topic_stats("orders")]
"""


def test_a_transaction_listener_is_asked_and_checked(behind: Desk) -> None:
    story = behind.load("lab.a", TRANSACTION, ["story"])["story"]
    results: list[Any] = []
    play(lambda lab: results.append(story(lab)), seed=1)
    states, checked, stored = results[0]
    assert [str(state) for state in states] == ["COMMIT_MESSAGE", "UNKNOW"] and checked == [b"2"] and stored == [2]


ORDERLY = """
calls = []
def listener(messages, context):
    calls.append((messages[0].keys, context.auto_commit, context.message_queue.queue_id))
    context.auto_commit = False
    context.suspend_current_queue_time_millis = 500
    if len(calls) == 1:
        return "ROLLBACK"
    return "COMMIT"
def told():
    return calls
"""


def test_an_orderly_listener_commits_by_hand(behind: Desk) -> None:
    answer = behind.load("lab.a", ORDERLY, ["listener", "told"])

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages_orderly(answer["listener"])
        consumer.start()
        lab.producer("shop").send(Message("orders", b"x", keys="a"))
        lab.run_for("30s")

    lab = play(story, seed=1)
    assert answer["told"]() == [("a", True, 0), ("a", True, 0)]
    assert [row.lag for row in lab.progress("billing") if row.topic == "orders"] == [0]


WHOLE_STORY = """
from mqlab import Message, MessageQueue

def story(lab):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.resource("bank", slots=1)
    shop, seen = lab.producer("shop"), []

    def listener(messages, context):
        with lab.resource("bank"):
            context.sleep("10ms")
        seen.append(messages[0].keys)
        return "CONSUME_SUCCESS"

    consumer = lab.push_consumer("billing", name="billing-2")
    consumer.subscribe("orders", "a || b")
    consumer.subscribe("other", sql="n > 1")
    consumer.unsubscribe("other")
    consumer.on_messages(listener)
    consumer.start()
    traffic = lab.traffic(shop, rates=[("0s", 2)], message=lambda n: Message("orders", b"x", tags="a", keys=str(n)))
    lab.run_for("5s")
    consumer.suspend()
    consumer.resume()
    traffic.stop()
    shop.send_batch([Message("orders", b"%d" % len(key), tags="b", keys=key) for key in ("one", "two")])
    shop.send_oneway(Message("orders", b"3", tags="b", keys="three"))
    pending = shop.send_async(Message("orders", b"4", tags="b", keys="four"))
    assert pending.result().send_status == "SEND_OK" and pending.done
    queues = shop.fetch_publish_message_queues("orders")
    lab.slow("broker-a", "1ms")
    lab.skew_clock("shop-1", "1ms")
    lab.drop("shop-1", "broker-a", count=1)
    lab.slow_disk("broker-a", "1ms")
    lab.partition("shop-1", "broker-a")
    lab.heal()
    lab.run_until_quiet(limit="10m")
    lab.kill("billing-2")
    lab.start("billing-2")
    lab.power_off("billing-2")
    lab.start("billing-2")
    lab.run_for("1m")
    puller = lab.pull_consumer("audit")
    pulled = puller.pull(MessageQueue("orders", "broker-a", 0), "*", 0, max_nums=4)
    lite = lab.lite_pull_consumer("report")
    lite.assign(queues)
    lite.start()
    polled = lite.poll("5s")
    simple = lab.simple_consumer("letters", await_duration="1s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    simple.subscribe("orders")
    simple.start()
    first, second, *_ = simple.receive(3, "60s")
    simple.ack(first)
    simple.change_invisible_duration(second, "90s")
    simple.ack(second)
    pending = simple.receive_async(1, "60s")
    pending.result()
    out = len(lab.leases("letters"))
    upcoming = len(lab.upcoming(3))
    consumer.shutdown()
    counts = (traffic.sent, len(queues), len(pulled.msg_found_list) > 0, len(polled) > 0, upcoming, out)
    return sorted(set(seen)), counts, lab.resource("bank").longest_queue
"""


def test_a_whole_story_uses_the_verbs_of_labs_and_clients(behind: Desk) -> None:
    story = behind.load("lab.a", WHOLE_STORY, ["story"])["story"]
    results: list[Any] = []
    there = play(lambda lab: results.append(story(lab)), seed=4)
    names: dict[str, Any] = {}
    exec(WHOLE_STORY, names)
    here = play(lambda lab: results.append(names["story"](lab)), seed=4)
    assert results[0] == results[1] and {"one", "two", "three", "four"} <= set(results[0][0])
    assert there.journal.digest() == here.journal.digest()


def test_a_story_over_a_master_and_its_slave(behind: Desk) -> None:
    source = (
        "from mqlab import Message\n"
        "def story(lab):\n"
        "    shop = lab.producer('shop')\n"
        "    first = shop.send(Message('orders', b'x')).send_status\n"
        "    before = lab.admin.ha_status('broker-a')\n"
        "    lab.kill('broker-a')\n    lab.run_for('1m')\n    lab.start('broker-a')\n    lab.run_for('1m')\n"
        "    lab.disk_full('broker-a', 0.5)\n"
        "    lab.kill('broker-a')\n    lab.lose_disk('broker-a')\n    lab.start('broker-a')\n"
        "    return first, type(before).__name__\n"
    )
    story = behind.load("lab.a", source, ["story"])["story"]
    results: list[Any] = []
    play(lambda lab: results.append(story(lab)), seed=1, replicas=1)
    assert results == [("SEND_OK", "HaStatus")]


def test_every_verb_of_the_table_exists() -> None:
    kinds = {"Admin": Admin, "Lab": Lab}
    for role, kind in kinds.items():
        for verb in ROLES[role].verbs:
            assert callable(getattr(kind, verb)), f"{role}.{verb}"


STARTS = """
from mqlab import CONSUME_SUCCESS

shipped = []

def ship(key, context):
    context.sleep("2s")
    if key == "order-2":
        raise ValueError(key)
    shipped.append(key)
    return key.upper()

def listener(messages, context):
    if messages[0].keys == "order-4":
        context.start(ship, "order-5", context)
        return CONSUME_SUCCESS
    works = [context.start(ship, messages[0].keys, context), context.start(lambda: 5)]
    try:
        shipped.append((works[0].done, works[0].result(), works[1].result()))
    except ValueError as error:
        shipped.append(type(error).__name__)
    return CONSUME_SUCCESS

def what():
    return shipped
"""


def test_a_listener_starts_work_that_dies_with_its_process(behind: Desk) -> None:
    loaded = behind.load("lab.a", STARTS, ["listener", "what"])

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(loaded["listener"])
        consumer.start()
        shop = lab.producer("shop")
        for number in (1, 2):
            shop.send(Message("orders", b"x", keys=f"order-{number}"))
        lab.run_for("10s")
        shop.send(Message("orders", b"x", keys="order-4"))
        lab.run_for("1s")
        lab.kill("billing-1")
        lab.run_for("10s")

    lab = play(story, seed=1)
    assert sorted(map(str, loaded["what"]())) == ["(False, 'ORDER-1', 5)", "ValueError", "order-1"]
    assert len(lab.journal.of("work.started")) == 5 and len(lab.journal.of("work.ended")) == 4


UNFINISHED = """
from mqlab import CONSUME_SUCCESS

def make(lab):
    database = lab.database("billing")
    def listener(messages, context):
        with database.connect() as connection:
            found = connection.execute("SELECT key FROM seen").fetchone()
            rows = connection.cursor().execute("SELECT key FROM seen ORDER BY key").fetchmany(2)
        with database.connect() as connection:
            connection.execute("INSERT INTO seen VALUES (?)", (messages[0].keys,))
        return CONSUME_SUCCESS if found and len(rows) == 2 and len(list(connection.execute("SELECT 1"))) == 1 else None
    return listener
"""


def test_a_query_that_is_not_read_to_its_end_locks_nobody_out(behind: Desk) -> None:
    make = behind.load("lab.a", UNFINISHED, ["make"])["make"]

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        with lab.database("billing").connect() as connection:
            connection.executescript("CREATE TABLE seen (key TEXT); INSERT INTO seen VALUES ('a'), ('b'), ('c')")
        consumer = lab.push_consumer("billing", consume_thread_min=1, consume_thread_max=1)
        consumer.subscribe("orders")
        consumer.on_messages(make(lab))
        consumer.start()
        shop = lab.producer("shop")
        for number in range(4):
            shop.send(Message("orders", b"x", keys=f"order-{number}"))
        lab.run_for("30s")

    lab = play(story, seed=1)
    rows = lab.deliveries("billing", absences=False)
    assert [row.status for row in rows] == ["CONSUME_SUCCESS"] * 4, [row.error for row in rows]
    assert all(row.ended_ms - row.started_ms < 100 for row in rows)

"""What a Lab says to arguments that cannot work, at the line that brought them; nothing is made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, every_crash, play
from mqlab.errors import ClientError, UsageError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"brokers": "broker-a"}, "must be a number or a list of names"),
        ({"brokers": []}, "must be a number or a list of names"),
        ({"brokers": ["../outside"]}, "cannot be the name of a file"),
        ({"brokers": ["offsets"]}, "cannot be the name of a file"),
        ({"brokers": ["a", "a"]}, "exists already"),
        ({"name_servers": 0}, "at least one name server"),
        ({"name_servers": [3]}, "names are strings, 3 is not"),
        ({"replicas": "one"}, "replicas must be 0 or more, got 'one'"),
        ({"memory": -1}, "-1 is not a size"),
        ({"memory": "4 bananas"}, "is not a size"),
        ({"network": {"latancy": "1ms"}}, "no setting 'latancy'"),
        ({"stores": "dir"}, "must map names of brokers"),
        ({"stores": {"../a": "dir"}}, "cannot be the name of a file"),
        ({"stores": {"a": "dir"}, "brokers": 2}, "contradicts stores="),
        ({"journal_limit": 0}, "journal_limit must be 1 or more"),
        ({"speed": 0, "driver": "threads"}, "speed must be positive, got 0"),
        ({"broker": {"slave_timeout": "soon"}}, "not a duration"),
        ({"broker": {"max_message_size": "1MB"}}, "max_message_size is a whole number, not '1MB'"),
        ({"broker": {"slave_read_enable": "true"}}, "slave_read_enable is True or False, not 'true'"),
        ({"broker": {"in_sync_replicas": True}}, "in_sync_replicas is a whole number, not True"),
        ({"broker": {"message_delay_level": " "}}, "has no level"),
        ({"broker": {"slave_read_enabel": True}}, "no setting"),
    ],
)
def test_settings_of_a_lab(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        Lab(directory=tmp_path / "run", **settings)
    assert sorted(path.name for path in tmp_path.iterdir()) in ([], ["run"])


def test_durations_and_names_are_taken_as_people_write_them() -> None:
    lab = Lab(
        brokers=["room1@one", "два"],
        name_servers=["ns-a", "ns-b"],
        memory="4 MB",
        broker={"slave_timeout": "500ms", "transaction_check_interval": "1m", "sharp_edges": ["stale_tail_kept"]},
    )
    assert list(lab.handles) == ["ns-a", "ns-b", "room1@one", "два"]
    assert lab.broker("два").store.config.slave_timeout == 500
    assert lab.broker("два").config.transaction_check_interval == 60_000
    assert lab.store("два") is not None and lab.name_server("ns-b").is_running


@pytest.mark.parametrize("driver", ["sim", "threads"])
def test_a_client_that_could_not_be_made_leaves_its_name_free(driver: str) -> None:
    with Lab(seed=7, driver=driver, speed=20) as lab:
        before = list(lab.world.nodes)
        wrong: list[Callable[[], Any]] = [
            lambda: lab.producer("shop", retry_times=3),
            lambda: lab.producer("shop", send_msg_timeout="soon"),
            lambda: lab.producer("DEFAULT_PRODUCER", name="shop-1"),
            lambda: lab.transaction_producer("shop", 5),
            lambda: lab.push_consumer("shop", allocate_message_queue_strategy="AVERAGE"),
            lambda: lab.push_consumer("shop", cores=0),
            lambda: lab.pull_consumer("shop", no_such="x"),
            lambda: lab.lite_pull_consumer("shop", no_such="x"),
        ]
        for make in wrong:
            with pytest.raises((UsageError, ClientError)):
                make()
        assert list(lab.world.nodes) == before and "shop-1" not in lab.handles
        lab.create_topic("orders")
        producer = lab.producer("shop", send_msg_timeout=600_000)
        assert producer.send(Message("orders", "заказ 订单 💳".encode())).send_status == "SEND_OK"


def test_a_setting_with_a_slip_is_named() -> None:
    lab = Lab()
    with pytest.raises(UsageError) as told:
        lab.producer("shop", retry_times=3)
    assert told.value.hint == "did you mean retry_times_when_send_failed?"
    with pytest.raises(UsageError) as told:
        lab.producer("shop", xyz=3)
    assert told.value.hint is not None and told.value.hint.startswith("there are ")


def test_faults_traffic_and_conditions() -> None:
    lab = Lab(seed=7)
    producer, consumer = lab.producer("shop"), lab.push_consumer("billing")
    for wrong, words in (
        (lambda: lab.drop("broker-a", "broker-a"), "no frames to itself"),
        (lambda: lab.drop("broker-a", "nameserver-1", count=0), "count must be 1 or more, got 0"),
        (lambda: lab.traffic("nobody", rates=[("0s", 5)], message=lambda i: Message("t", b"x")), "no node 'nobody'"),
        (lambda: lab.traffic(consumer, rates=[("0s", 5)], message=lambda i: Message("t", b"x")), "not a producer"),
        (lambda: lab.traffic(producer, rates=[("0s", -5)], message=lambda i: Message("t", b"x")), "is not a rate"),
        (lambda: lab.run_until(cast(Any, 5)), "is not a condition"),
        (lambda: lab.journal.changes("message.storde"), "message.stored"),
        (lambda: lab.changes(cast(Any, None)), "is not a snapshot"),
        (lambda: lab.database("../outside"), "cannot be the name of a file"),
        (lambda: Message("orders", b"x", delay_time_level=cast(Any, "3")), "a delay level is a whole number"),
        (lambda: consumer.subscribe("orders", 5), "is not an expression"),
    ):
        with pytest.raises(UsageError, match=words):
            wrong()
    lab.skew_clock("broker-a", "-50ms")
    assert lab.world.nodes["broker-a"].skew_ms == -50
    assert len(lab.upcoming(-1)) == 0


def test_faults_of_a_story_are_looked_at_before_it_begins() -> None:
    told: list[str] = []

    def story(lab: Lab) -> None:
        told.append("told")
        lab.run_for("1s")

    with pytest.raises(UsageError, match="before the story: it begins at step"):
        play(story, faults={1: lambda lab: None})
    with pytest.raises(UsageError, match="fault at step 30 is 'kill'"):
        play(story, faults={30: cast(Any, "kill")})
    assert told == []
    assert play(story, until_step=0).journal.next_step == play(story, until_step=4).journal.next_step
    with pytest.raises(UsageError, match="never acts"):
        list(every_crash(story, node="billing-1"))


def test_a_world_of_threads_that_cannot_be_leaves_none() -> None:
    def fails(lab: Lab) -> None:
        raise ValueError("не вышло")

    before = set(threading.enumerate())
    for wrong, words in (
        (lambda: Lab(driver="threads", brokers=["a", "a"]), "exists already"),
        (lambda: Lab(driver="threads", broker={"message_delay_level": "x"}), "message_delay_level"),
        (lambda: play(fails, driver="threads", until_step=4), "need the simulated driver"),
        (lambda: list(every_crash(fails, node="a", driver="threads")), "needs the simulated driver"),
        (lambda: play(fails, driver="threads"), "не вышло"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread.name


def test_a_listener_of_the_right_kind_only() -> None:
    lab = Lab(seed=7)
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    consumer.on_messages(5)
    with pytest.raises(UsageError, match="is not a listener"):
        consumer.start()
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    assert lab.run_for("1s").handles["billing-1"].is_running

"""Forty-five seconds of work, a master that dies for a minute, and what each node saw of it.

Mirrors: DefaultHAService, SlaveSynchronize, RouteInfoManager.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.errors import MqlabError
from tests.lab.scenarios.stories import frames, moments
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, pair

WARM_UP_S = 85  # the slave knows topic and group after its first round of copying
KILLED_S, STARTED_S, OVER_S = 45, 107, 150


class Told:
    """The story's own notes: what each send was answered, and when, in ms after the warm-up."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self.sent: list[str] = []
        self.began_ms = 0  # since the Lab began


def story(lab: Lab) -> Told:
    """The real run's script: reads from slaves allowed, 15 ms a message, one synchronous send every half second."""
    told = Told()
    lab.create_topic("T2", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")
    consumer = lab.push_consumer(
        "billing", consume_thread_min=1, pull_threshold_for_queue=20, consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer.subscribe("T2")

    def listener(messages: Any, context: Any) -> str:
        context.sleep("15ms")
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    lab.run_for(f"{WARM_UP_S}s")
    began_ms = lab.now_ms
    for number in range(3_300):  # a backlog that lasts beyond the kill
        told.sent.append(producer.send(Message("T2", f"заказ {number} 订单 💳".encode())).msg_id)
    happens = [(KILLED_S, lab.kill), (STARTED_S, lab.start)]
    while lab.now_ms < began_ms + OVER_S * 1_000:
        at_s = (lab.now_ms - began_ms) / 1_000
        while happens and at_s >= happens[0][0]:
            happens.pop(0)[1](MASTER)
        try:
            result = producer.send(Message("T2", f"в {at_s:.1f} с".encode()))
            told.sent.append(result.msg_id)
            told.answers.append((lab.now_ms - began_ms, result.send_status))
        except MqlabError as error:
            told.answers.append((lab.now_ms - began_ms, error.text))
        lab.run_for("500ms")
    told.began_ms = began_ms - lab.began_ms
    return told


@pytest.fixture(scope="module")
def run() -> tuple[Lab, Told]:
    lab = pair(seed=10, broker={"slave_read_enable": True})
    return lab, story(lab)


def texts(told: Told, first_s: float, last_s: float) -> list[str]:
    return [text for at, text in told.answers if first_s * 1_000 <= at < last_s * 1_000]


def after(told: Told, at: list[int]) -> list[int]:
    """Moments counted from the beginning of the story, ms."""
    return [one - told.began_ms for one in at]


def test_until_the_kill_all_is_well(run: tuple[Lab, Told]) -> None:
    _, told = run
    assert set(texts(told, 0, KILLED_S)) == {"SEND_OK"}


def test_the_first_send_after_the_kill_tries_one_broker_three_times(run: tuple[Lab, Told]) -> None:
    _, told = run
    at, text = next((at, text) for at, text in told.answers if text != "SEND_OK")
    assert text.startswith("Send [3] times, still failed") and "BrokersSent: [broker-a, broker-a, broker-a]" in text
    assert KILLED_S * 1_000 <= at <= KILLED_S * 1_000 + 520


def test_after_the_route_poll_there_is_no_route_and_pulls_go_to_the_slave(run: tuple[Lab, Told]) -> None:
    lab, told = run
    polled_ms = next(at for at, text in told.answers if text.startswith("No route info of this topic: T2"))
    assert KILLED_S * 1_000 < polled_ms <= KILLED_S * 1_000 + 31_000
    at_slave = after(told, [record.now_ms - lab.began_ms for record in frames(lab, 11, to=SLAVE)])
    assert KILLED_S * 1_000 < at_slave[0] <= KILLED_S * 1_000 + 31_000
    assert {text[:13] for text in texts(told, polled_ms / 1_000, STARTED_S)} == {"No route info"}


def test_consumption_stops_between_the_kill_and_the_route_poll_and_ends_at_the_slave(run: tuple[Lab, Told]) -> None:
    lab, told = run
    at_slave = after(told, [record.now_ms - lab.began_ms for record in frames(lab, 11, to=SLAVE)])[0]
    started = after(told, moments(lab, "listener.started"))
    idle = [at for at in started if KILLED_S * 1_000 + 4_000 < at < at_slave]
    assert idle == [] and at_slave > (KILLED_S + 10) * 1_000  # what was cached at the client is done by then
    read = [at for at in started if at_slave <= at < STARTED_S * 1_000]
    assert len(read) > 200
    assert max(later - sooner for sooner, later in pairwise(read)) < 1_100


def test_the_master_comes_back_and_the_next_send_succeeds(run: tuple[Lab, Told]) -> None:
    _, told = run
    first_ok = next(at for at, text in told.answers if at > STARTED_S * 1_000 and text == "SEND_OK")
    assert first_ok <= (STARTED_S + 5) * 1_000
    assert set(texts(told, first_ok / 1_000, OVER_S)) == {"SEND_OK"}


def test_nothing_is_lost_and_nothing_comes_twice(run: tuple[Lab, Told]) -> None:
    lab, told = run
    lab.run_for("2m")
    got = [row.msg_id for row in lab.deliveries("billing", absences=False)]
    assert len(got) == len(set(got))
    assert set(got) == set(told.sent)

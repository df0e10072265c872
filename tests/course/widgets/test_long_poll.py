from __future__ import annotations

import functools
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from mqlab.course.widgets import LongPollScope, long_poll_scope
from mqlab.course.widgets.boards.long_poll.runs import PollSettings, play_polls
from mqlab.errors import UsageError
from mqlab.lab.parts import OwnParts
from mqlab.lab.parts.broken import BrokenPart
from tests.lab.parts.brokers.rocketmq_shape import MyPulls


def scope(**settings: Any) -> LongPollScope:
    return long_poll_scope(recorded={}, **settings)


def test_a_held_pull_brings_a_message_at_once_and_asks_no_more_than_needed() -> None:
    held, asking = scope(rate=1).requests()
    assert held.longest_ms <= 4 and held.empty == 0 and held.missing == asking.missing == 0
    assert 900 < asking.longest_ms <= 1_010 and asking.requests == 30
    # The price of asking often: as soon as a held pull, and 20 times as many requests.
    _, often = scope(rate=1, interval="20ms").requests()
    assert often.longest_ms <= 30 and often.requests == 1_500 and often.empty > 1_400


def test_a_hold_ends_at_the_first_check_after_its_time() -> None:
    for suspend_ms, longest_ms in ((1_000, 5_000), (15_000, 20_000)):
        over = [pull for pull in scope(rate=0.1, suspend=suspend_ms).run.held if pull.woken == "timeout"]
        assert over and {pull.status for pull in over} == {"PULL_NOT_FOUND"}
        for pull in over:
            assert pull.left_ms is not None and suspend_ms <= pull.left_ms - pull.arrived_ms <= longest_ms


def test_unwanted_messages_wake_a_held_pull_at_the_check() -> None:
    shown = scope(rate=4, rare=20)
    checks = [pull for pull in shown.run.held if pull.woken == "check"]
    assert checks and {pull.status for pull in checks} == {"PULL_RETRY_IMMEDIATELY"}
    assert all(pull.next_offset > pull.from_offset and not pull.found for pull in checks)  # type: ignore[operator]
    wanted = [row for row in shown.arrivals() if row.wanted]
    assert {row.tag for row in wanted} == {"rare"} and 0 < len(wanted) < len(shown.arrivals()) / 10
    assert all(row.held_ms is None and row.naive_ms is None for row in shown.arrivals() if not row.wanted)


def test_one_message_an_answer_over_a_slow_network_falls_behind() -> None:
    held, asking = scope(rate=10, batch=1, latency="100ms", interval="300ms").requests()
    assert held.requests == pytest.approx(150, abs=2)  # 200 ms each, nothing is held
    assert held.longest_ms > 20_000 and held.missing + asking.missing > 0
    assert scope(rate=10, batch=32, latency="100ms").requests()[0].longest_ms <= 400


def test_a_push_consumer_pulls_in_the_same_way() -> None:
    shown = scope(rate=0.1)

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
        shop = lab.producer("shop")
        for row in shown.arrivals():
            lab.at(5_000 + row.stored_ms, functools.partial(shop.send_async, Message("orders", b"x")))
        lab.run_for("35s")

    pushed = [(row.woken, row.status) for row in play(story, client={"enable_trace": False}).pulls("billing")]
    assert pushed == [(row.woken, row.status) for row in shown.pulls()]


def test_the_page_plays_again_and_a_cell_reads_what_it_shows() -> None:
    shown = scope()
    shown.set("pull", 3)
    wish = {"rate": 2, "suspend": "5s", "batch": 4, "latency": "10ms", "interval": "500ms", "rare": 0}
    answer = shown.asked("play", wish)
    assert shown.settings == PollSettings(2, 5_000, 4, 10, 500)
    assert len(answer["arrivals"]) == len(shown.arrivals()) and len(answer["naive"]) == len(shown.polls())
    assert shown.play(rate=1).state == {"pull": 1, "window_ms": 30_000} and "28 wanted" in shown.summary
    with pytest.raises(UsageError, match="cannot answer"):
        shown.asked("stop", {})


def test_a_page_without_a_kernel_has_the_recorded_runs() -> None:
    shown = long_poll_scope(recorded={"slow": PollSettings(latency_ms=50)})
    assert [run["name"] for run in shown.data()["runs"]] == ["as set", "slow"]
    assert play_polls(PollSettings(latency_ms=50)) is play_polls(PollSettings(latency_ms=50))
    assert shown.table().column("reader") == ["held", "asking"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rate": 0}, "rate must be between 0.1 and 20"),
        ({"rate": None}, "rate must be a number"),
        ({"suspend": "31s"}, "suspend_ms must be between 1 and 30000"),
        ({"suspend": "x"}, "not a duration"),
        ({"batch": 33}, "batch must be between 1 and 32"),
        ({"batch": 1.5}, "batch must be a number"),
        ({"latency": "1s"}, "latency_ms must be between 0 and 500"),
        ({"interval": "10ms"}, "interval_ms must be between 20"),
        ({"rare": True}, "rare must be a number"),
        ({"tag": "paid"}, "no setting 'tag'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scope().play(**wrong)


class Deaf(MyPulls):  # type: ignore[misc]
    def arrived(self, topic: str, queue_id: int) -> list[Any]:
        return []


def test_on_a_learners_pulls_what_is_held_is_theirs() -> None:
    shown = scope(rate=0.1, suspend="1s", parts=OwnParts(pulls=MyPulls))
    over = [pull for pull in shown.run.held if pull.woken == "timeout"]
    assert over and all((pull.left_ms or 0) - pull.arrived_ms <= 2_000 for pull in over)  # RocketMQ looks every 5 s
    assert shown.play(rate=1).requests()[0].longest_ms <= 4
    assert len(long_poll_scope(parts=OwnParts(pulls=MyPulls)).data()["runs"]) == 1  # the recorded ones are mqlab's
    with pytest.raises(BrokenPart, match="as soon as a wanted message"):
        scope(parts=OwnParts(pulls=Deaf))

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import RetryClock, retry_clock
from mqlab.course.widgets.boards.retry_clock.runs import RetrySettings, play_retries
from mqlab.errors import UsageError
from mqlab.lab.parts import OwnParts
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.views.timeline import after
from tests.lab.parts.brokers import rocketmq_shape

MyRetries: Any = rocketmq_shape.MyRetries
LEVELS_MS = {3: 10_000, 4: 30_000, 5: 60_000}


def test_each_wait_is_as_long_as_its_level_and_each_delivery_follows_it() -> None:
    clock = retry_clock(max_retries=3, recorded={})
    waits, deliveries = clock.waits(), clock.deliveries()
    assert waits.column("level") == [3, 4, 5]
    for wait, delivery in zip(waits, deliveries[1:], strict=True):
        assert 0 <= wait.to_ms - wait.from_ms - LEVELS_MS[wait.level] < 200  # the broker looks every 100 ms
        assert 0 <= delivery.at_ms - wait.to_ms < 100
    assert deliveries.column("read_from") == ["orders"] + ["%RETRY%billing"] * 3
    assert deliveries.column("reconsume_times") == [0, 1, 2, 3]
    assert clock.run.end == "dead"


def test_units_are_those_of_the_log() -> None:
    topics = retry_clock(max_retries=1, recorded={}).units().column("topic")
    assert topics == ["orders", "SCHEDULE_TOPIC_XXXX", "%RETRY%billing", "%DLQ%billing"]


def test_the_default_is_dead_after_four_hours_and_three_quarters() -> None:
    run = play_retries(RetrySettings())
    assert (len(run.deliveries), len(run.units), run.end) == (17, 34, "dead")
    assert after(run.end_ms).startswith("+4:45:4")


@pytest.mark.parametrize(
    ("changes", "count", "end"),
    [
        ({"asked": -1}, 1, "dead"),
        ({"max_retries": 0}, 1, "dead"),
        ({"bank_down": ("0s", "30s")}, 3, "paid"),
        ({"bank_down": ("1h", None)}, 1, "paid"),
        ({"orderly": True, "max_retries": 3}, 4, "dead"),
        ({"levels": "1s 2s", "max_retries": 4}, 5, "dead"),
    ],
)
def test_settings_change_what_happens(changes: dict[str, Any], count: int, end: str) -> None:
    clock = retry_clock(recorded={}, **changes)
    assert (len(clock.deliveries()), clock.run.end) == (count, end)


def test_in_order_nothing_is_written_and_the_clock_stops() -> None:
    clock = retry_clock(orderly=True, recorded={})
    assert clock.run.end == "still failing" and len(clock.deliveries()) > 500
    assert clock.units().column("topic") == ["orders"] and len(clock.waits()) == 0


def test_a_level_that_is_asked_is_used_for_every_retry() -> None:
    assert set(retry_clock(asked=1, max_retries=3, recorded={}).waits().column("level")) == {1}


def test_the_same_settings_are_played_once() -> None:
    assert play_retries(RetrySettings(max_retries=2)) is play_retries(RetrySettings(max_retries=2))


def test_the_page_plays_again_and_a_cell_reads_what_it_shows() -> None:
    clock = retry_clock(max_retries=1, recorded={}, prediction="10s")
    assert clock.state == {"delivery": 1, "pin_ms": 10_000}
    clock.set("delivery", 2)
    wish = {"levels": "2s", "max_retries": 2, "asked": 0, "orderly": False, "bank_down": ["0s", ""]}
    answer = clock.asked("play", wish)
    assert answer["end"] == "dead" and [d[2] for d in answer["deliveries"]] == [0, 1, 2]
    assert clock.settings == RetrySettings(levels="2s", max_retries=2) and len(clock.table()) == 3
    assert clock.play(max_retries=0).state["delivery"] == 1
    assert clock.data()["runs"][0]["settings"]["levels"] == "2s"


def test_a_page_without_a_kernel_has_the_recorded_runs() -> None:
    clock = retry_clock(max_retries=1, recorded={"two": RetrySettings(max_retries=2)})
    assert [run["name"] for run in clock.data()["runs"]] == ["as set", "two"]
    assert "SCHEDULE" not in str(clock.table()) and "level 3" in str(clock.table())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"levels": "1x"}, "level 1 is '1x'"),
        ({"max_retries": 31}, "max_retries must be between -1 and 30"),
        ({"asked": 19}, "asked must be between -1 and 18"),
        ({"asked": 1.5}, "asked must be a whole number"),
        ({"max_retries": None}, "max_retries must be a whole number"),
        ({"bank_down": ("2h", "1h")}, "comes back before it goes down"),
        ({"bank_down": "1h"}, "bank_down must be two times"),
        ({"retries": 3}, "no setting 'retries'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    clock = retry_clock(max_retries=0, recorded={})
    assert isinstance(clock, RetryClock)
    with pytest.raises(UsageError, match=words):
        clock.play(**wrong)


class AtOnce(MyRetries):  # type: ignore[misc]
    def look(self, now_ms: int) -> None:
        super().look(now_ms + 5_000)


def test_on_a_learners_retries_each_wait_ends_at_a_look() -> None:
    clock = retry_clock(max_retries=3, parts=OwnParts(retries=MyRetries))
    assert clock.waits().column("level") == [3, 4, 5] and clock.run.end == "dead"
    for wait in clock.waits():
        assert 0 <= wait.to_ms - wait.from_ms - LEVELS_MS[wait.level] <= 1_000
    assert clock.play(asked=1, bank_down=("0s", "3s")).waits().column("level") == [1, 1]
    assert len(clock.data()["runs"]) == 1  # the recorded ones are mqlab's
    with pytest.raises(BrokenPart, match="does not come before its time"):
        retry_clock(max_retries=1, parts=OwnParts(retries=AtOnce))

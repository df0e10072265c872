from __future__ import annotations

import threading
from typing import Any

import pytest

from mqlab.course.widgets import OffsetStripBoard, offset_strip
from mqlab.errors import UsageError


def strip(**settings: Any) -> OffsetStripBoard:
    return offset_strip(**{"messages": 12, "actions": [], **settings})


def again(shown: OffsetStripBoard) -> list[int]:
    offsets: list[int] = shown.redelivered().column("queue_offset")
    return offsets


def test_the_offset_is_the_smallest_message_that_is_still_cached() -> None:
    shown = strip()
    assert shown.finish(3, 1, 2).offsets["memory"] == 0 and shown.finished == [1, 2, 3]
    assert shown.finish(0).offsets["memory"] == 4
    assert shown.finish_all().offsets["memory"] == 12


def test_what_came_after_the_last_persist_comes_again() -> None:
    shown = strip().finish(0, 1).persist()
    assert shown.offsets == {"memory": 2, "broker": 2, "file": None}
    assert again(shown.finish(2, 3, 5)) == []  # nobody has crashed
    assert again(shown.crash("client")) == [2, 3, 5]
    assert shown.messages().column("stage")[:3] == ["earlier", "earlier", "running"]
    assert again(shown.finish(2)) == [2, 3, 5] and shown.messages().column("stage")[2] == "finished"


def test_one_message_that_hangs_makes_all_after_it_come_again() -> None:
    shown = strip(messages=30, threads=4).finish_all(but=[0]).persist()
    assert shown.offsets["broker"] == 0 and len(again(shown.crash())) == 29


def test_a_broker_that_dies_alone_costs_nothing_and_both_together_what_the_file_lacks() -> None:
    shown = strip().finish(0).persist().save().finish(1, 2).persist()
    assert shown.offsets == {"memory": 3, "broker": 3, "file": 1}
    alone = strip(actions=[*_actions(shown), ("crash", {"who": "broker"})])
    assert alone.offsets == {"memory": 3, "broker": 1, "file": 1} and again(alone) == []
    assert alone.wait("10s").offsets["broker"] == 3  # the client sends again what it knows
    both = strip(actions=[*_actions(shown), ("crash", {"who": "both"})])
    assert again(both) == [1, 2] and both.picture["first_read"] == 1


def _actions(shown: OffsetStripBoard) -> list[Any]:
    return [(action.verb, action.arguments) for action in shown.actions(shown.position)]


def test_a_call_ends_for_its_whole_batch() -> None:
    shown = strip(batch=4, threads=2)
    assert shown.picture["batches"] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert shown.finish(6).finished == [4, 5, 6, 7]
    assert shown.picture["batches"] == [(0, 1, 2, 3), (8, 9, 10, 11)]


def test_the_span_is_that_of_the_messages_still_cached() -> None:
    shown = strip(messages=60, threads=4, span=20)
    assert (shown.picture["span"], shown.picture["pulled"], shown.flow_control) == (31, 32, "span")
    assert shown.finish(1, 2, 3).flow_control == "span"  # the first and the last are still there
    shown.finish(0)
    assert (shown.picture["first_cached"], shown.picture["span"], shown.flow_control) == (4, 27, "span")
    shown.finish_all(but=[4])
    # Behind one stuck message everything was pulled and finished all the same.
    assert (shown.picture["span"], shown.picture["pulled"], shown.flow_control) == (0, 60, "")
    # More comes again than the span allows; 0 to 3 do not, since the pulls have told the broker of the offset.
    assert shown.offsets["broker"] == 4 and again(shown.crash()) == list(range(5, 60))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"count": 10, "pull_batch": 8}, "count"), ({"size": 1, "body": 100_000, "pull_batch": 30}, "size")],
)
def test_a_cache_may_hold_so_many_messages_and_so_many_bytes(settings: dict[str, Any], reason: str) -> None:
    shown = strip(messages=40, **settings)
    assert shown.flow_control == reason and shown.picture["pulled"] < 40
    pulled = shown.picture["pulled"]
    assert shown.finish_all().flow_control == "" and shown.picture["pulled"] > pulled


def test_the_intervals_are_those_of_client_and_broker() -> None:
    shown = strip(persist="20s", broker_persist="1m").finish(0).persist()
    first = shown.picture["now_ms"]
    assert shown.persist().picture["now_ms"] - first == 20_000 and shown.offsets["file"] is None
    saved = shown.save().picture["now_ms"]
    assert shown.offsets["file"] == 1 and shown.picture["save_in_ms"] is None  # nothing new to write
    assert shown.finish(1).persist().save().picture["now_ms"] - saved == 60_000 and shown.offsets["file"] == 2


def test_a_call_that_takes_longer_than_the_consume_timeout_is_swept_away() -> None:
    shown = strip().finish_all(but=[0]).wait("40m")
    assert shown.messages().column("stage")[0] == "sent back"
    assert shown.picture["count"] == 0


def test_steps_are_shown_again_undone_and_acted_after() -> None:
    shown = strip().finish(1).persist().crash()
    assert shown.table().column("code")[1:] == ["strip.finish(1)", "strip.persist()", "strip.crash('client')"]
    shown.set("position", 1)
    assert shown.offsets["broker"] is None and shown.finish(0).position == 2 and len(shown.steps) == 3
    assert shown.undo().finished == [1] and shown.state == {"position": 1}
    names = {"offset_strip": offset_strip}
    exec(shown.finish(2).code, names)
    same = names["strip"]
    assert isinstance(same, OffsetStripBoard) and [step.words for step in same.steps] == [s.words for s in shown.steps]
    assert shown.change(messages=5, persist="2s").picture["stages"] == ["running"] * 5
    assert "messages=5, persist_ms" not in shown.code and 'messages=5, persist="2000ms"' in shown.code
    with pytest.raises(UsageError, match="nothing to undo"):
        shown.undo()


def test_page_and_cell_may_act_in_threads_of_their_own() -> None:
    shown = strip().finish(1)
    answers: list[Any] = []
    wish = {"verb": "finish", "arguments": {"messages": [2]}}
    page = threading.Thread(target=lambda: answers.append(shown.answer("do", wish)))
    page.start()
    page.join()
    assert "packed" in answers[0] and shown.finished == [1, 2]
    assert again(shown.persist().crash()) == [1, 2]


def test_the_page_asks_what_a_cell_does() -> None:
    shown = strip()
    assert shown.asked("do", {"verb": "finish", "arguments": {"messages": [2]}}) == {"position": 1}
    assert shown.asked("undo", {}) == {"position": 0}
    assert shown.asked("change", {"threads": 2, "persist": "3s"}) == {"position": 0}
    assert shown.picture["stages"].count("running") == 2
    assert len(shown.data()["steps"]) == 1 and shown.data()["settings"]["persist_ms"] == 3_000


@pytest.mark.parametrize("settings", [{}, {"threads": 1}, {"batch": 8}, {"messages": 1}, {"threads": 1, "batch": 32}])
def test_the_first_story_ends_in_a_crash_under_all_settings(settings: dict[str, Any]) -> None:
    shown = offset_strip(**settings)
    assert shown.steps[-1].action.verb == "crash" and shown.picture["life"] == 2


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        ("finish", [9], "message 9 is not in a call.*\n.*it waits in the cache for a thread: 4 threads"),
        ("finish", [50], "not in a call.*\n.*the messages are 0 to 39"),
        ("finish", [35], "not in a call.*\n.*it is not pulled yet"),
        ("finish", [0, 0.5], "messages are whole numbers"),
        ("finish", [], "finish: which messages"),
        ("finish_all", [[0, 1, 2, 3]], "no call of the listener can be ended"),
        ("wait", ["2h"], "wait: at most an hour"),
        ("save", [], "the broker has nothing to write"),
        ("crash", ["shop"], "who is one of client, broker, both"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(verb: str, arguments: list[Any], words: str) -> None:
    shown = strip(threads=4, messages=40, span=5)
    with pytest.raises(UsageError, match=words):
        getattr(shown, verb)(*arguments)
    assert shown.finish(0).finished == [0]  # the Lab is whole


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"threads": 0}, "threads must be a whole number from 1 to 64"),
        ({"messages": 241}, "messages must be a whole number from 1 to 240"),
        ({"persist": "10ms"}, "persist must be from 1 s to 10 min"),
        ({"actions": ["jump"]}, "no action 'jump'"),
        ({"actions": [("wait", {"time": "1s"})]}, "wait has no 'time'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        strip(**wrong)
    with pytest.raises(UsageError, match="no setting 'rooms'"):
        strip().change(rooms=1)

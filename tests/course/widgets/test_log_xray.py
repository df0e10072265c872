from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab import play
from mqlab.course.widgets import LogXray, log_xray
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

FIRST_LOG = "commitlog/" + "0" * 20
TWELVE: list[Any] = [("append", {"keys": "order-", "count": 12, "size": 200}), ("append", {"keys": "last"})]


def pages(xray: LogXray, kind: str) -> list[int]:
    files = xray.steps[xray.position].picture["pages"]
    return [page for file in files if file["path"].startswith(kind) for page in file["dirty"]]


def column(table: Table, name: str) -> list[Any]:
    return table.column(name)


def test_a_message_is_in_the_log_first_and_in_queue_and_index_after_dispatch() -> None:
    xray = log_xray([("append", {"keys": "order-0"}), ("append", {"keys": "order-1"})])
    assert column(xray.units(), "in its queue") == [False, False] == column(xray.units(), "in the index")
    assert xray.steps[-1].picture["queues"] == []
    xray.do("dispatch")
    assert column(xray.units(), "in its queue") == [True, False] == column(xray.units(), "in the index")
    (queue,) = xray.steps[-1].picture["queues"]
    first = xray.units()[0]
    assert [entry[:3] for entry in queue["entries"]] == [[0, first.place, first.size]]
    chains = [entry for chain in xray.steps[-1].picture["index"][0]["chains"] for entry in chain["entries"]]
    assert sorted(entry[0] for entry in chains) == [1, 2] and {entry[2] for entry in chains} == {first.place}


def test_kill_takes_nothing_and_a_power_cut_what_is_not_synced() -> None:
    killed = log_xray(["append", "kill", "recover"])
    assert len(killed.units()) == 1 and column(killed.units(), "in its queue") == [True]
    cut = log_xray(["append", "power_cut", "recover"])
    assert len(cut.units()) == 0 and "lost: 1 page" in cut.steps[2].words
    synced = log_xray(["append", "power_cut", "recover"], flush="SYNC_FLUSH")
    assert len(synced.units()) == 1


def test_time_flushes_and_a_unit_of_a_dirty_page_may_be_on_the_disk() -> None:
    xray = log_xray(["append", ("wait", {"duration": "10s"}), "append"])
    assert pages(xray, "commitlog") == [0]
    assert column(xray.units(), "on the disk") == [True, False]
    xray.set("position", 1)
    assert column(xray.units(), "on the disk") == [False]
    assert len(xray.do("power_cut").do("recover").units()) == 0


@pytest.mark.parametrize("before", [[], ["kill"]])
def test_one_page_is_lost_and_recovery_cuts_the_log_there(before: list[str]) -> None:
    xray = log_xray([*TWELVE, *before])
    assert pages(xray, "commitlog") == [0, 1]
    xray.do("power_cut", lose=[(FIRST_LOG, 0)])
    whole = [place for place in column(xray.units(), "place") if place >= 4096]
    assert whole, "units after the hole are whole, and still there"
    assert xray.do("recover").units().rows == []


def test_undo_and_an_action_in_the_past_drop_what_came_later() -> None:
    xray = log_xray(["append", "append", "dispatch"])
    assert len(xray.undo().steps) == 3 and xray.position == 2
    xray.set("position", 1)
    xray.do("kill")
    assert [step.action.verb for step in xray.steps[1:] if step.action] == ["append", "kill"]
    assert len(xray.undo().undo().steps) == 1
    with pytest.raises(UsageError, match="nothing to undo"):
        xray.undo()


def test_a_refused_action_leaves_no_trace() -> None:
    xray = log_xray(["append", "kill"])
    before = json.dumps(xray.data())
    for verb, words in (
        ("append", "the broker is down"),
        ("dispatch", "down"),
        ("kill", "down"),
        ("walk", "no action"),
    ):
        with pytest.raises(UsageError, match=words):
            xray.do(verb)
    assert json.dumps(xray.data()) == before
    assert len(xray.do("recover").units()) == 1
    with pytest.raises(UsageError, match="the broker is running"):
        xray.do("recover")


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        ("append", {"size": 0}, "size must be a whole number from 1"),
        ("append", {"count": 21}, "count must be a whole number from 1 to 20"),
        ("append", {"size": None, "colour": 1}, "append has no 'colour'"),
        ("append", {"topic": "no spaces"}, "illegal characters"),
        ("wait", {"duration": "2h"}, "at most an hour"),
        ("wait", {"duration": "soon"}, "not a duration"),
    ],
)
def test_wrong_arguments_are_refused_in_words(verb: str, arguments: dict[str, Any], words: str) -> None:
    xray = log_xray([])
    with pytest.raises(UsageError, match=words):
        xray.do(verb, **arguments)
    assert len(xray.steps) == 1 and len(xray.do("append").units()) == 1


def test_other_settings_do_the_same_steps_again() -> None:
    xray = log_xray([*TWELVE, "power_cut", "recover"])
    assert len(xray.units()) == 0
    xray.change(flush="SYNC_FLUSH", file_size=2048)
    assert len(xray.units()) == 13 and xray.position == 4
    files = xray.steps[-1].picture["log"]
    assert len([file for file in files if file["pieces"]]) > 1
    assert any(piece[0] == "BLANK" for file in files for piece in file["pieces"])
    with pytest.raises(UsageError, match="file_size must be one of"):
        xray.change(file_size=3000)
    with pytest.raises(UsageError, match="no setting 'colour'"):
        xray.change(colour=1)


@pytest.mark.parametrize("end", [["power_cut"], ["kill", ("power_cut", {"lose": [(FIRST_LOG, 1)]})]])
def test_code_and_story_make_the_same_world(end: list[Any]) -> None:
    xray = log_xray([*TWELVE, "dispatch", ("wait", {"duration": "1s"}), *end, "recover", "append"])
    pasted: dict[str, Any] = {}
    exec(xray.code, pasted)
    played = play(xray.as_story(), **xray.world)
    assert pasted["lab"].journal.digest() == played.journal.digest() == xray.lab.journal.digest()


def test_the_page_asks_and_gets_the_step() -> None:
    xray = log_xray(["append"])
    assert xray.asked("do", {"verb": "dispatch", "arguments": {"units": None}}) == {"position": 2}
    assert xray.asked("undo", {}) == {"position": 1}
    assert (
        xray.asked("change", {"flush": "SYNC_FLUSH"}) == {"position": 1}
        and xray.data()["settings"]["flush"] == "SYNC_FLUSH"
    )
    assert xray.answer("do", {"verb": "recover"})["error"].startswith("the broker is running")
    with pytest.raises(UsageError, match="cannot answer"):
        xray.asked("sing", {})


def test_the_bytes_are_those_of_the_file() -> None:
    xray = log_xray(["append"])
    (unit,) = xray.data()["units"].values()
    stored = next(iter(xray.lab.store().pieces())).raw()
    assert bytes.fromhex(unit["hex"]) == stored and sum(field[2] for field in unit["fields"]) == len(stored)


def test_tables_are_the_text_twin() -> None:
    xray = log_xray(["append", "dispatch"])
    assert [row.step for row in xray.table() if row.here] == [2]
    assert "lab.broker().store.dispatch(1)" in str(xray) and "Units of the log after step 2" in str(xray.html())

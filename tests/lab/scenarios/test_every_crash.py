"""A payment service killed before every step and every line: what holds, and what only seems to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab import CONSUME_SUCCESS, Lab, every_crash, play
from mqlab.errors import UsageError
from mqlab.lab.world.crashes import calm_run, with_crash
from tests.lab.scenarios.stories import QUIET, one_order


def payments(listener_of: Callable[[Lab], Any]) -> Callable[[Lab], None]:
    return one_order(
        listener_of,
        "create table accounts (name text primary key, balance integer)",
        "create table done (key text primary key)",
        "insert into accounts values ('Анна', 100)",
    )


def balance(lab: Lab) -> int:
    return int(lab.database("billing").connect().execute("select balance from accounts").fetchone()[0])


def check_then_act(lab: Lab) -> Any:
    def listener(messages: Any, context: Any) -> str:
        connection = lab.database("billing").connect()
        key = messages[0].keys
        if connection.execute("select 1 from done where key = ?", (key,)).fetchone():
            return CONSUME_SUCCESS
        connection.execute("update accounts set balance = balance - 10")
        connection.commit()
        connection.execute("insert into done values (?)", (key,))
        connection.commit()
        return CONSUME_SUCCESS

    return listener


def unique_row_in_the_transaction(lab: Lab) -> Any:
    def listener(messages: Any, context: Any) -> str:
        connection = lab.database("billing").connect()
        key = messages[0].keys
        if connection.execute("insert or ignore into done values (?)", (key,)).rowcount == 0:
            return CONSUME_SUCCESS
        connection.execute("update accounts set balance = balance - 10")
        connection.commit()
        return CONSUME_SUCCESS

    return listener


def test_the_unique_row_in_the_same_transaction_holds_at_every_point() -> None:
    points = []
    for lab in every_crash(payments(unique_row_in_the_transaction), node="billing-1", **QUIET):
        points.append(lab.crash_point)
        assert balance(lab) == 90, f"killed {lab.crash_point}"
    assert sum(point.kind == "line" for point in points) == 6
    assert sum(point.kind == "step" for point in points) > 20


@pytest.fixture(scope="module")
def check_then_act_runs() -> list[Lab]:
    return list(every_crash(payments(check_then_act), node="billing-1", **QUIET))


def test_check_then_act_is_caught_between_the_effect_and_the_record(check_then_act_runs: list[Lab]) -> None:
    wrong = {str(lab.crash_point.where): balance(lab) for lab in check_then_act_runs if balance(lab) != 90}
    assert set(wrong.values()) == {80}
    assert len(wrong) == 2  # before the insert, and before its commit


def test_the_message_is_redelivered_after_a_crash_before_the_commit_of_its_offset(
    check_then_act_runs: list[Lab],
) -> None:
    lines = [lab for lab in check_then_act_runs if lab.crash_point.kind == "line"]
    assert lines
    for lab in lines:
        statuses = [row.status for row in lab.deliveries("billing")]
        assert statuses == ["RUNNING", CONSUME_SUCCESS], f"killed {lab.crash_point}"
        assert {row.reconsume_times for row in lab.deliveries("billing")} == {0}


def test_a_node_that_never_acts_and_a_way_that_is_none_are_told() -> None:
    with pytest.raises(UsageError, match="kill, power_off"):
        list(every_crash(lambda lab: None, node="billing-1", how="explode"))


def test_some_points_can_be_chosen() -> None:
    story = payments(unique_row_in_the_transaction)
    chosen = every_crash(story, node="billing-1", only=lambda point: point.kind == "line" and point.number < 2, **QUIET)
    points = [lab.crash_point for lab in chosen]
    assert [(point.kind, point.number) for point in points] == [("line", 0), ("line", 1)]
    assert str(points[0]).startswith("before line 0 (listener line ")


def test_an_error_of_the_story_names_the_crash_point() -> None:
    def story(lab: Lab) -> None:
        payments(lambda _: lambda messages, context: CONSUME_SUCCESS)(lab)
        lab.kill("billing-1")  # it may be down already

    def last(point: Any) -> bool:
        return bool(point.number > 60 and point.kind == "step")

    with pytest.raises(UsageError, match="is down already") as told:
        for lab in every_crash(story, node="billing-1", restart_after=None, only=last, **QUIET):
            assert lab.crash_point is not None
    assert "billing-1 ended by kill before step " in told.value.__notes__[0]
    assert told.value.__notes__[0].startswith("in story, seed=0")


@pytest.mark.parametrize(
    "file",
    [
        f"{Path(mqlab.__file__).parent}-notes/story.py",
        f"{sys.base_prefix}/src/app/story.py",
        "/labs/my-site-packages-notes/story.py",
    ],
    ids=["beside mqlab", "below Python's prefix", "in a folder with a name like that of packages"],
)
def test_the_lines_of_a_listener_count_wherever_its_file_is(file: str) -> None:
    source = "def listener(messages, context):\n    number = 1\n    return 'CONSUME_SUCCESS'\n"
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    story = payments(lambda lab: names["listener"])
    runs = every_crash(story, node="billing-1", only=lambda point: point.kind == "line", **QUIET)
    assert [lab.crash_point.where for lab in runs] == ["listener line 2", "listener line 3"]


@pytest.mark.parametrize("kind", ["step", "line"])
def test_a_run_of_every_crash_can_be_played_and_stopped(kind: str) -> None:
    story = payments(check_then_act)
    _, points = calm_run(story, node="billing-1", **QUIET)
    point = [point for point in points if point.kind == kind][5]
    (lab,) = every_crash(story, node="billing-1", only=lambda each: each == point, **QUIET)
    crashing = with_crash(story, point, node="billing-1")
    played = play(crashing, **QUIET)
    assert played.journal.digest() == lab.journal.digest()
    killed = played.journal.of("fault.killed")[0].step
    paused = play(crashing, until_step=killed - 1, **QUIET)
    assert len(paused.journal) == killed - 1
    while len(paused.journal) < len(played.journal):
        paused.step()
    assert paused.journal.digest() == played.journal.digest()

"""The inspector and the timer's files: what it shows, and what it finds when a file is damaged or gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.wire.timer_units import SLOT_SIZE
from tests.rocketmq.broker.world import World


@pytest.fixture
def store(tmp_path: Path) -> Path:
    world = World(tmp_path)
    client = world.client()
    for seconds in (2, 50, 50, 90):
        client.put("tm", str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
        world.run_for(1)
    world.run_for(5_000)
    world.broker.shutdown()
    return tmp_path / "broker-a"


def test_units_slots_and_check_file_are_shown(store: Path) -> None:
    inspector = StoreInspector(str(store))
    units = inspector.timer_units()
    assert [position for position, _ in units] == [0, 52, 104, 156]
    assert sorted(slot.num for slot in inspector.timer_slots().values()) == [1, 1, 2]
    check = inspector.timer_checkpoint()
    assert check is not None and check["queue_offset"] == 4 and check["log_flushed"] == 208
    kinds = {row["path"]: row["kind"] for row in inspector.tree()}
    assert (kinds["timerwheel"], kinds["config/timercheck"]) == ("timer wheel", "timer state")
    assert not inspector.other_parts() and not inspector.problems(deep=True)


def test_a_store_without_timed_messages_has_no_such_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.client().put("orders")
    world.run_for(2_000)
    world.broker.shutdown()
    inspector = StoreInspector(str(tmp_path / "broker-a"))
    assert not (tmp_path / "broker-a" / "timerwheel").exists()
    assert (inspector.timer_units(), inspector.timer_slots(), inspector.timer_checkpoint()) == ([], {}, None)


def test_a_lost_timer_log_and_a_slot_that_leads_nowhere_are_problems(store: Path) -> None:
    shutil.rmtree(store / "timerlog")
    problems = StoreInspector(str(store)).problems(deep=True)
    assert [problem.kind for problem in problems] == ["timer state"] + ["timer slot"] * 3


@pytest.mark.parametrize("file", ["timerlog", "config/timercheck"])
def test_a_start_without_a_file_of_the_timer_says_what_that_costs(store: Path, file: str) -> None:
    shutil.rmtree(store / "timerlog") if file == "timerlog" else (store / file).write_bytes(bytes(4096))
    (problem,) = StoreInspector(str(store)).problems(deep=False)
    world = World(store.parent)
    (noted,) = world.changes("timer.problem")
    assert (problem.kind, problem.file, noted["file"]) == ("timer state", file, file)
    assert problem.text == noted["reason"] and ("lost" if file == "timerlog" else "again") in problem.text


def test_a_wheel_of_another_length_is_a_problem(store: Path) -> None:
    (store / "timerwheel").write_bytes(bytes(SLOT_SIZE))
    kinds = [(problem.kind, problem.file) for problem in StoreInspector(str(store)).problems(deep=False)]
    assert ("file size", "timerwheel") in kinds


def test_a_waiting_unit_without_its_message_is_a_problem(store: Path) -> None:
    log = store / "timerlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[156 + 32 : 156 + 40] = (7).to_bytes(8, "big")  # the physical offset of the last unit
    log.write_bytes(data)
    problems = StoreInspector(str(store)).problems(deep=True)
    assert [problem.kind for problem in problems] == ["timer unit"]

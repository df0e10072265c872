"""Lab 16's given: each step of a part alone, whether it is right, raises, or is not written yet."""

from __future__ import annotations

from typing import Any

from mqlab.course.given.lab16 import TrialMachine, tried_pulls, tried_store, unit_of_order
from tests.course.teach.notebook_answers import reference


def returned(table: Any) -> dict[str, str]:
    return {row.step: row.returns for row in table}


def test_the_steps_of_the_reference_store_show_numbers_places_and_a_new_life() -> None:
    steps = returned(tried_store(reference("lab16.store")["MyStore"]))
    assert steps["1 put, twice"] == "[(0, 0), (1, 126)]" and steps["1 put into queue 1"] == "(0, 252)"
    assert steps["3 max_offset before dispatch"] == "0" and steps["2 dispatch again"] == "[]"
    assert steps["4 its first dispatch"] == steps["2 dispatch"] and steps["4 its next number"] == "2"


def test_a_step_that_raises_does_not_hide_the_next() -> None:
    class Begun:
        def __init__(self, disk: Any) -> None:
            pass

        def put(self, topic: str, queue_id: int, unit: bytes) -> None:
            raise KeyError(topic)

        def max_offset(self, topic: str, queue_id: int) -> int:
            return 7

    steps = returned(tried_store(Begun))
    assert steps["1 put, twice"] == "KeyError: 'orders'" and steps["3 max_offset before dispatch"] == "7"
    assert steps["2 dispatch"].startswith("AttributeError")


def test_the_steps_of_the_reference_pulls_hold_and_wake() -> None:
    steps = returned(tried_pulls(reference("lab16.pulls")["MyPulls"]))
    assert steps["1 from 0, at most one"] == "1 unit, next_offset 3"
    assert steps["1 from 99"] == "0 units, next_offset 7" and steps["1 at the end"] == "None: held"
    assert steps["2 a new order comes"] == "pull 5: 1 unit, next_offset 8" and steps["3 look after 14 s"] == "[]"
    assert steps["2 a paid order comes"] == "pull 4: 1 unit, next_offset 9"


def test_a_power_cut_takes_what_was_not_synced() -> None:
    machine = TrialMachine()
    disk, unit = machine.disk(), unit_of_order(0)
    disk.create("log", 4096)
    disk.write("log", 0, unit)
    disk.sync("log")
    disk.write("log", len(unit), unit)
    machine.power_cut()
    assert machine.disk().read("log", 0, 2 * len(unit)) == unit + bytes(len(unit))

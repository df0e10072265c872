"""Stories that stop at a step, go on, and are met by faults."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.lab.world.story import StoryTeller
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports


def tell(until_step: int | None = None, faults: Any = None) -> tuple[SimWorld, list[str], StoryTeller]:
    """A story of three timers, two of them armed after the first second."""
    world = SimWorld(start_ms=0)
    ports: Ports = world.add_node("node", RealFiles())
    said: list[str] = []

    def timer(name: str) -> None:
        said.append(f"{name} {world.now_ms}")

    def story(_: Any) -> None:
        ports.clock.call_later(500, lambda: timer("a"), "timer")
        world.run_until_ms(1_000)
        said.append("between")
        ports.clock.call_later(500, lambda: timer("b"), "timer")
        ports.clock.call_later(600, lambda: timer("c"), "timer")
        world.run_until_ms(5_000)
        said.append("end")

    teller = StoryTeller(world, faults or {}, until_step)
    teller.tell(story, world)  # type: ignore[arg-type]
    return world, said, teller


def test_a_story_runs_to_its_end() -> None:
    world, said, teller = tell()
    assert said == ["a 500", "between", "b 1500", "c 1600", "end"]
    assert (world.now_ms, teller.is_paused()) == (5_000, False)


def test_until_step_stops_just_before_a_step_and_stepping_goes_on_inside_the_story() -> None:
    world, said, teller = tell(until_step=0)
    assert (said, teller.is_paused(), world.now_ms) == ([], True, 0)
    record = world.advance()
    assert record is not None and record.step == 0
    assert said == ["a 500", "between"]
    assert world.advance() is not None
    assert said[-1] == "b 1500"
    world.run_until_ms(9_000)
    assert said == ["a 500", "between", "b 1500", "c 1600", "end"]
    assert not teller.is_paused()
    assert world.advance() is None


def test_a_pause_changes_nothing_in_the_history() -> None:
    whole, _, _ = tell()
    paused, _, _ = tell(until_step=1)
    while paused.advance() is not None:
        pass
    assert paused.journal.digest() == whole.journal.digest()


def test_a_fault_acts_just_before_its_step() -> None:
    seen: list[int] = []
    _, said, _ = tell(faults={1: lambda world: seen.append(world.now_ms)})
    assert seen == [1_000]
    assert said[-1] == "end"


def test_a_fault_at_a_step_that_never_comes_is_told() -> None:
    _, _, teller = tell(faults={99: lambda world: None})
    with pytest.raises(UsageError, match="before the fault at step 99"):
        teller.check_faults_used()

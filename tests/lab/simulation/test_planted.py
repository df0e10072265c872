"""Defects are put into single parts of running nodes, nothing else changes, and each breaks its rule first."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from mqlab import Lab
from mqlab.course.cases.lab14.book import ROOMS, RULES, Breach, breaches
from mqlab.lab.simulation.planted import PlantedCluster, cluster, history
from mqlab.lab.simulation.planted.clusters import CATALOGUE
from mqlab.lab.simulation.planted.fitting import CLIENT, Defect, is_twin, swap
from mqlab.rocketmq.client.consuming.pull_loop import PullLoop

SOUND = Defect(CLIENT, "nothing", lambda node: None)
MOST_DAYS = 30
FEW = {"dispatched", "committed", "in order"}


def first_day(of: PlantedCluster, breaks: str) -> Breach | None:
    """The first breach on the first of some days on which the rule is broken before all others."""
    for number in range(MOST_DAYS):
        found = breaches(history(of.play(of.day(number))))
        if found and found[0].rule == breaks:
            return found[0]
    return None


def test_a_sound_cluster_breaks_no_rule() -> None:
    for name in ("one", "two"):
        sound = PlantedCluster(name, (SOUND,))
        for number in range(3):
            day = sound.day(number)
            assert breaches(history(sound.play(day))) == [], (name, number)


def test_a_delayed_message_was_promised_where_it_waits() -> None:
    """SEND_OK for a message given back names the offset in the queue of its delay, beside a topic that may have had
    another unit at this offset, which a power cut took.
    """
    sound = PlantedCluster("sound 13", (SOUND,))
    rows = history(sound.play(sound.day(2)))
    delayed = [row for row in rows if row["what"] == "message.sent" and row["queue"].startswith("SCHEDULE_TOPIC_XXXX")]
    assert [row["status"] for row in delayed] == ["SEND_OK"]
    assert breaches(rows) == []


@pytest.mark.long
def test_many_sound_clusters_break_no_rule_and_raise_no_alarm() -> None:
    for name in range(50):
        sound = PlantedCluster(f"sound {name}", (SOUND,))
        for number in range(4):
            day = sound.day(number)
            assert breaches(history(sound.play(day))) == [], (name, number)
            assert sound.alarm(day) == [], (name, number)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=() if defect.breaks in FEW else pytest.mark.long)
        for number, defect in enumerate(CATALOGUE)
    ],
)
def test_a_defect_breaks_its_rule_first(number: int) -> None:
    defect = CATALOGUE[number]
    assert ROOMS[defect.breaks] == defect.room
    found = first_day(PlantedCluster(f"number {number}", (defect,)), defect.breaks)
    assert found is not None


def test_every_rule_has_a_defect_that_breaks_it() -> None:
    assert {defect.breaks for defect in CATALOGUE} == set(RULES) == set(ROOMS)


def test_the_same_name_is_the_same_cluster_step_by_step() -> None:
    name = "some name"
    day = cluster(name).day(2)
    assert day == PlantedCluster(name).day(2)
    assert cluster(name).play(day).journal.digest() == PlantedCluster(name).play(day).journal.digest()
    assert cluster("another").day(2) != day


def test_fewer_events_can_be_played() -> None:
    it = cluster("some name")
    day = it.day(0)
    assert not any(row["what"] == "message.stored" for row in history(it.play(day, [])))


def test_a_defect_is_in_one_cluster_and_not_in_the_package() -> None:
    before = {name: value for name, value in vars(PullLoop).items() if callable(value)}
    pulled = PlantedCluster("p", tuple(defect for defect in CATALOGUE if defect.breaks == "pulled"))
    lab = pulled.play(pulled.day(0))
    assert {name: value for name, value in vars(PullLoop).items() if callable(value)} == before
    part: Any = lab.handles["billing-1"].node.pull_loop
    assert is_twin(part)
    assert isinstance(part, PullLoop)
    assert type(part).__name__ == "PullLoop"
    for name in ("_failed", "_found"):
        assert inspect.getsource(getattr(part, name)) == inspect.getsource(getattr(PullLoop, name))
    sound = Lab().push_consumer("billing")
    assert type(sound.node.pull_loop) is PullLoop


def test_each_life_of_a_node_is_fitted_before_it_starts() -> None:
    lab = Lab()
    lives: list[tuple[str, Any, bool]] = []

    def fitter(role: str, node: Any) -> None:
        lives.append((role, node, getattr(node, "is_running", True)))

    lab.fit_nodes(fitter)
    assert [role for role, _, _ in lives] == ["name server", "broker"]
    lab.producer("shop")
    lab.kill("broker-a")
    lab.start("broker-a")
    assert [role for role, _, _ in lives[2:]] == ["producer", "broker"]
    assert lives[-1][1] is lab.broker().node
    assert not lives[-1][2]
    assert lab.broker().is_running


def test_swap_changes_one_object() -> None:
    class Adder:
        step = 1

        def add(self, number: int) -> int:
            """Add the step."""
            return number + self.step

        @property
        def twice(self) -> int:
            return 2 * self.step

    changed, other = Adder(), Adder()
    swap(changed, {"add": lambda original, self, number: original(self, number) + 10, "twice": lambda *_: 7})
    assert (changed.add(1), changed.twice) == (12, 7)
    assert (other.add(1), other.twice) == (2, 2)
    assert type(changed).add.__doc__ == "Add the step."
    assert is_twin(changed)
    assert not is_twin(other)

"""Under SYNC_FLUSH a crash of any node at any step loses nothing that was acknowledged (stories in crash_stories.py).

The default run tries every step of sending and an eleventh of the steps of the other stories; ``long`` tries them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import Lab, every_crash, play
from mqlab.lab.world.crashes import CrashPoint
from tests.lab.scenarios.crash_stories import SAFE, STORIES, TOPIC, broken_promises

ALL = [(story, node) for story in STORIES for node in ("broker-a", "billing-1")]
ALL += [("send", "shop-1"), ("send-back", "shop-1"), ("transaction", "pay-1")]
WAYS = ("kill", "power_off")


def wrong_after_crashes(
    story: str, node: str, how: str, only: Callable[[CrashPoint], bool] = lambda point: True, **settings: Any
) -> tuple[int, list[str]]:
    """How many crash points were tried, and what was wrong after them."""
    tried, wrong = 0, []
    for lab in every_crash(STORIES[story], node=node, how=how, only=only, **{**SAFE, **settings}):
        tried += 1
        wrong += [f"{lab.crash_point}: {problem}" for problem in broken_promises(lab)]
    return tried, wrong


@pytest.mark.parametrize("how", WAYS)
def test_every_step_of_the_broker_while_messages_are_sent(how: str) -> None:
    tried, wrong = wrong_after_crashes("send", "broker-a", how)
    assert wrong == [] and tried > 50


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("story", "node"), [pair for pair in ALL if pair != ("send", "broker-a")])
def test_some_steps_of_every_story(story: str, node: str, how: str) -> None:
    part = sum(map(ord, story + node + how)) % 11
    tried, wrong = wrong_after_crashes(story, node, how, only=lambda point: point.number % 11 == part)
    assert wrong == [] and tried >= 1


@pytest.mark.parametrize("story", STORIES)
def test_a_power_cut_before_each_flush_and_dispatch(story: str) -> None:
    """Where a broker stands between what is written and what is safe."""
    steps = ("store.group_commit", "store.dispatch", "offset.persist", "schedule.deliver")
    tried, wrong = wrong_after_crashes(story, "broker-a", "power_off", only=lambda point: point.where in steps)
    assert wrong == [] and tried >= 5


@pytest.mark.long
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("story", "node"), ALL)
def test_every_step_of_every_story(story: str, node: str, how: str) -> None:
    tried, wrong = wrong_after_crashes(story, node, how)
    assert wrong == [] and tried >= 5


def test_without_sync_flush_a_power_cut_takes_acknowledged_messages_and_this_is_noticed() -> None:
    loose = {"broker": {**SAFE["broker"], "flush_disk_type": "ASYNC_FLUSH"}}
    part = lambda point: point.where in ("store.dispatch", "frame")  # noqa: E731
    _, wrong = wrong_after_crashes("send", "broker-a", "power_off", only=part, **loose)
    assert any("is acknowledged and not stored" in problem for problem in wrong)


def crash_keeping_some(seed: int) -> Callable[[Lab], None]:
    """A power cut in which the disk had synced a random part of what it was not told to sync."""

    def crash(lab: Lab) -> None:
        rng = random.Random(seed)
        lab.power_off("broker-a", keep=lambda unsynced: rng.random() < 0.5)
        lab.world.at(lab.now_ms + 1_000, lambda: lab.start("broker-a"))

    return crash


def broker_steps(story: str) -> list[int]:
    """The steps of the broker in a run without a crash."""
    calm = play(STORIES[story], **SAFE)
    topics = calm.journal.changes("topic.created")
    begun = next(record.step for record, values in topics if values["topic"] == TOPIC)
    return [one.step for one in calm.journal if one.node == "broker-a" and one.kind != "call" and one.step > begun]


@pytest.mark.parametrize("story", ["send-back", "transaction"])
def test_pages_that_reached_the_disk_by_themselves_do_no_harm(story: str) -> None:
    for step in broker_steps(story)[3::11]:
        lab = play(STORIES[story], faults={step: crash_keeping_some(step)}, **SAFE)
        assert broken_promises(lab) == [], f"step {step}"


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES)
def test_pages_that_reached_the_disk_by_themselves_do_no_harm_at_any_step(story: str) -> None:
    for step in broker_steps(story):
        for seed in (1, 2):
            lab = play(STORIES[story], faults={step: crash_keeping_some(seed)}, **SAFE)
            assert broken_promises(lab) == [], f"step {step}, seed {seed}"


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES)
def test_the_consumer_dies_a_little_after_the_broker(story: str) -> None:
    def both(lab: Lab) -> None:
        lab.power_off("broker-a")
        lab.world.at(lab.now_ms + 1_000, lambda: lab.start("broker-a"))
        lab.world.at(lab.now_ms + 1_500, lambda: lab.kill("billing-1") if lab.handles["billing-1"].is_up else None)
        lab.world.at(lab.now_ms + 2_500, lambda: lab.start("billing-1"))

    for step in broker_steps(story)[10::3]:  # the consumer is there by then
        lab = play(STORIES[story], faults={step: both}, **SAFE)
        assert broken_promises(lab) == [], f"step {step}"

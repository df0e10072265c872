"""Under SYNC_FLUSH no file of offsets is ahead of the log: a power cut at any step repeats, and loses nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.command import request
from tests.rocketmq.broker.world import SMALL_STORE, World

COMMIT = {"consumerGroup": "billing", "topic": "orders", "queueId": 0}
SYNC = dataclasses.replace(SMALL_STORE, flush_disk_type="SYNC_FLUSH", message_delay_level="9s 1s")


def world(directory: Path) -> World:
    return World(directory, store=SYNC, files=CrashFiles())


def steps(directory: Path) -> range:
    """The steps from the acknowledgement of the story's message to 16 s later."""
    lab = world(directory)
    start = lab.sim.journal.next_step
    story(lab)
    acknowledged = lab.sim.journal.next_step - start
    lab.run_for(16_000)
    return range(acknowledged, lab.sim.journal.next_step - start)


def story(lab: World) -> None:
    """A delayed message, delivered in the very ms in which the delay offsets are written, 10 s after the start."""
    client = lab.client()
    lab.run_for(920)
    client.heartbeat("billing", SubscriptionData("orders"))
    assert client.put("orders", "не потеряйся".encode(), DELAY="1").code == 0


def test_a_delayed_message_survives_a_power_cut_at_any_step(tmp_path: Path) -> None:
    cuts = steps(tmp_path / "count")
    lost = []
    for cut_after in cuts:
        lab = world(tmp_path / str(cut_after))
        start = lab.sim.journal.next_step
        story(lab)
        while lab.sim.journal.next_step - start < cut_after:
            lab.sim.step()
        lab.restart_broker(clean=False, power_cut=True)
        lab.run_for(16_000)
        if not lab.messages("orders"):
            lost.append(cut_after)
    assert len(cuts) >= 10 and lost == []


@pytest.mark.parametrize("wait_ms", [0, 5, 9_970, 10_010])
def test_a_message_given_back_is_there_when_the_committed_offset_is(tmp_path: Path, wait_ms: int) -> None:
    lab = world(tmp_path)
    client = lab.client()
    client.put("orders", b"failing")
    client.heartbeat("billing", SubscriptionData("orders"))
    lab.run_for(wait_ms)
    client.ask(36, offset=0, group="billing", delayLevel=2, maxReconsumeTimes=16)
    client.tell(15, **COMMIT, commitOffset=1)
    while not lab.changes("offset.persisted"):
        lab.sim.step()
    lab.restart_broker(clean=False, power_cut=True)
    lab.run_for(2_000)
    assert lab.broker.offset_table.query("billing", "orders", 0) == 1
    assert b"failing" in [one.body for one in lab.messages("%RETRY%billing")]


def test_the_offset_file_waits_for_the_log_even_within_one_millisecond(tmp_path: Path) -> None:
    """A commit arms the file's tick; before it, the same ms brings a send-back and the commit that relies on it."""
    lab = world(tmp_path)
    client = lab.client()
    client.put("orders", b"failing")
    client.heartbeat("billing", SubscriptionData("orders"))
    lab.run_for(lab.broker.started_ms + 19_999 - lab.sim.now_ms)
    client.remoting.invoke_oneway(lab.broker.address, request(15, **{**COMMIT, "queueId": 1}, commitOffset=0))
    client.send(36, offset=0, group="billing", delayLevel=2, maxReconsumeTimes=16)
    client.remoting.invoke_oneway(lab.broker.address, request(15, **COMMIT, commitOffset=1))
    while not lab.changes("offset.persisted"):
        lab.sim.step()
    assert lab.sim.now_ms == lab.broker.started_ms + 20_000
    lab.restart_broker(clean=False, power_cut=True)
    lab.run_for(2_000)
    assert lab.broker.offset_table.query("billing", "orders", 0) == 1
    assert [one.body for one in lab.messages("%RETRY%billing")] == [b"failing"]

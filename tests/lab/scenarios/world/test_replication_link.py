"""The link between two living brokers (vectors: tests/rocketmq/broker/test_replication_link.py).

Mirrors: DefaultHAConnection, DefaultHAClient.
"""

from __future__ import annotations

import itertools

from tests.lab.scenarios.stories import changes, moments
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, UNIT, ends, fill, log_bytes, pair


def test_blocks_are_small_and_end_with_their_file() -> None:
    lab = pair()
    fill(lab, 1000)
    blocks = [(values["physical_offset"], values["size"]) for values in changes(lab, "ha.block_sent")]
    assert max(size for _, size in blocks) == 32_768
    assert sum(size for _, size in blocks) == ends(lab)[0]
    assert any(offset + size == 1 << 20 for offset, size in blocks)
    assert [(values["physical_offset"], values["size"]) for values in changes(lab, "ha.block_appended")] == blocks
    acks = [values["physical_offset"] for values in changes(lab, "ha.acknowledged")]
    assert acks == [offset + size for offset, size in blocks]


def test_an_idle_link_costs_a_heartbeat_each_way_in_five_seconds() -> None:
    lab = pair()
    lab.run_for("60s")
    beats = [(record.node, record.now_ms) for record in lab.journal.of("ha.heartbeat")]
    for node in (MASTER, SLAVE):
        times = [at for name, at in beats if name == node]
        assert len(times) == 11 and {later - sooner for sooner, later in itertools.pairwise(times)} == {5_001}
    assert lab.world.is_quiet()
    assert not changes(lab, "ha.lost")


def test_a_slave_that_was_away_goes_on_where_it_was() -> None:
    lab = pair()
    fill(lab, 10)
    lab.kill(SLAVE)
    fill(lab, 10)
    lab.start(SLAVE)
    lab.run_for("6s")
    assert [values["sends_from"] for values in changes(lab, "ha.requested")] == [0, 10 * UNIT]
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)


def test_a_partition_ends_the_link_after_twenty_seconds_on_both_sides_and_healing_brings_it_back() -> None:
    lab = pair()
    fill(lab, 4)
    lab.partition(MASTER, SLAVE)
    cut_ms = lab.now_ms - lab.began_ms
    fill(lab, 4)
    lab.run_for("40s")
    first = moments(lab, "ha.lost", reason="nothing heard")
    assert len(first) == 2 and all(cut_ms + 19_000 <= at <= cut_ms + 26_000 for at in first)
    assert ends(lab)[1] == 4 * UNIT
    assert {values["reason"] for values in changes(lab, "ha.lost")} == {"nothing heard", "timed out"}
    lab.heal()
    lab.run_for("15s")
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)
    assert len(lab.broker(MASTER).replication.server.connections) == 1


def test_a_master_that_comes_back_is_found_within_five_seconds() -> None:
    lab = pair()
    fill(lab, 4)
    lab.kill(MASTER)
    lab.run_for("30s")
    lab.start(MASTER)
    lab.run_for("5100ms")
    fill(lab, 4)
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)
    refused = moments(lab, "ha.lost", reason="refused")
    assert {later - sooner for sooner, later in itertools.pairwise(refused)} == {5_001}


def test_a_master_without_power_is_given_up_after_twenty_seconds() -> None:
    lab = pair()
    fill(lab, 4)
    lab.run_for("15s")
    lab.power_off(MASTER)
    off_ms = lab.now_ms - lab.began_ms
    lab.run_for("30s")
    [at] = moments(lab, "ha.lost", reason="nothing heard")
    assert off_ms + 15_000 <= at <= off_ms + 20_100
    assert moments(lab, "ha.lost", reason="timed out")

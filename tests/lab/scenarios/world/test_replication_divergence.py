"""Where a slave begins, and what happens when the two logs are not one.

Mirrors: DefaultHAConnection, DefaultHAClient.dispatchReadRequest.
"""

from __future__ import annotations

import pytest

from mqlab import Lab
from mqlab.errors import UsageError
from tests.lab.scenarios.stories import changes, moments
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, UNIT, ends, fill, log_bytes, pair, queue_range, unit_of

MIB = 1 << 20


def without_disk(lab: Lab) -> None:
    """The slave ends and loses all it has."""
    lab.kill(SLAVE)
    lab.lose_disk(SLAVE)


def test_a_new_slave_has_the_masters_last_file_and_what_follows() -> None:
    lab = pair()
    without_disk(lab)
    fill(lab, 2348)
    lab.start(SLAVE)
    lab.run_for("6s")
    names = sorted(path.name for path in (lab.directory / "replicas" / SLAVE / "commitlog").iterdir())
    assert names[0] == "00000000000002097152"
    assert queue_range(lab, MASTER) == (0, 587)
    assert queue_range(lab, SLAVE) == (431, 587)
    assert changes(lab, "ha.requested")[-1]["sends_from"] == 2 * MIB
    assert log_bytes(lab, SLAVE, 2 * MIB) == log_bytes(lab, MASTER, 2 * MIB)


def ahead() -> Lab:
    """The master lost 50 messages that the slave has: power went before they were flushed."""
    lab = pair(seed=3)
    fill(lab, 40)
    lab.run_for("20s")  # flushed
    store = lab.broker(MASTER).store
    for _ in range(50):
        assert store.put(unit_of(UNIT, "lost", 0)).is_ok
    lab.run_for("200ms")
    assert ends(lab)[0] == ends(lab)[1]
    lab.power_off(MASTER)
    lab.start(MASTER)
    lab.run_for("30s")
    return lab


def test_a_slave_ahead_is_accepted_and_looks_well() -> None:
    lab = ahead()
    assert ends(lab) == (40 * UNIT, 90 * UNIT)
    [link] = lab.admin.ha_status(MASTER).ha_connection_info
    assert (link.diff, link.in_sync) == (-60_850, True)
    assert changes(lab, "ha.requested")[-1]["physical_offset"] == 90 * UNIT
    assert not changes(lab, "ha.diverged")


def test_when_the_master_has_passed_it_the_logs_end_together_and_the_slaves_queues_stand_still_for_ever() -> None:
    lab = ahead()
    seam = ends(lab)[1]
    store = lab.broker(MASTER).store
    for _ in range(100):
        assert store.put(unit_of(UNIT - 7, "lost", 0)).is_ok
    lab.run_for("1s")
    assert ends(lab)[0] == ends(lab)[1] > seam
    assert lab.admin.ha_status(MASTER).ha_connection_info[0].diff == 0
    assert queue_range(lab, MASTER, "lost") == (0, 100)
    assert queue_range(lab, SLAVE, "lost") == (0, 50)  # its own old messages, unknown to the master
    assert lab.broker(SLAVE).store.dispatch_behind_bytes == ends(lab)[0] - seam
    fill(lab, 8)  # other topics stand still as well
    lab.run_for("1h")
    assert queue_range(lab, SLAVE)[1] == 10 and queue_range(lab, MASTER)[1] == 12
    assert lab.broker(SLAVE).store.dispatch_behind_bytes == ends(lab)[0] - seam
    assert not changes(lab, "store.problem")


def test_the_cure_is_a_new_disk_for_the_slave() -> None:
    lab = ahead()
    without_disk(lab)
    lab.start(SLAVE)
    fill(lab, 100, topic="lost")
    lab.run_for("6s")
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)
    assert queue_range(lab, SLAVE, "lost") == queue_range(lab, MASTER, "lost")


def test_a_slave_behind_the_oldest_file_gets_nothing_and_nobody_says_so() -> None:
    lab = pair()
    fill(lab, 4)
    lab.kill(SLAVE)
    fill(lab, 2300)
    lab.broker(MASTER).store.commit_log.queue.delete_first()
    lab.start(SLAVE)
    lab.run_for("30s")
    assert ends(lab)[1] == 4 * UNIT
    [link] = lab.admin.ha_status(MASTER).ha_connection_info
    assert link.diff == ends(lab)[0] - 4 * UNIT and link.in_sync
    assert not changes(lab, "ha.diverged")
    assert moments(lab, "ha.lost", reason="nothing heard") == []


def test_a_slave_that_was_written_to_by_something_else_is_noticed_once_and_never_again() -> None:
    lab = pair()
    fill(lab, 4)
    slave = lab.broker(SLAVE).store
    assert slave.append_block(slave.max_physical_offset, b"\0" * 100)
    fill(lab, 4)
    lab.run_for("30s")
    assert changes(lab, "ha.diverged") == [{"own_offset": 4 * UNIT + 100, "physical_offset": 4 * UNIT}]
    assert changes(lab, "ha.requested")[-1]["sends_from"] == 4 * UNIT + 100  # reconnected: taken at its word
    assert ends(lab)[1] == ends(lab)[0] and log_bytes(lab, SLAVE) != log_bytes(lab, MASTER)
    assert (queue_range(lab, MASTER)[1], queue_range(lab, SLAVE)[1]) == (2, 1)


def test_a_torn_tail_is_cut_by_the_slaves_own_recovery_and_sent_again() -> None:
    lab = pair(broker={"ha_transfer_batch_size": 1_000})
    fill(lab, 1)
    lab.run_for("200ms")
    lab.broker(MASTER).store.put(unit_of(UNIT, "T", 0))
    lab.run_until(lambda: ends(lab)[1] > UNIT)  # the first 1000 bytes of it
    assert ends(lab)[1] < 2 * UNIT
    lab.kill(SLAVE)
    lab.start(SLAVE)
    assert ends(lab)[1] == UNIT
    lab.run_for("6s")
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)
    assert queue_range(lab, SLAVE) == (0, 2)


def test_losing_a_disk_is_for_brokers_that_are_down() -> None:
    lab = pair()
    with pytest.raises(UsageError, match="is running"):
        lab.lose_disk(SLAVE)
    lab.kill("nameserver-1")
    with pytest.raises(UsageError, match="is a name server"):
        lab.lose_disk("nameserver-1")

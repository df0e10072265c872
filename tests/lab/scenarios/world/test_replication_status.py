"""What the two sides say of the link (bodies: tests/rocketmq/broker/test_replication_link.py).

Mirrors: HARuntimeInfo, HAStatusSubCommand.
"""

from __future__ import annotations

from tests.lab.scenarios.world.replicas import MASTER, SLAVE, UNIT, ends, fill, pair


def test_the_masters_view_of_a_link_through_a_slaves_life() -> None:
    lab = pair()
    [link] = lab.admin.ha_status(MASTER).ha_connection_info
    assert (link.slave_ack_offset, link.transfer_from_where, link.diff, link.in_sync) == (0, 0, 0, True)
    fill(lab, 10)
    status = lab.admin.ha_status(MASTER)
    assert (status.master_commit_log_max_offset, status.in_sync_slave_nums) == (10 * UNIT, 1)
    assert status.ha_connection_info[0].transferred_byte_in_second in (0, 10 * UNIT)
    lab.kill(SLAVE)
    lab.run_for("1s")
    status = lab.admin.ha_status(MASTER)
    assert status.ha_connection_info == () and status.in_sync_slave_nums == 0
    lab.start(SLAVE)
    lab.run_for("6s")
    assert lab.admin.ha_status(MASTER).ha_connection_info[0].diff == 0


def test_a_link_that_has_not_reported_shows_minus_one() -> None:
    lab = pair()
    fill(lab, 2)
    lab.kill(SLAVE)
    lab.slow(SLAVE, "2s")
    lab.start(SLAVE)
    lab.run_until("ha.connected")
    [link] = lab.broker(MASTER).replication.server.connections
    assert (link.ack_offset, link.next_offset) == (-1, -1)


def test_in_sync_is_a_matter_of_ha_max_gap_not_in_sync() -> None:
    lab = pair(broker={"ha_max_gap_not_in_sync": 3 * UNIT})
    lab.partition(MASTER, SLAVE)
    for count, in_sync in ((2, True), (1, False)):
        fill(lab, count)
        status = lab.admin.ha_status(MASTER)
        assert status.ha_connection_info[0].in_sync is in_sync
        assert status.in_sync_slave_nums == int(in_sync)


def test_the_slaves_own_view() -> None:
    lab = pair()
    fill(lab, 10)
    lab.run_for("20s")
    mine = lab.admin.ha_status(MASTER, 1).ha_client_runtime_info
    assert mine.master_addr == lab.broker(MASTER).ha_address
    assert mine.max_offset == ends(lab)[1] == 10 * UNIT
    assert lab.now_ms - mine.last_read_timestamp <= 5_010 and lab.now_ms - mine.last_write_timestamp <= 5_010

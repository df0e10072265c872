"""What master and slave do, each with its own part.

Mirrors: BrokerRole, DefaultHAService.
"""

from __future__ import annotations

import pytest

from mqlab.errors import UsageError
from tests.lab.scenarios.stories import Seen, Tool, member, moments, quiet_lab, send
from tests.lab.scenarios.world.replicas import (
    MASTER,
    SLAVE,
    UNIT,
    ends,
    fill,
    log_bytes,
    pair,
    pull,
    queue_range,
    unit_of,
)


def test_a_lab_with_replicas_names_and_links_them() -> None:
    lab = pair(brokers=2, replicas=2)
    assert list(lab.handles) == [
        "nameserver-1",
        "broker-a",
        "broker-b",
        "broker-a-s1",
        "broker-a-s2",
        "broker-b-s1",
        "broker-b-s2",
    ]
    assert [slave.name for slave in lab.slaves("broker-b")] == ["broker-b-s1", "broker-b-s2"]
    assert [slave.config.broker_id for slave in lab.slaves("broker-b-s1")] == [1, 2]
    for master in ("broker-a", "broker-b"):
        assert len(lab.broker(master).replication.server.connections) == 2
        assert lab.broker(f"{master}-s2").replication.client.state == "TRANSFER"
    assert "slave of broker-b" in repr(lab.diagram()) or "slave of broker-b" in lab.diagram().text()
    assert lab.diagram().text().count("copies the log of") == 4
    with pytest.raises(UsageError, match="replicas must be 0 or more"):
        quiet_lab(replicas=-1)


def test_slaves_stand_apart_from_the_brokers_stores() -> None:
    lab = pair()
    assert (lab.directory / "replicas" / SLAVE / "commitlog").parent == lab.directory / "replicas" / SLAVE
    fill(lab, 3)
    assert [message.queue_id for message in lab.store(SLAVE).messages()] == [0, 1, 2]
    with pytest.raises(UsageError, match="copies its topics from its master"):
        lab.create_topic("orders", brokers=[SLAVE])


def test_a_slave_dispatches_its_log_itself() -> None:
    lab = pair()
    fill(lab, 900)  # over the end of a file
    assert ends(lab)[0] == ends(lab)[1]
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)
    for queue_id in range(4):
        assert queue_range(lab, SLAVE, queue_id=queue_id) == queue_range(lab, MASTER, queue_id=queue_id) == (0, 225)
    files = [path.name for path in sorted((lab.directory / "replicas" / SLAVE / "commitlog").iterdir())]
    assert files[:2] == ["00000000000000000000", "00000000000001048576"]


def test_keys_are_found_at_the_slave() -> None:
    lab = pair()
    lab.create_topic("orders")
    send(lab.producer("shop"), "заказ 订单 😀", keys="order-1")
    lab.run_for("1s")
    found = lab.broker(SLAVE).store.query("orders", key="order-1", max_nums=32)
    assert [record.body.decode() for record in found.records] == ["заказ 订单 😀"]


def test_a_pull_held_at_the_slave_wakes_when_the_message_is_copied() -> None:
    lab = pair(replica={"slave_read_enable": True})
    lab.create_topic("T")
    lab.run_for("70s")  # the slave has the topic now
    tool = Tool(lab)
    began_ms = lab.now_ms
    lab.at(began_ms - lab.began_ms + 1_000, lambda: lab.broker(MASTER).store.put(unit_of(UNIT, "T", 0)))
    answer = pull(tool, SLAVE, 0, sysFlag=6, suspendTimeoutMillis=15_000)
    assert answer.code == 0 and 1_000 <= lab.now_ms - began_ms <= 1_200


def test_logs_with_files_of_different_sizes_agree_and_the_slaves_queues_end_at_the_first_filler() -> None:
    lab = pair(replica={"mapped_file_size_commit_log": 8 << 20})
    fill(lab, 2300)
    assert ends(lab) == (2_800_578, 2_800_578)
    [link] = lab.admin.ha_status(MASTER).ha_connection_info
    assert (link.diff, link.in_sync) == (0, True)
    assert queue_range(lab, MASTER)[1] == 575
    assert queue_range(lab, SLAVE)[1] == 216
    lab.run_for("1h")
    assert queue_range(lab, SLAVE)[1] == 216


def test_a_slave_runs_no_schedule_and_no_transaction_check() -> None:
    lab = pair(broker={"message_delay_level": "1s 5s"})
    lab.create_topic("orders")
    seen = Seen(lab)
    member(lab, "billing", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("2s")
    send(lab.producer("shop"), "позже 稍后 ⏰", delay_time_level=2)
    lab.run_for("20s")
    assert seen.bodies == ["позже 稍后 ⏰"]
    assert len(moments(lab, "message.delivered_late")) == 1
    assert not [record for record in lab.journal.of("schedule.deliver") if record.node == SLAVE]
    assert dict(lab.broker(SLAVE).delay_offset_table) == {}

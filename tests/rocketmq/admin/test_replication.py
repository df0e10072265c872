"""HA status and broker status of masters and slaves, as an operator sees them."""

from __future__ import annotations

import json

import pytest

from mqlab import Lab, Message
from mqlab.errors import UsageError


def replicated() -> Lab:
    lab = Lab(seed=4, replicas=2, client={"enable_trace": False})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    for number in range(5):
        producer.send(Message("orders", f"заказ 订单 {number} 💳".encode()))
    lab.run_for("1s")
    return lab


def test_a_master_tells_of_its_links_and_a_slave_of_its_own() -> None:
    lab = replicated()
    end = lab.broker().store.max_physical_offset
    status = lab.admin.ha_status("broker-a")
    assert (status.master, status.master_commit_log_max_offset, status.in_sync_slave_nums) == (True, end, 2)
    assert [(link.slave_ack_offset, link.diff, link.in_sync) for link in status.ha_connection_info] == [
        (end, 0, True)
    ] * 2
    assert f"log end {end}, 2 slaves in sync" in str(status)
    for broker_id in (1, 2):
        slave = lab.admin.ha_status("broker-a", broker_id)
        assert not slave.master
        assert slave.ha_client_runtime_info.max_offset == end
        assert slave.ha_client_runtime_info.master_addr == lab.broker().ha_address
        assert f"slave {broker_id}" in str(slave)
    assert json.loads(json.dumps(status.to_value()))["in_sync_slave_nums"] == 2
    with pytest.raises(UsageError, match="broker-a 0, broker-a 1, broker-a 2"):
        lab.admin.ha_status("broker-a", 3)
    with pytest.raises(UsageError, match="no broker 'broker-z'"):
        lab.admin.ha_status("broker-z")


def test_a_slave_that_hears_nothing_falls_behind() -> None:
    lab = replicated()
    lab.partition("broker-a", "broker-a-s2")
    lab.producer("bank").send(Message("orders", "支付".encode()))
    lab.run_for("1s")
    near, far = lab.admin.ha_status("broker-a").ha_connection_info
    assert near.diff == 0 < far.diff
    lab.heal()
    lab.run_for("1s")
    assert [link.diff for link in lab.admin.ha_status("broker-a").ha_connection_info] == [0, 0]


def test_broker_status_of_a_slave_counts_what_it_dispatched() -> None:
    lab = replicated()
    numbers = {each.name: each.value for each in lab.admin.fetch_broker_runtime_stats("broker-a", 1)}
    assert (numbers["brokerActive"], numbers["putMessageTimesTotal"]) == ("false", "5")
    assert numbers["dispatchBehindBytes"] == "0"
    assert [(row.broker, row.broker_id) for row in lab.admin.examine_broker_cluster_info()] == [
        ("broker-a", 0),
        ("broker-a", 1),
        ("broker-a", 2),
    ]

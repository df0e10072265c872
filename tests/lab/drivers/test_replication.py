"""Master and slave on real threads and real sockets: the nodes of the simulation, unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.errors import MqlabError

pytestmark = pytest.mark.usefixtures("calls_have_real_time")

# RocketMQ's seconds become tens of ms here: what must not time out on a busy machine gets minutes.
PATIENT = {"send_msg_timeout": 600_000}
REAL: dict[str, Any] = {"driver": "threads", "speed": 20, "client": {"enable_trace": False}}
TWO_COPIES = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 600_000}


def ends(lab: Lab) -> tuple[int, int]:
    return tuple(lab.broker(name).store.max_physical_offset for name in ("broker-a", "broker-a-s1"))  # type: ignore[return-value]


def logs(lab: Lab) -> list[bytes]:
    found = []
    for name in ("broker-a", "broker-a-s1"):
        log, data = lab.broker(name).store.commit_log, b""
        while block := log.block_from(len(data), 1 << 20):
            data += block
        found.append(data)
    return found


def test_every_byte_goes_over_the_socket_and_makes_the_same_log() -> None:
    with Lab(replicas=1, broker={"ha_transfer_batch_size": 700}, **REAL) as lab:
        lab.create_topic("orders")
        producer = lab.producer("shop", **PATIENT)
        for number in range(40):
            producer.send(Message("orders", f"заказ {number} 订单 😀".encode() * 20))
        lab.run_until(lambda: ends(lab)[0] == ends(lab)[1] > 0, limit="2h")
        mine, theirs = logs(lab)
        assert mine == theirs and len(mine) > 20_000


def test_two_copies_are_acknowledged_and_survive_the_master() -> None:
    with Lab(replicas=1, broker=TWO_COPIES, **REAL) as lab:
        lab.create_topic("orders")
        producer = lab.producer("shop", **PATIENT)
        results = [producer.send(Message("orders", f"支付 {number}".encode())) for number in range(20)]
        lab.kill("broker-a")
        lab.lose_disk("broker-a")
        assert {result.send_status for result in results} == {"SEND_OK"}
        kept = {message.properties["UNIQ_KEY"] for message in lab.store("broker-a-s1").messages()}
        assert {result.msg_id for result in results} <= kept


def test_without_a_slave_the_put_is_in_doubt() -> None:
    with Lab(replicas=1, broker={**TWO_COPIES, "slave_timeout": 2_000}, **REAL) as lab:
        lab.create_topic("orders")
        lab.kill("broker-a-s1")
        producer = lab.producer("shop", **PATIENT)
        assert producer.send(Message("orders", b"x")).send_status == "FLUSH_SLAVE_TIMEOUT"


@pytest.mark.parametrize("node", ["broker-a-s1", "broker-a"])
def test_a_restarted_end_of_the_link_catches_up(node: str) -> None:
    with Lab(replicas=1, **REAL) as lab:
        lab.create_topic("orders")
        producer = lab.producer("shop", **PATIENT)
        producer.send(Message("orders", "до 之前".encode()))
        lab.run_until(lambda: ends(lab)[0] == ends(lab)[1], limit="2h")
        lab.kill(node)
        if node == "broker-a-s1":
            producer.send(Message("orders", "без него".encode()))
        lab.start(node)
        lab.run_until(lambda: sends(producer), limit="2h")
        lab.run_until(lambda: ends(lab)[0] == ends(lab)[1], limit="2h")
        mine, theirs = logs(lab)
        assert mine == theirs


def sends(producer: Any) -> bool:
    try:
        return bool(producer.send(Message("orders", "после 之后".encode())).send_status == "SEND_OK")
    except MqlabError:
        return False


def test_reads_go_on_at_the_slave_when_the_master_is_gone() -> None:
    with Lab(replicas=1, broker={"slave_read_enable": True}, **{**REAL, "speed": 40}) as lab:
        lab.create_topic("orders")
        consumer = lab.push_consumer(
            "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_threshold_for_queue=1
        )
        consumer.subscribe("orders")

        master_is_gone: list[bool] = []

        def waiting(messages: Any, context: Any) -> str:
            while not master_is_gone:
                context.sleep("1s")
            return CONSUME_SUCCESS

        consumer.on_messages(waiting)  # holds what is cached: the rest can only come from the slave
        consumer.start()
        lab.run_until(lambda: "orders" in lab.broker("broker-a-s1").topics, limit="2h")
        producer = lab.producer("shop", **PATIENT)
        sent = {producer.send(Message("orders", f"{number}".encode())).msg_id for number in range(200)}
        lab.run_until(lambda: ends(lab)[0] == ends(lab)[1], limit="2h")
        lab.kill("broker-a")
        master_is_gone.append(True)
        lab.run_until(lambda: {row.msg_id for row in lab.deliveries("billing", absences=False)} == sent, limit="4h")
        pulls = [record for record in lab.journal if record.node == "broker-a-s1" and record.about is not None]
        assert any(record.about.code == 11 for record in pulls)


def test_a_partition_is_healed_and_nothing_is_out_of_order() -> None:
    with Lab(replicas=1, broker={"ha_transfer_batch_size": 500}, **REAL) as lab:
        lab.create_topic("orders")
        producer = lab.producer("shop", **PATIENT)
        for turn in range(3):
            lab.partition("broker-a", "broker-a-s1")
            for number in range(20):
                producer.send(Message("orders", f"{turn} {number} 订单".encode() * 10))
            lab.heal()
        lab.run_until(lambda: ends(lab)[0] == ends(lab)[1], limit="2h")
        mine, theirs = logs(lab)
        assert mine == theirs

"""With two copies and synchronous flushing an acknowledged message outlives any one machine, whenever it dies."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message, every_crash, play
from mqlab.errors import MqlabError
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, TWO_COPIES, log_bytes

SAFE: dict[str, Any] = {
    "client": {"enable_trace": False},
    "replicas": 1,
    "broker": {**TWO_COPIES, "flush_disk_type": "SYNC_FLUSH", "slave_timeout": 1_000},
}


def sending(lab: Lab) -> None:
    """Four messages one after another and three at once; what was answered SEND_OK is remembered on the Lab."""
    lab.acknowledged = []  # type: ignore[attr-defined]
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    producer = lab.producer("shop", send_msg_timeout=5_000, retry_times_when_send_failed=0)

    def remember(ask: Any) -> None:
        try:
            result = ask()
        except MqlabError:
            return
        if result.send_status == "SEND_OK":
            lab.acknowledged.append(result.msg_id)  # type: ignore[attr-defined]

    for number in range(4):
        remember(lambda number=number: producer.send(Message("orders", f"заказ {number} 订单 💳".encode())))
    pending = [producer.send_async(Message("orders", f"сразу {number}".encode())) for number in range(3)]
    for each in pending:
        remember(each.result)
    lab.run_for("12s")


def stored(lab: Lab, broker: str) -> set[str]:
    return {message.properties["UNIQ_KEY"] for message in lab.store(broker).messages() if message.topic == "orders"}


def test_a_calm_run_acknowledges_all() -> None:
    lab = play(sending, **SAFE)
    assert len(lab.acknowledged) == 7  # type: ignore[attr-defined]
    assert log_bytes(lab, MASTER) == log_bytes(lab, SLAVE)


@pytest.mark.parametrize("how", ["kill", "power_off"])
def test_the_master_dies_for_good_at_any_step_and_the_slave_has_every_acknowledged_message(how: str) -> None:
    """Nobody sees what became of its disk."""
    tried, some_acknowledged = 0, 0
    for lab in every_crash(sending, node=MASTER, how=how, restart_after=None, **SAFE):
        acknowledged = set(lab.acknowledged)  # type: ignore[attr-defined]
        assert acknowledged <= stored(lab, SLAVE), f"{how} {lab.crash_point}"
        tried += 1
        some_acknowledged += 0 < len(acknowledged) < 7
    assert tried > 30 and some_acknowledged > 10


@pytest.mark.parametrize("how", ["kill", "power_off", "lose_disk"])
def test_the_slave_dies_at_any_step_and_ends_with_the_masters_log(how: str) -> None:
    tried = 0
    for lab in every_crash(sending, node=SLAVE, how=how, restart_after="500ms", **SAFE):
        lab.run_for("7s")  # it connects 5 s after its start
        assert set(lab.acknowledged) <= stored(lab, MASTER), f"{how} {lab.crash_point}"  # type: ignore[attr-defined]
        assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER), f"{how} {lab.crash_point}"
        tried += 1
    assert tried > 20


def test_one_copy_is_lost_with_its_disk_and_this_is_noticed() -> None:
    loose = {**SAFE, "broker": {**SAFE["broker"], "in_sync_replicas": 1}}
    lost = [
        lab.crash_point
        for lab in every_crash(sending, node=MASTER, how="lose_disk", restart_after=None, **loose)
        if not set(lab.acknowledged) <= stored(lab, SLAVE)  # type: ignore[attr-defined]
    ]
    assert lost


def test_a_master_that_lost_its_disk_starts_empty_and_its_slave_is_far_ahead() -> None:
    lab = play(sending, **SAFE)
    lab.power_off(MASTER)
    lab.lose_disk(MASTER)
    lab.start(MASTER)
    lab.run_for("40s")
    assert lab.broker(MASTER).store.max_physical_offset == 0
    [link] = lab.admin.ha_status(MASTER).ha_connection_info
    assert link.diff < 0
    assert set(lab.acknowledged) <= stored(lab, SLAVE)  # type: ignore[attr-defined]


def test_the_same_story_has_the_same_journal() -> None:
    first, second = (play(sending, **SAFE).journal.digest() for _ in range(2))
    assert first == second

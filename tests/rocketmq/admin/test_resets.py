"""Resets: the dry run says what the reset then does."""

from __future__ import annotations

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.errors import BrokerError, UsageError


def consumed_lab(messages: int, body: bytes = b"x", queues: int = 2, **settings: object) -> tuple[Lab, list[int]]:
    """Messages read by group billing, and when each was stored."""
    lab = Lab(seed=8, **settings)  # type: ignore[arg-type]
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    producer = lab.producer("shop")
    times = []
    for i in range(messages):
        result = producer.send(Message("orders", body, keys=f"order-{i}"))
        queue = result.message_queue.queue_id
        times.append(lab.broker().store.store_time_at("orders", queue, result.queue_offset))
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda _, __: CONSUME_SUCCESS)
    consumer.start()
    lab.run_for("30s")
    return lab, times


def test_dry_run_then_reset_to_a_time() -> None:
    lab, times = consumed_lab(20)
    plan = lab.admin.reset_offset_by_timestamp("orders", "billing", times[12], dry_run=True)
    assert (plan.again, plan.skipped, plan.applied) == (8, 0, False)
    assert len(plan.warnings) == 1 and "live" in plan.warnings[0]
    before = len(lab.deliveries("billing"))
    done = lab.admin.reset_offset_by_timestamp("orders", "billing", times[12])
    assert (done.again, done.applied) == (8, True)
    lab.run_for("1m")
    assert len(lab.deliveries("billing")) == before + plan.again


def test_the_dry_run_changes_nothing() -> None:
    lab, _ = consumed_lab(6)
    before = lab.broker().offset_table.queues_of("billing", "orders")
    lab.admin.reset_offset_by_timestamp("orders", "billing", 0, dry_run=True)
    assert lab.broker().offset_table.queues_of("billing", "orders") == before


def test_skipping_a_backlog() -> None:
    lab, _ = consumed_lab(4)
    lab.kill("billing-1")
    producer = lab.handles["shop-1"]
    for _ in range(9):
        producer.send(Message("orders", b"late"))
    lab.run_for("1s")
    plan = lab.admin.skip_accumulated_message("orders", "billing", dry_run=True)
    assert (plan.again, plan.skipped, plan.warnings) == (0, 9, ())
    lab.admin.skip_accumulated_message("orders", "billing")
    assert lab.admin.lag("billing")[-1].lag == 0
    before = len(lab.deliveries("billing"))
    lab.start("billing-1")
    lab.run_for("1m")
    assert len(lab.deliveries("billing")) == before


def test_the_whole_log_and_cold_reads_are_warned_of() -> None:
    lab, _ = consumed_lab(120, body=b"y" * 1_000, memory="40KB")
    plan = lab.admin.reset_offset_by_timestamp("orders", "billing", 0, dry_run=True)
    assert plan.again == 120
    words = " | ".join(plan.warnings)
    assert "whole log of the topic would be read: 120" in words and "2 of 2 queues begin on disk" in words
    assert all(row.is_cold for row in plan.queues)


def test_one_queue_to_its_start_and_out_of_range() -> None:
    lab, _ = consumed_lab(6)
    assert lab.admin.reset_offset_of_queue("orders", "billing", "broker-a", 0, 0) == 0
    with pytest.raises(BrokerError, match="not in consume queue range"):
        lab.admin.reset_offset_of_queue("orders", "billing", "broker-a", 0, 99)


def test_an_offset_beyond_the_end_reads_nothing_again() -> None:
    lab, _ = consumed_lab(4, queues=1)
    lab.kill("billing-1")
    assert lab.admin.reset_offset_of_queue("orders", "billing", "broker-a", 0, 5) == 5, "largest + 1 is taken"
    plan = lab.admin.skip_accumulated_message("orders", "billing", dry_run=True)
    assert (plan.queues[0].consumer_offset, plan.queues[0].target_offset, plan.again, plan.skipped) == (5, 4, 0, 0)


def test_what_cannot_be_reset() -> None:
    lab, _ = consumed_lab(2, broker={"auto_create_subscription_group": True})
    with pytest.raises(BrokerError, match="No topic route info"):
        lab.admin.reset_offset_by_timestamp("nothing", "billing", 0)
    with pytest.raises(UsageError, match="not a time"):
        lab.admin.reset_offset_by_timestamp("orders", "billing", "yesterday")

"""The messages that no listener got: filtered by the broker, not pulled yet, skipped; and those that only wait."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mqlab import CONSUME_SUCCESS, Lab, Message
from tests.lab.scenarios.stories import quiet_lab


def statuses(lab: Lab) -> Counter[str]:
    return Counter(row.status for row in lab.deliveries("billing"))


def world(tags: str = "*", sql: str | None = None, listener: Any = None, **settings: Any) -> tuple[Lab, Any]:
    lab = quiet_lab(seed=21, broker={"enable_property_filter": True})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", None if sql else tags, sql=sql)
    consumer.on_messages(listener or (lambda _, __: CONSUME_SUCCESS))
    consumer.start()
    return lab, lab.producer("shop")


def test_filtered_by_the_broker_with_its_message() -> None:
    lab, producer = world("paid")
    left_out = [producer.send(Message("orders", b"x", tags=tag)) for tag in ("new", "отменён", None)]
    producer.send(Message("orders", b"x", tags="paid"))
    lab.run_for("30s")
    assert statuses(lab) == {"CONSUME_SUCCESS": 1, "FILTERED_BY_BROKER": 3}
    rows = [row for row in lab.deliveries("billing") if row.status == "FILTERED_BY_BROKER"]
    assert [row.msg_id for row in rows] == [result.msg_id for result in left_out]
    assert {(row.client, row.started_ms, row.ended_ms) for row in rows} == {("", None, None)}
    assert len(lab.deliveries("billing", absences=False)) == 1
    assert "FILTERED_BY_BROKER" in str(lab.deliveries("billing"))


def test_filtered_by_sql() -> None:
    lab, producer = world(sql="amount > 10")
    for amount in (5, 15, 25):
        producer.send(Message("orders", b"x", properties={"amount": str(amount)}))
    lab.run_for("30s")
    assert statuses(lab) == {"CONSUME_SUCCESS": 2, "FILTERED_BY_BROKER": 1}


def test_not_pulled_while_the_group_is_offline_or_skips() -> None:
    lab, producer = world()
    producer.send(Message("orders", b"x"))
    lab.run_for("20s")
    lab.kill("billing-1")
    for _ in range(4):
        producer.send(Message("orders", b"x"))
    lab.run_for("1s")
    assert statuses(lab) == {"CONSUME_SUCCESS": 1, "NOT_PULLED": 4}
    lab.admin.skip_accumulated_message("orders", "billing")
    lab.start("billing-1")
    lab.run_for("1m")
    assert statuses(lab) == {"CONSUME_SUCCESS": 1, "NOT_PULLED": 4}


def test_what_waits_in_a_members_cache_is_no_absence() -> None:
    lab, producer = world(
        listener=lambda messages, context: context.sleep("10m"), consume_thread_min=1, consume_thread_max=1
    )
    for _ in range(5):
        producer.send(Message("orders", b"x"))
    lab.run_for("30s")
    assert statuses(lab) == {"RUNNING": 1}


def test_what_a_caller_polled_is_no_absence() -> None:
    lab = quiet_lab(seed=22)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    for _ in range(3):
        producer.send(Message("orders", b"x"))
    lite = lab.lite_pull_consumer("billing")
    lite.subscribe("orders", "*")
    lite.start()
    lab.run_for("5s")
    assert len(lite.poll()) == 3
    assert statuses(lab) == {"POLLED": 3}

"""Delayed messages of a written day are what a broker makes of them, and a broker goes on with those that wait."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from mqlab import Lab
from mqlab.data.traffic import TrafficSummary, write
from mqlab.data.traffic.writing.beside_orders.reminders import LEVEL
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.broker.putting import delayed_form
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire import record as units
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record
from tests.data.traffic.conftest import SMALL

HALF_AN_HOUR_MS = 1_800_000
ADDED = (p.DELAY, p.REAL_TOPIC, p.REAL_QID)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TrafficSummary:
    directory = tmp_path_factory.mktemp("traffic") / "day"
    return write(directory, messages=8_000, seed=11, model=SMALL.changed(incidents=()), reminders=True)


@pytest.fixture(scope="module")
def records(made: TrafficSummary) -> list[Record]:
    """All units, in the order of the log; each is what the encoder writes."""
    found = []
    for piece in StoreInspector(made.stores["broker-a"]).pieces():
        record = piece.record()
        assert units.encode(record.changed(body_crc=None)) == bytes(piece.raw())
        assert record.properties == encode_as_java(record.property_map)
        found.append(record)
    return found


def of(records: list[Record], topic: str, real_topic: str) -> list[Record]:
    return [one for one in records if one.topic == topic and one.property_map.get(p.REAL_TOPIC) == real_topic]


def offsets(made: TrafficSummary, name: str) -> dict:
    text = (made.stores["broker-a"] / "config" / name).read_text("utf-8")
    return config_texts.decode(name, text)["offsetTable"]


def test_the_store_is_whole_and_has_as_many_messages_as_asked_for(made: TrafficSummary, records: list[Record]) -> None:
    assert StoreInspector(made.stores["broker-a"]).problems(deep=True) == []
    assert len(records) == sum(made.topics.values()) == 8_000
    assert all(before.store_timestamp <= after.store_timestamp for before, after in pairwise(records))
    assert all(one.born_timestamp <= one.store_timestamp for one in records)


def test_every_order_has_a_reminder_that_waits_as_a_broker_stores_it(
    made: TrafficSummary, records: list[Record]
) -> None:
    store = StoreInspector(made.stores["broker-a"])
    waiting = of(records, SCHEDULE_TOPIC, "reminders")
    created = {one.property_map[p.KEYS] for one in records if one.topic == "orders" and b"created" in one.properties}
    assert {one.property_map[p.KEYS] for one in waiting} == created and len(waiting) == len(created) > 500
    for one in waiting:
        # What the producer sent, and what the broker's own code makes of it.
        sent = {name: value for name, value in one.property_map.items() if name not in ADDED}
        queue_id = int(one.property_map[p.REAL_QID])
        plain = one.changed(
            topic="reminders", queue_id=queue_id, properties=encode_as_java(sent | {p.DELAY: str(LEVEL)})
        )
        parked = delayed_form(plain, LEVEL, 18)
        assert (parked.topic, parked.queue_id, parked.properties) == (one.topic, one.queue_id, one.properties)
        unit = store.queue(SCHEDULE_TOPIC, LEVEL - 1).unit(one.queue_offset)
        assert unit.tags_code == one.store_timestamp + HALF_AN_HOUR_MS


def test_it_is_delivered_once_when_its_time_has_come(made: TrafficSummary, records: list[Record]) -> None:
    waiting, delivered = of(records, SCHEDULE_TOPIC, "reminders"), of(records, "reminders", "reminders")
    end_ms = SMALL.start_ms + 86_400_000
    due = [one for one in waiting if one.store_timestamp + HALF_AN_HOUR_MS < end_ms - 100]
    assert 0 < len(waiting) - len(delivered) <= len(waiting) - len(due)
    for before, after in zip(waiting, delivered, strict=False):
        assert 0 <= after.store_timestamp - (before.store_timestamp + HALF_AN_HOUR_MS) < 100
        assert after.queue_id == int(before.property_map[p.REAL_QID])
        same = ("body", "properties", "born_timestamp", "born_host", "reconsume_times")
        assert all(getattr(before, name) == getattr(after, name) for name in same)
    assert {one.queue_id for one in delivered} == {0, 1, 2, 3}
    assert sum(offsets(made, "delayOffset.json").values()) == sum(
        one.topic.startswith(("%RETRY%", "reminders")) for one in records
    )
    assert sum(offsets(made, "consumerOffset.json")["reminders@cancelling"].values()) == len(delivered)


def test_ids_are_unique(records: list[Record]) -> None:
    sent = [one.property_map[p.UNIQ_KEY] for one in records if one.topic in ("orders", "stock", "RMQ_SYS_TRACE_TOPIC")]
    reminders = [one.property_map[p.UNIQ_KEY] for one in of(records, SCHEDULE_TOPIC, "reminders")]
    assert len({*sent, *reminders}) == len(sent) + len(reminders)


def test_a_broker_delivers_what_was_still_waiting(made: TrafficSummary, records: list[Record]) -> None:
    lab = Lab(stores={"broker-a": str(made.stores["broker-a"])})
    assert lab.broker("broker-a").groups["cancelling"].retry_max_times == 16
    lab.run_for("2h")
    stored = lab.store("broker-a").messages(topic="reminders")
    orders = [one.property_map[p.KEYS] for one in of(records, SCHEDULE_TOPIC, "reminders")]
    assert sorted(message.keys for message in stored) == sorted(orders)


def test_a_day_of_several_slices_keeps_what_waits(tmp_path: Path) -> None:
    day = write(
        tmp_path / "day", messages=40_000, seed=3, model=SMALL.changed(incidents=(), index=False), reminders=True
    )
    store = StoreInspector(day.stores["broker-a"])
    assert store.problems(deep=True) == []
    delivered = [message.msg_id for message in store.messages(topic="reminders")]
    assert len(delivered) == len(set(delivered)) == day.topics["reminders"] > 4_096


def test_the_record_of_a_run_mentions_reminders_only_if_it_has_them(made: TrafficSummary, small_day) -> None:
    record = json.loads((made.directory / "traffic.json").read_text("utf-8"))
    assert record["asked"]["model"]["reminders"] is True and " --reminders" in record["command"]
    plain = json.loads((small_day().directory / "traffic.json").read_text("utf-8"))
    assert "reminders" not in plain["asked"]["model"] and "reminders" not in plain["command"]

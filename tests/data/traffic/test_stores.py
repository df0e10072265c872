"""What is written is a store: to the inspector, to the store itself, to a broker, to the Arrow kernel."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from itertools import pairwise

import pytest

from mqlab import CONSUME_SUCCESS, Lab
from mqlab.data.arrow.reading import read_table
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import record as units
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.properties import encode_as_java
from tests.data.traffic.conftest import SMALL, Day


def test_the_inspector_finds_nothing_wrong(day: Day) -> None:
    for name, path in day.summary.stores.items():
        store = StoreInspector(path)
        assert store.problems(deep=True) == []
        assert not store.is_open
        assert store.dispatched_physical_offset == store.max_physical_offset
        assert len(store.blanks()) == store.max_physical_offset // SMALL.commit_log_bytes > 4
        assert sum(q.max_offset - q.min_offset for q in store.queues()) == len(day.messages[name])


def test_there_are_as_many_messages_as_asked_for(day: Day) -> None:
    assert sum(len(found) for found in day.messages.values()) == 16_000
    assert sum(day.summary.topics.values()) == 16_000
    for broker in day.summary.brokers:
        for topic, count in broker.topics.items():
            assert len(day.of(broker.name, topic)) == count


def test_every_unit_is_what_the_encoder_would_write(day: Day) -> None:
    """Decoded and encoded again: the same bytes, and the properties in the order of the broker's HashMap."""
    for path in day.summary.stores.values():
        store = StoreInspector(path)
        for piece in store.pieces():
            found = piece.record()
            assert units.encode(found.changed(body_crc=None)) == bytes(piece.raw())
            assert found.properties == encode_as_java(found.property_map)
            assert store.message_at(found.physical_offset) is not None


def test_store_times_never_fall_and_stay_within_the_day(day: Day) -> None:
    for found in day.messages.values():
        assert all(before.store_timestamp <= after.store_timestamp for before, after in pairwise(found))
        assert SMALL.start_ms <= found[0].store_timestamp <= found[-1].store_timestamp < SMALL.start_ms + 86_400_000
        assert all(message.born_timestamp <= message.store_timestamp for message in found)


def test_bodies_are_json_in_several_scripts_and_an_order_says_the_same_in_all_its_messages(day: Day) -> None:
    texts = ""
    seen: dict[str, tuple[object, ...]] = {}
    for name in day.messages:
        for message in day.of(name, "orders"):
            body = json.loads(message.body)
            assert body["event"] == message.tags
            assert message.keys == f"O{body['order']} {body['customer']['id']}"
            assert body["at"] == message.born_timestamp
            facts = (body["customer"]["id"], body["customer"]["name"], body["amount"], str(body["items"]))
            assert seen.setdefault(body["order"], facts) == facts
            texts += body["customer"]["name"]
        for message in day.of(name, "stock"):
            assert json.loads(message.body)["left"] >= 1000
    assert all(any(low <= letter <= high for letter in texts) for low, high in ("АЯ", "一龥", "🀀🿿", "가힣"))


def test_ids_are_unique_and_orders_follow_their_stages(day: Day) -> None:
    sent = [m for found in day.messages.values() for m in found if m.topic in ("orders", "stock")]
    assert len({message.msg_id for message in sent}) == len(sent)
    stages: dict[str, list[str]] = {}
    for name in day.messages:
        for message in day.of(name, "orders"):
            stages.setdefault(message.keys.split()[0], []).append(message.tags)
    allowed = ("created", "paid", "shipped", "refunded")
    for stage in stages.values():
        assert stage == ["created", "cancelled"] or stage == list(allowed[: len(stage)]), stage
    assert {len(stage) for stage in stages.values()} == {1, 2, 3, 4}


def test_customers_follow_zipf_and_choose_their_queue(day: Day) -> None:
    queue_of: dict[str, tuple[str, int]] = {}
    orders: dict[str, int] = {}
    for name in day.messages:
        for message in day.of(name, "orders"):
            customer = message.keys.split()[1]
            assert queue_of.setdefault(customer, (name, message.queue_id)) == (name, message.queue_id)
            orders[customer] = orders.get(customer, 0) + (message.tags == "created")
    most = sorted(orders.values(), reverse=True)
    assert most[0] > 10 * most[50] > 0
    assert sum(1 for count in most if count == 1) > len(most) // 3


def test_the_arrow_kernel_reads_the_same_rows(day: Day) -> None:
    for name, path in day.summary.stores.items():
        rows = read_table(str(path)).to_pylist()
        assert len(rows) == len(day.messages[name])
        for row, message in zip(rows, day.messages[name], strict=True):
            assert row["physical_offset"] == message.physical_offset
            assert (row["topic"], row["queue_id"], row["queue_offset"]) == (
                message.topic,
                message.queue_id,
                message.queue_offset,
            )
            assert (row["tags"], row["keys"], row["body"]) == (message.tags, message.keys, message.body)
            assert int(row["store_timestamp"].timestamp() * 1000) == message.store_timestamp


def test_messages_are_found_by_their_keys(day: Day, tmp_path) -> None:
    name, path = next(iter(day.summary.stores.items()))
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    messages = day.messages[name]
    having = defaultdict(list)  # of a topic and a key the offsets of its messages
    for m in messages:
        for key in {m.msg_id, *(m.keys or "").split()}:
            having[m.topic, key].append(m.physical_offset)
    with MessageStore.open(str(copy), max_hash_slot_num=SMALL.hash_slot_num, max_index_num=SMALL.index_num) as store:
        assert store.recovery_report.clean_exit
        for message in messages[:: len(messages) // 80]:
            for key in [message.msg_id, *(message.keys or "").split()][:4]:
                wanted = having[message.topic, key]
                found = [record.physical_offset for record in store.query(message.topic, key, 64).records]
                assert len(found) == len(set(found))
                assert set(found) <= set(wanted) and len(found) == min(64, len(wanted)), key
    unique = messages[500].msg_id
    assert unique in {m.msg_id for m in StoreInspector(path).messages(key=unique)}


def test_a_new_group_consumes_it_from_first_to_last(day: Day) -> None:
    lab = Lab(stores={name: str(path) for name, path in day.summary.stores.items()})
    consumer = lab.push_consumer("archive", consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=32)
    consumer.subscribe("orders", "*")
    got: list[tuple[str, int, int]] = []

    def listener(messages, context):
        got.extend((m.broker_name, m.queue_id, m.queue_offset) for m in messages)
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("30s")
    wanted = {(name, m.queue_id, m.queue_offset) for name in day.messages for m in day.of(name, "orders")}
    assert len(got) == len(wanted) and set(got) == wanted


def test_the_configuration_fits_the_queues(day: Day) -> None:
    lab = Lab(stores={name: str(path) for name, path in day.summary.stores.items()})
    for name in day.summary.stores:
        broker = lab.broker(name)
        assert broker.topics["orders"].read_queue_nums == SMALL.queues
        assert broker.groups["shipping"].retry_max_times == 5
        parked = day.of(name, SCHEDULE_TOPIC)
        back = [m for m in day.messages[name] if m.topic.startswith("%RETRY%")]
        assert sum(broker.delay_offset_table.values()) == len(back)
        assert 0 <= len(parked) - len(back) <= 3
    progress = {(row.topic, row.broker, row.queue_id): row for row in lab.progress("shipping")}
    for (topic, name, queue_id), row in progress.items():
        assert row.broker_offset == sum(m.queue_id == queue_id for m in day.of(name, topic))
        assert 0 <= row.broker_offset - row.consumer_offset <= 3


@pytest.mark.parametrize("size", [66_000, 70_001])
def test_odd_file_sizes(small_day, size: int) -> None:
    summary = small_day(
        f"odd{size}", model=SMALL.changed(commit_log_bytes=size, consume_queue_bytes=2_000, index=False)
    )
    assert StoreInspector(summary.stores["broker-a"]).problems(deep=True) == []

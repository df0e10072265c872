"""What course slides say of files, queues and pulling, and what the source does.

Mirrors: IndexFile, ConsumeQueue, PullMessageProcessor, RebalanceImpl.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message, MessageQueue
from mqlab.rocketmq.client.allocate import strategy
from mqlab.rocketmq.store import MessageStore, StoreConfig
from mqlab.rocketmq.wire import java_hash
from mqlab.rocketmq.wire.record import MAGIC_BLANK
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    config,
    delivered,
    frames,
    member,
    owned,
    quiet_lab,
    send,
    send_many,
)

SLOTS, ENTRIES = 1_000, 4_000  # of a Lab's small index files; a real broker's have 5,000,000 and 20,000,000


def index_file(lab: Lab) -> bytes:
    (path,) = (lab.directory / "broker-a" / "index").iterdir()
    return path.read_bytes()


def entry(data: bytes, number: int) -> tuple[int, int, int, int]:
    """(key hash, physical offset, seconds after the first, number of the previous entry of the slot)."""
    return struct.unpack_from(">iqii", data, 40 + 4 * SLOTS + 20 * number)  # type: ignore[return-value]


def one_queue(lab: Lab, topic: str = "orders") -> Lab:
    lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    return lab


def test_slots_are_counted_from_zero() -> None:
    lab = one_queue(quiet_lab())
    send(lab.producer("shop"), "x", keys="order-1")
    lab.run_for("1s")
    slot = java_hash.index_key_hash("orders#order-1") % SLOTS
    assert struct.unpack_from(">i", index_file(lab), 40 + 4 * slot)[0] in (1, 2)
    assert StoreConfig().max_hash_slot_num == 5_000_000


def test_entries_are_counted_from_one_and_the_header_counts_one_more() -> None:
    lab = one_queue(quiet_lab())
    send(lab.producer("shop"), "x", keys="order-1")
    lab.run_for("1s")
    data = index_file(lab)
    hashes = {entry(data, number)[0] for number in (1, 2)}
    assert java_hash.index_key_hash("orders#order-1") in hashes
    assert entry(data, 0) == (0, 0, 0, 0)  # never used: 0 in a slot means "no entry"
    assert struct.unpack_from(">i", data, 36)[0] == 2 + 1
    assert len(data) == 40 + 4 * SLOTS + 20 * ENTRIES
    real = StoreConfig()
    assert 40 + 4 * real.max_hash_slot_num + 20 * real.max_index_num == 420_000_040


@pytest.mark.parametrize(("keys", "found"), [(None, 0), ("one", 1), ("one two three", 3)])
def test_the_unique_key_is_indexed_too_and_each_of_several_keys(keys: str | None, found: int) -> None:
    lab = one_queue(quiet_lab())
    (result,) = send(lab.producer("shop"), "x", keys=keys)
    lab.run_for("1s")
    data = index_file(lab)
    assert struct.unpack_from(">i", data, 36)[0] - 1 == found + 1
    hashes = [entry(data, number)[0] for number in range(1, found + 2)]
    names = [result.msg_id, *(keys or "").split()]
    assert sorted(hashes) == sorted(java_hash.index_key_hash(f"orders#{name}") for name in names)
    assert len(lab.broker().store.query("orders", result.msg_id)) == 1


def test_time_differences_count_from_the_first_message() -> None:
    lab = one_queue(quiet_lab())
    lab.run_for("77s")  # the file is made with the first message; the broker is older
    producer = lab.producer("shop")
    send(producer, "first")
    lab.run_for("90s")
    send(producer, "second")
    lab.run_for("1s")
    data = index_file(lab)
    assert [entry(data, number)[2] for number in (1, 2)] == [0, 90]


def test_a_pull_begins_at_the_consumer_offset_not_one_after_it() -> None:
    lab = one_queue(quiet_lab())
    send(lab.producer("shop"), *"abc")
    consumer = member(lab, "billing")
    lab.run_for("20s")
    consumer.shutdown()
    asked = len(frames(lab, 11))
    member(lab, "billing", name="billing-2")
    lab.run_for("5s")
    first = next(one for one in frames(lab, 11)[asked:] if one.about.ext_fields["topic"] == "orders")
    assert int(first.about.ext_fields["queueOffset"]) == lab.broker().offset_table.query("billing", "orders", 0) == 3


def test_twenty_bytes_an_entry_and_eight_hundred_entries_a_scan() -> None:
    lab = one_queue(quiet_lab(broker={"mapped_file_size_consume_queue": 40_000}))
    results = send(lab.producer("shop"), *"abc")
    path = lab.directory / "broker-a" / "consumequeue" / "orders" / "0" / ("0" * 20)
    lab.run_for("1s")
    at = struct.unpack_from(">q", path.read_bytes(), 20 * results[2].queue_offset)[0]
    assert lab.broker().store.message_at(at).body == b"c"
    send_many(lab.handles["shop-1"], 1_700, queue=0, tags="noise")
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    assert puller.pull(queue, "paid", 3).next_begin_offset == 803


def test_sixteen_to_eight_is_a_shrink_and_writes_go_first() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=16)
    producer = lab.producer("shop")
    send(producer, "in the last queue", queue=15)
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=8)
    assert len(producer.sender.topic_publish_info["orders"].queues) == 16  # until its route poll, up to 30 s later
    lab.run_for("30s")
    assert len(producer.sender.topic_publish_info["orders"].queues) == 8
    member(lab, "billing", seen := Seen(lab))
    lab.run_for("10s")
    assert seen.bodies == ["in the last queue"]  # still readable: only now may the read queues go


def test_names_have_twenty_digits_and_queue_files_six_million_bytes(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store")) as store:
        store.put(Message("orders", b"x"))
    (path,) = (tmp_path / "store" / "consumequeue" / "orders" / "0").iterdir()
    assert (path.name, path.stat().st_size) == ("0" * 20, 6_000_000)


def test_log_files_are_exactly_their_size_and_end_with_a_filler() -> None:
    assert StoreConfig().mapped_file_size_commit_log == 1 << 30
    lab = one_queue(quiet_lab(broker={"mapped_file_size_commit_log": 65_536}))
    producer = lab.producer("shop", compress_msg_body_over_howmuch=1_000_000)
    for _ in range(40):
        producer.send(Message("orders", b"x" * 3_000))
    first, second, *_ = sorted((lab.directory / "broker-a" / "commitlog").iterdir())
    assert first.stat().st_size == 65_536 and second.name == f"{65_536:020d}"
    ((physical_offset, size), *_) = lab.store().blanks()
    assert physical_offset + size == 65_536
    assert struct.unpack_from(">iI", first.read_bytes(), physical_offset) == (size, MAGIC_BLANK & 0xFFFFFFFF)


def test_automatic_topics_have_four_queues_only_where_a_message_arrived() -> None:
    lab = quiet_lab(brokers=2)
    (result,) = send(lab.producer("shop"), "first")
    there = [name for name in ("broker-a", "broker-b") if "orders" in lab.broker(name).topics]
    assert there == [result.message_queue.broker_name]
    made, template = lab.broker(there[0]).topics["orders"], lab.broker(there[0]).topics["TBW102"]
    assert made.write_queue_nums == min(4, template.write_queue_nums) == 4 and template.write_queue_nums == 8


def test_slow_brokers_are_banned_for_a_time_not_sorted_by_latency() -> None:
    sends: dict[str, list[str]] = {}
    for name, settings in (("default", {}), ("fault table", {"send_latency_fault_enable": True})):
        lab = quiet_lab(brokers=3)
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        producer = lab.producer("shop", **settings)
        producer.fetch_publish_message_queues("orders")
        lab.slow("broker-b", "20ms")  # a little slower: below 50 ms nobody is banned
        lab.slow("broker-c", "400ms")  # 800 ms there and back: banned for two seconds
        sends[name] = []
        for _ in range(12):
            sends[name].append(send(producer, "x")[0].message_queue.broker_name)
            lab.run_for("50ms")
    assert sends["default"].count("broker-c") == 4
    assert sends["fault table"].count("broker-c") == 1
    fast = [name for name in sends["fault table"] if name != "broker-c"]
    assert abs(fast.count("broker-a") - fast.count("broker-b")) <= 1  # the fastest is not preferred: round robin


def test_the_first_members_get_one_more_in_one_block() -> None:
    queues = [MessageQueue("orders", "broker-a", number) for number in range(10)]
    ids = ["c0", "c1", "c2", "c3"]
    shares = [[queue.queue_id for queue in strategy("AVG").allocate("g", cid, queues, ids)] for cid in ids]
    assert shares == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


def test_ten_points_a_member_on_the_ring() -> None:
    ring = strategy("CONSISTENT_HASH").ring(["c0", "c1", "c2"])  # type: ignore[attr-defined]
    assert len(ring) == 30
    assert sorted(point for point, owner in ring if owner == "c0")[0] == 456544949
    queues = [MessageQueue("TopicTest", "broker-a", number) for number in range(8)]
    counts = [
        len(strategy("CONSISTENT_HASH").allocate("g", cid, queues, ["c0", "c1", "c2"])) for cid in ("c0", "c1", "c2")
    ]
    assert counts == [1, 5, 2]


def test_one_class_never_falls_back_the_other_shares_rooms_without_members() -> None:
    queues = [MessageQueue("t", f"room{room}@b", number) for room in (1, 2) for number in range(4)]
    configured = strategy("MACHINE_ROOM", consumeridcs=["room9"])
    assert configured.allocate("g", "c0", queues, ["c0", "c1"]) == []

    class Rooms:
        def broker_deploy_in(self, queue: MessageQueue) -> str:
            return queue.broker_name.split("@")[0]

        def consumer_deploy_in(self, client_id: str) -> str:
            return client_id.split("-")[0]

    nearby = strategy("MACHINE_ROOM_NEARBY", inner="AVG", machine_room_resolver=Rooms())
    ids = ["room1-a", "room1-b"]
    mine = nearby.allocate("g", "room1-a", queues, ids)
    assert [str(queue.broker_name[4]) + str(queue.queue_id) for queue in mine] == [
        "10",
        "11",
        "20",
        "21",
    ]  # a share, not all


def test_a_strategy_is_given_when_the_consumer_is_made_or_set_before_it_starts() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    made = member(lab, "billing", allocate_message_queue_strategy="AVG_BY_CIRCLE")
    later = member(lab, "billing", name="billing-2", start=False)
    later.configure(allocate_message_queue_strategy="AVG_BY_CIRCLE")
    later.start()
    lab.run_for("5s")
    assert (owned(made), owned(later)) == ([0, 2], [1, 3])


def test_members_and_topics_are_told_queue_counts_and_texts_are_not() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.create_topic("refunds", read_queue_nums=2, write_queue_nums=2)
    consumer = member(lab, "billing")
    lab.run_for("40s")
    told = [len(frames(lab, 40))]
    for change in (
        lambda: lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4),
        lambda: consumer.subscribe("orders", "paid"),
        lambda: consumer.subscribe("refunds"),
        lambda: member(lab, "billing", name="billing-2"),
    ):
        change()
        lab.run_for("500ms")
        told.append(len(frames(lab, 40)))
    more = [after - before for before, after in itertools.pairwise(told)]
    assert more[:2] == [0, 0] and more[2] >= 1 and more[3] >= 1


def test_a_topic_configuration_is_counts_permissions_and_flags() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=3)
    kept = config(lab, "topics.json")["topicConfigTable"]["orders"]
    assert (kept["readQueueNums"], kept["writeQueueNums"], kept["perm"]) == (4, 3, 6)
    counts_and_flags = {
        "order",
        "perm",
        "readQueueNums",
        "topicFilterType",
        "topicName",
        "topicSysFlag",
        "writeQueueNums",
    }
    assert set(kept) == counts_and_flags | {"attributes"}


def test_push_is_a_pull_that_the_broker_holds() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    lab.run_for("3s")
    send(lab.producer("shop"), "x")
    lab.run_for("1m")
    sent_by_broker = [one for one in lab.journal if one.node == "billing-1" and one.kind == "frame"]
    requests = {one.about.code for one in sent_by_broker if not one.about.is_response}
    assert requests <= {40}  # notices of membership; messages come in answers only
    holds = [(one["queue_offset"]) for one in changes(lab, "pull.held", topic="orders")]
    assert holds[:2] == [0, 1]
    times = [one.now_ms for one in frames(lab, 11) if one.about.ext_fields["topic"] == "orders"]
    assert 15_000 <= times[-1] - times[-2] <= 20_002


def first_offset(lab: Lab, group: str, **settings: Any) -> int:
    consumer = member(lab, group, **settings)
    lab.run_for("5s")
    assert consumer.is_running
    added = [one for one in changes(lab, "queue.added", group=group) if one["queue"].topic == "orders"]
    return int(added[0]["next_offset"])


def test_last_offset_is_after_the_last_message_and_only_if_the_broker_does_not_say_zero() -> None:
    old, young = one_queue(quiet_lab(memory="16KB")), one_queue(quiet_lab())
    for lab in (old, young):
        send_many(lab.producer("shop"), 200, queue=0)
    assert first_offset(old, "billing") == 200
    assert len(delivered(old, "billing")) == 0
    assert first_offset(young, "billing") == 0


def test_the_wish_where_to_begin_counts_only_without_a_stored_offset() -> None:
    lab = one_queue(quiet_lab(memory="16KB"))
    send_many(lab.producer("shop"), 200, queue=0)
    for group in ("one", "two"):
        lab.broker().groups.find(group)
        Tool(lab, f"tool-{group}").commit(group, 0, 77)
    assert first_offset(lab, "one", consume_from_where="CONSUME_FROM_FIRST_OFFSET") == 77
    assert first_offset(lab, "two", consume_from_where="CONSUME_FROM_LAST_OFFSET") == 77


def test_a_lower_case_file_named_after_client_and_group() -> None:
    """Here a node's name takes the place of DEFAULT and of pid#nanoTime: ``ip@name`` for both models."""
    lab = one_queue(quiet_lab())
    broadcasting = member(lab, "audit", message_model="BROADCASTING")
    clustering = member(lab, "billing")
    lab.run_for("3s")
    send(lab.producer("shop"), "x")
    lab.run_for("12s")
    (path,) = (lab.directory / "offsets").rglob("*.json")
    assert path.name == "offsets.json" and path.parts[-3:-1] == (broadcasting.client_id, "audit")
    assert broadcasting.client_id == "10.0.0.3@audit-1" and clustering.client_id == "10.0.0.4@billing-1"

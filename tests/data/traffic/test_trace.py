"""The trace tells what the log shows, and the log shows what the trace tells."""

from __future__ import annotations

from collections import Counter, defaultdict

from mqlab import Lab
from mqlab.data.traffic.model import TRACED
from mqlab.lab.inspector.inspector import StoreInspector
from mqlab.rocketmq.store.config import StoreConfig, parse_delay_levels
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC, TRACE_TOPIC
from tests.data.traffic.conftest import Day

DELAYS_MS = (0, *parse_delay_levels(StoreConfig().message_delay_level))


def test_senders_tell_of_every_message_once_and_where_it_stands(day: Day) -> None:
    for found in day.messages.values():
        orders = {m.msg_id: m for m in found if m.topic == "orders"}
        bodies = [m.body.decode() for m in found if m.topic == TRACE_TOPIC]
        pubs = [e.split("\x01") for body in bodies for e in body.split("\x02") if e.startswith("Pub\x01")]
        assert len({pub[5] for pub in pubs}) == len(pubs)
        assert 0 <= len(orders) - len(pubs) <= 5  # what was sent last was not told before the day ended
        for pub in pubs:
            message = orders[pub[5]]
            assert (pub[6], pub[7]) == (message.tags, message.keys)
            assert (int(pub[1]), int(pub[9])) == (message.born_timestamp, len(message.body))
            assert pub[12] == message.offset_msg_id and pub[13] == "true"
            assert pub[8] == f"{message.store_host[0]}:{message.store_host[1]}"


def test_a_trace_message_has_the_keys_of_its_entries_each_once(day: Day) -> None:
    for found in day.messages.values():
        for message in (m for m in found if m.topic == TRACE_TOPIC):
            entries = [entry.split("\x01") for entry in message.body.decode().split("\x02") if entry]
            assert 1 <= len(entries) <= 10
            places = {"Pub": (5, 7), "SubBefore": (5, 7), "SubAfter": (2, 5)}
            wanted = {
                key for entry in entries for key in (entry[places[entry[0]][0]], *entry[places[entry[0]][1]].split(" "))
            }
            keys = message.keys.split(" ")
            assert len(keys) == len(set(keys)) and set(keys) == wanted
            assert message.tags is None


def test_listeners_come_back_after_they_were_called(day: Day) -> None:
    for told in day.told.values():
        began = {entry.request_id: entry for entry in told if entry.type == "SubBefore"}
        assert len(began) == sum(entry.type == "SubBefore" for entry in told)
        for entry in told:
            if entry.type == "SubAfter":
                before = began[entry.request_id]
                assert entry.time_ms == before.time_ms + entry.cost_ms
                assert (entry.msg_id, entry.group, entry.keys) == (before.msg_id, before.group, before.keys)
                assert entry.success == (entry.status == "SUCCESS")


def test_groups_get_the_tags_they_read_and_all_of_them(day: Day) -> None:
    lost = {told["group"]: told["tags"] for _, told in [day.incident("inconsistent_tags")]}
    for name, told in day.told.items():
        tags = {m.msg_id: m.tags for m in day.of(name, "orders")}
        for group in TRACED:
            got = Counter(e.msg_id for e in told if e.type == "SubBefore" and e.group == group.name)
            assert {tags[msg_id] for msg_id in got} == set(group.tags)
            missing = [m for m in day.of(name, "orders") if m.tags in group.tags and m.msg_id not in got]
            excused = lost.get(group.name, ())
            stuck = group.name == "billing"  # behind the stuck message nobody reads on
            assert all(m.tags in excused or stuck or m.store_timestamp > 1731369500000 for m in missing)


def test_a_failed_delivery_is_parked_comes_back_and_is_tried_again(day: Day) -> None:
    for name, found in day.messages.items():
        store = StoreInspector(day.summary.stores[name])
        codes = {
            (unit.physical_offset): unit.tags_code
            for queue in store.queues()
            if queue.topic == SCHEDULE_TOPIC
            for unit in (queue.unit(at) for at in range(queue.min_offset, queue.max_offset))
            if unit is not None
        }
        tried = defaultdict(list)
        for entry in day.told[name]:
            if entry.type == "SubBefore":
                tried[entry.group, entry.msg_id].append((entry.time_ms, entry.retry_times))
        waiting: dict[tuple[str, str], int] = {}
        by_offset_id = {m.offset_msg_id: m for m in found}
        for message in found:
            named = message.properties
            if "ORIGIN_MESSAGE_ID" not in named:
                continue
            origin = by_offset_id[named["ORIGIN_MESSAGE_ID"]]
            assert (origin.topic, origin.msg_id, origin.body) == ("orders", message.msg_id, message.body)
            assert (origin.born_timestamp, origin.born_host) == (message.born_timestamp, message.born_host)
            assert named["RETRY_TOPIC"] == "orders" and named["WAIT"] == "false"
            group = named.get("REAL_TOPIC", message.topic).split("%")[-1]
            level = int(named["DELAY"])
            if message.topic == SCHEDULE_TOPIC:
                assert (level, message.queue_id) == (2 + message.reconsume_times, level - 1)
                due_ms = codes[message.physical_offset]
                assert due_ms % 100 == 0 and 0 <= due_ms - message.store_timestamp - DELAYS_MS[level] < 100
                waiting[group, message.msg_id] = due_ms
            elif message.topic.startswith("%RETRY%"):
                assert message.store_timestamp == waiting.pop((group, message.msg_id))
                again = [t for t, times in tried[group, message.msg_id] if times == message.reconsume_times]
                assert again and 0 < again[0] - message.store_timestamp < 20
            else:
                assert message.topic == f"%DLQ%{group}" and level == 0
                most = next(g.max_reconsume_times for g in TRACED if g.name == group)
                assert message.reconsume_times == most + 1
                assert max(times for _, times in tried[group, message.msg_id]) == most
        assert len(waiting) <= 3


def test_one_delivery_in_some_hundred_fails_without_any_reason(small_day) -> None:
    summary = small_day(messages=12_000, model=None, incidents=())
    retries = sum(count for topic, count in summary.topics.items() if topic.startswith("%RETRY%"))
    assert 0.002 < retries / summary.topics["orders"] < 0.02
    assert not any(topic.startswith("%DLQ%") for topic in summary.topics)


def test_the_operator_asks_for_a_messages_trace(day: Day) -> None:
    lab = Lab(stores={name: str(path) for name, path in day.summary.stores.items()})
    name, told = day.incident("poison_message")
    entries = lab.admin.view_trace(told["msg_id"])
    assert [entry.type for entry in entries] == ["Pub"] + ["SubBefore", "SubAfter"] * 17
    assert {entry.group for entry in entries[1:]} == {"billing"}
    assert [entry.retry_times for entry in entries if entry.type == "SubBefore"] == list(range(17))
    quiet = next(m for m in day.of(name, "orders") if m.tags == "shipped")
    assert [e.type for e in lab.admin.view_trace(quiet.msg_id)][:3] == ["Pub", "SubBefore", "SubAfter"]

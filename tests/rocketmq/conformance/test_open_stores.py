"""Stores that the real broker left behind, opened and where needed recovered: the same answers as its own store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.store import MessageStore

STORES = ("clean", "killed", "edges", "edges-killed")
RealStore = Callable[[str], Path]
Expected = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize("name", STORES)
def test_queues_units_and_times(name: str, real_store: RealStore, expected: Expected) -> None:
    answers = expected(name)
    with MessageStore.open(str(real_store(name))) as store:
        assert store.max_physical_offset == answers["maxPhysicalOffset"]
        assert store.min_physical_offset == answers["minPhysicalOffset"]
        found = {(topic, queue_id) for topic, ids in store.topics().items() for queue_id in ids}
        assert found == {(queue["topic"], queue["queueId"]) for queue in answers["queues"]}
        for queue in answers["queues"]:
            place = (queue["topic"], queue["queueId"])
            bounds = range(store.min_offset(*place), store.max_offset(*place))
            assert bounds == range(queue["minOffset"], queue["maxOffset"])
            assert [list(store.consume_queue_unit(*place, offset) or ()) for offset in bounds] == queue["units"]
        for look_up in answers["timeLookups"]:
            for boundary in ("lower", "upper"):
                place = (look_up["topic"], look_up["queueId"], look_up["timestamp"])
                assert store.search_offset(*place, boundary=boundary) == look_up[boundary], (look_up, boundary)


@pytest.mark.parametrize("name", STORES)
def test_every_key_finds_what_the_real_store_finds(name: str, real_store: RealStore, expected: Expected) -> None:
    with MessageStore.open(str(real_store(name))) as store:
        for look_up in expected(name)["keyLookups"]:
            found = store.query(look_up["topic"], look_up["key"])
            assert found.physical_offsets == look_up["physicalOffsets"], look_up


@pytest.mark.parametrize("name", STORES)
def test_the_checkpoint_after_recovery(name: str, real_store: RealStore, expected: Expected) -> None:
    with MessageStore.open(str(real_store(name)), dispatch=False) as store:
        known = store.checkpoint
        assert expected(name)["checkpoint"] == {
            "physicMsgTimestamp": known.physic_msg_timestamp,
            "logicsMsgTimestamp": known.logics_msg_timestamp,
            "indexMsgTimestamp": known.index_msg_timestamp,
            "confirmPhyOffset": known.confirm_physical_offset,
        }


@pytest.mark.parametrize("name", STORES)
def test_every_message_is_read_through_its_queue(name: str, real_store: RealStore, expected: Expected) -> None:
    wanted = {message["physicalOffset"]: message for message in expected(name)["messages"]}
    with MessageStore.open(str(real_store(name))) as store:
        for queue in expected(name)["queues"]:
            offset, read = queue["minOffset"], []
            while offset < queue["maxOffset"]:
                result = store.get(queue["topic"], queue["queueId"], offset)
                assert result.status == "FOUND"
                read.extend(result.records())
                offset = result.next_begin_offset
            assert [record.physical_offset for record in read] == [unit[0] for unit in queue["units"]]
            for record in read:
                message = wanted[record.physical_offset]
                assert (record.topic, record.queue_id, record.queue_offset) == (
                    message["topic"],
                    message["queueId"],
                    message["queueOffset"],
                )
                assert record.property_map == message["properties"]
                assert record.offset_msg_id == message["offsetMsgId"]


def test_acknowledged_sends_are_there_after_the_kill(real_store: RealStore, expected: Expected) -> None:
    flow = [message for message in expected("killed")["messages"] if message["topic"] == "flow"]
    with MessageStore.open(str(real_store("killed"))) as store:
        assert sum(store.max_offset("flow", queue_id) for queue_id in store.topics()["flow"]) == len(flow) >= 2350

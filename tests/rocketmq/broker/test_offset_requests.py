"""Requests about offsets and single messages: 14 15 29 30 31 32 43 45 33 12, and the reset 222.

Mirrors: ConsumerManageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab.rocketmq.wire import java_json, record
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from tests.rocketmq.broker.world import BareClient, World

OFFSET = {"consumerGroup": "billing", "topic": "orders", "queueId": 0}


@pytest.fixture
def stored(world: World, client: BareClient) -> BareClient:
    """Ten messages before and ten after ``client.middle_ms`` in each of four queues; group billing known."""
    client.put("orders", queue_id=0)
    for queue_id in range(4):
        for _ in range(9 if queue_id == 0 else 10):
            client.put("orders", queue_id=queue_id)
    world.run_for(1_000)
    client.middle_ms = world.sim.now_ms  # type: ignore[attr-defined]
    for queue_id in range(4):
        for _ in range(10):
            client.put("orders", queue_id=queue_id)
    client.heartbeat("billing", SubscriptionData("orders"))
    world.run_for(5)
    return client


def commit(client: BareClient, offset: int, **more: object) -> RemotingCommand:
    return client.ask(15, **{**OFFSET, "commitOffset": offset, **more})


def query(client: BareClient, **more: object) -> int | None:
    answer = client.ask(14, **{**OFFSET, **more})
    return int(answer.ext_fields["offset"]) if answer.code == 0 else None


def test_a_new_group_on_a_young_topic_is_told_zero(stored: BareClient) -> None:
    assert query(stored) == 0
    assert query(stored, setZeroIfNotFound="false") is None
    assert stored.ask(14, **{**OFFSET, "queueId": 9}).code == ResponseCode.QUERY_NOT_FOUND


def test_a_new_group_is_told_nothing_when_message_zero_is_not_in_memory(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = world.client()
    client.put("orders")
    client.put("orders")
    world.run_for(5)
    world.broker.store.reader.memory_bytes = 100
    assert query(client) is None


def test_commits_are_kept_even_backwards_and_beyond(stored: BareClient) -> None:
    for offset in (7, 3, 100):
        assert commit(stored, offset).code == ResponseCode.SUCCESS and query(stored) == offset
    commit(stored, -1)
    assert query(stored) == 100


def test_commits_that_are_refused(stored: BareClient) -> None:
    assert commit(stored, 1, consumerGroup="nobody").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert commit(stored, 1, topic="unknown").code == ResponseCode.TOPIC_NOT_EXIST
    assert commit(stored, 1, queueId="x").code == ResponseCode.INVALID_PARAMETER
    assert stored.ask(15, **OFFSET).code == ResponseCode.INVALID_PARAMETER


def test_a_oneway_commit_is_never_answered(world: World, stored: BareClient) -> None:
    frames = len([r for r in world.sim.journal if r.node == "client-1"])
    stored.tell(15, **OFFSET, commitOffset=4)
    stored.tell(15, **{**OFFSET, "topic": "unknown"}, commitOffset=4)
    assert len([r for r in world.sim.journal if r.node == "client-1"]) == frames and query(stored) == 4


def test_bounds_of_known_and_unknown_queues(stored: BareClient) -> None:
    def offset(code: int, topic: str) -> str:
        return stored.ask(code, topic=topic, queueId=0).ext_fields["offset"]

    assert (offset(30, "orders"), offset(31, "orders")) == ("20", "0")
    assert (offset(30, "unknown"), offset(31, "unknown")) == ("0", "0")


@pytest.mark.parametrize(
    ("when", "boundary", "expected"),
    [("middle", "LOWER", "10"), ("middle", "UPPER", "9"), ("never", "LOWER", "20"), ("first", "LOWER", "0")],
)
def test_the_offset_at_a_time(stored: BareClient, when: str, boundary: str, expected: str) -> None:
    at_ms = {"middle": stored.middle_ms, "never": 1 << 50, "first": 0}[when]  # type: ignore[attr-defined]
    answer = stored.ask(29, topic="orders", queueId=1, timestamp=at_ms, boundaryType=boundary)
    assert answer.ext_fields["offset"] == expected


def test_the_earliest_store_time(world: World, stored: BareClient) -> None:
    answer = stored.ask(32, topic="orders", queueId=2)
    assert int(answer.ext_fields["timestamp"]) == world.messages("orders", 2)[0].store_timestamp
    assert stored.ask(32, topic="unknown", queueId=0).ext_fields["timestamp"] == "-1"


def test_all_offsets_as_in_the_files(world: World, stored: BareClient) -> None:
    commit(stored, 7)
    stored.put("orders", DELAY="1")
    world.run_for(2_000)
    everything = json.loads(stored.ask(43).body or b"")
    assert everything["offsetTable"] == {"orders@billing": {"0": 7}}
    assert json.loads(stored.ask(45).body or b"")["offsetTable"] == {"1": 1}


def test_a_message_by_its_offset_id(world: World, stored: BareClient) -> None:
    answer = stored.put("orders", "по номеру 🔎".encode())
    _, physical_offset = parse_offset_msg_id(answer.ext_fields["msgId"])
    found = stored.ask(33, offset=physical_offset)
    assert record.decode(found.body or b"").body.decode() == "по номеру 🔎"
    assert stored.ask(33, offset=physical_offset + 1).code == ResponseCode.SYSTEM_ERROR


def test_messages_by_key(world: World, stored: BareClient) -> None:
    for number in range(40):
        stored.put("orders", str(number).encode(), KEYS="ключ other", UNIQ_KEY=f"U{number // 39}")
    world.run_for(5)

    def found(key: str, most: int, unique: str = "false") -> list[bytes]:
        answer = stored.ask(
            12, topic="orders", key=key, maxNum=most, beginTimestamp=0, endTimestamp=1 << 62, _UNIQUE_KEY_QUERY=unique
        )
        assert (answer.code == 0) == bool(answer.body)
        return [one.body for one in record.decode_all(answer.body or b"")]

    assert len(found("ключ", 5)) == 5 and len(found("other", 64)) == 40
    assert found("U1", 1, "true") == [b"39"] and len(found("U0", 1, "true")) == 32
    answer = stored.ask(12, topic="orders", key="none", maxNum=5, beginTimestamp=0, endTimestamp=1 << 62)
    assert answer.code == ResponseCode.QUERY_NOT_FOUND


def reset(client: BareClient, **more: object) -> RemotingCommand:
    return client.ask(222, **{"group": "billing", "topic": "orders", "timestamp": -1, "isForce": True, **more})


def targets(answer: RemotingCommand) -> list[int]:
    table = java_json.loads(answer.body or b"{}").get("offsetTable", {})
    queues = sorted((json.loads(key)["queueId"], offset) for key, offset in table.items())
    return [offset for _, offset in queues]


def test_reset_by_time(stored: BareClient) -> None:
    between = stored.middle_ms  # type: ignore[attr-defined]
    for timestamp, expected in ((-1, 20), (-5, 20), (1 << 50, 20), (between, 10), (0, 0)):
        assert targets(reset(stored, timestamp=timestamp)) == [expected] * 4
    assert targets(reset(stored, timestamp=between, isForce=None)) == [10] * 4
    assert targets(reset(stored, timestamp=between, queueId=-3)) == [10] * 4
    assert targets(reset(stored, timestamp=between, queueId=0, offset=-1)) == [10]


def test_reset_to_a_number(stored: BareClient) -> None:
    for offset in (7, 20, 21):
        assert targets(reset(stored, queueId=0, offset=offset)) == [offset]
    for offset in (22, -2):
        answer = reset(stored, queueId=0, offset=offset)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == f"Target offset {offset} not in consume queue range [0-20]"
    assert targets(reset(stored, queueId=9, timestamp=0)) == [0] and query(stored, queueId=9) == 0


def test_reset_needs_topic_and_group(stored: BareClient) -> None:
    unknown = reset(stored, topic="NOPE")
    assert (unknown.code, unknown.remark) == (ResponseCode.TOPIC_NOT_EXIST, "Topic NOPE does not exist")
    unknown = reset(stored, group="rg")
    assert (unknown.code, unknown.remark) == (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "Group rg does not exist")


def test_a_pending_reset_ignores_commits_until_a_pull_took_it(world: World, stored: BareClient) -> None:
    commit(stored, 15)
    reset(stored, queueId=0, offset=10)
    assert query(stored) == 10
    ignored = commit(stored, 3)
    assert (ignored.code, ignored.remark) == (ResponseCode.SUCCESS, "Offset has been previously reset")
    assert query(stored) == 10
    moved = stored.pull("billing", "orders", 15, sysFlag=0)
    world.run_for(5)
    assert (moved.result().code, moved.result().ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "10")
    commit(stored, 3)
    assert query(stored) == 3
    found = stored.pull("billing", "orders", 15, sysFlag=0)
    world.run_for(5)
    assert len(record.decode_all(found.result().body or b"")) == 5


def test_a_held_pull_is_not_interrupted_by_a_reset(world: World, stored: BareClient) -> None:
    held = stored.pull("billing", "orders", 20)
    world.run_for(10)
    reset(stored, queueId=0, offset=5)
    world.run_for(10_000)
    assert not held.done
    world.sim.wait_for(held)
    assert (held.result().code, held.result().ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "5")


def test_the_old_way_asks_the_members(tmp_path: Path) -> None:
    world = World(tmp_path, use_server_side_reset_offset=False)
    client = world.client()
    for queue_id in range(4):
        client.put("orders", queue_id=queue_id)
        client.put("orders", queue_id=queue_id)
    client.heartbeat("billing", SubscriptionData("orders"))
    assert "not exist" in (reset(client).remark or "")
    for queue_id in range(4):
        commit(client, 1, queueId=queue_id)
    assert targets(reset(client, isForce=False)) == [1] * 4
    assert targets(reset(client, isForce=True)) == [2] * 4
    world.run_for(5)
    told = [command for command in client.received if command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET]
    assert [command.ext_fields["isForce"] for command in told] == ["false", "true"]
    assert [targets(command) for command in told] == [[1] * 4, [2] * 4]
    client.ask(35, clientID="x", consumerGroup="billing")
    assert reset(client).code == ResponseCode.CONSUMER_NOT_ONLINE


def test_offsets_of_one_group_for_another(world: World, stored: BareClient) -> None:
    commit(stored, 7)
    world.broker.groups.update(SubscriptionGroupConfig("copy"))
    stored.ask(314, srcGroup="billing", destGroup="copy", topic="orders", offline=False)
    assert query(stored, consumerGroup="copy") == 7
    stored.ask(314, srcGroup="billing", destGroup="other", topic="", offline=True)
    assert query(stored, consumerGroup="other") == 7


def corrected(client: BareClient, **more: str) -> dict[str, int]:
    answer = client.ask(308, topic="orders", compareGroup="billing", **more)
    value = java_json.loads((answer.body or b"").decode())
    assert list(value) == ["correctionOffsets"]
    offsets: dict[str, int] = value["correctionOffsets"]
    return offsets


def test_the_slowest_group_of_each_queue_and_where_a_group_is_behind_it(world: World, stored: BareClient) -> None:
    table = world.broker.offset_table
    for group, offsets in {"billing": (5, 3), "audit": (4, 7), "slow": (1, 2)}.items():
        for queue_id, queue_offset in enumerate(offsets):
            table.commit(group, "orders", queue_id, queue_offset)
    table.commit("audit", "orders", 2, 6)
    assert corrected(stored) == {"0": 1, "1": 2, "2": 6}
    assert corrected(stored, filterGroups="slow") == {"0": 4, "1": 3, "2": 6}
    assert corrected(stored, filterGroups="slow,billing") == {"0": 4, "1": (1 << 63) - 1, "2": 6}
    assert table.query("slow", "orders", 0) == 1  # groups left out of the answer keep their offsets


def test_correction_offsets_need_a_topic_and_a_group(stored: BareClient) -> None:
    assert corrected(stored) == {}
    assert stored.ask(308, topic="orders").code == ResponseCode.INVALID_PARAMETER

"""The broker against the real one: its files read back, its requests replayed on its own store, answers compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.tables.consumer_filters import ConsumerFilterTable
from mqlab.rocketmq.broker.tables.delay_offsets import DelayOffsetTable
from mqlab.rocketmq.broker.tables.groups import GroupTable
from mqlab.rocketmq.broker.tables.offsets import ConsumerOffsetTable
from mqlab.rocketmq.broker.tables.topics import TopicTable
from mqlab.rocketmq.broker.tables.transaction_metrics import TransactionMetrics
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import command, java_json, names, properties, record
from mqlab.rocketmq.wire.bodies import RegisterBrokerBody, SubscriptionData, TopicConfig
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.record import Record
from tests.rocketmq.broker.world import BareClient, World

AFTER_THE_STORE_MS = 1_795_219_400_000
SCENARIO_LEVELS = "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s"


@pytest.fixture
def world(real_store: Callable[[str], Path], tmp_path: Path) -> World:
    """A mqlab broker on a copy of the real broker's store ``clean``."""
    directory = tmp_path / "world"
    directory.mkdir()
    real_store("clean").rename(directory / "broker-a")
    return World(
        directory,
        store=StoreConfig(message_delay_level=SCENARIO_LEVELS, timer_wheel_enable=False),  # as in the recording
        start_ms=AFTER_THE_STORE_MS,
        broker_cluster_name="LabCluster",
        enable_property_filter=True,
        trace_topic_enable=True,
        default_topic_queue_nums=4,
    )


@pytest.fixture
def client(world: World) -> BareClient:
    return world.client()


def asked(exchange: dict[str, Any]) -> RemotingCommand:
    return command.decode(bytes.fromhex(exchange["requestHex"]))


def answered(exchange: dict[str, Any]) -> RemotingCommand:
    return command.decode(bytes.fromhex(exchange["responseHex"]))


def replay(client: BareClient, request: RemotingCommand, to: str | None = None) -> RemotingCommand:
    answer = client.remoting.invoke(to or client.world.broker.address, request, timeout_ms=30_000)
    client.world.sim.wait_for(answer)
    return answer.result()


ONEWAY = None
"""The response code of a request that is not answered."""


def of(exchanges: list[dict[str, Any]], *codes: int, code: int | None = 0) -> list[dict[str, Any]]:
    found = [one for one in exchanges if one["to"] == "broker" and one["code"] in codes and one["responseCode"] == code]
    assert found
    return found


TABLES: dict[str, Callable[[], Any]] = {
    "topics.json": lambda: TopicTable(BrokerConfig(broker_cluster_name="LabCluster"), lambda: 0),
    "subscriptionGroup.json": lambda: GroupTable(lambda: 0),
    "consumerOffset.json": lambda: ConsumerOffsetTable(lambda: 0),
    "delayOffset.json": lambda: DelayOffsetTable(lambda: 0, version_step=200),
    "consumerFilter.json": lambda: ConsumerFilterTable(lambda: AFTER_THE_STORE_MS),
    "transactionMetrics": lambda: TransactionMetrics(lambda: 0),
}


def without_order(value: Any) -> Any:
    """A decoded file in which only what means something is left: lists sorted, as Java's sets have no order."""
    if isinstance(value, dict):
        return {name: without_order(member) for name, member in value.items()}
    return sorted(value, key=str) if isinstance(value, list) else value


@pytest.mark.parametrize("store", ["clean", "killed"])
@pytest.mark.parametrize("name", TABLES)
def test_the_real_brokers_files_are_read_and_written_as_they_were(unpacked_stores: Path, store: str, name: str) -> None:
    text = (unpacked_stores / store / "config" / name).read_text(encoding="utf-8")
    table = TABLES[name]()
    table.decode(text)
    written = java_json.loads(table.encode())
    expected = java_json.loads(text)
    for made_here in ("rmq_sys_wheel_timer", "TBW102"):
        written.get("topicConfigTable", {}).pop(made_here, None)
        expected.get("topicConfigTable", {}).pop(made_here, None)
    assert without_order(written) == without_order(expected)
    if name != "topics.json":
        assert sorted(line.strip(",") for line in table.encode().splitlines() if "[" not in line) == sorted(
            line.strip(",") for line in text.splitlines() if "[" not in line
        )


def unit_of(world: World, physical_offset: int) -> Record:
    found = world.broker.store.message_at(physical_offset)
    assert found is not None
    return found


def meaning(one: Record) -> tuple[Any, ...]:
    """Everything of a stored message that does not depend on where and when it is stored."""
    return one.topic, one.queue_id, one.body, one.flag, one.sys_flag, one.born_timestamp, one.properties


def newest(world: World, before: int) -> list[Record]:
    """The messages stored at or after a physical offset."""
    found = []
    while before < world.broker.store.max_physical_offset:
        one = unit_of(world, before)
        found.append(one)
        before += one.total_size
    return found


def test_a_send_stores_what_the_real_broker_stored(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    for exchange in of(exchanges, 310):
        real = answered(exchange)
        original = unit_of(world, int(real.ext_fields["msgId"][-16:], 16))
        before = world.broker.store.max_physical_offset
        answer = replay(client, asked(exchange))
        assert answer.ext_fields["transactionId"] == real.ext_fields["transactionId"]
        assert set(answer.ext_fields) == set(real.ext_fields)
        (stored,) = newest(world, before)
        assert meaning(stored) == meaning(original)


def test_a_batch_stores_what_the_real_broker_stored(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    (exchange,) = of(exchanges, 320)
    ids = answered(exchange).ext_fields["msgId"].split(",")
    before = world.broker.store.max_physical_offset
    answer = replay(client, asked(exchange))
    stored = newest(world, before)
    originals = [unit_of(world, int(one[-16:], 16)) for one in ids]
    assert [meaning(one) for one in stored] == [meaning(one) for one in originals]
    assert len(answer.ext_fields["msgId"].split(",")) == len(ids)


def test_a_failed_message_is_given_back_as_the_real_broker_stored_it(
    world: World, client: BareClient, exchanges: list[dict[str, Any]], expected: Callable[[str], dict[str, Any]]
) -> None:
    everything = [unit_of(world, one["physicalOffset"]) for one in expected("clean")["messages"]]
    for exchange in of(exchanges, 36):
        request = asked(exchange)
        original = unit_of(world, int(request.ext_fields["offset"]))
        key = original.property_map["UNIQ_KEY"]
        (copy,) = [
            one
            for one in everything
            if one.property_map.get("UNIQ_KEY") == key
            and one.reconsume_times == original.reconsume_times + 1
            and (one.topic == names.SCHEDULE_TOPIC or one.topic.startswith(names.DLQ_PREFIX))
        ]
        before = world.broker.store.max_physical_offset
        assert replay(client, request).code == 0
        (stored,) = newest(world, before)
        real_named = properties.decode(copy.properties)
        assert list(stored.property_map) == list(real_named) and meaning(stored) == meaning(copy)


def test_transactions_are_stored_as_the_real_broker_stored_them(
    world: World, client: BareClient, expected: Callable[[str], dict[str, Any]]
) -> None:
    """Each first half message of the scenario is sent again from what its client must have sent, and committed."""
    everything = [unit_of(world, one["physicalOffset"]) for one in expected("clean")["messages"]]
    halves = [
        one for one in everything if one.topic == names.HALF_TOPIC and "TRANSACTION_CHECK_TIMES" not in one.property_map
    ]
    assert len(halves) >= 3
    added = ("REAL_TOPIC", "REAL_QID", "__transactionId__", "MSG_REGION", "TRACE_ON", "CLUSTER")
    for half in halves:
        named = {name: value for name, value in half.property_map.items() if name not in added}
        before = world.broker.store.max_physical_offset
        queue_id = int(half.property_map["REAL_QID"])
        more = {"sysFlag": 4, "bornTimestamp": half.born_timestamp, "flag": half.flag}
        answer = client.put(half.property_map["REAL_TOPIC"], half.body, queue_id=queue_id, more=more, **named)
        (stored,) = newest(world, before)
        assert meaning(stored) == meaning(half)
        committed = [one for one in everything if one.prepared_transaction_offset == half.physical_offset]
        if committed:
            before = world.broker.store.max_physical_offset
            ended = client.ask(
                37,
                producerGroup=named["PGROUP"],
                tranStateTableOffset=answer.ext_fields["queueOffset"],
                commitLogOffset=stored.physical_offset,
                commitOrRollback=8,
                fromTransactionCheck=False,
                msgId="",
            )
            assert ended.code == 0
            (real,) = newest(world, before)
            assert meaning(real) == meaning(committed[0])


def test_pulls_find_what_the_real_broker_found(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    for exchange in of(exchanges, 11, 361):
        request, real = asked(exchange), answered(exchange)
        if request.code == 11:  # the stored subscription is gone with its member: bring the same along
            request.ext_fields.update(sysFlag="4", subscription="*")
        answer = replay(client, request)
        assert answer.code == 0 and set(answer.ext_fields) == set(real.ext_fields)
        assert answer.remark == real.remark == "FOUND"
        wanted = record.decode_all(real.body or b"")
        found = {one.physical_offset: one for one in record.decode_all(answer.body or b"")}
        assert all(found[one.physical_offset] == one for one in wanted)


def test_a_pull_with_another_subscription_and_one_at_the_end_get_the_real_answers(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    too_new, at_the_end = of(exchanges, 11, code=25), of(exchanges, 11, code=19)
    for exchange, newer in [(one, True) for one in too_new] + [(one, False) for one in at_the_end]:
        request, real = asked(exchange), answered(exchange)
        group, topic = request.ext_fields["consumerGroup"], request.ext_fields["topic"]
        version = int(request.ext_fields["subVersion"]) - newer
        client.heartbeat(group, SubscriptionData(topic=topic, sub_string="*", sub_version=version))
        answer = replay(client, request)
        assert (answer.code, answer.ext_fields) == (real.code, real.ext_fields)
        assert answer.remark.startswith(real.remark.partition("\n")[0])


def test_offsets_are_asked_for_and_committed_as_by_the_real_client(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    """Those that were not found, or 0, have been committed since; a new group asks as theirs did."""
    for exchange in of(exchanges, 14) + of(exchanges, 14, code=22):
        request, real = asked(exchange), answered(exchange)
        if real.code == 22:
            request.ext_fields["topic"] += "-of-nobody"
        request.ext_fields["consumerGroup"] += "-2"
        answer = replay(client, request)
        assert (answer.code, answer.remark, answer.ext_fields) == (real.code, real.remark, real.ext_fields)
    for exchange in of(exchanges, 15, code=ONEWAY):
        fields = asked(exchange).ext_fields
        client.tell(15, **fields)
        query = {name: fields[name] for name in ("consumerGroup", "topic", "queueId")}
        assert client.ask(14, **query).ext_fields == {"offset": fields["commitOffset"]}


def test_half_messages_are_ended_as_the_real_client_ended_them(
    world: World, client: BareClient, exchanges: list[dict[str, Any]], expected: Callable[[str], dict[str, Any]]
) -> None:
    everything = [unit_of(world, one["physicalOffset"]) for one in expected("clean")["messages"]]
    stored = {"8": 0, "12": 0, "0": 0}
    for exchange in of(exchanges, 37, code=ONEWAY):
        fields = asked(exchange).ext_fields
        before = world.broker.store.max_physical_offset
        client.tell(37, **fields)
        world.run_for(10_000)  # the mark of an end is stored with others
        new = newest(world, before)
        real = [one for one in everything if one.prepared_transaction_offset == int(fields["commitLogOffset"])]
        committed = [one for one in new if one.topic == "transfer"]
        assert [meaning(one) for one in committed] == [
            meaning(one) for one in real if fields["commitOrRollback"] == "8"
        ]
        stored[fields["commitOrRollback"]] += sum(one.topic == names.OP_HALF_TOPIC for one in new)
    assert stored["0"] == 0 and stored["8"] >= 1 and stored["12"] >= 1


def test_one_way_sends_are_stored_as_the_real_broker_stored_them(
    world: World, client: BareClient, exchanges: list[dict[str, Any]], expected: Callable[[str], dict[str, Any]]
) -> None:
    originals = {
        one.property_map.get("UNIQ_KEY"): one
        for one in (unit_of(world, row["physicalOffset"]) for row in expected("clean")["messages"])
        if one.topic == "flow"
    }
    for exchange in of(exchanges, 310, code=ONEWAY):
        before = world.broker.store.max_physical_offset
        client.tell(310, asked(exchange).body, **asked(exchange).ext_fields)
        (stored,) = newest(world, before)
        assert meaning(stored) == meaning(originals[stored.property_map["UNIQ_KEY"]])


def test_every_exchange_is_replayed_here_or_elsewhere(exchanges: list[dict[str, Any]]) -> None:
    here = {310, 320, 36, 11, 361, 12, 351, 202, 208, 34, 38, 41, 42, 46, 35, 17, 14, 15, 37}
    runtime_info = {28}  # the names in it are compared in tests/rocketmq/broker/test_timed_exchanges.py
    assert {one["code"] for one in exchanges if one["to"] == "broker"} == here | runtime_info
    assert {one["code"] for one in exchanges if one["to"] == "name server"} == {103, 105, 106, 206}
    # What a broker asks of its clients: tests/rocketmq/broker/test_transactions.py and test_membership.py.
    assert {one["code"] for one in exchanges if one["to"] == "client"} == {39, 40}


def test_questions_about_the_real_store_get_the_real_answers(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    for exchange in of(exchanges, 12, 351):
        real, answer = answered(exchange), replay(client, asked(exchange))
        assert (answer.code, answer.body, set(answer.ext_fields)) == (real.code, real.body, set(real.ext_fields))
    for exchange in of(exchanges, 202, 208):
        real, answer = java_json.loads(answered(exchange).body or b""), replay(client, asked(exchange))
        assert json.loads(answer.body or b"")["offsetTable"] == real["offsetTable"]


def test_answers_have_the_fields_of_the_real_ones(
    world: World, client: BareClient, exchanges: list[dict[str, Any]]
) -> None:
    """Heartbeats, goodbyes, member lists, locks and routes: same codes, same members in the body."""
    for exchange in of(exchanges, 34, 38, 41, 42, 46, 35, 17):
        real, answer = answered(exchange), replay(client, asked(exchange))
        if exchange["code"] == 38 and answer.code != 0:
            continue  # the heartbeat of that group is not among the exchanges
        assert answer.code == real.code
        if real.body is not None:
            assert list(json.loads(answer.body or b"{}")) == list(json.loads(real.body))
    for exchange in exchanges:
        if exchange["to"] == "name server" and exchange["code"] in (105, 106, 206) and exchange["responseCode"] == 0:
            real = java_json.loads(answered(exchange).body or b"")
            answer = replay(client, asked(exchange), world.name_server.address)
            shown = java_json.loads(answer.body or b"{}")
            assert list(shown) == list(real)
        if exchange["to"] == "name server" and exchange["responseCode"] == 17:
            request, real = asked(exchange), answered(exchange)
            request.ext_fields["topic"] += "-of-nobody"  # the one that was asked for is there by now
            answer = replay(client, request, world.name_server.address)
            assert (answer.code, answer.ext_fields) == (real.code, real.ext_fields)
            assert answer.remark == real.remark.partition("\n")[0] + "-of-nobody"


def test_the_broker_starts_with_the_topics_of_the_real_one(world: World, exchanges: list[dict[str, Any]]) -> None:
    (exchange,) = [one for one in exchanges if one["to"] == "name server" and one["code"] == 206]
    real = json.loads(answered(exchange).body or b"")["topicList"]
    assert sorted(world.broker.topics) == sorted(real)


def test_real_registrations_are_understood(world: World, client: BareClient, exchanges: list[dict[str, Any]]) -> None:
    """They are those of single topics, which a name server takes only from a broker it knows."""
    registrations = [asked(one) for one in exchanges if one["to"] == "name server" and one["code"] == 103]
    for request in registrations:
        request.ext_fields["brokerName"] = "real"
        assert replay(client, request, world.name_server.address).code == 1
    whole = RegisterBrokerBody({name: TopicConfig(name) for name in ("one", "two")}).to_json()
    fields = {**registrations[0].ext_fields, "bodyCrc32": "0"}
    assert replay(client, RemotingCommand(103, fields, whole), world.name_server.address).code == 0
    for request in registrations:
        assert replay(client, request, world.name_server.address).code == 0
        for topic, config in RegisterBrokerBody.from_json(request.body or b"").topic_config_table.items():
            assert world.name_server.routes.queue_data(topic, "real") == config.queue_data("real")

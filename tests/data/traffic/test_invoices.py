"""Transactions of a written day are what a broker makes of the same half messages, and a broker goes on with them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqlab import Lab
from mqlab.data.traffic import TrafficSummary, broker_day, write
from mqlab.data.traffic.writing.beside_orders.half_queue import OpBatch
from mqlab.lab.inspector import StoreInspector
from mqlab.lab.runtime.world import DEFAULT_START_MS
from mqlab.rocketmq.broker.transactions import Transactions
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire import record as units
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request
from mqlab.rocketmq.wire.message import Message, MessageExt
from mqlab.rocketmq.wire.names import HALF_TOPIC, OP_HALF_TOPIC, TRANSACTION_GROUP
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record
from tests.data.traffic.conftest import SMALL

COMMIT, ROLL_BACK = 8, 12
DAY_MS = 86_400_000
TOPICS = (HALF_TOPIC, OP_HALF_TOPIC, "invoices")
OF_THE_BROKER = (p.REAL_TOPIC, p.REAL_QID, p.TRANSACTION_ID)


def made_day(directory: Path, messages: int, seed: int) -> TrafficSummary:
    model = SMALL.changed(incidents=(), start_ms=DEFAULT_START_MS)
    return write(directory, messages=messages, seed=seed, model=model, invoices=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TrafficSummary:
    return made_day(tmp_path_factory.mktemp("traffic") / "day", 8_000, 11)


def records_of(store: Path) -> dict[str, list[Record]]:
    """The units of the three topics, in the order of the log; each is what the encoder writes."""
    found: dict[str, list[Record]] = {topic: [] for topic in TOPICS}
    for piece in StoreInspector(store).pieces():
        record = piece.record()
        if record.topic in found:
            assert units.encode(record.changed(body_crc=None)) == bytes(piece.raw())
            assert record.topic == OP_HALF_TOPIC or record.properties == encode_as_java(record.property_map)
            found[record.topic].append(record)
    return found


@pytest.fixture(scope="module")
def records(made: TrafficSummary) -> dict[str, list[Record]]:
    return records_of(made.stores["broker-a"])


def offsets(store: Path) -> dict[str, int]:
    """How far the checks have come in both topics."""
    name = "consumerOffset.json"
    table = config_texts.decode(name, (store / "config" / name).read_text("utf-8"))["offsetTable"]
    return {topic: table[f"{topic}@{TRANSACTION_GROUP}"][0] for topic in (HALF_TOPIC, OP_HALF_TOPIC)}


@dataclass
class Answer:
    """What the process of an invoice says: at which check (0: by itself), after how many ms, and what."""

    at_check: int
    after_ms: int
    outcome: int


def answers_of(records: dict[str, list[Record]]) -> dict[str, Answer]:
    """By unique id: read from the store, not from the code that wrote it."""
    copies = {}
    for half in records[HALF_TOPIC]:
        copies[half.queue_offset] = half
    committed = {one.property_map[p.UNIQ_KEY]: one for one in records["invoices"]}
    answers = {}
    for op in records[OP_HALF_TOPIC]:
        for number in op.body.decode().strip(",").split(","):
            half = copies[int(number)]
            unique = half.property_map[p.UNIQ_KEY]
            real = committed.get(unique)
            # When it was rolled back is not in the store: some ms before the op message will do.
            after_ms = 5 if real is None else real.store_timestamp - half.store_timestamp
            checks = int(half.property_map.get(p.TRANSACTION_CHECK_TIMES, 0))
            answers[unique] = Answer(checks, after_ms, ROLL_BACK if real is None else COMMIT)
    return answers


class Producers:
    """Processes that answer a broker's own code, at the moments that the written day tells."""

    def __init__(self, lab: Lab, answers: dict[str, Answer]) -> None:
        self.broker = lab.broker("broker-a")
        self.transactions: Transactions = self.broker._transactions
        self.answers = answers
        self.broker.state.producers.available_channel = lambda group: SimpleNamespace(  # type: ignore[method-assign]
            send_oneway=self.asked, remote_address="the producer"
        )

    def send(self, half: Record) -> None:
        properties = {name: value for name, value in half.property_map.items() if name not in OF_THE_BROKER}
        real = half.changed(
            topic=half.property_map[p.REAL_TOPIC],
            queue_id=int(half.property_map[p.REAL_QID]),
            properties=encode_as_java(properties),
            sys_flag=4,
            store_timestamp=0,
        )
        result = self.transactions.prepare(real)
        self.answer(half.property_map[p.UNIQ_KEY], 0, result.queue_offset, result.physical_offset)

    def asked(self, question: RemotingCommand) -> None:
        half = units.decode(question.body)
        checks = int(half.property_map[p.TRANSACTION_CHECK_TIMES])
        fields = question.ext_fields
        self.answer(
            fields["msgId"], checks, int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"]), is_asked=True
        )

    def answer(self, unique: str, checks: int, offset: int, place: int, *, is_asked: bool = False) -> None:
        answer = self.answers.get(unique)
        if answer is None or answer.at_check != checks:
            return
        end = make_request(
            RequestCode.END_TRANSACTION,
            producerGroup="invoice-service",
            tranStateTableOffset=offset,
            commitLogOffset=place,
            commitOrRollback=answer.outcome,
            fromTransactionCheck=is_asked,
            msgId=unique,
            transactionId=unique,
        )
        self.broker.ports.clock.call_later(
            answer.after_ms,
            lambda: self.transactions.end_transaction(None, end, lambda reply: None),
            "test.end",  # type: ignore[arg-type]
        )


def compared(record: Record) -> tuple[Any, ...]:
    """All of a unit that does not tell where in the log it is."""
    return (
        record.topic,
        record.queue_id,
        record.queue_offset,
        record.store_timestamp,
        record.born_timestamp,
        record.sys_flag,
        record.flag,
        record.reconsume_times,
        record.body,
        record.properties,
    )


def test_a_broker_makes_the_same_of_the_same_half_messages_and_answers(
    made: TrafficSummary, records: dict[str, list[Record]]
) -> None:
    lab = Lab(client={"enable_trace": False})
    producers = Producers(lab, answers_of(records))
    clock = lab.broker("broker-a").ports.clock
    for half in records[HALF_TOPIC]:
        if p.TRANSACTION_CHECK_TIMES not in half.property_map:
            clock.call_at(half.store_timestamp, lambda half=half: producers.send(half), "test.send")
    lab.run_for(DAY_MS - 1_000)  # nothing happens in the last second, and the stop takes some time
    lab.broker("broker-a").shutdown()
    played = records_of(Path(lab.broker("broker-a").store.directory))
    for topic in TOPICS:
        assert [compared(one) for one in played[topic]] == [compared(one) for one in records[topic]], topic
    assert offsets(Path(lab.broker("broker-a").store.directory)) == offsets(made.stores["broker-a"])


def test_all_outcomes_occur(records: dict[str, list[Record]]) -> None:
    answers = answers_of(records).values()
    found = Counter((answer.at_check, answer.outcome) for answer in answers)
    assert found[0, COMMIT] > 10 * found[0, ROLL_BACK] > 0
    asked = {key: count for key, count in found.items() if key[0] > 0}
    assert {check for check, _ in asked} == {1, 2, 3} and {outcome for _, outcome in asked} == {COMMIT, ROLL_BACK}
    # As many invoices as commits, and none twice.
    invoices = [one.property_map[p.UNIQ_KEY] for one in records["invoices"]]
    assert len(set(invoices)) == len(invoices) == sum(answer.outcome == COMMIT for answer in answers)
    assert {one.queue_id for one in records["invoices"]} == {0, 1, 2, 3}


def test_an_invoice_names_the_place_of_its_half_message(records: dict[str, list[Record]]) -> None:
    places = {half.physical_offset: half for half in records[HALF_TOPIC]}
    for one in records["invoices"]:
        half = places[one.prepared_transaction_offset]
        same = ("body", "properties", "born_timestamp", "born_host", "reconsume_times")
        assert all(getattr(half, name) == getattr(one, name) for name in same)
        assert (one.sys_flag, half.sys_flag, half.queue_id) == (COMMIT, 0, 0)
        assert half.store_timestamp < one.store_timestamp < half.store_timestamp + 100


def test_the_store_is_whole(made: TrafficSummary) -> None:
    assert StoreInspector(made.stores["broker-a"]).problems(deep=True) == []
    assert sum(made.topics.values()) == 8_000


def test_a_broker_goes_on_with_what_is_open(tmp_path: Path) -> None:
    store = made_day(tmp_path / "day", 1_500, 30).stores["broker-a"]  # a day that ends with an open half message
    metrics = json.loads((store / "config" / "transactionMetrics").read_text("utf-8"))
    count = metrics["transactionCount"]["invoices"]["count"]
    assert count > 0
    lab = Lab(stores={"broker-a": str(store)}, client={"enable_trace": False})
    assert lab.broker("broker-a").transaction_metrics.count("invoices") == count
    before = len(records_of(store)["invoices"])
    asked = []

    class Committing:
        def execute_local_transaction(self, message: Message, arg: Any) -> str:
            raise AssertionError("nothing is sent")

        def check_local_transaction(self, message: MessageExt) -> str:
            asked.append(message.keys)
            return "COMMIT_MESSAGE"

    producer = lab.transaction_producer("invoice-service", Committing())
    producer.fetch_publish_message_queues("invoices")  # a producer sends heartbeats to brokers whose topics it knows
    lab.run_for("5m")
    assert len(asked) == len(set(asked)) == count
    assert lab.broker("broker-a").transaction_metrics.count("invoices") == 0
    after = records_of(Path(lab.broker("broker-a").store.directory))["invoices"]
    assert len(after) == before + count


def test_a_day_of_several_slices_names_each_half_message_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_day, "SLICE_ORDERS", 512)
    made = made_day(tmp_path / "day", 12_000, 3)
    records = records_of(made.stores["broker-a"])
    assert StoreInspector(made.stores["broker-a"]).problems(deep=True) == []
    named = [int(number) for op in records[OP_HALF_TOPIC] for number in op.body.decode().strip(",").split(",")]
    replaced = sum(p.TRANSACTION_CHECK_TIMES in half.property_map for half in records[HALF_TOPIC])
    assert len(named) == len(set(named))
    # Every half message is named, or stored again, or still open.
    metrics = json.loads((made.stores["broker-a"] / "config" / "transactionMetrics").read_text("utf-8"))
    open_count = metrics["transactionCount"]["invoices"]["count"]
    assert len(records[HALF_TOPIC]) == len(named) + replaced + open_count
    times = [op.store_timestamp for op in records[OP_HALF_TOPIC]]
    assert all(later - earlier >= 3_000 for earlier, later in pairwise(times))
    assert max(op.body.count(b",") for op in records[OP_HALF_TOPIC]) > 1


def test_an_op_message_is_written_at_once_when_many_wait() -> None:
    batch = OpBatch(start_ms=0)
    batch.ended([(1_000 + number // 2, 100_000 + number) for number in range(2_000)])
    ops = batch.until(1_999)
    # 586 offsets of seven bytes are the first that are more than 4096 bytes.
    assert [(op.time_ms, len(op.halves)) for op in ops] == [(1_292, 586), (1_585, 586), (1_878, 586)]
    assert [op.time_ms for op in batch.until(10_000)] == [4_878]


def test_the_record_of_a_run_mentions_invoices_only_if_it_has_them(made: TrafficSummary) -> None:
    record = json.loads((made.directory / "traffic.json").read_text("utf-8"))
    assert record["asked"]["model"]["invoices"] is True and record["command"].count(" --invoices") == 1

"""The requests of mqlab's clients carry the header fields of a Java client's, no more and no less."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.client import LitePullConsumer, TransactionProducer
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message
from tests.rocketmq.client.conftest import Recorder, World

EXCHANGES = Path(__file__).parent / "fixtures" / "exchanges.jsonl.gz"
CODES = (310, 320, 34, 38, 14, 15, 11, 36, 37, 41, 42, 35, 361, 105)
STREAM_MARK = {"ReqT"}  # in every request of a pull client; of those only 361 was captured
ONE_OF_TWO = {"producerGroup", "consumerGroup"}  # in 35


class Undecided:
    def execute_local_transaction(self, message: Message, arg: Any) -> str:
        return "UNKNOW"

    def check_local_transaction(self, message: Message) -> str:
        return "COMMIT_MESSAGE"


def java_fields() -> dict[int, set[frozenset[str]]]:
    fields: dict[int, set[frozenset[str]]] = {}
    for line in gzip.decompress(EXCHANGES.read_bytes()).decode().splitlines():
        exchange = json.loads(line)
        if exchange["code"] in CODES and exchange["to"] != "client":
            names = frozenset(exchange["requestHeader"].get("extFields") or {})
            fields.setdefault(exchange["code"], set()).add(names)
    return fields


@pytest.fixture
def requests(tmp_path: Path) -> Iterator[dict[int, set[frozenset[str]]]]:
    """The field names of every request in a world where everything happens."""
    world = World(tmp_path, transaction_check_interval=4_000, transaction_time_out=2_000)
    world.create_topic("orders", 1)
    producer = world.producer()
    producer.send(Message("orders", b"x", tags="a", keys="k"))
    producer.send_batch([Message("orders", b"1"), Message("orders", b"2")])
    world.consumer("billing", listener=Recorder(world, "RECONSUME_LATER", "CONSUME_SUCCESS"))
    orderly = world.consumer("ordered", listener=Recorder(world, "SUCCESS"), orderly=True)
    bank = TransactionProducer(world.ports("pay-1"), "pay", world.name_servers, Undecided(), enable_trace=False)
    bank.start()
    bank.send_message_in_transaction(Message("transfer", b"x"))
    lite = LitePullConsumer(world.ports("lite-1"), "lite", world.name_servers, enable_trace=False)
    lite.subscribe("orders", "a")
    lite.start()
    lite.poll()
    world.run_for(40_000)
    orderly.shutdown()
    found: dict[int, set[frozenset[str]]] = {}
    for record in world.sim.journal:
        if record.about is not None and not record.about.is_response:
            found.setdefault(record.about.code, set()).add(frozenset(record.about.ext_fields))
    yield found


def test_same_header_fields_as_a_java_client(requests: dict[int, set[frozenset[str]]]) -> None:
    java = java_fields()
    assert java.keys() == set(CODES)
    for code in CODES:
        loose = ONE_OF_TWO if code == RequestCode.UNREGISTER_CLIENT else set()
        loose = loose if code == RequestCode.LITE_PULL_MESSAGE else loose | STREAM_MARK
        ours = {names - loose for names in requests[code]}
        theirs = {names - loose for names in java[code]}
        assert ours == theirs, RequestCode(code).name

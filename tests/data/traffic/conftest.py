"""A small day of two brokers on which everything goes wrong, made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.traffic import TrafficModel, TrafficSummary, write
from mqlab.data.traffic.trouble.incidents import KINDS
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.admin.message_traces import TraceEntry, decode_trace
from mqlab.rocketmq.wire.message import MessageExt

SMALL = TrafficModel(
    commit_log_bytes=1 << 20,
    consume_queue_bytes=20_000,
    hash_slot_num=5_000,
    index_num=60_000,
    index=True,
    incidents=tuple(KINDS),
)


@dataclass
class Day:
    """A finished run and what was read out of it."""

    summary: TrafficSummary
    truth: dict[str, list[dict[str, Any]]]
    messages: dict[str, list[MessageExt]]  # broker name -> all, in the order of the log
    told: dict[str, list[TraceEntry]]

    def of(self, broker: str, topic: str) -> list[MessageExt]:
        return [message for message in self.messages[broker] if message.topic == topic]

    def incident(self, kind: str) -> tuple[str, dict[str, Any]]:
        """(broker, what the truth says) where an incident came to something."""
        found = [(b, told) for b, all_told in self.truth.items() for told in all_told if told["kind"] == kind]
        assert found, kind
        return found[0]


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    directory = tmp_path_factory.mktemp("traffic") / "day"
    summary = write(directory, messages=16_000, brokers=2, seed=11, model=SMALL)
    messages = {name: list(StoreInspector(path).messages()) for name, path in summary.stores.items()}
    told = {
        name: [entry for m in found if m.topic == "RMQ_SYS_TRACE_TOPIC" for entry in decode_trace(m)]
        for name, found in messages.items()
    }
    truth = json.loads(summary.truth.read_text("utf-8"))["brokers"]
    return Day(summary, truth, messages, told)


@pytest.fixture
def small_day(tmp_path: Path) -> Callable[..., TrafficSummary]:
    """Makes days of a few thousand messages in small files."""

    def make(name: str = "day", **asked: Any) -> TrafficSummary:
        wanted = {"messages": 3_000, "brokers": 1, "seed": 3, "model": SMALL.changed(index=False), **asked}
        return write(tmp_path / name, **wanted)

    return make

"""Stores that crash, lose power and come back, again and again, against a model in memory.

The model is the list of all messages in the order they were put. A crash may take an end of it, never anything that was
acknowledged under SYNC_FLUSH; what is left is in its queue, at its place, once.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.record import Record

QUEUES = (("订单", 0), ("订单", 1), ("заказы", 0))
BODIES = (0, 1, 20, 300, 1500, 5000)
CONFIGS = (
    {},
    {"mapped_file_size_commit_log": 20_000, "mapped_file_size_consume_queue": 400},
    {"mapped_file_size_commit_log": 1 << 17, "mapped_file_size_consume_queue": 6000, "recover_with_numpy": False},
)


class Message:
    """A message of the model: what was put, where it went, whether its sender was told that it is safe."""

    def __init__(self, record: Record, queue_offset: int, end: int) -> None:
        self.key = record.property_map["KEYS"]
        self.queue = (record.topic, record.queue_id)
        self.record = record
        self.queue_offset = queue_offset
        self.end = end
        self.acknowledged = False

    def acknowledge(self, status: str) -> None:
        assert status == "PUT_OK"
        self.acknowledged = True


class CrashingStore(RuleBasedStateMachine):
    """One directory, a store on it that is put to, killed and unplugged."""

    flush_disk_type = "SYNC_FLUSH"
    world: Any

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []
        self.count = 0
        self.directory: Path | None = None

    @initialize(config=strategies.sampled_from(CONFIGS), seed=strategies.integers(0, 1 << 30))
    def begin(self, config: dict[str, Any], seed: int) -> None:
        self.directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.settings = {
            "mapped_file_size_commit_log": 8192,
            "max_hash_slot_num": 20,
            "max_index_num": 50,
            "flush_disk_type": self.flush_disk_type,
            **config,
        }
        self.world = self.make_world(self.directory / "store", **self.settings)
        self.random = random.Random(seed)
        self.store: MessageStore = self.world.start(**self.settings)

    make_world: Callable[..., Any]

    def teardown(self) -> None:
        if self.directory is not None:
            self.world.kill()
            shutil.rmtree(self.directory)

    def record(self, queue: tuple[str, int], size: int) -> Record:
        self.count += 1
        body = (f"{self.count} 你好 ".encode() + self.random.randbytes(size))[: max(size, 12)]
        return Record(queue[0], body, queue[1], properties=f"KEYS\x01k{self.count}\x02TAGS\x01标签\x02".encode())

    def stored(self, record: Record, result: Any, end: int, offset: int) -> None:
        message = Message(record, offset, end)
        self.messages.append(message)
        self.store.wait_durable(result).then(message.acknowledge)

    @rule(queue=strategies.sampled_from(QUEUES), size=strategies.sampled_from(BODIES), times=strategies.integers(1, 12))
    def put(self, queue: tuple[str, int], size: int, times: int) -> None:
        for _ in range(times):
            record = self.record(queue, size)
            result = self.store.put(record)
            assert result.is_ok
            self.stored(record, result, result.end_offset, result.queue_offset)

    @rule(
        queue=strategies.sampled_from(QUEUES),
        sizes=strategies.lists(strategies.sampled_from(BODIES[:5]), min_size=1, max_size=5),
    )
    def put_batch(self, queue: tuple[str, int], sizes: list[int]) -> None:
        records = [self.record(queue, size) for size in sizes]
        result = self.store.put_batch(records)
        if not result.is_ok:
            assert "do not fit" in result.reason
            return
        ends = [*result.unit_offsets[1:], result.end_offset]
        for number, (record, end) in enumerate(zip(records, ends, strict=True)):
            self.stored(record, result, end, result.queue_offset + number)

    @rule(ms=strategies.sampled_from((0, 1, 2, 400, 1_000, 11_000, 61_000)))
    def wait(self, ms: int) -> None:
        self.world.clock.advance(ms)

    @rule()
    def delete_old_files(self) -> None:
        self.world.files.disk_used = 0.86
        self.store.retention.clean()
        self.world.files.disk_used = 0.1

    @rule(kept=strategies.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)))
    def power_cut(self, kept: float) -> None:
        self.world.power_cut(lambda item: self.random.random() < kept)
        self.come_back()

    @rule()
    def kill(self) -> None:
        end = self.store.max_physical_offset
        self.world.kill()
        self.come_back()
        assert self.store.max_physical_offset == end  # kill -9 takes nothing

    @rule()
    def stop_and_start(self) -> None:
        end = self.store.max_physical_offset
        self.store.shutdown()
        self.come_back()
        assert self.store.recovery_report.clean_exit
        assert self.store.max_physical_offset == end

    def come_back(self) -> None:
        self.store = self.world.start(**self.settings)
        end = self.store.max_physical_offset
        lost = [message for message in self.messages if message.end > end]
        assert not [message.key for message in lost if message.acknowledged]
        self.messages = [message for message in self.messages if message.end <= end]
        self.store.dispatch()
        self.check_all()

    def check_all(self) -> None:
        first = self.store.min_physical_offset
        for queue in QUEUES:
            there = [m for m in self.messages if m.queue == queue and m.end - len(m.record.body) > first]
            assert self.read(queue) == [(m.queue_offset, m.record.body, m.record.properties) for m in there]
            assert self.store.queues.next_offsets.get(queue, 0) == self.store.max_offset(*queue)
        self.check_keys()

    def read(self, queue: tuple[str, int]) -> list[tuple[int, bytes, bytes]]:
        found = []
        offset = self.store.min_offset(*queue)
        while offset < self.store.max_offset(*queue):
            result = self.store.get(*queue, offset)
            assert result.status == "FOUND", (queue, offset, result)
            for record in result.records():
                found.append((record.queue_offset, record.body, record.properties))
            offset = result.next_begin_offset
        return found

    def check_keys(self) -> None:
        for message in self.messages[-5:]:
            found = self.store.query(message.record.topic, message.key).records
            assert {record.body for record in found} <= {message.record.body}

    @invariant()
    def numbers_go_on(self) -> None:
        if self.messages:
            assert self.store.max_physical_offset >= self.messages[-1].end


class AsynchronousCrashingStore(CrashingStore):
    flush_disk_type = "ASYNC_FLUSH"

    def stored(self, record: Record, result: Any, end: int, offset: int) -> None:
        self.messages.append(Message(record, offset, end))


@pytest.mark.parametrize("machine", [CrashingStore, AsynchronousCrashingStore])
def test_crashing_stores(machine: type[CrashingStore], world_type: type) -> None:
    run(machine, world_type, examples=40, steps=25)


@pytest.mark.long
@pytest.mark.parametrize("machine", [CrashingStore, AsynchronousCrashingStore])
def test_many_crashing_stores(machine: type[CrashingStore], world_type: type) -> None:
    run(machine, world_type, examples=1500, steps=50)


def run(machine: type[CrashingStore], world_type: type, *, examples: int, steps: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class Machine(machine):  # type: ignore[valid-type,misc]
        make_world = world_type

    Machine.__name__ = machine.__name__
    chosen = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(Machine, settings=chosen)

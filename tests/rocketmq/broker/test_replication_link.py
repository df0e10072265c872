"""Each end of the replication link against a peer that is played by hand: every rule and vector of the real broker."""

from __future__ import annotations

import dataclasses
import errno
import random
from pathlib import Path

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Connection
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.ha import BlockReader, HaBlock, HaReport, ReportReader
from mqlab.rocketmq.wire.record import Record
from tests.rocketmq.broker.world import SMALL_STORE, World

MIB = 1 << 20
VECTOR_STORE = dataclasses.replace(SMALL_STORE, mapped_file_size_commit_log=MIB, mapped_file_size_consume_queue=20_000)
UNIT = 1217
VECTOR_END = 2_800_578
BODY = "сообщение 你好 🚀".encode()


def unit_of(size: int, queue_id: int) -> Record:
    """A message whose stored unit has exactly so many bytes."""
    bare = Record("T", b"", queue_id, properties=b"")
    probe = 91 + len("T")
    return bare.changed(body=BODY + b"x" * (size - probe - len(BODY)), magic=None)


def fill(world: World, count: int, size: int = UNIT) -> None:
    """So many messages over four queues, dispatched."""
    for number in range(count):
        result = world.broker.store.put(unit_of(size, number % 4))
        assert result.size == size
    world.run_for(50)


class FakeSlave:
    """Connects to a master, reports what it is told to, keeps (ms since the connection, block)."""

    def __init__(
        self, world: World, first_report: int | None, *, acknowledges: bool = True, name: str = "fake"
    ) -> None:
        self.world = world
        self.acknowledges = acknowledges
        self.blocks: list[tuple[int, HaBlock]] = []
        self.ended: str | None = None
        self._reader = BlockReader()
        ports = world.sim.add_node(name, RealFiles())
        self.connection = ports.network.connect(world.broker.ha_address, self._on_data, self._closed)
        self.began_ms = world.sim.now_ms
        if first_report is not None:
            self.report(first_report)

    def report(self, offset: int) -> None:
        self.connection.send(HaReport(offset).encode())

    def _on_data(self, connection: Connection, data: bytes) -> None:
        self._reader.feed(data)
        while (block := self._reader.take()) is not None:
            self.blocks.append((self.world.sim.now_ms - self.began_ms, block))
            if self.acknowledges and not block.is_heartbeat:
                self.report(block.physical_offset + len(block.data))

    def _closed(self, connection: Connection, reason: str) -> None:
        self.ended = f"{reason} at {self.world.sim.now_ms - self.began_ms}"

    @property
    def data(self) -> list[HaBlock]:
        return [block for _, block in self.blocks if not block.is_heartbeat]

    @property
    def heartbeats(self) -> list[tuple[int, int]]:
        return [(at, block.physical_offset) for at, block in self.blocks if block.is_heartbeat]


@pytest.fixture(scope="module")
def vector_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The master of the vectors: 2300 messages of 1217 bytes over 4 queues in files of 1 MiB."""
    world = World(tmp_path_factory.mktemp("vectors"), store=VECTOR_STORE)
    fill(world, 2300)
    assert world.broker.store.max_physical_offset == VECTOR_END
    return world


@pytest.mark.parametrize(
    ("first_report", "first_block", "count", "last_block"),
    [
        (0, (2_097_152, 32_768), 22, (2_785_280, 15_298)),
        (1, (1, 32_768), 86, (2_785_280, 15_298)),
        (1_048_581, (1_048_581, 32_768), 54, (2_785_280, 15_298)),
    ],
)
def test_block_vectors(
    vector_world: World, first_report: int, first_block: tuple[int, int], count: int, last_block: tuple[int, int]
) -> None:
    slave = FakeSlave(vector_world, first_report, name=f"fake-{first_report}")
    vector_world.run_for(1_000)
    sizes = [(block.physical_offset, len(block.data)) for block in slave.data]
    assert (sizes[0], len(sizes), sizes[-1]) == (first_block, count, last_block)
    for offset, size in sizes:
        assert size <= 32_768 and offset // MIB == (offset + size - 1) // MIB
    log = vector_world.broker.store.commit_log
    assert all(block.data == log.block_from(block.physical_offset, 32_768) for block in slave.data)
    assert b"".join(block.data for block in slave.data)[-UNIT:] == log.unit_at(VECTOR_END - UNIT)


def test_beyond_the_end_there_are_heartbeats_only(vector_world: World) -> None:
    slave = FakeSlave(vector_world, 99_999_999, name="fake-beyond")
    vector_world.run_for(16_000)
    assert not slave.data
    assert [offset for _, offset in slave.heartbeats] == [99_999_999] * 3


@pytest.mark.parametrize("first_report", [-5, None])
def test_a_negative_report_counts_as_none_and_nothing_is_sent(vector_world: World, first_report: int | None) -> None:
    slave = FakeSlave(vector_world, first_report, name=f"fake-silent-{first_report}")
    vector_world.run_for(19_000)
    assert slave.blocks == []


def test_after_a_negative_report_the_next_one_begins(vector_world: World) -> None:
    slave = FakeSlave(vector_world, -5, name="fake-late")
    vector_world.run_for(3_000)
    slave.report(2_785_280)
    vector_world.run_for(100)
    assert [(block.physical_offset, len(block.data)) for block in slave.data] == [(2_785_280, 15_298)]


def test_before_the_oldest_file_there_are_heartbeats_only(tmp_path: Path) -> None:
    world = World(tmp_path, store=VECTOR_STORE)
    fill(world, 2300)
    world.broker.store.commit_log.queue.delete_first()
    behind, at_the_oldest = FakeSlave(world, 5_000, name="behind"), FakeSlave(world, MIB, name="oldest")
    world.run_for(11_000)
    assert [offset for _, offset in behind.heartbeats] == [5_000, 5_000] and not behind.data
    assert at_the_oldest.data[0].physical_offset == MIB


def test_an_idle_master_sends_heartbeats_every_five_seconds(tmp_path: Path) -> None:
    world = World(tmp_path)
    slave = FakeSlave(world, 0)
    world.run_for(15_500)
    assert [at // 100 for at, _ in slave.heartbeats] == [50, 100, 150]
    assert {offset for _, offset in slave.heartbeats} == {0}


def test_a_master_closes_after_twenty_seconds_without_a_word(tmp_path: Path) -> None:
    world = World(tmp_path)
    silent, alive = FakeSlave(world, 0, name="silent"), FakeSlave(world, 0, name="alive")
    for _ in range(4):
        world.run_for(10_000)
        alive.report(0)
    assert silent.ended is not None and silent.ended.startswith("closed by peer at 200")
    assert alive.ended is None
    assert [slave.address for slave in world.broker.replication.server.connections] == [alive.connection.local_address]


def test_a_burst_of_reports_collapses_to_the_last_whole_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    slave = FakeSlave(world, 0)
    world.run_for(10)
    burst = b"".join(HaReport(offset).encode() for offset in (100, 300, 200)) + HaReport(999).encode()[:5]
    slave.connection.send(burst)
    world.run_for(10)
    [seen] = world.broker.replication.server.connections
    assert seen.ack_offset == 200
    slave.connection.send(HaReport(999).encode()[5:])
    world.run_for(10)
    assert seen.ack_offset == 999
    assert [values["physical_offset"] for values in world.changes("ha.acknowledged")] == [200, 999]


def test_a_put_that_nobody_waits_for_is_seen_within_100_ms(tmp_path: Path) -> None:
    world = World(tmp_path)
    slave = FakeSlave(world, 0)
    world.run_for(130)
    assert world.broker.store.put(unit_of(UNIT, 0)).is_ok
    world.run_for(60)
    assert not slave.data  # the master looks every 100 ms
    world.run_for(60)
    assert [len(block.data) for block in slave.data] == [UNIT]


def test_a_put_that_waits_for_copies_goes_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, broker_role="SYNC_MASTER", in_sync_replicas=2))
    FakeSlave(world, 0)
    world.run_for(130)
    store = world.broker.store
    answer = store.wait_durable(store.put(unit_of(UNIT, 0)))
    world.run_for(2)
    assert answer.value == "PUT_OK"


def test_flow_control_limits_the_bytes_of_a_second(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL_STORE, ha_flow_control_enable=True, max_ha_transfer_byte_in_second=10_000)
    world = World(tmp_path, store=config)
    fill(world, 40)
    slave = FakeSlave(world, 1)
    world.run_for(3_900)
    per_second: dict[int, int] = {}
    for at, block in slave.blocks:
        second = (slave.began_ms + at) // 1_000
        per_second[second] = per_second.get(second, 0) + len(block.data)
    assert max(per_second.values()) <= 10_000 and sum(per_second.values()) >= 30_000
    world.run_for(3_000)
    assert sum(len(block.data) for block in slave.data) == 40 * UNIT - 1


def test_what_is_lost_from_the_link_is_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, broker_role="SYNC_MASTER", in_sync_replicas=2))
    slave = FakeSlave(world, 0)
    world.run_for(10)
    slave.connection.close()
    world.run_for(10)
    server, store = world.broker.replication.server, world.broker.store
    assert server.connections == [] and store.on_append is None
    answer = store.wait_durable(store.put(unit_of(UNIT, 0)))
    world.run_for(2_999)
    assert not answer.done
    world.run_for(1)
    assert answer.value == "FLUSH_SLAVE_TIMEOUT"
    assert [values["reason"] for values in world.changes("ha.lost")] == ["closed by peer"]


class FakeMaster:
    """Listens for a slave and sends what it is told to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reports: list[tuple[int, int]] = []  # ms since the world began, offset
        self.links: list[Connection] = []
        self.ends: list[int] = []
        self._reader = ReportReader()
        self.began_ms = world.sim.now_ms
        self.ports = world.sim.add_node("master", RealFiles())
        self.ports.network.listen("10.0.0.3:10912", self._accepted, self._on_data, self._closed)

    def _accepted(self, connection: Connection) -> None:
        self._reader = ReportReader()
        self.links.append(connection)

    def _on_data(self, connection: Connection, data: bytes) -> None:
        for at in range(0, len(data), 8):
            report = self._reader.feed(data[at : at + 8])
            if report is not None:
                self.reports.append((self.world.sim.now_ms - self.began_ms, report.physical_offset))

    def _closed(self, connection: Connection, reason: str) -> None:
        self.ends.append(self.world.sim.now_ms - self.began_ms)

    def send(self, block: HaBlock) -> None:
        self.links[-1].send(block.encode())
        self.world.run_for(5)


SLAVE_STORE = dataclasses.replace(SMALL_STORE, broker_role="SLAVE", ha_master_address="10.0.0.3:10912")


@pytest.fixture
def slave_world(tmp_path: Path) -> World:
    return World(tmp_path, store=SLAVE_STORE, broker_id=1)


@pytest.fixture
def master(slave_world: World) -> FakeMaster:
    made = FakeMaster(slave_world)
    slave_world.run_for(5_100)  # its first try was refused
    assert len(made.links) == 1
    return made


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """What a master with files of 256 KiB wrote: ten messages."""
    world = World(tmp_path / "source")
    fill(world, 10)
    return world.broker.store.commit_log.block_from(0, MIB)


def test_a_slave_asks_from_its_end_and_acknowledges_every_block(
    slave_world: World, master: FakeMaster, log: bytes
) -> None:
    assert [offset for _, offset in master.reports] == [0]
    master.send(HaBlock(0, log[:5000]))
    master.send(HaBlock(5000, log[5000:]))
    assert [offset for _, offset in master.reports] == [0, 5000, len(log)]
    store = slave_world.broker.store
    assert store.commit_log.block_from(0, MIB) == log
    assert [store.max_offset("T", queue_id) for queue_id in range(4)] == [3, 3, 2, 2]
    assert store.get("T", 1, 0, 32).records()[0].body.startswith(BODY)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_torn_anywhere_make_the_same_log(slave_world: World, master: FakeMaster, log: bytes, seed: int) -> None:
    rng = random.Random(seed)
    stream = b"".join(HaBlock(at, log[at : at + 3000]).encode() for at in range(0, len(log), 3000))
    cuts = sorted(rng.sample(range(1, len(stream)), 40))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        master.links[-1].send(stream[start:end])
        slave_world.run_for(rng.choice([0, 1, 3]))
    slave_world.run_for(10)
    assert slave_world.broker.store.commit_log.block_from(0, MIB) == log
    assert master.ends == []


def test_a_link_that_breaks_at_any_byte_loses_nothing_that_was_acknowledged(
    slave_world: World, master: FakeMaster, log: bytes
) -> None:
    block = log[: 2 * UNIT]
    stream = HaBlock(0, block[:UNIT]).encode() + HaBlock(UNIT, block[UNIT:]).encode()
    store = slave_world.broker.store
    for cut in (5, 11, 12, 13, 12 + UNIT - 1, 12 + UNIT, 12 + UNIT + 11, 12 + UNIT + 12, len(stream) - 1):
        known = store.max_physical_offset
        if known == 0:
            master.links[-1].send(stream[:cut])
        else:
            master.links[-1].send(HaBlock(known, block[known:]).encode()[: cut - 12 - UNIT])
        slave_world.run_for(3)
        master.links[-1].close()
        slave_world.run_for(5_100)
        assert master.reports[-1][1] == store.max_physical_offset >= known
        assert store.commit_log.block_from(0, MIB) == block[: store.max_physical_offset]
    assert store.max_physical_offset == UNIT


@pytest.mark.parametrize("header", [HaBlock(7_000), HaBlock(7_000, b"x"), HaBlock(0, b"x")])
def test_a_block_or_heartbeat_from_elsewhere_ends_the_link_for_five_seconds(
    slave_world: World, master: FakeMaster, log: bytes, header: HaBlock
) -> None:
    master.send(HaBlock(0, log[:5000]))
    at = slave_world.sim.now_ms - master.began_ms
    master.send(header)
    assert len(master.ends) == 1
    slave_world.run_for(4_900)
    assert len(master.links) == 1
    slave_world.run_for(200)
    assert len(master.links) == 2
    assert master.reports[-1][1] == 5000 and 5_000 <= master.reports[-1][0] - at <= 5_010
    assert slave_world.broker.store.max_physical_offset == 5000
    assert slave_world.changes("ha.diverged") == [{"own_offset": 5000, "physical_offset": header.physical_offset}]


def test_divergence_shows_as_soon_as_the_header_is_there(slave_world: World, master: FakeMaster, log: bytes) -> None:
    master.send(HaBlock(0, log[:5000]))
    master.links[-1].send(HaBlock(4_999, b"xyz").encode()[:12])
    slave_world.run_for(5)
    assert len(master.ends) == 1


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()], ids=["disk", "memory"]
)
def test_a_slave_that_cannot_append_acknowledges_nothing_and_asks_again(
    slave_world: World, master: FakeMaster, log: bytes, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = slave_world.broker.store

    def refuses(physical_offset: int, block: bytes) -> bool:
        raise error

    master.send(HaBlock(0, log[:5000]))
    with monkeypatch.context() as failing:
        failing.setattr(store.commit_log, "append_block", refuses)
        master.send(HaBlock(5000, log[5000:8000]))
        assert [offset for _, offset in master.reports] == [0, 5000]
        assert [(part, type(error).__name__ in reason) for part, reason in store.failures] == [("commitlog", True)]
    # The master's next block does not fit: the slave connects again and says from where.
    master.send(HaBlock(8000, log[8000:]))
    slave_world.run_for(5_100)
    assert len(master.links) == 2 and master.reports[-1][1] == 5000
    master.send(HaBlock(5000, log[5000:]))
    assert store.commit_log.block_from(0, MIB) == log
    slave_world.run_for(1_100)
    assert not store.failures


def test_a_size_that_cannot_be_ends_the_link(slave_world: World, master: FakeMaster) -> None:
    master.links[-1].send((0).to_bytes(8, "big") + (-7).to_bytes(4, "big", signed=True))
    slave_world.run_for(5_100)
    assert len(master.ends) == 1 and len(master.links) == 2
    assert len(slave_world.changes("channel.broken")) == 1


def test_an_idle_slave_reports_every_five_seconds_and_gives_up_after_twenty(
    slave_world: World, master: FakeMaster
) -> None:
    start = master.reports[0][0]
    slave_world.run_for(20_200)
    assert [(at - start) // 100 for at, _ in master.reports] == [0, 50, 100, 150, 200]  # the last one on a new link
    assert len(master.ends) == 1 and len(master.links) == 2  # nothing was read for 20 s: again at once
    assert [values["reason"] for values in slave_world.changes("ha.lost")] == ["refused", "nothing heard"]


def test_heartbeats_keep_the_link(slave_world: World, master: FakeMaster) -> None:
    for _ in range(6):
        slave_world.run_for(5_000)
        master.send(HaBlock(0))
    assert master.ends == [] and len(master.links) == 1


def test_an_empty_slave_takes_the_file_names_of_its_master(slave_world: World, master: FakeMaster, log: bytes) -> None:
    start = 3 * SLAVE_STORE.mapped_file_size_commit_log
    master.send(HaBlock(start, log[:100]))
    assert slave_world.broker.store.min_physical_offset == start
    assert master.reports[-1][1] == start + 100


def test_a_slave_that_restarts_asks_from_what_its_recovery_left(
    slave_world: World, master: FakeMaster, log: bytes
) -> None:
    master.send(HaBlock(0, log[: 3 * UNIT + 500]))
    slave_world.restart_broker(clean=False)
    slave_world.run_for(5_100)
    assert master.reports[-1][1] == 3 * UNIT


def test_a_slave_needs_an_id_and_a_master_gets_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Slave's brokerId must be > 0"):
        World(tmp_path / "slave", store=SLAVE_STORE)
    assert World(tmp_path / "master", broker_id=3).broker.config.broker_id == 0


def test_a_slave_counts_less_of_its_memory(slave_world: World) -> None:
    assert slave_world.broker.store.config.access_message_in_memory_max_ratio == 30


REJECTED = (2, "[REJECTREQUEST]system busy, start flow control for a while")


def test_what_a_slave_turns_away(slave_world: World) -> None:
    client = slave_world.client()
    for code in (10, 310, 320):
        answer = client.put("T", BODY, code=code)
        assert (answer.code, answer.remark) == REJECTED
    sent_back = client.ask(36, offset=0, group="g", delayLevel=0)
    assert (sent_back.code, sent_back.remark) == REJECTED
    for code in (11, 361):
        answer = client.ask(code)
        assert (answer.code, answer.remark) == REJECTED
    ended = client.ask(37, producerGroup="p", tranStateTableOffset=0, commitLogOffset=0, commitOrRollback=8)
    assert ended.code == 11
    reset = client.ask(222, topic="T", group="g", timestamp=0, isForce=True)
    assert (reset.code, reset.remark) == (1, "Can not reset offset in slave broker")


def test_a_slave_takes_offsets_topics_and_locks(slave_world: World) -> None:
    client = slave_world.client()
    assert (
        client.ask(
            17,
            topic="T",
            readQueueNums=4,
            writeQueueNums=4,
            perm=6,
            topicFilterType="SINGLE_TAG",
            topicSysFlag=0,
            order=False,
            defaultTopic="TBW102",
        ).code
        == 0
    )
    client.heartbeat("g")
    slave_world.broker.groups.find("g")
    assert client.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=77).code == 0
    assert client.ask(14, consumerGroup="g", topic="T", queueId=0).ext_fields["offset"] == "77"


def test_ha_status_of_a_master(vector_world: World) -> None:
    slave = FakeSlave(vector_world, 2_785_280, name="status")
    vector_world.run_for(1_000)
    slave.acknowledges = False
    client = vector_world.client("asker")
    told = java_json.loads(client.ask(907).body or b"")
    [mine] = [info for info in told["haConnectionInfo"] if info["addr"] == slave.connection.local_address]
    assert mine == {
        "addr": slave.connection.local_address,
        "slaveAckOffset": VECTOR_END,
        "diff": 0,
        "inSync": True,
        "transferFromWhere": VECTOR_END,
        "transferredByteInSecond": mine["transferredByteInSecond"],
    }
    assert told["master"] is True and told["masterCommitLogMaxOffset"] == VECTOR_END
    assert told["haClientRuntimeInfo"] == {
        "lastReadTimestamp": 0,
        "lastWriteTimestamp": 0,
        "masterFlushOffset": 0,
        "maxOffset": 0,
        "transferredByteInSecond": 0,
    }


def test_ha_status_of_a_slave(slave_world: World, master: FakeMaster, log: bytes) -> None:
    master.send(HaBlock(0, log[:5000]))
    told = java_json.loads(slave_world.client().ask(907).body or b"")
    times = {name: told["haClientRuntimeInfo"].pop(name) for name in ("lastReadTimestamp", "lastWriteTimestamp")}
    assert min(times.values()) > slave_world.sim.now_ms - 100
    assert told == {
        "master": False,
        "masterCommitLogMaxOffset": 0,
        "inSyncSlaveNums": 0,
        "haConnectionInfo": [],
        "haClientRuntimeInfo": {
            "masterAddr": "10.0.0.3:10912",
            "maxOffset": 5000,
            "masterFlushOffset": 0,
            "transferredByteInSecond": 0,
        },
    }


def test_far_behind_is_not_in_sync(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, ha_max_gap_not_in_sync=2 * UNIT))
    FakeSlave(world, 0, acknowledges=False)
    world.run_for(10)
    server = world.broker.replication.server
    for count, in_sync in ((1, True), (1, False)):
        fill(world, count)
        world.run_for(200)
        assert [server.in_sync(slave) for slave in server.connections] == [in_sync]


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ha_transfer_batch_size"):
        StoreConfig(ha_transfer_batch_size=0)

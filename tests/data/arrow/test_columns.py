"""Columns say what the plain decoder says, for any unit; damage is the same verdict with file and offset."""

from __future__ import annotations

import itertools
import tempfile
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.data.arrow.columns import COLUMNS, host_text, schema
from mqlab.data.arrow.ranges import LogRange
from mqlab.data.arrow.reading import Selection, read_range, read_table
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.host import encode_host
from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.record import Record, decode, encode
from tests.data.arrow.logs import some_records, write_log


def row_of(record: Record, broker_name: str) -> dict[str, Any]:
    """The row that a record must become, by way of what a consumer gets."""
    message = MessageExt.from_record(record)
    return {
        "topic": record.topic,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "physical_offset": record.physical_offset,
        "store_timestamp": moment(record.store_timestamp),
        "tags": message.properties.get("TAGS"),
        "keys": message.properties.get("KEYS"),
        "body": message.body,
        "properties": list(message.properties.items()),
        "msg_id": message.msg_id,
        "offset_msg_id": record.offset_msg_id,
        "broker_name": broker_name,
        "total_size": record.total_size,
        "magic": record.magic,
        "body_crc": record.body_crc,
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "born_timestamp": moment(record.born_timestamp),
        "born_host": host_text(encode_host(record.born_host)),
        "store_host": host_text(encode_host(record.store_host)),
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        "body_length": len(record.body),
    }


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


def test_all_columns_of_a_log_with_every_kind_of_host(tmp_path: Path) -> None:
    directory = tmp_path / "broker-a"
    written = write_log(directory, some_records(60))
    table = read_table(str(directory))
    assert table.schema.names == list(COLUMNS)
    for row, record in zip(table.to_pylist(), written, strict=True):
        assert row == row_of(decode(encode(record)), "broker-a")


NAMES = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "XTAGS", "TAGSX", "Z", ""])
PAIRS = st.lists(st.tuples(NAMES, st.sampled_from(["", "a", "b\nc", "заказ", "订单", "🚚", "\x01"])), max_size=6)
RECORDS = st.builds(
    lambda pairs, loose, **fields: Record(
        properties="".join(f"{name}\x01{value}\x02" for name, value in pairs).encode() + loose, **fields
    ),
    pairs=PAIRS,
    loose=st.sampled_from([b"", b"TAGS\x01end", b"no separator", b"\xff\xfe\x01\x80\x02", b"\x02\x02"]),
    topic=st.text(alphabet="aZ%_订ж🚚", min_size=1, max_size=40),
    body=st.binary(max_size=60),
    queue_id=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(-(2**31), 2**31 - 1),
    queue_offset=st.integers(-(2**63), 2**63 - 1),
    born_host=st.sampled_from([("1.2.3.4", 5), ("2001:db8::1", 70_000)]),
    store_host=st.sampled_from([("1.2.3.4", -5), ("::", 0)]),
    store_timestamp=st.integers(0, 4_000_000_000_000),
    prepared_transaction_offset=st.integers(-(2**63), 2**63 - 1),
)


@given(records=st.lists(RECORDS, min_size=1, max_size=8))
def test_any_units_read_as_the_plain_decoder_reads_them(records: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        written = write_log(Path(directory) / "b", records, file_size=8192)
        rows = read_table(str(Path(directory) / "b")).to_pylist()
    assert rows == [row_of(decode(encode(record)), "b") for record in written]


@given(data=st.data())
def test_a_flipped_byte_gives_the_plain_decoders_values_or_an_error_with_its_place(
    data: st.DataObject, flipped_log: tuple[Path, bytes, list[int]]
) -> None:
    path, content, starts = flipped_log
    at = data.draw(st.integers(0, starts[-1] - 1))
    damaged = bytearray(content)
    damaged[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    where = LogRange(str(path), 0, 0, starts[-1], "b")
    try:
        expected = [decode(damaged, start, limit=starts[-1]) for start in starts[:-1]]
        follow = [record.total_size for record in expected] == [b - a for a, b in itertools.pairwise(starts)]
        placed = [record.physical_offset for record in expected] == starts[:-1]
    except CorruptionError:
        follow = False
    wanted = [name for name in COLUMNS if name not in ("body", "store_timestamp", "born_timestamp")]
    if follow and placed:
        rows = [row for batch in read_range(where, wanted) for row in batch.to_pylist()]
        assert [row["topic"] for row in rows] == [record.topic for record in expected]
        assert [row["properties"] for row in rows] == [list(record.property_map.items()) for record in expected]
        assert [row["queue_id"] for row in rows] == [record.queue_id for record in expected]
    else:
        with pytest.raises(CorruptionError, match="at offset") as caught:
            list(read_range(where, wanted))
        assert caught.value.where == str(path)
        assert caught.value.expected is not None


@pytest.fixture(scope="module")
def flipped_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, list[int]]:
    """A file of a few units, its bytes, and where units start and the last one ends."""
    directory = tmp_path_factory.mktemp("flip") / "b"
    written = write_log(directory, some_records(6))
    path = directory / "commitlog" / f"{0:020}"
    return (
        path,
        path.read_bytes(),
        [record.physical_offset for record in written] + [written[-1].physical_offset + written[-1].total_size],
    )


def test_a_file_cut_short_anywhere_reads_as_far_as_whole_units_reach(tmp_path: Path) -> None:
    directory = tmp_path / "b"
    written = write_log(directory, some_records(5))
    path = directory / "commitlog" / f"{0:020}"
    content = path.read_bytes()
    ends = [record.physical_offset + record.total_size for record in written]
    for length in range(1, ends[-1] + 1):
        path.write_bytes(content[:length])
        whole = sum(end <= length for end in ends)
        assert read_table(str(directory), ["topic"]).num_rows == whole, length


def test_a_damaged_compressed_body_says_where_and_how_to_read_the_rest(tmp_path: Path) -> None:
    (record,) = some_records(1)
    write_log(tmp_path / "b", [replace(record, body=b"not deflated", sys_flag=0x301)])
    with pytest.raises(CorruptionError, match=r"at offset 88[\s\S]*columns"):
        read_table(str(tmp_path / "b"))
    assert read_table(str(tmp_path / "b"), ["topic", "body_length"]).num_rows == 1


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("row", [1, 2, 7, 58])
def test_a_flipped_bit_of_a_body_is_an_error_that_says_where(tmp_path: Path, row: int) -> None:
    records = [replace(record, body=record.body or b"x") for record in some_records(60)]
    written = write_log(tmp_path / "b", records)[row]
    path = tmp_path / "b" / "commitlog" / f"{written.physical_offset // 4096 * 4096:020}"
    unit = path.read_bytes()[written.physical_offset % 4096 :][: written.total_size]
    body_at = written.physical_offset + unit.index(written.body)
    flip(path, (body_at + len(written.body) - 1) % 4096)
    with pytest.raises(CorruptionError, match="does not match its check sum") as caught:
        read_table(str(tmp_path / "b"))
    error, damaged = caught.value, written.body[:-1] + bytes([written.body[-1] ^ 1])
    assert (error.where, error.offset) == (str(path), body_at)
    assert f"expected a body of the check sum {crc32(written.body):08X}, found {crc32(damaged):08X}" in str(error)
    assert "leave out the column body" in error.hint
    assert read_table(str(tmp_path / "b"), ["topic", "body_crc"]).num_rows == 60
    others = Selection(end_ms=written.store_timestamp)  # only what is handed out is looked at
    assert read_table(str(tmp_path / "b"), ["body"], others).num_rows == row


def test_bodies_are_checked_as_the_store_does(tmp_path: Path) -> None:
    """As stored: a compressed one before it is decompressed; each message of a batch; an empty one has no sum."""
    with MessageStore.open(str(tmp_path / "b"), mapped_file_size_commit_log=65_536) as store:
        text = "заказ оплачен 订单已付款 🚚".encode() * 30
        store.put(Record("orders", zlib.compress(text), sys_flag=sys_flag.COMPRESSED | sys_flag.COMPRESSION_ZLIB))
        store.put_batch([Record("orders", body) for body in (b"one", "два".encode(), b"")])
    table = read_table(tmp_path / "b", ["body", "physical_offset"])
    assert table.column("body").to_pylist() == [text, b"one", "два".encode(), b""]
    path = tmp_path / "b" / "commitlog" / f"{0:020}"
    content = path.read_bytes()
    empty = table.column("physical_offset").to_pylist()[3]
    flip(path, empty + 8)  # the sum of an empty body: not checked
    assert read_table(tmp_path / "b", ["body"]).num_rows == 4
    for body in (zlib.compress(text), b"one", "два".encode()):
        path.write_bytes(content)
        flip(path, content.index(body) + len(body) // 2)
        with pytest.raises(CorruptionError, match=f"check sum .*at offset {content.index(body)}: expected"):
            read_table(tmp_path / "b", ["body"])


def test_selection(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(60))

    def offsets(selection: Selection) -> list[int]:
        column = read_table(str(tmp_path / "b"), ["physical_offset"], selection).column(0)
        return [int(value) for value in column.to_pylist()]

    middle = written[30].store_timestamp
    assert offsets(Selection()) == [r.physical_offset for r in written]
    assert offsets(Selection(topics=("заказы",))) == [r.physical_offset for r in written if r.topic == "заказы"]
    assert offsets(Selection(queues=(1, 3))) == [r.physical_offset for r in written if r.queue_id in (1, 3)]
    assert offsets(Selection(start_ms=middle)) == [r.physical_offset for r in written[30:]]
    assert offsets(Selection(end_ms=middle)) == [r.physical_offset for r in written[:30]]
    assert offsets(Selection(topics=("nothing",))) == []


def test_a_wrong_column_is_answered_with_the_right_ones() -> None:
    with pytest.raises(UsageError, match=r"'tpoic'[\s\S]*topic, queue_id, queue_offset"):
        schema(["tpoic"])


def test_batches_are_copies_of_the_file(tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(20))
    table = read_table(str(tmp_path / "b"))
    before = table.to_pylist()
    for path in (tmp_path / "b" / "commitlog").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    assert table.to_pylist() == before
    assert isinstance(table, pyarrow.Table)

"""The replication stream: reports one way, blocks the other, cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.ha import HEADER_SIZE, BlockReader, HaBlock, HaReport, ReportReader

BLOCKS = [
    HaBlock(2_097_152, "заказ 订单 😀".encode() * 40),
    HaBlock(2_097_152 + 840),
    HaBlock(0, b"\x00"),
    HaBlock(2**62, bytes(range(256))),
]
STREAM = b"".join(block.encode() for block in BLOCKS)


def taken(reader: BlockReader) -> list[HaBlock]:
    found = []
    while (block := reader.take()) is not None:
        found.append(block)
    return found


def test_a_block_is_twelve_bytes_and_its_data() -> None:
    assert HaBlock(2_785_280, b"ab").encode().hex() == "00000000002a8000" + "00000002" + "6162"
    assert HaBlock(99_999_999).encode().hex() == "0000000005f5e0ff" + "00000000"
    assert HaReport(-5).encode().hex() == "fffffffffffffffb"


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_blocks_come_out_whole_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    reader, found = BlockReader(), []
    for start, end in pairwise([0, *sorted(cuts), len(STREAM)]):
        reader.feed(STREAM[start:end])
        found += taken(reader)
    assert found == BLOCKS


def test_a_stream_that_ends_at_any_byte_gives_the_blocks_before_and_the_header_of_the_next() -> None:
    ends = [0]
    for block in BLOCKS:
        ends.append(ends[-1] + HEADER_SIZE + len(block.data))
    for end in range(len(STREAM)):
        reader = BlockReader()
        reader.feed(STREAM[:end])
        whole = sum(1 for edge in ends[1:] if edge <= end)
        assert taken(reader) == BLOCKS[:whole]
        knows_next = end - ends[whole] >= HEADER_SIZE
        following = BLOCKS[whole]
        assert reader.header == ((following.physical_offset, len(following.data)) if knows_next else None)


@pytest.mark.parametrize("size", [-1, -(2**31), (4 << 20) - HEADER_SIZE + 1, 2**31 - 1])
def test_a_size_that_no_master_sends_is_an_error_with_its_place(size: int) -> None:
    reader = BlockReader()
    reader.feed((5_000).to_bytes(8, "big") + size.to_bytes(4, "big", signed=True))
    with pytest.raises(CorruptionError, match=r"physical offset 5000.*found -?\d+"):
        reader.take()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6), st.integers(0, 7), st.data())
def test_only_the_last_complete_report_counts(offsets: list[int], rest: int, data: st.DataObject) -> None:
    stream = b"".join(HaReport(offset).encode() for offset in offsets) + bytes(rest)
    assert ReportReader().feed(stream) == HaReport(offsets[-1])
    reader, newest = ReportReader(), None
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    for start, end in pairwise([0, *cuts, len(stream)]):
        newest = reader.feed(stream[start:end]) or newest
    assert newest == HaReport(offsets[-1])


def test_seven_bytes_are_no_report() -> None:
    reader = ReportReader()
    assert [reader.feed(bytes([byte])) for byte in HaReport(258).encode()] == [None] * 7 + [HaReport(258)]

"""Cutting a stream into frames, wherever the pieces end."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.command import MAX_FRAME, RemotingCommand, encode
from mqlab.rocketmq.wire.framing import FrameReader

COMMANDS = [
    RemotingCommand(105, {"topic": "订单"}, opaque=1),
    RemotingCommand(310, {"i": "KEYS\x01k\x02"}, "привет 😀".encode(), opaque=2),
    RemotingCommand(0, {}, bytes(5000), flag=1, opaque=3, serialize_type=1),
    RemotingCommand(34, opaque=4),
]
STREAM = b"".join(map(encode, COMMANDS))


def read_all(reader):
    found = []
    while (command := reader.next_command()) is not None:
        found.append(command)
    return found


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from([bytes, bytearray, memoryview]))
def test_any_pieces(cuts, kind):
    reader, found = FrameReader(), []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(edges):
        reader.feed(kind(STREAM[start:end]))
        found += read_all(reader)
    assert found == COMMANDS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from([bytes, bytearray, memoryview]))
def test_left_counts_the_bytes_that_are_not_read(cuts, kind):
    reader, commands = FrameReader(), []
    for start, end in pairwise([0, *sorted(cuts), len(STREAM)]):
        reader.feed(kind(STREAM[start:end]))
        while reader.left:
            command = reader.next_command()
            if command is None:
                break
            commands.append(command)
            assert reader.left == end - sum(len(encode(known)) for known in commands)
    assert commands == COMMANDS
    assert not reader.left


def test_a_whole_frame_that_waits_is_taken_before_the_next_piece():
    reader = FrameReader()
    reader.feed(encode(COMMANDS[0]))
    reader.feed(encode(COMMANDS[1]))
    assert read_all(reader) == COMMANDS[:2]


def test_byte_by_byte():
    reader, found = FrameReader(), []
    for i in range(len(STREAM)):
        reader.feed(STREAM[i : i + 1])
        found += read_all(reader)
    assert found == COMMANDS


def test_several_frames_before_the_first_is_taken():
    reader = FrameReader()
    for one in COMMANDS:
        reader.feed(encode(one))
    assert read_all(reader) == COMMANDS


@pytest.mark.parametrize(
    "start",
    [
        struct.pack(">i", 0),
        struct.pack(">i", 3),
        struct.pack(">i", -1),
        struct.pack(">i", -(2**31)),
        struct.pack(">i", MAX_FRAME - 3),
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02",
        b"PROXY TCP4",
        struct.pack(">ii", 4, 1),
        struct.pack(">ii", 6, 2 << 24 | 2) + b"{}",
        struct.pack(">ii", 6, 2) + b"no",
    ],
)
def test_what_can_never_become_a_frame(start):
    reader = FrameReader()
    reader.feed(start)
    with pytest.raises(CorruptionError):
        reader.next_command()
    reader = FrameReader()
    reader.feed(encode(COMMANDS[0]) + start)
    assert reader.next_command() == COMMANDS[0]
    with pytest.raises(CorruptionError):
        reader.next_command()


def test_the_largest_length_is_waited_for():
    reader = FrameReader()
    reader.feed(struct.pack(">i", MAX_FRAME - 4) + bytes(100))
    assert reader.next_command() is None


@given(st.binary(max_size=60))
def test_any_bytes(data):
    reader = FrameReader()
    reader.feed(data)
    try:
        read_all(reader)
    except CorruptionError as error:
        assert error.offset is not None

"""Commands and their frames: the fact sheet's vectors, tolerance, limits, and damage of every kind."""

import hashlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import command, record
from mqlab.rocketmq.wire.command import JSON, ROCKETMQ, RemotingCommand


def vectors():
    kind, title = None, ""
    for line in (Path(__file__).parent / "protocol_frames.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("=="):
            kind = {"JSON": JSON, "ROCKETMQ": ROCKETMQ}[line[3:]]
        elif line.startswith("#"):
            title = line[2:]
        else:
            yield pytest.param(kind, title, bytes.fromhex(line), id=f"{kind}-{title.split(':')[0]}")


def java_json_header(frame):
    size = int.from_bytes(frame[5:8], "big")
    return json.loads(frame[8 : 8 + size]), frame[8 + size :]


@pytest.mark.parametrize(("kind", "title", "frame"), list(vectors()))
def test_frames_of_the_java_classes(kind, title, frame):
    assert hashlib.sha256(frame).hexdigest().startswith(title.rpartition("sha ")[2])
    found = command.decode(frame)
    assert (found.serialize_type, found.version, found.language) == (kind, 479, "JAVA")
    again = command.encode(found)
    assert command.decode(again) == found
    if kind == JSON:
        assert java_json_header(again) == java_json_header(frame)
    else:
        assert again == frame


def test_what_the_vectors_say():
    frames = {title.partition(":")[0]: frame for kind, title, frame in (p.values for p in vectors()) if kind == JSON}
    send = command.decode(frames["310 request"])
    assert (send.code, send.body, send.ext_fields["i"]) == (310, b"Hello RocketMQ", "KEYS\x01k1 k2\x02TAGS\x01TagA\x02")
    assert not send.is_response and not send.is_oneway
    found = command.decode(frames["11 response FOUND"])
    assert found.is_response and found.remark == "FOUND"
    assert record.decode_all(found.body)[0].queue_offset == 42
    assert command.decode(frames["40 one-way"]).is_oneway
    assert command.decode(frames["105 response, code 17"]).body is None


def test_replies_mirror_the_request():
    ask = command.request(105, topic="订单", acceptStandardJsonOnly=True, number=7, nothing=None)
    assert ask.ext_fields == {"topic": "订单", "acceptStandardJsonOnly": "true", "number": "7"}
    ask.opaque, ask.serialize_type = -5, ROCKETMQ
    answer = command.decode(command.encode(ask)).reply(17, "No topic route info", offset=1)
    assert (answer.opaque, answer.serialize_type, answer.is_response, answer.ext_fields) == (
        -5,
        ROCKETMQ,
        True,
        {"offset": "1"},
    )
    assert repr(ask) == "<request GET_ROUTEINFO_BY_TOPIC #-5, 0 B body>"
    assert repr(answer) == "<response TOPIC_NOT_EXIST #-5, 0 B body>"


def json_frame(header, body=b""):
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">ii", 4 + len(data) + len(body), len(data)) + data + body


def test_headers_of_other_clients_are_read():
    unquoted = {"code": 310, "language": "NODE_JS", "opaque": 1, "flag": 0, "version": 121}
    found = command.decode(
        json_frame({**unquoted, "extFields": {"e": 3, "k": False, "j": None, "big": -(2**62), "m": True, "x": "订单"}})
    )
    assert found.ext_fields == {"e": "3", "k": "false", "big": str(-(2**62)), "m": "true", "x": "订单"}
    assert (found.language, found.version) == ("NODE_JS", 121)
    least = command.decode(json_frame({"code": 0, "flag": 1, "opaque": 9, "unknown": {}}, b"x"))
    assert least == RemotingCommand(0, {}, b"x", None, 1, 9, "JAVA", 0)
    assert command.decode(json_frame({"code": 0, "language": 9})).language == "GO"
    assert command.decode(json_frame({"code": 0, "language": "KLINGON"})).language == "OTHER"
    nulls = dict.fromkeys(("remark", "extFields", "version", "flag", "opaque"))
    assert command.decode(json_frame({"code": 5, **nulls})) == RemotingCommand(5, language="JAVA", version=0)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b"GET / HTTP/1.1",
        b"{}",
        b'{"code":"x"}',
        b'{"code":1.5}',
        b'{"code":NaN}',
        b'{"code":1,"extFields":[]}',
        b'{"code":1,"extFields":"x"}',
        b'{"code":1,"opaque":"x"}',
        b"[" * 100_000,
        b'{"code":' + b"9" * 5000 + b"}",
    ],
)
def test_headers_that_cannot_be_read(header):
    with pytest.raises(CorruptionError) as caught:
        command.decode(json_frame(header))
    assert caught.value.offset == 8 and caught.value.expected is not None


@pytest.mark.parametrize(
    ("frame", "offset"),
    [
        (b"", 0),
        (bytes(4), 0),
        (struct.pack(">ii", 3, 0), 0),
        (struct.pack(">ii", 5, 0), 0),
        (struct.pack(">ii", -1, 0), 0),
        (struct.pack(">ii", 4, 1), 4),
        (struct.pack(">ii", 6, 2 << 24 | 2) + b"{}", 4),
        (struct.pack(">ii", 6, -1 << 24 | 2) + b"{}", 4),
        (struct.pack(">ii", 6, 1 << 24 | 2) + b"{}", 8),
    ],
)
def test_frames_that_cannot_be_read(frame, offset):
    with pytest.raises(CorruptionError) as caught:
        command.decode(frame)
    assert caught.value.offset == offset


def binary(fields=b"", remark=b"", sizes=None):
    lengths = sizes or (len(remark), len(fields))
    header = struct.pack(">hbhii", 105, 12, 479, 1, 0) + struct.pack(">i", lengths[0]) + remark
    header += struct.pack(">i", lengths[1]) + fields
    return struct.pack(">ii", 4 + len(header), 1 << 24 | len(header)) + header


def test_binary_headers_with_wrong_lengths():
    assert command.decode(binary()).language == "RUST"
    good = struct.pack(">h", 1) + b"a" + struct.pack(">i", 1) + b"b"
    assert command.decode(binary(good, b"why")).ext_fields == {"a": "b"}
    for bad in (
        binary(good, sizes=(-1, 8)),
        binary(good, sizes=(0, 9)),
        binary(good, sizes=(0, -8)),
        binary(good[:-1]),
        binary(struct.pack(">h", -1)),
        binary(struct.pack(">h", 5) + b"abc"),
        binary(struct.pack(">h", 1) + b"a" + struct.pack(">i", -2)),
        binary(struct.pack(">h", 1) + b"a" + struct.pack(">i", 9) + b"b"),
    ):
        with pytest.raises(CorruptionError):
            command.decode(bad)


def test_empty_values_are_absent_in_binary_headers():
    ask = RemotingCommand(1, {"a": "", "b": "x"}, body=b"", remark="", serialize_type=ROCKETMQ)
    assert command.decode(command.encode(ask)) == RemotingCommand(1, {"b": "x"}, serialize_type=ROCKETMQ)


def test_what_does_not_fit_is_refused():
    for big in (
        RemotingCommand(200050, serialize_type=ROCKETMQ),
        RemotingCommand(1, {"n" * 40_000: "x"}, serialize_type=ROCKETMQ),
        RemotingCommand(1, version=40_000, serialize_type=ROCKETMQ),
    ):
        with pytest.raises(UsageError, match="binary header"):
            command.encode(big)
    assert command.decode(command.encode(RemotingCommand(200050))).code == 200050
    for big in (RemotingCommand(1, body=bytes(command.MAX_FRAME)), RemotingCommand(1, remark="x" * command.MAX_HEADER)):
        with pytest.raises(UsageError, match="over the limit"):
            command.encode(big)


def test_the_largest_frame():
    overhead = len(command.encode(RemotingCommand(1)))
    frame = command.encode(RemotingCommand(1, body=bytes(command.MAX_FRAME - overhead)))
    assert len(frame) == command.MAX_FRAME
    assert command.decode(frame).code == 1


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
i32 = st.integers(-(2**31), 2**31 - 1)
i16 = st.integers(-(2**15), 2**15 - 1)
commands = st.builds(
    RemotingCommand,
    code=i16,
    ext_fields=st.dictionaries(texts, texts.filter(bool), max_size=5),
    body=st.none() | st.binary(min_size=1, max_size=40),
    remark=st.none() | texts.filter(bool),
    flag=st.integers(0, 3),
    opaque=i32,
    language=st.sampled_from(command.LANGUAGES),
    version=i16,
    serialize_type=st.sampled_from([JSON, ROCKETMQ]),
)


@given(commands)
def test_what_is_written_is_read(original):
    frame = command.encode(original)
    assert command.decode(frame) == original
    assert command.decode(memoryview(frame)) == original
    if original.serialize_type == JSON:
        assert java_json_header(frame)[0]["serializeTypeCurrentRPC"] == "JSON"


@given(commands)
def test_json_headers_are_what_json_says(original):
    original.serialize_type = JSON
    header, body = java_json_header(command.encode(original))
    assert list(header) == sorted(header)
    assert header.get("extFields", {}) == original.ext_fields
    assert (header["code"], header["opaque"], header["flag"], header.get("remark")) == (
        original.code,
        original.opaque,
        original.flag,
        original.remark,
    )
    assert (body or None) == original.body


@given(commands, st.data())
def test_damaged_frames(original, data):
    frame = bytearray(command.encode(original))
    position = data.draw(st.integers(0, len(frame) - 1))
    frame[position] ^= data.draw(st.integers(1, 255))
    try:
        command.encode(command.decode(frame))
    except CorruptionError as error:
        assert error.offset is not None and error.expected is not None and error.found is not None
    except UsageError:
        pytest.fail("a command was read that cannot be written")


@given(commands)
def test_frames_cut_anywhere(original):
    frame = command.encode(original)
    for length in range(len(frame)):
        with pytest.raises(CorruptionError):
            command.decode(frame[:length])


@given(st.binary(max_size=80), st.integers(0, 1), st.integers(0, 80))
def test_any_bytes_in_a_frame(data, kind, header_size):
    frame = struct.pack(">ii", len(data) + 4, kind << 24 | header_size) + data
    try:
        command.decode(frame)
    except CorruptionError as error:
        assert error.offset is not None


def test_lone_surrogates_become_question_marks():
    frame = command.encode(RemotingCommand(1, {"a": "\ud83d"}, remark="\udc00"))
    assert command.decode(frame).ext_fields == {"a": "?"}
    assert command.decode(json_frame(b'{"code":1,"extFields":{"a":"\\ud83d"}}')).ext_fields == {"a": "\ud83d"}

"""The wire layer against RocketMQ's own classes, the frames of real clients, and every unit of the real stores."""

import hashlib
import ipaddress
import json

import pytest

from mqlab.rocketmq.wire import bodies, codes, command, java_hash, java_json, properties, record, units
from mqlab.rocketmq.wire.host import encode_host
from mqlab.rocketmq.wire.ids import offset_msg_id, parse_offset_msg_id
from mqlab.rocketmq.wire.layout import NUMBERS
from mqlab.rocketmq.wire.message import MessageExt, decode_messages

LOG_FILE_SIZES = {"clean": 262144, "killed": 262144, "edges": 65536, "edges-killed": 65536}
STORES = list(LOG_FILE_SIZES)


def test_hashes(vectors):
    cases = vectors("hashes")
    assert len(cases) == 130
    for case in cases:
        text = case["text"]
        assert java_hash.string_hash(text) == case["hashCode"]
        assert java_hash.tags_code(text) == case["tagsCode"]
        assert java_hash.index_key_hash(text) == case["indexKeyHash"]
        assert java_hash.crc32(text.encode()) == case["crc32"]


def test_offset_msg_ids(vectors):
    for case in vectors("offsetMsgIds"):
        host = (str(ipaddress.ip_address(bytes.fromhex(case["ipHex"]))), case["port"])
        assert offset_msg_id(host, case["physicalOffset"]) == case["offsetMsgId"]
        found, physical_offset = parse_offset_msg_id(case["offsetMsgId"])
        assert (encode_host(found), physical_offset) == (encode_host(host), case["physicalOffset"])


def test_properties(vectors):
    encoded = decoded = 0
    for case in vectors("properties"):
        if "properties" in case:
            assert properties.to_text(case["properties"]) == case["text"]
            assert properties.encode(case["properties"]).hex() == case["utf8Hex"]
            assert properties.decode(case["text"]) == {k: v for k, v in case["properties"].items() if v}
            encoded += 1
        else:
            assert properties.decode(case["text"]) == case["decoded"]
            decoded += 1
    assert (encoded, decoded) == (60, 8)


def test_frames(vectors):
    cases = vectors("frames")
    assert len(cases) == 80
    for case in cases:
        frame = bytes.fromhex(case["frameHex"])
        found = command.decode(frame)
        fields = case["extFields"] or {}
        assert (found.code, found.flag, found.opaque, found.version) == tuple(
            case[name] for name in ("code", "flag", "opaque", "version")
        )
        if case["serialize"] == "ROCKETMQ":
            assert found.ext_fields == {name: value for name, value in fields.items() if value}
            assert found.remark == (case["remark"] or None)
        else:
            assert (found.ext_fields, found.remark) == (fields, case["remark"])
        assert (found.body or b"").hex() == (case["bodyHex"] or "")
        again = command.encode(found)
        assert command.decode(again) == found
        if found.serialize_type == command.ROCKETMQ and fields == found.ext_fields:
            assert sorted(again) == sorted(frame)  # the same entries; Java's map has an order of its own


def test_exchanges_of_real_clients(exchanges):
    assert len(exchanges) == 138
    for exchange in exchanges:
        request = command.decode(bytes.fromhex(exchange["requestHex"]))
        frames = [(request, exchange["requestHex"], exchange["requestHeader"])]
        assert request.is_oneway == exchange["oneway"]
        assert codes.request_name(request.code) in codes.RequestCode.__members__
        if exchange["responseHex"]:
            response = command.decode(bytes.fromhex(exchange["responseHex"]))
            assert response.is_response and response.opaque == request.opaque
            frames.append((response, exchange["responseHex"], exchange["responseHeader"]))
        for found, text, header in frames:
            again = command.encode(found)
            assert command.decode(again) == found
            size = int.from_bytes(again[5:8], "big")
            written = json.loads(again[8 : 8 + size])
            if not header.get("extFields"):  # Java writes an empty object for a header class without values
                header = {name: value for name, value in header.items() if name != "extFields"}
            assert written == header
            assert again[8 + size :] == bytes.fromhex(text)[-(len(again) - 8 - size) :] or found.body is None


def test_bodies_of_real_clients(exchanges):
    kinds = {
        ("name server", 103, "request"): bodies.RegisterBrokerBody,
        ("broker", 34, "request"): bodies.HeartbeatData,
        ("broker", 41, "request"): bodies.LockBatchRequestBody,
        ("broker", 41, "response"): bodies.LockBatchResponseBody,
        ("broker", 42, "request"): bodies.LockBatchRequestBody,
        ("broker", 46, "request"): bodies.CheckClientRequestBody,
        ("name server", 105, "response"): bodies.TopicRouteData,
        ("name server", 106, "response"): bodies.ClusterInfo,
        ("broker", 351, "response"): bodies.TopicConfig,
    }
    seen = set()
    for exchange in exchanges:
        for side in ("request", "response"):
            kind = kinds.get((exchange["to"], exchange["code"], side))
            body = command.decode(bytes.fromhex(exchange[f"{side}Hex"])).body if exchange[f"{side}Hex"] else None
            if kind and body:
                read = kind.from_json(body)
                assert kind.from_json(read.to_json()) == read
                ours, theirs = java_json.loads(read.to_json()), java_json.loads(body)
                for value in (ours, theirs):  # static topics have a version of their own; mqlab has no static topics
                    value.get("topicConfigSerializeWrapper", {}).pop("mappingDataVersion", None)
                assert json.loads(json.dumps(ours)) == json.loads(json.dumps(theirs))
                seen.add(kind)
            elif body and body[:1] == b"{":
                java_json.loads(body)
    assert seen == set(kinds.values())


def test_pulled_units_are_those_of_the_store(exchanges, expected):
    stored = {message["physicalOffset"]: message for message in expected("clean")["messages"]}
    seen = 0
    for exchange in exchanges:
        if exchange["code"] in (11, 361) and exchange["responseCode"] == 0:
            body = command.decode(bytes.fromhex(exchange["responseHex"])).body
            for unit in record.decode_all(body):
                again = record.encode(unit)
                assert hashlib.sha256(again).hexdigest() == stored[unit.physical_offset]["unitSha256"]
                seen += 1
            assert sum(len(record.encode(unit)) for unit in record.decode_all(body)) == len(body)
            assert len(decode_messages(body)) == len(record.decode_all(body))
    assert seen > 20


def log_of(directory):
    return {int(path.name): path.read_bytes() for path in sorted((directory / "commitlog").iterdir())}


def units_of(files, end):
    """Every unit and BLANK from the start of the log, as a reader that knows only the layout finds them."""
    offset = min(files)
    while offset < end:
        base = max(start for start in files if start <= offset)
        data = files[base]
        verdict = record.check(data, offset - base)
        assert verdict.kind != record.INVALID, (offset, verdict.reason)
        yield offset, verdict, data[offset - base : offset - base + verdict.size]
        offset = base + len(data) if verdict.kind == record.BLANK else offset + verdict.size


@pytest.mark.parametrize("name", STORES)
def test_every_unit_is_read_and_written_to_the_byte(real_store, expected, name):
    answers = expected(name)
    files = log_of(real_store(name))
    assert all(len(data) == LOG_FILE_SIZES[name] for data in files.values())
    found, blanks = [], []
    for offset, verdict, data in units_of(files, answers["maxPhysicalOffset"]):
        if verdict.kind == record.BLANK:
            blanks.append({"physicalOffset": offset, "size": verdict.size})
            assert data[:8] == record.blank(verdict.size)
            continue
        unit = record.decode(data, check_crc=True)
        assert record.encode(unit) == data
        unit.body_crc = unit.magic = None  # what RocketMQ computes and chooses, we do
        assert record.encode(unit) == data
        assert b"".join(field.raw for field in record.field_map(data)) == data
        found.append(as_expected(record.decode(data), data))
    assert blanks == answers["blanks"]
    assert found == answers["messages"]


def as_expected(unit, data):
    """A unit in the words of the real store's listing."""
    body = {"bodyHex": unit.body.hex()}
    if len(unit.body) > 256:
        body = {"bodySha256": hashlib.sha256(unit.body).hexdigest()}
    return {
        "physicalOffset": unit.physical_offset,
        "size": unit.total_size,
        "magic": f"{unit.magic & 0xFFFFFFFF:08x}",
        "topic": unit.topic,
        "queueId": unit.queue_id,
        "queueOffset": unit.queue_offset,
        "flag": unit.flag,
        "sysFlag": unit.sys_flag,
        "bodyCrc": unit.body_crc,
        "bornTimestamp": unit.born_timestamp,
        "bornHost": "|".join(map(str, unit.born_host)),
        "storeTimestamp": unit.store_timestamp,
        "storeHost": "|".join(map(str, unit.store_host)),
        "reconsumeTimes": unit.reconsume_times,
        "preparedTransactionOffset": unit.prepared_transaction_offset,
        "bodyLength": len(unit.body),
        **body,
        "properties": unit.property_map,
        "offsetMsgId": unit.offset_msg_id,
        "unitSha256": hashlib.sha256(data).hexdigest(),
    }


@pytest.mark.parametrize("name", STORES)
def test_fields_by_the_table_are_those_of_the_decoder(real_store, expected, name):
    files = log_of(real_store(name))
    for _, verdict, data in units_of(files, expected(name)["maxPhysicalOffset"]):
        if verdict.kind == record.UNIT:
            unit = record.decode(data)
            for field, spec in zip(record.field_map(data), record.LAYOUT, strict=True):
                assert field.name == spec.name
                if not field.name.endswith("_length"):
                    assert field.value == getattr(unit, field.name)
                if spec.kind in NUMBERS and field.name != "topic_length":
                    assert field.size == spec.size


@pytest.mark.parametrize("name", ["clean", "edges"])
def test_queue_units_of_a_closed_store(real_store, expected, name):
    directory = real_store(name) / "consumequeue"
    for queue in expected(name)["queues"]:
        files = sorted((directory / queue["topic"] / str(queue["queueId"])).iterdir())
        data = b"".join(path.read_bytes() for path in files)
        first = int(files[0].name) // units.CQ_UNIT_SIZE
        for number, wanted in enumerate(queue["units"], queue["minOffset"] - first):
            unit = units.decode_cq(data, number * units.CQ_UNIT_SIZE)
            assert list(unit) == wanted
            assert units.encode_cq(*unit) == data[number * 20 : number * 20 + 20]


def test_compressed_bodies_come_out_as_they_were_sent(expected, real_store):
    files = log_of(real_store("clean"))
    kinds = set()
    for _, verdict, data in units_of(files, expected("clean")["maxPhysicalOffset"]):
        if verdict.kind == record.UNIT and record.decode(data).sys_flag & 1:
            message = MessageExt.from_record(record.decode(data), "broker-a")
            assert len(message.body) >= 4096 > len(record.decode(data).body)
            assert message.body.decode("utf-8")
            kinds.add(message.sys_flag & 0x700)
    assert kinds == {0x100, 0x200, 0x300}

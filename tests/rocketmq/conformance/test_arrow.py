"""The stores of the real broker as Arrow columns: every field of every message, from the whole file and from pieces."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.arrow.ranges import plan
from mqlab.data.arrow.reading import read_range, read_table
from mqlab.data.arrow.stores import find_stores

STORES = ["clean", "killed", "edges", "edges-killed"]
AS_THEY_ARE = {
    "topic": "topic",
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "physicalOffset": "physical_offset",
    "size": "total_size",
    "flag": "flag",
    "sysFlag": "sys_flag",
    "bodyCrc": "body_crc",
    "bodyLength": "body_length",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "offsetMsgId": "offset_msg_id",
}


def host(text: str) -> str:
    """The expectation's ``address|port`` as the column writes it."""
    address, _, port = text.partition("|")
    if ":" not in address:
        return f"{address}:{port}"
    groups = [f"{int(group, 16):x}" for group in ipaddress.ip_address(address).exploded.split(":")]
    return f"[{':'.join(groups)}]:{port}"


@pytest.mark.parametrize("name", STORES)
def test_every_field_of_every_message(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    rows = read_table(str(real_store(name))).to_pylist()
    messages = expected(name)["messages"]
    assert len(rows) == len(messages)
    for row, message in zip(rows, messages, strict=True):
        assert {theirs: row[ours] for theirs, ours in AS_THEY_ARE.items()} == {n: message[n] for n in AS_THEY_ARE}
        assert f"{row['magic'] & 0xFFFFFFFF:08x}" == message["magic"]
        assert (row["born_host"], row["store_host"]) == (host(message["bornHost"]), host(message["storeHost"]))
        for ours, theirs in (("born_timestamp", "bornTimestamp"), ("store_timestamp", "storeTimestamp")):
            assert round(row[ours].timestamp() * 1000) == message[theirs]
        properties = message["properties"]
        assert dict(row["properties"]) == properties
        assert (row["tags"], row["keys"]) == (properties.get("TAGS"), properties.get("KEYS"))
        assert row["msg_id"] == properties.get("UNIQ_KEY", message["offsetMsgId"])
        if not message["sysFlag"] & 1:
            stored = message.get("bodyHex") or message["bodySha256"] if message["bodyLength"] else ""
            found = row["body"].hex() if "bodyHex" in message else hashlib.sha256(row["body"]).hexdigest()
            assert not message["bodyLength"] or found == stored


def test_compressed_bodies_are_the_bodies_that_were_sent(real_store: Callable[[str], Path]) -> None:
    """The Java client sent one body three times, compressed as ZLIB, LZ4 and ZSTD."""
    sent = "".join(f"line {number % 37} of a long body; " for number in range(900)).encode()
    rows = read_table(str(real_store("clean")), ["keys", "sys_flag", "body"]).to_pylist()
    compressed = {row["keys"]: row["body"] for row in rows if row["sys_flag"] & 1}
    assert compressed == {"big-ZLIB": sent, "big-LZ4": sent, "big-ZSTD": sent}


@pytest.mark.parametrize("name", STORES)
def test_pieces_of_any_size_hold_the_same(real_store: Callable[[str], Path], name: str) -> None:
    directory = str(real_store(name))
    whole = read_table(directory, ["physical_offset"]).column(0).to_pylist()
    for target in (1, 5_000, 70_000, 300_000):
        pieces = [
            offset
            for where in plan(*find_stores(directory), target)
            for batch in read_range(where, ["physical_offset"])
            for offset in batch.column(0).to_pylist()
        ]
        assert pieces == whole

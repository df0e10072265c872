"""703 odd requests, one after another, to a real broker and name server: mqlab answers each with the same code.

Numbers that are none, names that no topic has, queues and offsets that are not there, bodies that are cut, codes that
do not exist. Where mqlab answers otherwise on purpose, ON_PURPOSE and OTHERWISE say so; docs/differences.md says why.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_numbers import long_or
from tests.rocketmq.broker.test_pop_exchanges import BIG
from tests.rocketmq.broker.world import World

FIXTURES = Path(__file__).parent / "fixtures"
LATEST_BIRTH_MS = 5_000
"""A pop whose birth is as near as this to its sending was born when it was sent."""
LONGEST_ANSWER_MS = 3_000
ON_PURPOSE = re.compile(
    "needs (the field|the list|a whole number in the field|a body)"  # Java: the text of a NullPointerException, or 0
    "|no setting of a running node|is a whole number, not|is true or false, not"  # Java: ignored, and 0
    "|lacks a field"
)
"""Remarks of refusals by which mqlab tells more than RocketMQ."""
JAVA = re.compile(r"\w+Exception")
OTHERWISE = {
    "11 pull sql": "an expression that does not compile filters nothing",
    "11 pull type_odf": "likewise a type that does not exist",
    "17 topic write_minus": "any number of queues is taken",
    "17 topic perm8": "any number is taken as perm",
    "352 group config empty": "a group without a name is made by use",
    "321 queue queue": "an earlier question made the queue",
    "400 assignment empty": "a NullPointerException; nothing was asked for, nothing is assigned",
    "401 mode empty": "a NullPointerException; there is no topic without a name",
    "401 mode mode": "a mode that does not exist is kept as none",
    "3009 odf code": "access rules are not modelled",
    "901 odf code ns": "slaves that act as masters are not modelled",
}
"""A request's name -> what RocketMQ does."""


def recorded(name: str) -> list[dict[str, Any]]:
    """One row per request: name, moment, whom, code, fields, body in base64, and the answer if there was one."""
    text = gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def asked_again(
    directory: Path, rows: list[dict[str, Any]], role: str = "ASYNC_MASTER"
) -> Iterator[tuple[dict[str, Any], RemotingCommand | None]]:
    """Sends what was recorded, at the same moments, with the offsets of this broker's log and half messages."""
    settings = {"broker_cluster_name": "LabCluster", "recall_message_enable": True, "enable_property_filter": True}
    store = dataclasses.replace(BIG, broker_role=role)
    world = World(directory, store=store, start_ms=rows[0]["sentAt"] - 100, broker_id=int(store.is_slave), **settings)
    client = world.client()
    offsets: dict[tuple[str, str], str] = {}
    for row in rows:
        world.run_for(max(0, row["sentAt"] - world.sim.now_ms))
        fields = {name: offsets.get((name, value), value) for name, value in row["fields"].items()}
        if abs(long_or(fields.get("bornTime"), 0) - row["sentAt"]) < LATEST_BIRTH_MS:
            fields["bornTime"] = str(world.sim.now_ms)
        address = world.name_server.address if row["to"] == "nameserver" else None
        answer = client.send(row["code"], base64.b64decode(row["body"]), to=address, **fields)
        due_ms = world.sim.now_ms + (LONGEST_ANSWER_MS if row["answer"] else 20)
        while not answer.done and world.sim.now_ms < due_ms:
            world.run_for(5)
        mine = answer.result() if answer.done and answer.error is None else None
        real_fields = row["answer"]["fields"] if row["answer"] else {}
        if mine is not None and len(real_fields.get("msgId", "")) == len(mine.ext_fields.get("msgId", "")) == 32:
            log_offset = str(int(real_fields["msgId"][16:], 16)), str(int(mine.ext_fields["msgId"][16:], 16))
            offsets["commitLogOffset", log_offset[0]] = offsets["offset", log_offset[0]] = log_offset[1]
            if row["fields"].get("sysFlag") == "4":
                offsets["tranStateTableOffset", real_fields["queueOffset"]] = mine.ext_fields["queueOffset"]
        yield row, mine


def test_odd_requests_get_rocketmqs_codes(tmp_path: Path) -> None:
    others, fields, remarks = {}, {}, {}
    for row, mine in asked_again(tmp_path, recorded("odd-requests")):
        real = row["answer"]
        codes = real["code"] if real else None, int(mine.code) if mine else None
        if real and mine and codes[0] == codes[1] and not JAVA.search(real["remark"] or ""):
            fields[row["note"]] = sorted(real["fields"]), sorted(mine.ext_fields)
        if real and mine and codes == (0, 0):
            remarks[row["note"]] = real["remark"], mine.remark
        if codes[0] != codes[1] and not ON_PURPOSE.search((mine and mine.remark) or ""):
            others[row["note"]] = codes, mine and mine.remark
    assert {name: other for name, other in others.items() if name not in OTHERWISE} == {}
    assert sorted(others) == sorted(OTHERWISE), "a row is not needed any more"
    differ = {name for name, (of_rocketmq, of_mqlab) in fields.items() if of_rocketmq != of_mqlab}
    assert differ == {"34 heartbeat empty"}, "RocketMQ offers V2 there"
    assert {note: pair for note, pair in remarks.items() if pair[0] != pair[1]} == {}

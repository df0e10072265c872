"""Entries of the trace topic: every type and age of them, and what does not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

from mqlab.data.spark import pipeline
from mqlab.data.spark.pipeline.log_units import TRACE_COLUMNS
from mqlab.data.spark.pipeline.schemas import TRACE
from mqlab.data.spark.pipeline.trace_entries import entries_in
from mqlab.data.spark.small_tables import arrow_schema
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.admin.message_traces import decode_trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "broker_name string, physical_offset long, msg_id string, born_host string, topic string, body binary"
PUB = "Pub|1000|R|shop|orders|ID1|paid|order-1 заказ|10.0.0.1:10911|5|3|0|OFF1|true"
BEFORE = "SubBefore|2000|R|billing|REQ1|ID1|0|order-1 заказ"
AFTER = "SubAfter|REQ1|ID1|7|true|order-1 заказ|0|2007|billing"
END = "EndTransaction|3000|R|pay|订单|ID2|null||10.0.0.1:10911|2|TX|COMMIT_MESSAGE|false"


def body(*entries: str, end: str = "\x02") -> bytes:
    return ("\x02".join(entry.replace("|", "\x01") for entry in entries) + end).encode()


def rows_of(bodies: Sequence[bytes], ids: Sequence[str] = (), host: str = "10.0.0.9") -> list[tuple[Any, ...]]:
    return [("b", 100 * at, ids[at] if ids else f"T{at}", f"{host}:50001", "t", one) for at, one in enumerate(bodies)]


def read(bodies: Sequence[bytes]) -> list[dict[str, Any]]:
    """The entries as a task of Spark takes them apart, without Spark around it."""
    batch = pyarrow.RecordBatch.from_pylist([dict(zip(TRACE_COLUMNS, row, strict=True)) for row in rows_of(bodies)])
    rows: list[dict[str, Any]] = entries_in(batch, arrow_schema(TRACE)).to_pylist()
    return rows


def units(spark: SparkSession, bodies: Sequence[bytes], ids: Sequence[str] = (), host: str = "10.0.0.9") -> DataFrame:
    return spark.createDataFrame(rows_of(bodies, ids, host), SCHEMA)


def test_all_types_read() -> None:
    pub, before, after, end = read([body(PUB, BEFORE, AFTER, END)])
    assert (pub["type"], pub["group_name"], pub["topic"], pub["msg_id"]) == ("Pub", "shop", "orders", "ID1")
    assert (pub["keys"], pub["cost_ms"], pub["success"]) == ("order-1 заказ", 3, True)
    assert (before["request_id"], before["retry_times"], before["time"].timestamp()) == ("REQ1", 0, 2)
    assert (after["request_id"], after["cost_ms"], after["status"], after["success"]) == ("REQ1", 7, "SUCCESS", True)
    assert (end["topic"], end["keys"], end["client"]) == ("订单", "", "10.0.0.9")
    assert {row["reason"] for row in (pub, before, after, end)} == {None}
    assert [row["position"] for row in (pub, before, after, end)] == [0, 1, 2, 3]


def test_entries_of_older_clients_read() -> None:
    old = [
        "SubAfter|REQ1|ID1|7|false|null",
        "SubAfter|REQ1|ID1|7|true|k|0",
        PUB.rpartition("|OFF1|true")[0] + "|false",
        PUB.rpartition("|OFF1|true")[0],
    ]
    failed, good, pub13, pub12 = read([body(*old)])
    assert (failed["status"], failed["time"], failed["keys"], failed["group_name"]) == ("FAILED", None, "", None)
    assert (good["status"], good["success"]) == ("SUCCESS", True)
    assert (pub13["success"], pub12["success"]) == (False, None)


@pytest.mark.parametrize(
    ("torn", "reason", "raw"),
    [
        (body(BEFORE, "SubBe", end=""), "no end mark", "SubBe"),
        (body(BEFORE, "SubBefore|2000|R"), "3 fields, at least 8 expected", "SubBefore|2000|R"),
        (body(BEFORE, BEFORE.replace("2000", "2x0")), "number expected in field 1", None),
        (body(BEFORE, "Recall|1|2"), "unknown type", "Recall|1|2"),
        (body(BEFORE) + b"\xff\xfe\x01\xd0\x02", "unknown type", None),
        (body(BEFORE, ""), "unknown type", ""),
    ],
)
def test_what_does_not_read_is_kept_with_its_reason(torn: bytes, reason: str, raw: str | None) -> None:
    good, bad = read([torn])
    assert (good["reason"], good["raw"]) == (None, None)
    assert (bad["reason"], bad["position"], bad["trace_msg_id"]) == (reason, 1, "T0")
    assert raw is None or bad["raw"] == raw


def test_a_body_cut_at_any_byte_loses_nothing_silently() -> None:
    """Whatever the cut, what is left is either entries that read or one row that says why not."""
    whole = body(PUB, BEFORE, AFTER)
    rows = read([whole[:length] for length in range(len(whole) + 1)])
    ends = [at for at, byte in enumerate(whole) if byte == 2]
    for length in range(len(whole) + 1):
        mine = [row for row in rows if row["trace_physical_offset"] == 100 * length]
        entire = sum(end < length for end in ends)
        assert [row["reason"] for row in mine[:entire]] == [None] * entire
        left = length > 0 and whole[length - 1] != 2
        assert [row["reason"] for row in mine[entire:]] == (["no end mark"] if left else [])


def test_an_empty_body_has_no_entries() -> None:
    assert read([b"", body(BEFORE)])[0]["trace_msg_id"] == "T1"


def test_a_call_is_before_and_after_and_one_that_never_came_back(spark: SparkSession) -> None:
    lost = BEFORE.replace("REQ1", "REQ2")
    orphan = AFTER.replace("REQ1", "REQ3")
    bodies = [body(BEFORE, AFTER), body(lost, PUB), body(orphan, "damaged")]
    rows = pipeline.deliveries(pipeline.trace(units(spark, bodies)).cache()).orderBy("request_id").toArrow().to_pylist()
    assert [(r["request_id"], r["status"], r["retry_times"], r["cost_ms"]) for r in rows] == [
        ("REQ1", "SUCCESS", 0, 7),
        ("REQ2", "NO_RESULT", 0, None),
        ("REQ3", "SUCCESS", None, 7),
    ]
    assert [r["started"].timestamp() for r in rows] == [2, 2, 2]  # the orphan's from its end and its cost
    assert (rows[1]["ended"], rows[1]["success"]) == (None, None)


def test_messages_alike_in_one_call_stay_several_and_a_trace_stored_twice_counts_once(spark: SparkSession) -> None:
    call = body(BEFORE, BEFORE, AFTER, AFTER)
    frame = pipeline.trace(units(spark, [call, call, body(END)], ids=["T", "T", "U"], host="[2001:db8::7]")).cache()
    assert frame.where("client = '2001:db8::7'").count() == 9
    assert pipeline.deliveries(frame).count() == 2


def test_the_trace_of_real_clients_reads_as_the_admin_reads_it(
    spark: SparkSession, real_store: Callable[[str], Path]
) -> None:
    directory = real_store("clean")
    extents = pipeline.snapshot(directory)
    rows = pipeline.trace(pipeline.trace_raw(spark, extents)).toArrow().to_pylist()
    messages = StoreInspector(directory).messages("RMQ_SYS_TRACE_TOPIC")
    truth = [entry for message in messages for entry in decode_trace(message)]
    assert len(rows) == len(truth) > 200
    assert all(row["reason"] is None for row in rows)
    assert Counter(
        (r["type"], r["msg_id"], r["request_id"], r["retry_times"], r["cost_ms"], r["keys"] or None, r["client"])
        for r in rows
        if r["type"] != "EndTransaction"
    ) == Counter(
        (t.type, t.msg_id, t.request_id, t.retry_times, t.cost_ms, t.keys, t.client)
        for t in truth
        if t.type != "EndTransaction"
    )

"""Messages of the trace topic as entries, one row each; what does not read is kept with its reason.

Mirrors: TraceDataEncoder.decoderFromTraceDataString. Lab 11 rebuilds it.

    body  SubBefore␁1767225600000␁DefaultRegion␁billing␁0A00…␁0A01…␁0␁order-1␂SubAfter␁…␂
          fields end with 0x01, entries with 0x02

    reason   null                         the entry reads
             unknown type                 its first field is none of the four
             n fields, at least m         cut short, or of a version older than 4.4
             number expected in field n   damaged
             no end mark                  the body ends inside it

Left out: Recall entries and what a cloud's trace adds.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from mqlab.spark.pipeline.log_units import TRACE_COLUMNS
from mqlab.spark.pipeline.schemas import TRACE, checked, needs

ENTRY_END, FIELD_END = "\x02", "\x01"
SHOWN_FIELD_END = "|"
STATUSES = ("SUCCESS", "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED")  # ConsumeReturnType's ordinals
LONGEST_RAW = 1_000
PORT = r"^(?:\[(.*)\]|(.*)):[0-9]+$"  # a client has a connection, and so a port, for each broker

# type -> column -> number of its field; fields counted from 0, the type itself is field 0
FIELDS: Mapping[str, Mapping[str, int]] = {
    "Pub": {"time": 1, "group_name": 3, "topic": 4, "msg_id": 5, "keys": 7, "cost_ms": 10},
    "SubBefore": {"time": 1, "group_name": 3, "request_id": 4, "msg_id": 5, "retry_times": 6, "keys": 7},
    "SubAfter": {"request_id": 1, "msg_id": 2, "cost_ms": 3, "success": 4, "keys": 5, "code": 6, "time": 7,
                 "group_name": 8},
    "EndTransaction": {"time": 1, "group_name": 3, "topic": 4, "msg_id": 5, "keys": 7},
}  # fmt: skip
FEWEST = {"Pub": 12, "SubBefore": 8, "SubAfter": 6, "EndTransaction": 13}
NUMBERS = {"Pub": (1, 10), "SubBefore": (1, 6), "SubAfter": (3,), "EndTransaction": (1,)}


def trace(raw: DataFrame) -> DataFrame:
    """Units of the trace topic with their bodies (``log_units.TRACE_COLUMNS``) -> TRACE. Works on a stream too."""
    needs(raw, TRACE_COLUMNS, "trace")
    entries = _entries(raw)
    f, kind = F.col("f"), F.col("kind")
    made = entries.select(
        kind.alias("type"),
        F.timestamp_millis(_number("time", "bigint")).alias("time"),
        _text("group_name").alias("group_name"), _text("topic").alias("topic"), _text("msg_id").alias("msg_id"),
        F.coalesce(_text("keys"), F.lit("")).alias("keys"), _text("request_id").alias("request_id"),
        _number("retry_times", "int").alias("retry_times"), _number("cost_ms", "bigint").alias("cost_ms"),
        _success().alias("success"), _status().alias("status"),
        F.regexp_replace("born_host", PORT, "$1$2").alias("client"), "broker_name",
        F.col("msg_id").alias("trace_msg_id"), F.col("physical_offset").alias("trace_physical_offset"),
        "position", "repeat",
        F.when(~F.col("ended"), F.lit("no end mark")).otherwise(_reason(f, kind)).alias("reason"),
        F.substring(F.translate("entry", FIELD_END, SHOWN_FIELD_END), 1, LONGEST_RAW).alias("raw"),
    )  # fmt: skip
    silent = F.col("reason").isNotNull()
    told = [
        F.when(silent, F.lit(None)).otherwise(F.col(name)).alias(name) if name in ("time", "cost_ms") else F.col(name)
        for name in TRACE.fieldNames()
        if name != "raw"
    ]
    return checked(made.select(*told, F.when(silent, F.col("raw")).alias("raw")), TRACE, "trace")


def _entries(raw: DataFrame) -> DataFrame:
    """A row an entry: its text, its fields, where it stands, whether its end mark is there."""
    pieces = F.split(F.make_valid_utf8(F.col("body").cast("string")), ENTRY_END, -1)
    whole = F.col("pieces")
    last = F.size(whole) - 1  # behind the last end mark: nothing, or a piece that was cut
    # entries of one call of a listener stand in one message; equal texts there are messages a trace cannot tell apart
    repeats = F.transform(whole, lambda one, at: F.size(F.filter(F.slice(whole, 1, at), lambda before: before == one)))
    distinct = F.size(F.array_distinct(whole)) == F.size(whole)
    return (
        raw.withColumn("pieces", pieces)
        .withColumn("repeats", F.when(~distinct, repeats))
        .select("broker_name", "physical_offset", "msg_id", "born_host", "repeats", last.alias("last"),
                F.posexplode("pieces").alias("position", "entry"))
        .where("position < last OR entry != ''")
        .withColumn("f", F.split("entry", FIELD_END, -1))
        .withColumn("kind", F.when(F.element_at("f", 1).isin(*FIELDS), F.element_at("f", 1)))
        .withColumn("repeat", F.coalesce(F.get("repeats", F.col("position")), F.lit(0)))
        .withColumn("ended", F.col("position") < F.col("last"))
    )  # fmt: skip


def _field(column: str) -> Column:
    """The text of the field that holds a column, by the entry's type; null where its type has none."""
    chosen = F.lit(None).cast(T.StringType())
    for kind, fields in FIELDS.items():
        if column in fields:
            chosen = F.when(F.col("kind") == kind, F.get("f", F.lit(fields[column]))).otherwise(chosen)
    return chosen


def _text(column: str) -> Column:
    """A field as Java wrote it: an empty one and its ``null`` are null."""
    text = _field(column)
    return F.when(~text.isin("", "null"), text)


def _number(column: str, kind: str) -> Column:
    return _field(column).try_cast(kind)


def _success() -> Column:
    """Of a SubAfter, and of a Pub new enough to tell (the last of its 13 or 14 fields)."""
    size = F.size("f")
    pub = F.when(size >= 14, F.get("f", F.lit(13))).when(size == 13, F.get("f", F.lit(12)))
    text = F.when(F.col("kind") == "SubAfter", F.get("f", F.lit(4))).when(F.col("kind") == "Pub", pub)
    return F.when(text == "true", True).when(text == "false", False)


def _status() -> Column:
    """The result of a call: its code, or what success tells where an old client gave no code."""
    by_code = F.get(F.array(*[F.lit(status) for status in STATUSES]), _number("code", "int"))
    guessed = F.when(F.get("f", F.lit(4)) == "true", STATUSES[0]).otherwise(STATUSES[-1])
    return F.when(F.col("kind") == "SubAfter", F.coalesce(by_code, guessed))


def _reason(f: Column, kind: Column) -> Column:
    """Why an entry with its end mark does not read; null when it does."""
    reason = F.when(kind.isNull(), F.lit("unknown type"))
    for name, fewest in FEWEST.items():
        short = F.concat(F.size(f).cast("string"), F.lit(f" fields, at least {fewest} expected"))
        reason = reason.when((kind == name) & (F.size(f) < fewest), short)
        for number in NUMBERS[name]:
            unread = F.get(f, F.lit(number)).try_cast("bigint").isNull()
            reason = reason.when((kind == name) & unread, F.lit(f"number expected in field {number}"))
    return reason

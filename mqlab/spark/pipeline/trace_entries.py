"""Messages of the trace topic as entries, one row each; an entry that cannot be parsed is kept with the reason.

Mirrors: TraceDataEncoder.decoderFromTraceDataString.

    body  SubBefore␁1767225600000␁DefaultRegion␁billing␁0A00…␁0A01…␁0␁order-1␂SubAfter␁…␂
          fields end with 0x01, entries with 0x02

    reason   null                         the entry was parsed
             unknown type                 its first field is not one of the four types
             n fields, at least m         cut short, or of a version older than 4.4
             number expected in field n   damaged
             no end mark                  the body ends inside it

Left out: Recall entries, and the fields that a cloud's trace adds.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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
COLUMNS = ("time", "group_name", "topic", "msg_id", "keys", "request_id", "retry_times", "cost_ms", "success", "code")
FEWEST = {"Pub": 12, "SubBefore": 8, "SubAfter": 6, "EndTransaction": 13}
NUMBERS = {"Pub": ("time", "cost_ms"), "SubBefore": ("time", "retry_times"), "SubAfter": ("cost_ms",),
           "EndTransaction": ("time",)}  # fmt: skip


def trace(raw: DataFrame) -> DataFrame:
    """Units of the trace topic with their bodies (``log_units.TRACE_COLUMNS``) -> TRACE. Works on a stream too."""
    needs(raw, TRACE_COLUMNS, "trace")
    n = {name: F.get("n", F.lit(at)) for at, name in enumerate(COLUMNS)}
    # Step by step: Java compiles short methods only, and Spark generates one method for each of these steps.
    read = (
        _entries(raw)
        .withColumn("n", _in_order())
        .withColumns({"ms": n["time"].try_cast("bigint"), "retry_times": n["retry_times"].try_cast("int"),
                      "cost_ms": n["cost_ms"].try_cast("bigint")})
        .withColumn("reason", _reason())
        .withColumn("fine", F.col("reason").isNull())
    )  # fmt: skip
    # Java writes the string null for a missing value.
    texts = {
        name: F.when(~n[name].isin("", "null"), n[name]) for name in ("group_name", "topic", "msg_id", "request_id")
    }
    # The raw text is kept only for entries that cannot be parsed, and not more of it than a reader needs.
    shown = F.substring(F.translate("entry", FIELD_END, SHOWN_FIELD_END), 1, LONGEST_RAW)
    entries = read.select(
        F.col("kind").alias("type"), F.when(F.col("fine"), F.timestamp_millis("ms")).alias("time"),
        *[text.alias(name) for name, text in texts.items()],
        F.when(~n["keys"].isin("", "null"), n["keys"]).otherwise("").alias("keys"), "retry_times", "cost_ms",
        F.when(n["success"] == "true", True).when(n["success"] == "false", False).alias("success"),
        F.when(F.col("kind") == "SubAfter", _status(n["code"], n["success"])).alias("status"),
        F.regexp_replace("born_host", PORT, "$1$2").alias("client"), "broker_name",
        F.col("msg_id").alias("trace_msg_id"), F.col("physical_offset").alias("trace_physical_offset"),
        "position", "repeat", "reason", F.when(~F.col("fine"), shown).alias("raw"),
    )  # fmt: skip
    return checked(entries, TRACE, "trace")


def _entries(raw: DataFrame) -> DataFrame:
    """One row per entry: its text, its fields, its position, whether its end mark is there."""
    pieces = F.split(F.make_valid_utf8(F.col("body").cast("string")), ENTRY_END, -1)
    whole = F.col("pieces")
    last = F.size(whole) - 1  # after the last end mark: nothing, or an entry that was cut
    # Entries of one call of a listener are in one message; equal texts there are messages that look alike in a trace.
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


def _in_order() -> Column:
    """The texts of an entry's fields in the order of COLUMNS, null where its type has none."""
    f, chosen = F.col("f"), F.lit(None).cast("array<string>")
    for kind, fields in FIELDS.items():
        texts = [F.get(f, F.lit(fields[name])) if name in fields else F.lit(None) for name in COLUMNS]
        if kind == "Pub":  # the last of its 13 fields, or of 14 in newer ones
            texts[COLUMNS.index("success")] = F.get(f, F.when(F.size(f) >= 14, 13).otherwise(12))
        chosen = F.when(F.col("kind") == kind, F.array(*texts)).otherwise(chosen)
    return chosen


def _status(code: Column, success: Column) -> Column:
    """The result of a call: its code, or for an old client without a code the flag success."""
    by_code = F.get(F.array(*[F.lit(status) for status in STATUSES]), code.try_cast("int"))
    return F.coalesce(by_code, F.when(success == "true", STATUSES[0]).otherwise(STATUSES[-1]))


def _reason() -> Column:
    """Why an entry cannot be parsed; null when it can."""
    kind, size = F.col("kind"), F.size("f")
    read = {"time": "ms", "retry_times": "retry_times", "cost_ms": "cost_ms"}
    reason = F.when(~F.col("ended"), F.lit("no end mark")).when(kind.isNull(), F.lit("unknown type"))
    for name, fewest in FEWEST.items():
        short = F.concat(size.cast("string"), F.lit(f" fields, at least {fewest} expected"))
        reason = reason.when((kind == name) & (size < fewest), short)
        for column in NUMBERS[name]:
            text = F.lit(f"number expected in field {FIELDS[name][column]}")
            reason = reason.when((kind == name) & F.col(read[column]).isNull(), text)
    return reason

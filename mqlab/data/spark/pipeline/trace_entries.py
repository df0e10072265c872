"""Messages of the trace topic as entries, one row each; an entry that cannot be parsed is kept with the reason.

Mirrors: TraceDataEncoder.decoderFromTraceDataString, as mqlab.data.arrow.trace_entries does it, many bodies at a time.

    units of the trace topic ── bodies ──▶ Entries ──▶ TRACE

Left out: Recall entries, and the fields that a cloud's trace adds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow
import pyarrow.compute
from pyspark.sql import DataFrame

from mqlab.data.arrow.property_columns import numbers
from mqlab.data.arrow.trace_entries import Entries
from mqlab.data.spark.pipeline.log_units import TRACE_COLUMNS
from mqlab.data.spark.pipeline.schemas import TRACE, checked, needs
from mqlab.data.spark.small_tables import arrow_schema

PORT = r"^(?:\[(.*)\]|(.*)):[0-9]+$"  # a client has a connection, and so a port, for each broker


def trace(raw: DataFrame) -> DataFrame:
    """Units of the trace topic with their bodies (``log_units.TRACE_COLUMNS``) -> TRACE. Works on a stream too."""
    needs(raw, TRACE_COLUMNS, "trace")
    return checked(raw.select(*TRACE_COLUMNS).mapInArrow(_entries_of_batches, TRACE), TRACE, "trace")


def _entries_of_batches(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    schema = arrow_schema(TRACE)
    for batch in batches:
        yield entries_in(batch, schema)


def entries_in(units: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """TRACE_COLUMNS of some units -> their entries; ``schema`` is TRACE as Arrow has it."""
    entries = Entries(units.column("body"))
    rows = numbers(entries.body, pyarrow.int64())
    clients = pyarrow.compute.replace_substring_regex(units.column("born_host"), PORT, r"\1\2")
    columns = entries.columns()
    columns["time"] = columns["time"].cast(pyarrow.timestamp("ms", tz="UTC"))
    of_units = {
        "client": clients,
        "broker_name": units.column("broker_name"),
        "trace_msg_id": units.column("msg_id"),
        "trace_physical_offset": units.column("physical_offset"),
    }
    columns |= {name: values.take(rows) for name, values in of_units.items()}
    return pyarrow.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)

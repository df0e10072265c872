"""Small tables in the driver: pandas frames whose times are ms since the epoch, from Spark and Parquet and back again.

A table of a few thousand rows is joined and counted in pandas within milliseconds; each query of Spark costs half a
second of a processor before its first row, for its plan, its Java code and the compilers of both.

    DataFrame ── collected ──▶ frame ── counted, joined ──▶ written ──▶ Parquet, with the types that Spark would write
    Parquet ──── read_small ─▶ frame ── for_spark ──▶ DataFrame, to be joined with a big table

Left out: decimals, arrays and structs; no small table has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.dataset
import pyarrow.parquet

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PARQUET: Mapping[str, Any] = {"use_deprecated_int96_timestamps": True}  # how Spark writes times, for pyarrow's writer
ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"  # where Spark keeps its own schema, with the comments


def in_ms(table: pyarrow.Table) -> pandas.DataFrame:
    """A table as a frame; its times as ms since the epoch, null as NaN."""
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            ms = table.column(index).cast(pyarrow.timestamp("ms", tz="UTC"), safe=False).cast(pyarrow.int64())
            table = table.set_column(index, field.name, ms)
    frame: pandas.DataFrame = table.to_pandas()
    return frame


def collected(rows: DataFrame) -> pandas.DataFrame:
    """All rows of a small result of Spark."""
    return in_ms(rows.toArrow())


def read_small(folder: Path) -> pandas.DataFrame:
    """A small table from its Parquet files."""
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    return in_ms(pyarrow.dataset.dataset(files, format="parquet").to_table())


def as_table(frame: pandas.DataFrame, schema: StructType) -> pyarrow.Table:
    """A frame with the columns and types of a schema; its times are ms since the epoch, NaN becomes null.

    Raises KeyError for a missing column, and pyarrow.ArrowInvalid for a value that does not fit its type.
    """
    columns = []
    for field in arrow_schema(schema):
        values = pyarrow.array(frame[field.name], from_pandas=True)
        if pyarrow.types.is_timestamp(field.type):
            values = values.cast(pyarrow.int64()).cast(pyarrow.timestamp("ms", tz="UTC"))
        columns.append(values.cast(field.type))
    return pyarrow.Table.from_arrays(columns, names=schema.fieldNames())


def for_spark(spark: SparkSession, frame: pandas.DataFrame, schema: StructType) -> DataFrame:
    """The columns of a schema, of a frame that has them, as a table of Spark. Errors as for ``as_table``."""
    return spark.createDataFrame(as_table(frame, schema), schema)


def none_of(rows: DataFrame) -> pandas.DataFrame:
    """What ``collected`` gives for a query without rows; Spark is not asked to run it."""
    return in_ms(arrow_schema(rows.schema).empty_table())


def arrow_schema(schema: StructType) -> pyarrow.Schema:
    """A schema of Spark as Arrow has it, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def parquet_schema(schema: StructType) -> pyarrow.Schema:
    """A schema of Spark as Arrow has it, with the comments where Spark keeps them in a Parquet file."""
    return arrow_schema(schema).with_metadata({ROW_METADATA: schema.json()})


def written(frame: pandas.DataFrame, schema: StructType, folder: Path) -> None:
    """Write a frame as the one Parquet file of a new folder, with the types and comments that Spark would write."""
    table = as_table(frame, schema).replace_schema_metadata({ROW_METADATA: schema.json()})
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(table, folder / "part-00000.parquet", **PARQUET)

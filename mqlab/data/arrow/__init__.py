"""A store as Arrow columns: numpy and pyarrow, no Spark; from there to pandas, polars and DuckDB.

Lab 10 and everything that reads a store as a table use it.

    stores      the stores under a path                property_columns  properties of many units taken apart at once
    ranges      pieces of a log that are read apart    columns           the table of columns, units -> RecordBatch
    units       places of units: the plain hop         reading           a range, or whole stores
    boundaries  the same by many cursors               queues            units of consume queues
    growing     how far a log in use can be read       store_tables      bounds, lag, config files
    losses      messages missing from the log          known_topics      which topics a store has
    moments     where in the log a moment begins

>>> import tempfile
>>> from mqlab.rocketmq.store import MessageStore
>>> from mqlab.rocketmq.wire.message import Message
>>> folder = tempfile.TemporaryDirectory()
>>> directory = f"{folder.name}/broker-a"
>>> with MessageStore.open(directory, mapped_file_size_commit_log=4096) as store:
...     for text in ("paid", "оплачен", "已付款", "🚚"):
...         _ = store.put(Message("orders", text.encode(), tags="paid", keys=f"order-{len(text)}"))

>>> table = read_table(directory, ["topic", "queue_offset", "keys", "body"])     # a folder of stores will do, too
>>> table.num_rows, table.column_names
(4, ['topic', 'queue_offset', 'keys', 'body'])
>>> print(table.select(["keys", "queue_offset"]).to_pandas())
      keys  queue_offset
0  order-4             0
1  order-7             1
2  order-3             2
3  order-1             3

For a log larger than memory: batches of 10,000 rows, of chosen messages only.

>>> for batch in read_batches(directory, ["keys"], Selection(topics=("orders",), queues=(0,))):
...     print(batch.column("keys").to_pylist())
['order-4', 'order-7', 'order-3', 'order-1']

polars: ``polars.from_arrow(read_table(directory))``. DuckDB sees Arrow objects by their variable's name:
``log = read_batches(directory, ["topic"]); duckdb.sql("SELECT topic, count(*) FROM log GROUP BY topic")``.

The parts next to the log: ``read_queue_units(directory, tags="paid")``, ``read_store_table(directory, "lag")``.

>>> read_queue_units(directory, tags="paid").select(["queue_offset", "size"]).num_rows
4

Left out: index files; writing.
"""

from mqlab.data.arrow.columns import COLUMNS, schema
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.queues import read_queue_units
from mqlab.data.arrow.reading import Selection, read_batches, read_table
from mqlab.data.arrow.store_tables import TABLES, read_store_table
from mqlab.data.arrow.stores import StoreFolder, find_stores

__all__ = [
    "COLUMNS",
    "TABLES",
    "DataLossWarning",
    "Selection",
    "StoreFolder",
    "find_stores",
    "read_batches",
    "read_queue_units",
    "read_store_table",
    "read_table",
    "schema",
]

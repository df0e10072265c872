"""The reading half of a store: its files are read and never changed, whether a store has them open or not.

RocketMQ has no such tool. Lab 01 reads stores with it.

    StoreInspector   messages, queues, index, checkpoint, tree, problems

This package has the layouts of files that only a store has (index_table, checkpoint_format, torn_units), the readers of
single parts (log_reader, queue_reader, index_reader), and questions across parts (message_search, store_problems).
The store, Arrow and Spark use this package; it uses ``wire`` and the ports.
"""

from typing import TYPE_CHECKING

from mqlab.lazy_names import lazy_names

if TYPE_CHECKING:
    from mqlab.lab.inspector.inspector import StoreInspector

__all__ = ["StoreInspector"]

__getattr__, __dir__ = lazy_names(__name__, {"inspector": ("StoreInspector",)})  # a broker needs the layouts alone

"""The base of mqlab's data sources: directories can only be read, and writing raises an error that explains it.

    frame.write.format("rocketmq").mode("append").save(...)      an error that explains how messages get into a store
    frame.writeStream.format("rocketmq").start(...)              the same

A store belongs to one broker, which numbers the messages that it appends: rows are sent to a running cluster instead
(mqlab.data.spark.live.sink).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from mqlab.data.spark.executors import Executors
from mqlab.errors import UsageError


class ReadingOnly(DataSource):
    """A data source that cannot be written to. Options are kept unchecked: a reader checks them, a writer is refused.

    ``parallelism``: how many tasks the session runs at once; None when the class was registered without it.
    ``executors``: whom to ask what other machines see; None where all tasks run on this one.
    """

    parallelism: int | None = None
    executors: Executors | None = None

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))

    def check_seen(self, paths: Sequence[str]) -> None:
        """Raise UsageError when tasks would run where one of the paths is missing, or where mqlab is."""
        if self.executors is not None:
            self.executors.check(paths)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """There is none. Raises UsageError."""
        self._refuse("write")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """There is none. Raises UsageError."""
        self._refuse("writeStream")

    def _refuse(self, verb: str) -> NoReturn:
        raise UsageError(
            f"{verb} cannot go to {self.name()}: it reads stores and has no sink",
            hint='send messages to a running broker with a producer, or with format("rocketmq") and '
            'option("nameServer", "host:9876"); keep results as Parquet: .write.parquet(folder)',
        )


def for_session(source: type[ReadingOnly], parallelism: int, executors: Executors | None) -> type[ReadingOnly]:
    """The same data source, to be registered with a session that runs so many tasks at once.

    Reads are planned in a process that does not know the session, so the class carries what it needs of it.
    """
    known = {"__module__": source.__module__, "parallelism": parallelism, "executors": executors}
    return type(source.__name__, (source,), known)

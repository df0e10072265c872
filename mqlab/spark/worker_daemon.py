"""The process from which Spark forks its Python workers, with what they need imported already.

    the JVM ── starts ──▶ this process: pandas, pyarrow, the Arrow kernel ── forks ──▶ one worker per running task

PySpark's own daemon imports nothing before it forks: each worker, and each that follows one that had nothing to do for
a minute, spends a second on imports. PySpark does so because libraries may start threads when they are imported, which
a fork does not copy; two settings of ``mqlab.spark.session`` keep them from it. The session names this module to a JVM
that runs the tasks itself; executors of a cluster may not have mqlab yet when they start, and use PySpark's.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401  pyarrow imports it at the first list that becomes an array
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import mqlab.spark.pipeline.log_walk  # noqa: F401  the Arrow kernel and its Parquet writer

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after every task
    manager()

"""A day of traffic as one HTML page: the results of a run of the pipeline.

Mirrors: RocketMQ's dashboard, as a file to keep.

    write_report("out", "report.html")      of mqlab.data.spark.pipeline's output; no Spark is started
    lag_over_time("out", "kept")            from snapshots of consumerOffset.json that keep_offsets has made

Left out: anything live.
"""

from mqlab.data.spark.report.lag_over_time import keep_offsets, lag_over_time
from mqlab.data.spark.report.page import write_report

__all__ = ["keep_offsets", "lag_over_time", "write_report"]

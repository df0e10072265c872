"""A day of traffic as one HTML page: the results of a run of the pipeline.

Mirrors: RocketMQ's dashboard, as a file to keep.

    write_report("out", "report.html")      of mqlab.spark.pipeline's output; no Spark is started

Left out: anything live.
"""

from mqlab.spark.report.page import write_report

__all__ = ["write_report"]

"""From brokers' stores to what an operator asks: plain functions from DataFrame to DataFrame, Parquet between them.

Mirrors: nothing in RocketMQ; its console asks one broker one question at a time. Labs 11 and 13 build parts of it.

    store(s) ─ raw ─┬─ messages(raw)       a row a unit of the log: what it is and whose
                    ├─ trace(raw)          a row an entry of the trace topic; what does not read keeps its reason
                    └─ offsets(stores)     how far each group has come, from consumerOffset.json
    deliveries(trace)                      a row a call of a listener with a message
    readers(messages, deliveries, offsets) which groups read which topics
    life(messages, deliveries, readers, offsets)     a row a message and group: stored, tried, outcome, latency
    facts                                  small tables per queue, group, tag, key, client and stretch of time

    from mqlab.spark import pipeline, session
    pipeline.deliveries(session().read.parquet("out/trace"))       one step in a notebook
    pipeline.run("stores", "out")                                  all of them, as `mqlab spark run` does

Left out: writing anywhere but to paths that the driver sees.
"""

from mqlab.spark.pipeline.following import Follow
from mqlab.spark.pipeline.job import STEPS, run, step_named
from mqlab.spark.pipeline.listener_calls import deliveries
from mqlab.spark.pipeline.log_units import offsets, raw, snapshot, trace_raw
from mqlab.spark.pipeline.message_kinds import messages
from mqlab.spark.pipeline.message_life import life, readers
from mqlab.spark.pipeline.trace_entries import trace

__all__ = [
    "STEPS", "Follow", "deliveries", "life", "messages", "offsets", "raw", "readers", "run", "snapshot", "step_named",
    "trace", "trace_raw",
]  # fmt: skip

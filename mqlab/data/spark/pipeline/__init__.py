"""From brokers' stores to the answers that an operator needs: functions from DataFrame to DataFrame, Parquet between.

RocketMQ's own console asks one broker one question at a time; these functions read whole stores.

    store(s) ─ raw ─┬─ messages(raw)       one row per unit of the log: its kind, topic and group
                    ├─ trace(raw)          one row per entry of the trace topic; damaged ones with the reason
                    └─ offsets(stores)     how far each group has come, from consumerOffset.json
    deliveries(trace)                      one row per call of a listener with a message
    readers(messages, deliveries, offsets) which groups read which topics
    life(messages, deliveries, readers, offsets)     one row per message and group: stored, tried, outcome, latency
    facts                                  small tables per queue, group, tag, key, client and stretch of time, and of
                                           the messages that a group lost or gave up on

    from mqlab.data.spark import pipeline, session
    pipeline.deliveries(session().read.parquet("out/trace"))       one step in a notebook
    pipeline.run("stores", "out")                                  all of them, as `mqlab spark run` does
    pipeline.biography("out", "order-1047")                        what happened to one message, in time order

Left out: writing anywhere but to paths that the driver sees.
"""

from mqlab.data.spark.pipeline.biographies import biography
from mqlab.data.spark.pipeline.compacting import compact
from mqlab.data.spark.pipeline.following import Follow
from mqlab.data.spark.pipeline.job import run, step_named
from mqlab.data.spark.pipeline.listener_calls import deliveries
from mqlab.data.spark.pipeline.log_units import offsets, raw, snapshot, trace_raw
from mqlab.data.spark.pipeline.message_kinds import messages
from mqlab.data.spark.pipeline.message_life import life, readers
from mqlab.data.spark.pipeline.steps import STEPS
from mqlab.data.spark.pipeline.trace_entries import trace
from mqlab.data.spark.thresholds import Thresholds

__all__ = [
    "STEPS",
    "Follow",
    "Thresholds",
    "biography",
    "compact",
    "deliveries",
    "life",
    "messages",
    "offsets",
    "raw",
    "readers",
    "run",
    "snapshot",
    "step_named",
    "trace",
    "trace_raw",
]

"""Spark over a broker's store: a session that starts on any machine, and data sources that read its files.

Mirrors: rocketmq-spark's source by name; it asks brokers for messages, this one reads their files.

    from mqlab.data.spark import session
    session().read.format("rocketmq").option("path", "run/broker-a").load().groupBy("topic", "queue_id").count().show()

    rocketmq          the messages, as a batch or a stream       mqlab.data.spark.source, .stream, options in .options
    rocketmq-queues   units of consume queues, bounds, lag       mqlab.data.spark.parts
    rocketmq-config   offsets, topics, groups, delays, filters   mqlab.data.spark.parts

    messages(path, where=, columns=)     a frame of rocketmq that reads little     mqlab.data.spark.selected_messages
    progress_of(query, path)             how far a stream is, per broker           mqlab.data.spark.progress
    state_of(query)                      what a stream keeps, batch by batch       mqlab.data.spark.query_state
    stages_of(action)                    what each stage of a query did            mqlab.data.spark.stages

Left out: pyspark is imported when a session is asked for, not by this package.
"""

from mqlab.data.spark.plans import plan_of
from mqlab.data.spark.progress import progress_of
from mqlab.data.spark.query_state import state_of
from mqlab.data.spark.rows import rows_of
from mqlab.data.spark.selected_messages import messages
from mqlab.data.spark.session import register, session
from mqlab.data.spark.shipping import ship
from mqlab.data.spark.stages import stages_of

__all__ = ["messages", "plan_of", "progress_of", "register", "rows_of", "session", "ship", "stages_of", "state_of"]

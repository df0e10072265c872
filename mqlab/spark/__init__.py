"""Spark over a broker's store: a session that starts on any machine, and the data source named rocketmq.

Mirrors: rocketmq-spark's source by name; it asks brokers for messages, this one reads their files. Labs 10 to 13.

    from mqlab.spark import session
    session().read.format("rocketmq").option("path", "run/broker-a").load().groupBy("topic", "queue_id").count().show()

Left out: pyspark is imported when a session is asked for, not by this package.
"""

from mqlab.spark.session import register, session

__all__ = ["register", "session"]

"""The data source rocketmq over the network: messages of a running cluster, and rows sent to one.

Mirrors: rocketmq-spark's RocketMQSource and RocketMQSink, which pull and send with RocketMQ's own clients.

    driver   name server ── routes, bounds of every queue ──> pieces: a queue from offset to offset
    task     piece ── PULL_MESSAGE, tags at the broker ──> stored units ── mqlab.data.arrow ──> RecordBatches
    sink     rows ── SEND_MESSAGE_V2 ──> queues; a row that is sent again has the same unique key

    options, places   what the options say, and the offsets that follow from it
    link              the connections of one process
    reader, stream    a batch, and a stream from offset to offset
    sink, rows_to_messages    a batch and a stream the other way

Left out: consumer groups. Nothing is committed at a broker: a batch has its bounds, a stream has Spark's checkpoint.
"""

"""A commit log as Arrow columns: numpy and pyarrow, no Spark.

Mirrors: nothing in RocketMQ. Lab 10 and whatever wants a store as a table (Spark, pandas, polars, DuckDB) stand on it.

    stores   which stores a path means
    ranges   a store cut into pieces that can be read apart, each beginning and ending between two units
    units    where the units of a range stand
    columns  the table of columns, and units -> RecordBatch

Left out: consume queues, the index and the config files.
"""

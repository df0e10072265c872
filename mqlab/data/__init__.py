"""Days of traffic: written, read as columns, and analysed with Spark."""

from mqlab.extras import need

need("spark")

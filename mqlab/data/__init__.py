"""Days of traffic: written, read as columns, and analysed with Spark."""

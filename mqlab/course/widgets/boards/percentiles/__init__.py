"""The percentile board: percentiles of two samples and of both together."""

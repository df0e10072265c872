"""The watermark board: what a stream keeps, gives and drops."""

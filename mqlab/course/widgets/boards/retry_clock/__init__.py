"""The retry clock: an order that fails, on an axis of log time."""

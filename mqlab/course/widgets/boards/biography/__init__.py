"""The biography board: what happened to one message."""

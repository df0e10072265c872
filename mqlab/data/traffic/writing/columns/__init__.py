"""Bytes by column: numbers as texts, templates that are filled slot by slot, and check sums of many bodies at once."""

"""Writes the stores of a day, slice by slice."""

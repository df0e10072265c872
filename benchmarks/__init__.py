"""Measurements, run by ``make bench``: how fast parts of mqlab are, as ratios to other things on the same machine."""

"""Lab 00: manifest, days, judges."""

from mqlab.course.cases.lab00.manifest import MANIFEST

__all__ = ["MANIFEST"]

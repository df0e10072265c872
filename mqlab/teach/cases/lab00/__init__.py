"""Lab 00: manifest, days, judges."""

from mqlab.teach.cases.lab00.manifest import MANIFEST

__all__ = ["MANIFEST"]

"""Lab 07: manifest, days of failure (days, bank), judges."""

from mqlab.teach.cases.lab07.manifest import MANIFEST

__all__ = ["MANIFEST"]

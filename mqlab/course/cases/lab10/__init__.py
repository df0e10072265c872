"""Lab 10: manifest, stores (days), right rows (questions), exercises (reads, counting, parts)."""

from mqlab.course.cases.lab10.manifest import MANIFEST

__all__ = ["MANIFEST"]

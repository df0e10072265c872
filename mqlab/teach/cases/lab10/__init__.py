"""Lab 10: manifest, stores (days), right rows (questions), judges (judges, reads)."""

from mqlab.teach.cases.lab10.manifest import MANIFEST

__all__ = ["MANIFEST"]

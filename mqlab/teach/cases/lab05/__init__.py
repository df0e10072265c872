"""Lab 05: manifest, exercises (partial, life, manual, poisoned, lanes) over one warehouse (events), tasks."""

from mqlab.teach.cases.lab05.manifest import MANIFEST

__all__ = ["MANIFEST"]

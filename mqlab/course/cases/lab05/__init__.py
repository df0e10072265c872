"""Lab 05: manifest, exercises (partial, life, manual, poisoned, lanes) over one warehouse (events), tasks."""

from mqlab.course.cases.lab05.manifest import MANIFEST

__all__ = ["MANIFEST"]

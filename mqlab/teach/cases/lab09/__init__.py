"""Lab 09: manifest, exercises (capacity, catching, sizing), your-turn tasks (tasks)."""

from mqlab.teach.cases.lab09.manifest import MANIFEST

__all__ = ["MANIFEST"]

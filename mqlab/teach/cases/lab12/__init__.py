"""Lab 12: manifest, exercises (begin, once, lag), the tasks, and the moments at which they take place."""

from mqlab.teach.cases.lab12.manifest import MANIFEST

__all__ = ["MANIFEST"]

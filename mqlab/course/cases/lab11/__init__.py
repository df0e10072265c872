"""Lab 11: manifest, exercises (bodies, calls, life), the days on which they take place, and the tasks."""

from mqlab.course.cases.lab11.manifest import MANIFEST

__all__ = ["MANIFEST"]

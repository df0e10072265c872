"""Lab 12: manifest, exercises (begin, once, lag; over films: per_minute, repeats, no_answer), tasks, moments."""

from mqlab.course.cases.lab12.manifest import MANIFEST

__all__ = ["MANIFEST"]

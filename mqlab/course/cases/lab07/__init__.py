"""Lab 07: manifest, exercises (retries, redrive, listeners), days of failure (days, bank)."""

from mqlab.course.cases.lab07.manifest import MANIFEST

__all__ = ["MANIFEST"]

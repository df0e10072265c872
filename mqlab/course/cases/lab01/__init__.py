"""Lab 01: manifest, the files that answers read (files), exercises."""

from mqlab.course.cases.lab01.manifest import MANIFEST

__all__ = ["MANIFEST"]

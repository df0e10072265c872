"""Lab 03: manifest, exercises (allocation, numbers, sticky, twins, two_owners), real answers (vectors), tasks."""

from mqlab.teach.cases.lab03.manifest import MANIFEST

__all__ = ["MANIFEST"]

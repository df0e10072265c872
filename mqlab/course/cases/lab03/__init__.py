"""Lab 03: manifest, exercises (allocation, numbers, sticky, twins, two_owners), real answers (vectors), tasks."""

from mqlab.course.cases.lab03.manifest import MANIFEST

__all__ = ["MANIFEST"]

"""Lab 09: manifest, exercises (capacity, catching, sizing, bottleneck, splitting, brake with database), tasks."""

from mqlab.course.cases.lab09.manifest import MANIFEST

__all__ = ["MANIFEST"]

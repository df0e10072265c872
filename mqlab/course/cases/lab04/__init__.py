"""Lab 04: manifest, exercises (offsets, own_queue, resets, once, rescue), your-turn tasks (tasks)."""

from mqlab.course.cases.lab04.manifest import MANIFEST

__all__ = ["MANIFEST"]

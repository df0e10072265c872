"""Lab 15: manifest, exercises (out_now, table, invisible, reviving), your-turn tasks (tasks)."""

from mqlab.course.cases.lab15.manifest import MANIFEST

__all__ = ["MANIFEST"]

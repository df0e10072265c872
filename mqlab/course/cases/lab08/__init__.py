"""Lab 08: manifest, exercises (delays, relay, cancelling, commits, counting), your-turn tasks (tasks)."""

from mqlab.course.cases.lab08.manifest import MANIFEST

__all__ = ["MANIFEST"]

"""Lab 08: manifest, exercises (delays, relay, cancelling, commits, counting), your-turn tasks (tasks)."""

from mqlab.teach.cases.lab08.manifest import MANIFEST

__all__ = ["MANIFEST"]

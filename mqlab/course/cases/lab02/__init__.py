"""Lab 02: manifest, exercises (believes, strategy, outbox, selector, scale_in), your-turn tasks."""

from mqlab.course.cases.lab02.manifest import MANIFEST

__all__ = ["MANIFEST"]

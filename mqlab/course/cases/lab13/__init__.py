"""Lab 13: manifest, exercises (when, whom, why, triage, repair, alarm), the tasks, and the days they are about."""

from mqlab.course.cases.lab13.manifest import MANIFEST

__all__ = ["MANIFEST"]

"""Lab 06: manifest, exercises about tags (collide, who_gets, detector), scans, SQL and a change of subscription."""

from mqlab.course.cases.lab06.manifest import MANIFEST

__all__ = ["MANIFEST"]

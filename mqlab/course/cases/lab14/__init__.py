"""Lab 14: manifest, exercises (following, shortening, first_step, findings), the book of rules and the clusters."""

from mqlab.course.cases.lab14.manifest import MANIFEST

__all__ = ["MANIFEST"]

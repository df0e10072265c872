"""Lab 01: manifest, the files that answers read (files), exercises."""

from mqlab.teach.cases.lab01.manifest import MANIFEST

__all__ = ["MANIFEST"]

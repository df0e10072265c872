"""Lab 05's your-turn tasks."""

from __future__ import annotations

from mqlab.teach.tasks import Task

TASKS: tuple[Task, ...] = ()

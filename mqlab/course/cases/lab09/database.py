"""The database of lab 09b: a query goes on in it, whether or not its caller still waits.

ask(message, context)     a query of a second; after LIMIT_MS its caller goes, and TimeoutError is raised
asked                     each call: when it came, how many waited for a slot then, when it ended, whether answered
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mqlab.course.kit.days import Played

DATABASE, SLOTS, QUERY_MS, LIMIT_MS, LOOK_MS = "database", 8, 1_000, 8_000, 50


class AskCall(NamedTuple):
    """One call of ``ask``, in ms of the Lab's clock."""

    msg_id: str
    came_ms: int
    waiting: int
    ended_ms: int
    answered: bool


@dataclass(slots=True)
class DatabaseDay(Played):
    """A day with the database. ``began_ms``: the traffic; ``fewer_ms`` to ``again_ms``: it had fewer slots."""

    asked: list[AskCall] = field(default_factory=list)
    began_ms: int = 0
    fewer_ms: int = 0
    again_ms: int = 0

    def opens(self) -> None:
        """The database gets its slots."""
        self.lab.resource(DATABASE, slots=SLOTS)

    def ask(self, message: Any, context: Any) -> None:
        """The query of one message; waits for its answer, LIMIT_MS at most. Raises TimeoutError."""
        database, came_ms = self.lab.resource(DATABASE), self.lab.now_ms

        def query() -> None:
            with database:
                context.sleep(QUERY_MS)

        waiting = database.waiting + (database.in_use >= database.slots)
        work = context.start(query)
        while not work.done and self.lab.now_ms < came_ms + LIMIT_MS:
            context.sleep(LOOK_MS)
        self.asked.append(AskCall(message.msg_id, came_ms, waiting, self.lab.now_ms, work.done))
        if not work.done:
            raise TimeoutError(f"the database has not answered within {LIMIT_MS // 1_000} s")

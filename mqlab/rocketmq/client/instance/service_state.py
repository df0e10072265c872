"""Whether a producer or consumer was started, runs, or was shut down.

Mirrors: ServiceState. Nothing leads back from SHUTDOWN_ALREADY: a program that goes on makes a new client.

    CREATE_JUST ─ start ─▶ START_FAILED ─ started ─▶ RUNNING ─ shut down ─▶ SHUTDOWN_ALREADY
         ▲                      │
         └────── refused ───────┘           the group is taken: nothing was sent, and it may be started again

START_FAILED is the state while a start is under way, as in RocketMQ: it is true unless RUNNING follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqlab.errors import ClientError
from mqlab.rocketmq.state_table import StateTable

CREATE_JUST, START_FAILED = "CREATE_JUST", "START_FAILED"
RUNNING, SHUTDOWN_ALREADY = "RUNNING", "SHUTDOWN_ALREADY"

SERVICE_STATES = StateTable(
    "the life of a producer or consumer",
    CREATE_JUST,
    [
        (CREATE_JUST, "start", START_FAILED),
        (START_FAILED, "refused", CREATE_JUST),
        (START_FAILED, "started", RUNNING),
        (RUNNING, "shut down", SHUTDOWN_ALREADY),
    ],
)


class ServiceState:
    """The state of one producer or consumer. ``is_running`` is kept next to it, because every pull asks for it."""

    __slots__ = ("is_running", "kind", "state")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.state = SERVICE_STATES.start
        self.is_running = False

    def move(self, event: str) -> None:
        """Go on to the next state of the table."""
        self.state = SERVICE_STATES[self.state, event]
        self.is_running = self.state == RUNNING

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Start within this block; an error in it leads back to CREATE_JUST. ClientError when it was started before."""
        self.must_be_new()
        self.move("start")
        try:
            yield
        except BaseException:
            self.move("refused")
            raise
        self.move("started")

    @property
    def was_started(self) -> bool:
        return self.state != CREATE_JUST

    def must_be_new(self) -> None:
        """ClientError when it was started before."""
        if self.was_started:
            raise ClientError(f"The {self.kind} service state not OK, maybe started once, {self.state}")

    def must_run(self) -> None:
        """ClientError when it is not running."""
        if not self.is_running:
            raise ClientError(
                f"The {self.kind} service state not OK, {self.state}",
                hint="start it first; what was shut down cannot be started again",
            )

    def __repr__(self) -> str:
        return f"<ServiceState {self.kind} {self.state}>"

"""The pulls of a group: what each asked for, how long the broker held it, with which filter it read, what came.

Mirrors: PullMessageProcessor and PullRequestHoldService, as seen from both ends of the connection.

    asked_ms ── request ──▶ arrived_ms ── held, until woken ──▶ left_ms ── answer ──▶ answered_ms
    from_offset             filter_text                         status, next_offset, found, kept

Everything is read from the journal, for consumers of every kind. Left out: steps that the journal has dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.codes import RequestCode, response_name
from mqlab.rocketmq.wire.names import RETRY_PREFIX

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import Journal, StepRecord

PULL_CODES = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


@dataclass(slots=True)
class Pull:
    """One pull; times in ms, offsets are queue offsets, None and "" while there is no answer.

    ``found`` are the offsets in the answer, ``kept`` those that the client did not drop itself. ``woken`` says why a
    held pull went on: "arrived" (a message passed its filter), "check" (every 5 s), "timeout"; None: it was not held.
    ``filter_text`` is the expression that the broker filtered with: of the request, else of the group's table.
    """

    group: str
    client: str
    topic: str
    queue_id: int
    asked_ms: int
    arrived_ms: int
    from_offset: int
    filter_text: str | None = None
    left_ms: int | None = None
    answered_ms: int | None = None
    status: str = ""
    next_offset: int | None = None
    found: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    woken: str | None = None


def pulls(journal: Journal, group: str, *, retries: bool = False) -> list[Pull]:
    """The pulls of a group in the order in which brokers got them; ``retries``: also those of its retry topic."""
    return _Reading(journal, group, retries).pulls


class _Reading:
    """One pass over a journal: requests wait for their answers, the group's table at each broker is followed."""

    def __init__(self, journal: Journal, group: str, retries: bool) -> None:
        self.pulls: list[Pull] = []
        self._group, self._retries = group, retries
        self._asked: dict[tuple[str, int], Pull] = {}
        self._subscriptions: dict[str, list[tuple[int, dict[str, str]]]] = {}  # broker -> since which step, table
        for record in journal:
            for change in record.of("subscription.changed"):
                if change.values["group"] == group:
                    table = change.values["subscriptions"]
                    self._subscriptions.setdefault(record.node, []).append((record.step, table))
            if record.about is not None and record.cause >= journal.dropped:
                self._frame(record, journal[record.cause])

    def _frame(self, record: StepRecord, cause: StepRecord) -> None:
        frame = record.about
        if frame.flag & 1:
            pull = self._asked.pop((record.node, frame.opaque), None)
            if pull is not None:
                self._answered(pull, record, cause)
        elif frame.code in PULL_CODES and frame.ext_fields.get("consumerGroup") == self._group:
            self._came(record, cause)

    def _came(self, record: StepRecord, cause: StepRecord) -> None:
        fields: dict[str, str] = record.about.ext_fields
        if fields["topic"].startswith(RETRY_PREFIX) and not self._retries:
            return
        own = fields.get("subscription") if int(fields["sysFlag"]) & sys_flag.PULL_SUBSCRIPTION else None
        pull = Pull(
            self._group,
            cause.node,
            fields["topic"],
            int(fields["queueId"]),
            cause.now_ms,
            record.now_ms,
            int(fields["queueOffset"]),
            own,
        )
        self.pulls.append(pull)
        self._asked[cause.node, record.about.opaque] = pull

    def _answered(self, pull: Pull, record: StepRecord, cause: StepRecord) -> None:
        # 1. The answer itself; an error has no offset.
        frame = record.about
        pull.left_ms, pull.answered_ms, pull.status = cause.now_ms, record.now_ms, response_name(frame.code)
        next_offset = frame.ext_fields.get("nextBeginOffset")
        pull.next_offset = None if next_offset is None else int(next_offset)
        # 2. A held pull is run again in the step that woke it, with what the group's table says then.
        for change in cause.of("pull.woken"):
            if (change.values["topic"], change.values["queue_id"]) == (pull.topic, pull.queue_id):
                pull.woken = change.values["why"]
        if pull.filter_text is None:
            pull.filter_text = self._table(cause).get(pull.topic)
        # 3. What the client made of it: it may drop messages whose tag only has an equal hash.
        kept = [offset for change in record.of("message.pulled") for offset in change.values["queue_offsets"]]
        dropped = [
            message["queue_offset"] for change in record.of("message.filtered") for message in change.values["messages"]
        ]
        pull.kept, pull.found = tuple(kept), tuple(sorted(kept + dropped))

    def _table(self, at: StepRecord) -> dict[str, str]:
        """The group's subscriptions at this broker in that step."""
        tables = self._subscriptions.get(at.node, [])
        return next((table for since, table in reversed(tables) if since <= at.step), {})

"""What is wrong with one message of a popping group. Its committed offset says "handed out": only leases tell the rest.

Mirrors: nothing of RocketMQ; these are its promises of POP. Used by verify.

    LOST           the broker settled its lease without an ack and without storing it again; or a client acknowledged
                   it after too many deliveries (POP has no dead letters), or before its listener was successful
    LEASED_TWICE   given out while another lease of it ran
    STUCK          its lease ended, or it was stored again, and for too long nothing came of it
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlab.counts import counted
from mqlab.lab.runtime.journal import StepRecord
from mqlab.lab.views.histories.message_deliveries import ACKED, REVIVED, RUNS, SETTLED, MessageHistory, MessageReader

LOST, LEASED_TWICE, STUCK = "LOST", "LEASED_TWICE", "STUCK"
Finding = tuple[str, StepRecord, str]
"""What is wrong, the step in which it begins, why"""


def lease_findings(
    message: MessageHistory, reader: MessageReader, last: StepRecord, stuck_after_ms: int
) -> Iterator[Finding]:
    """What is wrong with a message that was popped, apart from what is wrong with its deliveries."""
    twice, lease = message.leased_twice, message.leases[-1]
    if twice is not None:
        yield LEASED_TWICE, twice, f"{twice.node} gave it out again while another lease of it ran"
    if reader.good:
        return
    if message.given_up is not None:
        times = len(reader.deliveries)
        yield (
            LOST,
            message.given_up,
            f"{message.given_up.node} dropped it after {counted(times, 'deliveries')}: POP has no dead letters",
        )
        return
    if lease.how == SETTLED and lease.end is not None:
        why = f"its lease ended without an ack, and {lease.end.node} did not store it again"
        yield LOST, lease.end, why
    elif lease.how == ACKED and lease.end is not None and reader.deliveries:
        call = reader.deliveries[-1]
        if call.ended is not None:
            yield LOST, lease.end, f"acknowledged although {call.client} ended it with {call.status}"
    elif lease.how == REVIVED and lease.end is not None:
        waits_ms = last.now_ms - lease.end.now_ms
        if waits_ms > stuck_after_ms:
            yield STUCK, lease.end, f"stored again {waits_ms} ms ago, and nobody has popped it since"
    elif lease.how == RUNS:
        over_ms = last.now_ms - lease.until_ms
        if over_ms > stuck_after_ms:
            yield STUCK, lease.taken, f"its lease ended {over_ms} ms ago, and it has not come back"

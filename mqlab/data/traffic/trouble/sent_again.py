"""Messages whose answer is lost: stored, but their sender does not know, and sends them again seconds later.

Mirrors: DefaultMQProducer.send(message, selector, arg), called again with the same Message after a timeout.

    sent at t      stored, no answer within sendMsgTimeout        no Pub entry: the hook needs a result
    sent at t + 3 s the same UNIQ_KEY, body and queue, born again    one Pub entry, which names this unit

Left out: a sender that gives up; an answer that is lost twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mqlab.data.traffic.draws import Array, below
from mqlab.data.traffic.orders import Events

if TYPE_CHECKING:
    from mqlab.data.traffic.writing.store_state import WrittenStore

SEND_TIMEOUT_MS = 3_000
_LOST, _BEGIN_AGAIN_MS = 210, 400  # purpose of the draws; how long until the sender tries again, at most


def with_repeats(events: Events, senders: Array, end_ms: int, state: WrittenStore) -> tuple[Events, Array]:
    """The events with those that are sent again, by time, and for each the row in ``events`` of what was sent first.

    A message is not sent again after ``end_ms``, where the slice ends: those answers are not lost.
    """
    lost = np.zeros(len(events), bool)
    bits = np.zeros(len(events), np.uint64)
    for incident in state.incidents:
        if incident.kind == "lost_answer":
            bits = state.orders.draws.bits(_LOST, events.order * 8 + events.kind)
            inside = (events.born_ms >= incident.start_ms) & (events.born_ms < incident.end_ms)
            mine = inside & (senders == incident.client)
            lost |= mine & (below(bits, 0, 32, 100) < (incident.percent or 0))
    first = np.arange(len(events))
    if not lost.any():
        return events, first
    again_ms = events.born_ms + SEND_TIMEOUT_MS + below(bits, 32, 16, _BEGIN_AGAIN_MS)
    again = np.flatnonzero(lost & (again_ms < end_ms))
    first = np.concatenate((first, again))
    sent_ms = np.concatenate((events.born_ms, again_ms[again]))
    by_time = np.argsort(sent_ms, kind="stable")
    first = first[by_time]
    return Events(events.order[first], events.kind[first], sent_ms[by_time]), first


def repeated(first: Array) -> tuple[Array, Array]:
    """(the row of the first copy of each row's message, whether the send of the row was answered).

    >>> [column.tolist() for column in repeated(np.array([0, 1, 2, 1]))]
    [[0, 1, 2, 1], [True, False, True, True]]
    """
    rows = np.arange(len(first))
    first_row, last_row = np.full(len(first), len(first)), np.zeros(len(first), np.int64)
    np.minimum.at(first_row, first, rows)
    np.maximum.at(last_row, first, rows)
    return first_row[first], last_row[first] == rows

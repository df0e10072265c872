"""Where a queue that this group has not read yet begins.

Mirrors: RebalancePushImpl.computePullFromWhereWithException (and RebalanceLitePullImpl's).

    stored offset     LAST_OFFSET             FIRST_OFFSET     TIMESTAMP
    >= 0              that                    that             that
    -1, a topic       the broker's max        0                first message stored at or after the time
    -1, %RETRY%       0                       0                the broker's max
    -2                not now: the queue is not added, the next round asks again

-1 is the broker's "not found": for a young topic it answers 0 as a real offset, also under LAST_OFFSET.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client.consuming.offset_store import NOT_FOUND
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.settings import CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX

DEFAULT_TIMESTAMP_AGO_MS = 30 * 60 * 1000
_TIMESTAMP_TEXT = "%Y%m%d%H%M%S"


def timestamp_ms(text: str) -> int:
    """The moment that ``yyyyMMddHHmmss`` names, as ms since the epoch (UTC).

    >>> timestamp_ms("20260101000000")
    1767225600000
    """
    try:
        moment = datetime.strptime(text, _TIMESTAMP_TEXT)
    except (ValueError, TypeError) as problem:
        raise UsageError(
            f"consume_timestamp {text!r} is not a time", hint='yyyyMMddHHmmss, for example "20260101120000" (UTC)'
        ) from problem
    return math.floor(moment.replace(tzinfo=UTC).timestamp()) * 1000


@flow
def first_offset(
    cluster: ClusterAccess, queue: MessageQueue, stored: int, consume_from_where: str, consume_timestamp_ms: int
) -> Flow[int]:
    """The queue offset to pull first, given the stored commit offset (-1 none, below: could not be read)."""
    if stored >= 0:
        return stored
    if stored != NOT_FOUND:
        raise ClientError(
            f"Failed to query consume offset from offset store: {queue}",
            hint="the broker did not answer; asked again soon",
        )
    is_retry = queue.topic.startswith(RETRY_PREFIX)
    if consume_from_where == CONSUME_FROM_FIRST_OFFSET:
        return 0
    if consume_from_where == CONSUME_FROM_TIMESTAMP and not is_retry:
        offset: int = yield search_offset(cluster, queue, consume_timestamp_ms)
        return offset
    if consume_from_where != CONSUME_FROM_TIMESTAMP and is_retry:
        return 0
    largest: int = yield max_offset(cluster, queue)
    return largest


@flow
def max_offset(cluster: ClusterAccess, queue: MessageQueue) -> Flow[int]:
    """The queue offset the next message will get, asked of the master."""
    address = yield cluster.find_master(queue)
    offset: int = yield cluster.calls.max_offset(address, queue, cluster.config.mq_client_api_timeout)
    return offset


@flow
def min_offset(cluster: ClusterAccess, queue: MessageQueue) -> Flow[int]:
    """The smallest queue offset still stored, asked of the master."""
    address = yield cluster.find_master(queue)
    offset: int = yield cluster.calls.min_offset(address, queue, cluster.config.mq_client_api_timeout)
    return offset


@flow
def search_offset(cluster: ClusterAccess, queue: MessageQueue, at_ms: int, boundary: str = "LOWER") -> Flow[int]:
    """The first queue offset stored at or after a time (``boundary="UPPER"``: the last at or before it)."""
    address = yield cluster.find_master(queue)
    timeout_ms = cluster.config.mq_client_api_timeout
    offset: int = yield cluster.calls.search_offset(address, queue, at_ms, timeout_ms, boundary)
    return offset

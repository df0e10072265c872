"""Where a queue that this group has not read yet begins.

Mirrors: RebalancePushImpl.computePullFromWhereWithException (and RebalanceLitePullImpl's). Lab 04 predicts it.

    stored offset     LAST_OFFSET             FIRST_OFFSET     TIMESTAMP
    >= 0              that                    that             that
    -1, a topic       the broker's max        0                first message stored at or after the time
    -1, %RETRY%       0                       0                the broker's max
    -2                not now: the queue is not added, the next round asks again

"Not found" is the broker's word: for a young topic it answers 0 as a real offset, also under LAST_OFFSET.
Left out: nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mqlab.client.consuming.offset_store import NOT_FOUND
from mqlab.client.settings import CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP
from mqlab.errors import ClientError, UsageError
from mqlab.promises import Flow, flow
from mqlab.wire.message import MessageQueue
from mqlab.wire.names import RETRY_PREFIX

if TYPE_CHECKING:
    from mqlab.client.instance.mq_client import MQClient

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
    return int(moment.replace(tzinfo=UTC).timestamp()) * 1000


@flow
def first_offset(
    client: MQClient, queue: MessageQueue, stored: int, consume_from_where: str, consume_timestamp_ms: int
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
        found: int = yield search_offset(client, queue, consume_timestamp_ms)
        return found
    if consume_from_where != CONSUME_FROM_TIMESTAMP and is_retry:
        return 0
    largest: int = yield max_offset(client, queue)
    return largest


@flow
def max_offset(client: MQClient, queue: MessageQueue) -> Flow[int]:
    """The queue offset the next message will get, asked of the master."""
    address = yield client.find_master(queue)
    offset: int = yield client.calls.max_offset(address, queue, client.config.mq_client_api_timeout)
    return offset


@flow
def min_offset(client: MQClient, queue: MessageQueue) -> Flow[int]:
    """The smallest queue offset still stored, asked of the master."""
    address = yield client.find_master(queue)
    offset: int = yield client.calls.min_offset(address, queue, client.config.mq_client_api_timeout)
    return offset


@flow
def search_offset(client: MQClient, queue: MessageQueue, at_ms: int, boundary: str = "LOWER") -> Flow[int]:
    """The first queue offset stored at or after a time (``boundary="UPPER"``: the last at or before it)."""
    address = yield client.find_master(queue)
    offset: int = yield client.calls.search_offset(address, queue, at_ms, client.config.mq_client_api_timeout, boundary)
    return offset

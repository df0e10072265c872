"""Check points and acks as messages: they ask for a delivery time and come to the revive topic when a lease is over.

Mirrors: the message builders of PopMessageProcessor, PopBufferMergeService, AckMessageProcessor.

              tag    queue                           TIMER_DELIVER_MS
    ck        ck     one per request, in turn        end of the lease - 1 s
    ack       ack    that of the handle              end of the lease
    several   bAck   that of the handle              end of the lease
"""

from __future__ import annotations

from mqlab.rocketmq.broker.putting import STORED_CODES, Putter
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.pop import ACK_TAG, BATCH_ACK_TAG, CK_TAG, Ack, CheckPoint
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record

ACK_TIME_INTERVAL_MS = 1_000
NEW_MAP_CAPACITY = 16


class ReviveLog:
    """Writes them. ``topic`` is the revive topic of this broker's cluster."""

    def __init__(self, state: BrokerState, putter: Putter) -> None:
        self._state = state
        self._putter = putter
        self.topic = names.REVIVE_LOG_PREFIX + state.config.broker_cluster_name

    def put_check_point(self, check_point: CheckPoint, revive_queue: int) -> bool:
        """Store a check point; False when the store refused it."""
        deliver_ms = check_point.revive_time - ACK_TIME_INTERVAL_MS
        result = self._put(check_point.encode(), revive_queue, CK_TAG, deliver_ms, check_point.unique_key)
        self._state.ports.note(
            "pop.check_point_stored",
            group=check_point.group,
            topic=check_point.topic,
            queue_id=check_point.queue_id,
            start_offset=check_point.start_offset,
            count=check_point.count,
            pop_time=check_point.pop_time,
            revive_time=check_point.revive_time,
            revive_queue=revive_queue,
            stored=result.status in STORED_CODES,
        )
        return result.status in STORED_CODES

    def put_ack(self, ack: Ack, revive_queue: int, visible_ms: int, *, from_buffer: bool = False) -> bool:
        """Store an ack of one offset or of several; False when the store refused it."""
        tag = ACK_TAG if ack.offsets is None else BATCH_ACK_TAG
        key = ack.batch_unique_key if from_buffer and ack.offsets is not None else ack.unique_key
        result = self._put(ack.encode(), revive_queue, tag, visible_ms, key)
        self._state.ports.note(
            "pop.ack_stored",
            group=ack.group,
            topic=ack.topic,
            queue_id=ack.queue_id,
            offsets=ack.acknowledged,
            pop_time=ack.pop_time,
            stored=result.status in STORED_CODES,
        )
        return result.status in STORED_CODES

    def _put(self, body: bytes, queue_id: int, tag: str, deliver_ms: int, unique_key: str) -> PutResult:
        host = self._state.identity.store_host
        property_map = {p.TAGS: tag, p.TIMER_DELIVER_MS: str(deliver_ms), p.UNIQ_KEY: unique_key}
        return self._putter.put_own(
            Record(
                self.topic,
                body,
                queue_id,
                born_timestamp=self._state.now_ms(),
                born_host=host,
                store_host=host,
                properties=encode_as_java(property_map, NEW_MAP_CAPACITY),
            )
        )

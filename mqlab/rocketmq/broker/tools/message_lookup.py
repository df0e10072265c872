"""Finds a message by its offset id, its unique key or a business key.

Mirrors: QueryMessageProcessor.

    VIEW_MESSAGE_BY_ID    offset (from the offset id)    the message; SYSTEM_ERROR if there is none
    QUERY_MESSAGE         topic, key, time, limit        messages whose key has this hash (clients compare keys);
                                                         QUERY_NOT_FOUND if there is none
                          _UNIQUE_KEY_QUERY=true         the limit is 32
"""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, truth, whole, whole_long
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
DEFAULT_QUERY_MAX_NUM = 32


class MessageLookup:
    """Handlers of the requests that look for messages."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def view_message_by_id(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """VIEW_MESSAGE_BY_ID."""
        physical_offset = whole_long(request, "offset")
        message = self._state.store.message_at(physical_offset)
        if message is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {physical_offset}")
        return request.reply(body=record.encode(message))

    def query_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """QUERY_MESSAGE."""
        limit = DEFAULT_QUERY_MAX_NUM if truth(request, UNIQUE_KEY_QUERY) else whole(request, "maxNum")
        result = self._state.store.query(
            text(request, "topic"),
            text(request, "key"),
            max_nums=limit,
            begin_ms=whole_long(request, "beginTimestamp"),
            end_ms=whole_long(request, "endTimestamp"),
        )
        read_up_to: dict[str, Any] = {
            "indexLastUpdateTimestamp": result.index_last_update_timestamp,
            "indexLastUpdatePhyoffset": result.index_last_update_phyoffset,
        }
        if not result.records:
            remark = "can not find message, maybe time range not correct"
            raise Refused(ResponseCode.QUERY_NOT_FOUND, remark, **read_up_to)
        return request.reply(body=b"".join(record.encode(unit) for unit in result.records), **read_up_to)

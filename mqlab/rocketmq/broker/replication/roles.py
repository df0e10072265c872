"""What the role of a broker changes: its id, its share of memory, and which requests it refuses.

Mirrors: the checks of BrokerStartup, and rejectRequest of SendMessageProcessor and PullMessageProcessor.

    ASYNC_MASTER, SYNC_MASTER    broker id 0, whatever is configured
    SLAVE                        broker id above 0; its share of memory is 10 per cent smaller

    request to a slave           answer
    the four kinds of sends      SYSTEM_BUSY  [REJECTREQUEST]…
    the two kinds of pulls       SYSTEM_BUSY, unless slaveReadEnable
    END_TRANSACTION              SLAVE_NOT_AVAILABLE
    resets of offsets            SYSTEM_ERROR (tools/offset_resets)

Left out: acting masters (enableSlaveActingMaster).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Answering, Refused
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import NOT_SET, RemotingCommand
from mqlab.rocketmq.wire.names import MASTER_ID

REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"
SLAVE_MEMORY_RATIO_LESS = 10
SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
)
PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


def settings_of_role(config: BrokerConfig, store: StoreConfig) -> tuple[BrokerConfig, StoreConfig]:
    """The settings of a broker with this role. Raises UsageError for a slave without an id of its own."""
    if not store.is_slave:
        return dataclasses.replace(config, broker_id=MASTER_ID), store
    if config.broker_id <= MASTER_ID:
        raise UsageError(
            f"Slave's brokerId must be > 0, not {config.broker_id}",
            hint="broker_id=1 for the first slave of a broker_name, 2 for the second",
        )
    ratio = store.access_message_in_memory_max_ratio - SLAVE_MEMORY_RATIO_LESS
    return config, dataclasses.replace(store, access_message_in_memory_max_ratio=ratio)


def handlers_of_role(state: BrokerState, handlers: Mapping[RequestCode, Answering]) -> Mapping[RequestCode, Answering]:
    """The handlers of a broker with this role: a slave refuses some of the requests."""
    if not state.identity.is_slave:
        return handlers

    # SYSTEM_BUSY makes a producer try another broker.
    def reject(channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        raise Refused(ResponseCode.SYSTEM_BUSY, REJECTED)

    def pull(channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        if not state.config.slave_read_enable:
            raise Refused(ResponseCode.SYSTEM_BUSY, REJECTED)
        return handlers[RequestCode(request.code)](channel, request, reply)

    def end_transaction(channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        raise Refused(ResponseCode.SLAVE_NOT_AVAILABLE, NOT_SET)

    return {
        **handlers,
        **dict.fromkeys(SENDS, reject),
        **dict.fromkeys(PULLS, pull),
        RequestCode.END_TRANSACTION: end_transaction,
    }

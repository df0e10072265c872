"""What a slave and an operator ask about the timer.

Mirrors: AdminBrokerProcessor; GET_TIMER_CHECK_POINT and GET_TIMER_METRICS.
"""

from __future__ import annotations

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.store.timer import TimerMessageStore
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand


class TimerQueries:
    """Handlers of the two requests."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_timer_check_point(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TIMER_CHECK_POINT: the 56 bytes of the check file."""
        return request.reply(body=self._timer("The checkpoint is null").check_point())

    def get_timer_metrics(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_TIMER_METRICS: the text of the metrics file."""
        return request.reply(body=self._timer("The timer message store is null").metrics.encode().encode("utf-8"))

    def _timer(self, without: str) -> TimerMessageStore:
        if self._state.timer is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, without)
        return self._state.timer

"""A slave copies what is not in the log from its master: topics, consumer offsets, delay offsets and groups.

Mirrors: SlaveSynchronize and BrokerController.syncBroker.

    10 s, 13 s, 16 s …     a check: has it been more than 60 s since the last round? So rounds are at 61 s, 124 s, 187 s
    a round                GET_ALL_TOPIC_CONFIG                  replaces the own table if the versions differ
                           GET_ALL_CONSUMER_OFFSET               each topic@group of the master replaces the own one
                           GET_ALL_DELAY_OFFSET                  replaces the own offsets
                           GET_ALL_SUBSCRIPTIONGROUP_CONFIG      replaces the own table if the versions differ

Without a known master nothing is copied. What clients change at the slave is replaced by the next round.

Left out: message request modes (402, POP), the checkpoint and the metrics of the timer wheel (60, 61).
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.errors import MqlabError
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.remoting.endpoint import Remoting
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode, request_name
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.command import request as make_request

FIRST_LOOK_MS = 10_000
LOOK_PERIOD_MS = 3_000
SYNC_AFTER_MS = 60_000
TIMEOUT_MS = 3_000


class SlaveSynchronize:
    """Copies tables to one slave. ``master_address`` is that of the master's normal port, None while it is unknown."""

    def __init__(self, state: BrokerState, remoting: Remoting) -> None:
        self._state = state
        self._remoting = remoting
        self._deadline: Deadline | None = None
        self._started_ms = 0
        self.master_address: str | None = None
        self.rounds = 0

    def start(self) -> None:
        """Begin the rounds."""
        self._started_ms = self._state.now_ms()
        self._arm()

    def stop(self) -> None:
        """Begin no more rounds."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _arm(self) -> None:
        earliest_ms = self._state.now_ms() + SYNC_AFTER_MS + 1
        due_ms = next_on_grid(earliest_ms, LOOK_PERIOD_MS, self._started_ms + FIRST_LOOK_MS)
        self._deadline = self._state.ports.clock.call_at(due_ms, self._tick, "slave.synchronize")

    def _tick(self) -> None:
        self.sync_all()
        self._arm()

    @flow
    def sync_all(self) -> Flow[None]:
        """Do one round; a table that could not be copied is left for the next round."""
        state, address = self._state, self.master_address
        if address is None or address == state.identity.address:
            return
        self.rounds += 1
        # One table after the other, so that a round is never more than one request at a time.
        yield self._copy(address, RequestCode.GET_ALL_TOPIC_CONFIG, state.topics.take_over)
        yield self._copy(address, RequestCode.GET_ALL_CONSUMER_OFFSET, state.offset_table.take_over)
        yield self._copy(address, RequestCode.GET_ALL_DELAY_OFFSET, state.delay_offset_table.take_over)
        yield self._copy(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, state.groups.take_over)

    @flow
    def _copy(self, address: str, code: RequestCode, take_over: Callable[[str], bool]) -> Flow[None]:
        ports = self._state.ports
        try:
            answer: RemotingCommand = yield self._remoting.invoke(address, make_request(code), TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS:
                ports.note("slave.synchronize_failed", what=request_name(code), error=f"{answer.code}: {answer.remark}")
                return
            changed = take_over((answer.body or b"").decode("utf-8"))
        except (MqlabError, UnicodeDecodeError) as error:
            ports.note("slave.synchronize_failed", what=request_name(code), error=str(error))
            return
        if changed:
            ports.note("slave.synchronized", what=request_name(code), master=address)

    def __repr__(self) -> str:
        return f"<SlaveSynchronize from {self.master_address}: {self.rounds} rounds>"

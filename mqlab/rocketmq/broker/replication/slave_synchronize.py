"""A slave copies what is not in the log from its master: topics, consumer offsets, delay offsets and groups.

Mirrors: SlaveSynchronize and BrokerController.syncBroker.

    10 s, 13 s, 16 s …     a check: has it been more than 60 s since the last round? So rounds are at 61 s, 124 s, 187 s
    a round                GET_ALL_TOPIC_CONFIG                  replaces the own table if the versions differ
                           GET_ALL_CONSUMER_OFFSET               each topic@group of the master replaces the own one
                           GET_ALL_DELAY_OFFSET                  replaces the own offsets
                           GET_ALL_SUBSCRIPTIONGROUP_CONFIG      replaces the own table if the versions differ

    every 3 s                GET_TIMER_CHECK_POINT                 while timed messages are in the log: how far the
                                                                   master's wheel is; GET_TIMER_METRICS once a round

Without a known master nothing is copied. What clients change at the slave is replaced by the next round.

Left out: message request modes (402, POP).
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
        self._timer_deadline: Deadline | None = None

    def start(self) -> None:
        """Begin the rounds."""
        self._started_ms = self._state.now_ms()
        self._arm()

    def stop(self) -> None:
        """Begin no more rounds."""
        for deadline in (self._deadline, self._timer_deadline):
            if deadline is not None:
                deadline.cancel()
        self._deadline = self._timer_deadline = None

    def follow_timer(self) -> None:
        """Ask for the master's timer check point at the next 3 s, while this slave has timed messages."""
        timer = self._state.timer
        if self._timer_deadline is not None or self._deadline is None or timer is None or not timer.is_waiting:
            return
        due_ms = next_on_grid(self._state.now_ms() + 1, LOOK_PERIOD_MS, self._started_ms)
        clock = self._state.ports.clock
        self._timer_deadline = clock.call_at(due_ms, self._ask_for_check_point, "slave.synchronize")

    def _ask_for_check_point(self) -> None:
        self._timer_deadline = None
        address, timer = self.master_address, self._state.timer
        if address is not None and timer is not None:
            self._copy(address, RequestCode.GET_TIMER_CHECK_POINT, timer.take_over_check_point)
        self.follow_timer()

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
        yield self._copy(address, RequestCode.GET_ALL_TOPIC_CONFIG, _of_text(state.topics.take_over))
        yield self._copy(address, RequestCode.GET_ALL_CONSUMER_OFFSET, _of_text(state.offset_table.take_over))
        yield self._copy(address, RequestCode.GET_ALL_DELAY_OFFSET, _of_text(state.delay_offset_table.take_over))
        yield self._copy(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _of_text(state.groups.take_over))
        if state.timer is not None and state.timer.is_waiting:
            yield self._copy(address, RequestCode.GET_TIMER_METRICS, _of_text(state.timer.take_over_metrics))

    @flow
    def _copy(self, address: str, code: RequestCode, take_over: Callable[[bytes], bool]) -> Flow[None]:
        ports = self._state.ports
        try:
            answer: RemotingCommand = yield self._remoting.invoke(address, make_request(code), TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS:
                ports.note("slave.synchronize_failed", what=request_name(code), error=f"{answer.code}: {answer.remark}")
                return
            changed = take_over(answer.body or b"")
        except (MqlabError, UnicodeDecodeError) as error:
            ports.note("slave.synchronize_failed", what=request_name(code), error=str(error))
            return
        if changed:
            ports.note("slave.synchronized", what=request_name(code), master=address)

    def __repr__(self) -> str:
        return f"<SlaveSynchronize from {self.master_address}: {self.rounds} rounds>"


def _of_text(take_over: Callable[[str], bool]) -> Callable[[bytes], bool]:
    """A table that is taken over from a text, as one that is taken over from the body of an answer."""
    return lambda body: take_over(body.decode("utf-8"))

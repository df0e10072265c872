"""Leases of push consumers: extended while the client works, and given up when it is gone.

Mirrors: DefaultReceiptHandleManager, RenewStrategyPolicy. In 5.3.3 its timer is never started; here it runs, unless
the front is told to be as in 5.3.3.

    received with auto_renew ──▶ kept; every 5 s a lease that ends within 10 s is changed
                                 to 1, 3, 5, 10, 30 min, 1 h …, by the number of renewals
    3 h after it was received, or after 3 failures ──▶ the message comes again as the group's retry policy says
    the client has ended or fallen silent          ──▶ its messages come again in a second

An ack names the handle that was received; ``taken`` says which one is valid now.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.cluster.grpc.clients import GrpcClient
from mqlab.cluster.grpc.codes import ProxyRefusal, StatusError
from mqlab.cluster.grpc.handles import ReceiptHandle
from mqlab.cluster.grpc.settings import backoff_ms
from mqlab.cluster.grpc.state import FrontState
from mqlab.rocketmq.ports import Deadline
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long

SCAN_MS = 5_000
AHEAD_MS = 10_000
LONGEST_MS = 10_800_000
MOST_FAILURES = 3
STEPS_MS = tuple(minutes * 60_000 for minutes in (1, 3, 5, 10, 30, 60))
AFTER_THE_END_MS = 1_000

Key = tuple[str, str, str, str, tuple[str, int, int, str]]


@dataclass(slots=True, eq=False)
class RenewedLease:
    """One message that a push consumer works on. ``since_ms``: when it was received."""

    client: GrpcClient
    group: str
    topic: str
    message_id: str
    handle: ReceiptHandle
    reconsume_times: int
    since_ms: int
    renewals: int = 0
    failures: int = 0
    is_changing: bool = False

    @property
    def key(self) -> Key:
        """What finds it, by any handle of the message."""
        return self.client.client_id, self.group, self.topic, self.message_id, self.handle.lease


class Renewing:
    """The leases that are kept."""

    def __init__(self, state: FrontState) -> None:
        self._state = state
        self._leases: dict[Key, RenewedLease] = {}
        self._scan: Deadline | None = None
        state.clients.gone.subscribe(self.give_up)

    def __len__(self) -> int:
        return len(self._leases)

    def keep(self, lease: RenewedLease) -> None:
        """Renew the lease of a message until it is taken."""
        self._leases[lease.key] = lease
        self._arm()

    def taken(
        self, client: GrpcClient, group: str, topic: str, message_id: str, handle: ReceiptHandle
    ) -> ReceiptHandle | None:
        """The handle that is valid now, for a message that the client is done with; None for one that is not kept."""
        lease = self._leases.pop((client.client_id, group, topic, message_id, handle.lease), None)
        return None if lease is None else lease.handle

    @flow
    def change(
        self, client: GrpcClient, group: str, topic: str, handle: ReceiptHandle, invisible_ms: int
    ) -> Flow[ReceiptHandle]:
        """Let a message stay invisible for that long from now; its new handle. ProxyRefusal when the broker refuses."""
        answer: RemotingCommand = yield self._state.clients.ask(
            client,
            self._state.brokers.named(handle.pop.broker_name),
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            consumerGroup=group,
            topic=handle.topic_of(topic, group),
            queueId=handle.pop.queue_id,
            extraInfo=handle.pop.text,
            offset=handle.pop.queue_offset,
            invisibleTime=invisible_ms,
        )
        if answer.code != ResponseCode.SUCCESS:
            raise ProxyRefusal(answer.remark or str(answer.code))
        fields = answer.ext_fields
        return handle.changed(
            parse_long(fields["popTime"]), parse_long(fields["invisibleTime"]), parse_int(fields["reviveQid"])
        )

    def give_up(self, client: GrpcClient) -> None:
        """A client is gone: what it worked on comes again soon."""
        for key, lease in [item for item in self._leases.items() if item[1].client is client]:
            del self._leases[key]
            if lease.handle.pop.visible_ms > self._state.now_ms():  # else it has come again
                self.change(client, lease.group, lease.topic, lease.handle, AFTER_THE_END_MS)

    def close(self) -> None:
        """Renew nothing more."""
        self._leases.clear()
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None

    def _arm(self) -> None:
        if self._scan is None and self._leases and not self._state.config.as_in_5_3_3:
            self._scan = self._state.ports.clock.call_later(SCAN_MS, self._look, "grpc.renew")

    def _look(self) -> None:
        self._scan = None
        now_ms = self._state.now_ms()
        for lease in list(self._leases.values()):
            if lease.handle.pop.visible_ms <= now_ms:
                del self._leases[lease.key]  # too late: the message comes again
            elif lease.handle.pop.visible_ms - now_ms <= AHEAD_MS and not lease.is_changing:
                self._renew(lease, now_ms)
        self._arm()

    @flow
    def _renew(self, lease: RenewedLease, now_ms: int) -> Flow[None]:
        is_over = now_ms - lease.since_ms >= LONGEST_MS or lease.failures >= MOST_FAILURES
        invisible_ms = STEPS_MS[min(lease.renewals, len(STEPS_MS) - 1)]
        if is_over:
            self._leases.pop(lease.key, None)
            group = self._state.brokers.named(lease.handle.pop.broker_name).groups.find(lease.group)
            invisible_ms = AFTER_THE_END_MS if group is None else backoff_ms(group, lease.reconsume_times)
        lease.is_changing = True
        try:
            lease.handle = yield self.change(lease.client, lease.group, lease.topic, lease.handle, invisible_ms)
            lease.renewals += 1
        except StatusError:
            lease.failures += 1
        finally:
            lease.is_changing = False

"""The front: its parts put together, and which of them answers which RPC.

Mirrors: GrpcMessagingApplication, DefaultGrpcMessagingActivity.

    answer("SendMessage", request, caller) ─▶ Promise of the response      refusals are statuses, never exceptions
    receive(request, caller)               ─▶ Promise of Received           a stream when it is sent
    telemetry.take(command, caller, send)                                   a stream in both directions

It knows nothing of HTTP/2: service makes calls of it, and tests play conversations with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mqlab.cluster.grpc.clients import Caller, GrpcClient, GrpcClients
from mqlab.cluster.grpc.codes import Code, StatusError
from mqlab.cluster.grpc.leasing import Leasing
from mqlab.cluster.grpc.local_brokers import LocalBrokers, LocalLink
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.receiving import Received, Receiving
from mqlab.cluster.grpc.renewing import Renewing
from mqlab.cluster.grpc.routing import Routing
from mqlab.cluster.grpc.sending import FrontSending
from mqlab.cluster.grpc.state import FrontConfig, FrontState
from mqlab.cluster.grpc.telemetry import Telemetry
from mqlab.cluster.grpc.transactions import OpenTransactions
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.command import RemotingCommand

Answering = Callable[[Any, Caller], Any]

RECEIVE, TELEMETRY = "ReceiveMessage", "Telemetry"
NOT_IMPLEMENTED = ("PullMessage", "UpdateOffset", "GetOffset", "QueryOffset")
"""RPCs of the protocol that RocketMQ 5.3.3 does not answer."""


class GrpcFront:
    """The front of some brokers of this process."""

    def __init__(self, ports: Ports, brokers: Iterable[Broker], config: FrontConfig) -> None:
        self._ports = ports
        local = LocalBrokers(brokers)
        self.state = FrontState(ports, config, local, GrpcClients(ports, local, self._asked_by_broker))
        self.transactions = OpenTransactions(self.state)
        self.telemetry = Telemetry(self.state, self.transactions)
        self.renewing = Renewing(self.state)
        leasing = Leasing(self.state, self.renewing)
        self._receiving = Receiving(self.state, leasing, self.renewing)
        sending, routing = FrontSending(self.state, self.transactions), Routing(self.state)
        self.rpcs: Mapping[str, Answering] = {
            "QueryRoute": routing.query_route,
            "Heartbeat": self.telemetry.heartbeat,
            "SendMessage": sending.send_message,
            "QueryAssignment": routing.query_assignment,
            "AckMessage": leasing.ack_message,
            "ForwardMessageToDeadLetterQueue": leasing.forward_to_dead_letters,
            "EndTransaction": self.transactions.end_transaction,
            "NotifyClientTermination": self.telemetry.terminated,
            "ChangeInvisibleDuration": leasing.change_invisible_duration,
            "RecallMessage": sending.recall_message,
        }

    def _asked_by_broker(self, client: GrpcClient, link: LocalLink, request: RemotingCommand) -> None:
        self.telemetry.asked_by_broker(client, link, request)

    @flow
    def answer(self, rpc: str, request: Any, caller: Caller) -> Flow[Any]:
        """The response to a call of one of ``rpcs``."""
        try:
            result = self.rpcs[rpc](request, caller)
            if isinstance(result, Promise):
                result = yield result
            return result
        except StatusError as refusal:
            return refused(rpc, refusal)
        except Exception as error:  # a front answers whatever its parts raise, as the broker's handlers do
            import traceback  # here: most fronts never need it

            self._ports.note("handler.failed", code=rpc, error=traceback.format_exc())
            return refused(rpc, StatusError(Code.INTERNAL_SERVER_ERROR, f"{error}. {type(error).__name__}"))

    def receive(self, request: Any, caller: Caller) -> Promise[Received]:
        """The stream of a ReceiveMessage."""
        return self._receiving.receive_message(request, caller)

    def give_back(self, received: Received) -> None:
        """What was received did not reach its client."""
        self._receiving.give_back(received)

    def close(self) -> None:
        """End with the brokers: no lease is renewed, no client is watched."""
        self.renewing.close()
        self.state.clients.close()

    def __repr__(self) -> str:
        return f"<GrpcFront {len(self.state.clients)} clients, {len(self.renewing)} leases>"


def refused(rpc: str, refusal: StatusError) -> Any:
    """The response of an RPC that says no more than its status."""
    return make(f"{rpc}Response", status=refusal.status)

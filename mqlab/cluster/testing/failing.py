"""The next requests of a kind are answered with an error, whichever client asks.

Mirrors: nothing of RocketMQ; a test wants to see what its program does then.

    failing.next("SendMessage", 2)     two sends over gRPC, or over remoting (SEND_MESSAGE, SEND_MESSAGE_V2, …)
    failing.next("PULL_MESSAGE", 1)    one request of RocketMQ's other clients, by the name of its code
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.cluster.grpc.front import RECEIVE, TELEMETRY
from mqlab.errors import UsageError, did_you_mean
from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.long_polling import HeldPulls
from mqlab.rocketmq.broker.plug_in import PlugIn
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Reply
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode, request_name
from mqlab.rocketmq.wire.command import RemotingCommand

RPCS: Mapping[str, tuple[RequestCode, ...]] = {
    "SendMessage": (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE),
    RECEIVE: (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE),
    "AckMessage": (RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE),
    "ChangeInvisibleDuration": (RequestCode.CHANGE_MESSAGE_INVISIBLETIME,),
    "ForwardMessageToDeadLetterQueue": (),
    "EndTransaction": (RequestCode.END_TRANSACTION,),
    "RecallMessage": (RequestCode.RECALL_MESSAGE,),
    "Heartbeat": (RequestCode.HEART_BEAT,),
    "QueryAssignment": (RequestCode.QUERY_ASSIGNMENT,),
    "QueryRoute": (),
    "NotifyClientTermination": (RequestCode.UNREGISTER_CLIENT,),
    TELEMETRY: (),
}
"""The RPCs, and which requests over remoting are the same."""
RPC_OF: Mapping[int, str] = {code: rpc for rpc, codes in RPCS.items() for code in codes}


class Failing(PlugIn):
    """What is to fail, and a broker's handlers that do. Only for the loop's own thread, but for ``next``'s refusals."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._codes: frozenset[str] = frozenset()

    def handlers(
        self, state: BrokerState, held_pulls: HeldPulls, broadcast: BroadcastOffsets, table: Mapping[int, Handler]
    ) -> Mapping[int, Handler]:
        """The broker's handlers, each of which asks first whether it is to fail."""
        self._codes = frozenset(map(request_name, table))
        return {code: self._failing(handler) for code, handler in table.items()}

    def must_know(self, name: str) -> None:
        """Raise UsageError for a name that is neither an RPC nor a request that the broker answers."""
        if name not in RPCS and name not in self._codes:
            near = did_you_mean(name, (*RPCS, *sorted(self._codes)), f"RPCs: {', '.join(RPCS)}; or PULL_MESSAGE …")
            raise UsageError(f"{name!r} is neither an RPC nor a request code of the broker", hint=near)

    def next(self, name: str, times: int) -> None:
        """Let the next calls fail."""
        self._left[name] = times

    def clear(self) -> None:
        """Let nothing fail."""
        self._left.clear()

    def takes(self, name: str) -> bool:
        """Whether this call fails; it is counted."""
        left = self._left.get(name, 0)
        if left:
            self._left[name] = left - 1
        return left > 0

    def _failing(self, handler: Handler) -> Handler:
        def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
            for name in (request_name(request.code), RPC_OF.get(request.code)):
                if name is not None and self.takes(name):
                    reply(request.reply(ResponseCode.SYSTEM_ERROR, f"{name} was told to fail"))
                    return
            handler(channel, request, reply)

        return handle

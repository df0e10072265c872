"""Telemetry: settings that clients report, and what the front asks them over the same stream.

Mirrors: ClientActivity, TelemetryStreamObserver, GrpcClientChannel.

    client ── settings ──▶ merged, kept, answered at once; the client becomes a member of its groups
           ── thread stack, result of a verified message ──▶ the tool that asked
    front  ── recover_orphaned_transaction, print_thread_stack_trace, verify_message ──▶ client

The stream of a client is its latest one. A broken rule ends the stream with an error, unlike everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.cluster.grpc import conversion
from mqlab.cluster.grpc.clients import Caller, GrpcClient
from mqlab.cluster.grpc.codes import ClientType, Code, StatusError, ok
from mqlab.cluster.grpc.local_brokers import LocalLink
from mqlab.cluster.grpc.messages import make
from mqlab.cluster.grpc.settings import merged
from mqlab.cluster.grpc.state import FrontState, checked_group, checked_topic
from mqlab.cluster.grpc.transactions import OpenTransactions
from mqlab.rocketmq.wire import java_json, record
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.names import group_problem

CONSUMED = {Code.OK: "CR_SUCCESS", Code.FAILED_TO_CONSUME_MESSAGE: "CR_LATER", Code.MESSAGE_CORRUPTED: "CR_RETURN_NULL"}


class Telemetry:
    """Both directions of the streams."""

    def __init__(self, state: FrontState, transactions: OpenTransactions) -> None:
        self._state = state
        self._transactions = transactions
        self._nonces = 0

    def take(self, command: Any, caller: Caller, send: Callable[[Any], None]) -> None:
        """One command of a client; ``send`` writes to its stream. StatusError ends the stream."""
        client = self._state.clients.of(caller)
        if command.HasField("settings"):
            self._settings(client, command.settings, send)
        elif command.HasField("thread_stack_trace"):
            answered = command.thread_stack_trace
            self._answered(client, answered.nonce, command.status, answered)
        elif command.HasField("verify_message_result"):
            answered = command.verify_message_result
            self._answered(client, answered.nonce, command.status, answered)

    def closed(self, caller: Caller, send: Callable[[Any], None]) -> None:
        """A stream has ended; a newer one of the same client stays."""
        for client in self._state.clients:
            if client.client_id == caller.client_id and client.send is send:
                client.send = None

    def _settings(self, client: GrpcClient, settings: Any, send: Callable[[Any], None]) -> None:
        if not (settings.HasField("publishing") or settings.HasField("subscription")):
            text = "there is no publishing or subscription data in settings"
            raise StatusError(Code.UNRECOGNIZED_CLIENT_TYPE, text)
        for topic in settings.publishing.topics:
            checked_topic(topic.name)
        group = None
        if settings.HasField("subscription"):
            for entry in settings.subscription.subscriptions:
                checked_topic(entry.topic.name)
            checked_group(settings.subscription.group.name)
            group = self._state.brokers.named("").groups.get(settings.subscription.group.name)
        client.settings, client.send = merged(settings, group), send
        self._state.clients.register(client)
        send(make("TelemetryCommand", status=ok(), settings=client.settings))

    def heartbeat(self, request: Any, caller: Caller) -> Any:
        """Heartbeat: still there. The settings are merged again, since a group's configuration may have changed."""
        client = self._state.clients.with_settings(caller)
        if client.settings.client_type != ClientType.PRODUCER:
            problem = group_problem(request.group.name)
            if problem is not None:
                raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, problem)
        self._state.clients.register(client)
        return make("HeartbeatResponse", status=ok())

    def terminated(self, request: Any, caller: Caller) -> Any:
        """NotifyClientTermination."""
        self._state.clients.forget(self._state.clients.with_settings(caller))
        return make("NotifyClientTerminationResponse", status=ok())

    def asked_by_broker(self, client: GrpcClient, link: LocalLink, request: RemotingCommand) -> None:
        """A request of a broker to its client."""
        if request.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._transactions.ask_producer(client, link.broker, request)
        elif request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            nonce = self._question(client, link, request, _running_info)
            self._put(client, print_thread_stack_trace_command=make("PrintThreadStackTraceCommand", nonce=nonce))
        elif request.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            stored = record.decode(request.body or b"")
            message = conversion.message_of(stored, self._state.now_ms())
            nonce = self._question(client, link, request, _consumed)
            self._put(client, verify_message_command=make("VerifyMessageCommand", nonce=nonce, message=message))

    def _question(
        self, client: GrpcClient, link: LocalLink, request: RemotingCommand, body: Callable[[Any, Any], bytes]
    ) -> str:
        """Remember who asks; the number under which the client answers."""
        self._nonces += 1
        nonce = f"{self._nonces:032x}"

        def answered(status: Any, answer: Any) -> None:
            client.waiting.pop(nonce, None)
            if answer is not None:
                link.answer(request.reply(ResponseCode.SUCCESS, body=body(status, answer)))

        client.waiting[nonce] = answered
        return nonce

    def _put(self, client: GrpcClient, **fields: Any) -> None:
        if client.send is not None:
            client.send(make("TelemetryCommand", **fields))

    def _answered(self, client: GrpcClient, nonce: str, status: Any, answer: Any) -> None:
        waiting = client.waiting.get(nonce)
        if waiting is not None:
            waiting(status, answer)


def _running_info(status: Any, answer: Any) -> bytes:
    """ConsumerRunningInfo with the thread dump alone."""
    return java_json.to_json({"jstack": answer.thread_stack_trace})


def _consumed(status: Any, answer: Any) -> bytes:
    """ConsumeMessageDirectlyResult."""
    result = CONSUMED.get(status.code, "CR_THROW_EXCEPTION")
    return java_json.to_json(
        {"autoCommit": True, "consumeResult": result, "order": False, "remark": "from gRPC client", "spentTimeMills": 0}
    )

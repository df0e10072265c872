"""Every request a client sends, as a method: builds the command, reads the answer, raises what the broker refused.

Mirrors: MQClientAPIImpl.

    method                     code                            answer
    route                      105 GET_ROUTEINFO_BY_TOPIC      TopicRouteData, None for an unknown topic
    send                       310 SEND_MESSAGE_V2, 320        SendResult
    pull                       11 PULL_MESSAGE, 361            PullAnswer
    heartbeat, unregister      34, 35
    consumer_ids               38                              client ids of the group
    query_/update_consumer_offset   14, 15                     commit offset
    max_, min_, search_offset  30, 31, 29                      queue offset
    send_message_back          36
    lock, unlock               41, 42                          queues granted
    end_transaction            37, one-way
    recall                     370                             the unique key of the message

A refusing code becomes a BrokerError; a lost or late answer stays a RemotingError.

Left out: the admin requests (mqlab.rocketmq.admin has them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import BrokerError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire import bodies, command, property_names
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long
from mqlab.rocketmq.wire.message import MessageQueue, SendResult

SEND_STATUS_OF_CODE: dict[int, str] = {
    ResponseCode.SUCCESS: statuses.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: statuses.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: statuses.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: statuses.FLUSH_SLAVE_TIMEOUT,
}
PULL_STATUS_OF_CODE: dict[int, str] = {
    ResponseCode.SUCCESS: statuses.FOUND,
    ResponseCode.PULL_NOT_FOUND: statuses.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: statuses.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: statuses.OFFSET_ILLEGAL,
}


class Invoke(Protocol):
    """How a request leaves the client: ClusterAccess.invoke."""

    def __call__(self, address: str, request: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]: ...


@dataclass(slots=True)
class PullAnswer:
    """A broker's answer to a pull as it came; offsets are queue offsets. ``body``: whole stored units."""

    pull_status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int
    body: bytes
    remark: str | None = None
    address: str = ""


@dataclass(slots=True)
class PullCall:
    """What a pull asks for. Offsets are queue offsets but for ``commit_offset``; times ms."""

    group: str
    queue: MessageQueue
    queue_offset: int
    max_nums: int
    sys_flag: int
    commit_offset: int
    suspend_ms: int
    sub_version: int
    subscription: str | None = None
    expression_type: str = "TAG"
    max_bytes: int = 2**31 - 1
    lite: bool = False


class BrokerCalls:
    """All requests of one client instance. Mirrors MQClientAPIImpl."""

    def __init__(self, invoke: Invoke, invoke_oneway: Callable[[str, RemotingCommand], None]) -> None:
        self._invoke = invoke
        self._oneway = invoke_oneway

    @flow
    def _ask(self, address: str, request: RemotingCommand, timeout_ms: int) -> Flow[RemotingCommand]:
        answer: RemotingCommand = yield self._invoke(address, request, timeout_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=address)
        return answer

    @flow
    def route(self, name_server: str, topic: str, timeout_ms: int) -> Flow[bodies.TopicRouteData | None]:
        """A topic's route; None when the name server does not know it (17, or 0 without a body)."""
        request = command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)
        answer: RemotingCommand = yield self._invoke(name_server, request, timeout_ms)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST or (answer.code == ResponseCode.SUCCESS and not answer.body):
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=name_server)
        assert answer.body is not None
        return bodies.TopicRouteData.from_json(answer.body)

    def heartbeat(self, address: str, data: bodies.HeartbeatData, timeout_ms: int) -> Promise[RemotingCommand]:
        """Tell a broker who lives here."""
        return self._ask(address, command.request(RequestCode.HEART_BEAT, data.to_json()), timeout_ms)

    def unregister(
        self,
        address: str,
        client_id: str,
        timeout_ms: int,
        *,
        producer_group: str | None = None,
        consumer_group: str | None = None,
    ) -> Promise[RemotingCommand]:
        """Tell a broker that one group of this client has gone."""
        request = command.request(
            RequestCode.UNREGISTER_CLIENT,
            clientID=client_id,
            producerGroup=producer_group,
            consumerGroup=consumer_group,
        )
        return self._ask(address, request, timeout_ms)

    @flow
    def consumer_ids(self, address: str, group: str, timeout_ms: int) -> Flow[list[str]]:
        """The client ids of a group as this broker knows them: unordered, possibly twice."""
        request = command.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
        answer = yield self._ask(address, request, timeout_ms)
        return bodies.consumer_ids_from_json(answer.body or b"{}")

    def check_client_config(
        self, address: str, client_id: str, group: str, subscription: bodies.SubscriptionData, timeout_ms: int
    ) -> Promise[RemotingCommand]:
        """Ask the broker whether it takes this (SQL) subscription."""
        body = bodies.CheckClientRequestBody(client_id=client_id, group=group, subscription_data=subscription)
        return self._ask(address, command.request(RequestCode.CHECK_CLIENT_CONFIG, body.to_json()), timeout_ms)

    def send(self, address: str, request: RemotingCommand, timeout_ms: int) -> Promise[RemotingCommand]:
        """Send a prepared SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE; ``send_result_of`` reads the answer."""
        return self._invoke(address, request, timeout_ms)

    def send_oneway(self, address: str, request: RemotingCommand) -> None:
        """Send a prepared SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE that is not answered."""
        self._oneway(address, request)

    def send_message_back(
        self,
        address: str,
        group: str,
        broker_name: str,
        *,
        physical_offset: int,
        delay_level: int,
        origin_msg_id: str,
        origin_topic: str,
        max_reconsume_times: int,
        timeout_ms: int,
    ) -> Promise[RemotingCommand]:
        """Ask the broker to store a failed message once more, later."""
        request = command.request(
            RequestCode.CONSUMER_SEND_MSG_BACK,
            offset=physical_offset,
            group=group,
            delayLevel=delay_level,
            originMsgId=origin_msg_id,
            originTopic=origin_topic,
            unitMode=False,
            maxReconsumeTimes=max_reconsume_times,
            bname=broker_name,
        )
        return self._ask(address, request, timeout_ms)

    @flow
    def recall(self, address: str, group: str, topic: str, handle: str, broker_name: str, timeout_ms: int) -> Flow[str]:
        """Store a marker that recalls a timed message; returns the message's unique key. BrokerError when refused."""
        request = command.request(
            RequestCode.RECALL_MESSAGE, producerGroup=group, topic=topic, recallHandle=handle, bname=broker_name
        )
        answer: RemotingCommand = yield self._invoke(address, request, timeout_ms)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address=address)
        return answer.ext_fields.get("msgId", "")

    def end_transaction(self, address: str, **fields: Any) -> None:
        """Commit, roll back or leave open, one way. The fields are those of EndTransactionRequestHeader."""
        remark = fields.pop("remark", None)
        request = command.request(RequestCode.END_TRANSACTION, **fields)
        request.remark = remark
        self._oneway(address, request)

    def pull(self, address: str, call: PullCall, timeout_ms: int) -> Promise[RemotingCommand]:
        """Ask for messages; the broker may hold the request. ``pull_answer_of`` reads the answer."""
        request = command.request(
            RequestCode.LITE_PULL_MESSAGE if call.lite else RequestCode.PULL_MESSAGE,
            consumerGroup=call.group,
            topic=call.queue.topic,
            queueId=call.queue.queue_id,
            queueOffset=call.queue_offset,
            maxMsgNums=call.max_nums,
            sysFlag=call.sys_flag,
            commitOffset=call.commit_offset,
            suspendTimeoutMillis=call.suspend_ms,
            subscription=call.subscription,
            subVersion=call.sub_version,
            expressionType=call.expression_type,
            maxMsgBytes=call.max_bytes,
            bname=call.queue.broker_name,
        )
        return self._invoke(address, request, timeout_ms)

    @flow
    def query_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, timeout_ms: int = 5_000
    ) -> Flow[int]:
        """The group's stored commit offset; BrokerError with code 22 when there is none."""
        request = command.request(
            RequestCode.QUERY_CONSUMER_OFFSET,
            consumerGroup=group,
            topic=queue.topic,
            queueId=queue.queue_id,
            bname=queue.broker_name,
        )
        answer = yield self._ask(address, request, timeout_ms)
        return parse_long(answer.ext_fields["offset"])

    def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, commit_offset: int, timeout_ms: int = 5_000
    ) -> Promise[RemotingCommand]:
        """Store the group's commit offset and wait for the answer."""
        return self._ask(address, _update_offset(group, queue, commit_offset), timeout_ms)

    def update_consumer_offset_oneway(self, address: str, group: str, queue: MessageQueue, commit_offset: int) -> None:
        """Store the group's commit offset; not answered."""
        self._oneway(address, _update_offset(group, queue, commit_offset))

    def max_offset(self, address: str, queue: MessageQueue, timeout_ms: int) -> Promise[int]:
        """The queue offset the next message will get."""
        return self._offset(address, RequestCode.GET_MAX_OFFSET, queue, timeout_ms, {"committed": "true"})

    def min_offset(self, address: str, queue: MessageQueue, timeout_ms: int) -> Promise[int]:
        """The smallest queue offset still stored."""
        return self._offset(address, RequestCode.GET_MIN_OFFSET, queue, timeout_ms, {})

    def search_offset(
        self, address: str, queue: MessageQueue, timestamp_ms: int, timeout_ms: int, boundary: str = "LOWER"
    ) -> Promise[int]:
        """The first queue offset stored at or after a time (LOWER), or the last at or before it (UPPER)."""
        more = {"timestamp": str(timestamp_ms), "boundaryType": boundary}
        return self._offset(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, timeout_ms, more)

    @flow
    def _offset(
        self, address: str, code: int, queue: MessageQueue, timeout_ms: int, more: Mapping[str, str]
    ) -> Flow[int]:
        request = command.request(code, topic=queue.topic, queueId=queue.queue_id, bname=queue.broker_name)
        request.ext_fields.update(more)
        answer = yield self._ask(address, request, timeout_ms)
        return parse_long(answer.ext_fields["offset"])

    @flow
    def lock(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], timeout_ms: int = 1_000
    ) -> Flow[list[MessageQueue]]:
        """Ask for the exclusive right to consume queues in order; the ones granted."""
        body = bodies.LockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=list(queues))
        answer = yield self._ask(address, command.request(RequestCode.LOCK_BATCH_MQ, body.to_json()), timeout_ms)
        return list(bodies.LockBatchResponseBody.from_json(answer.body or b"{}").lock_ok_mq_set)

    def unlock(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], timeout_ms: int = 1_000
    ) -> Promise[RemotingCommand]:
        """Give locks back and wait for the answer."""
        return self._ask(address, _unlock(group, client_id, queues), timeout_ms)

    def unlock_oneway(self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give locks back; not answered."""
        self._oneway(address, _unlock(group, client_id, queues))


def _unlock(group: str, client_id: str, queues: Iterable[MessageQueue]) -> RemotingCommand:
    body = bodies.LockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=list(queues))
    return command.request(RequestCode.UNLOCK_BATCH_MQ, body.to_json())


def _update_offset(group: str, queue: MessageQueue, commit_offset: int) -> RemotingCommand:
    return command.request(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        consumerGroup=group,
        topic=queue.topic,
        queueId=queue.queue_id,
        commitOffset=commit_offset,
        bname=queue.broker_name,
    )


def send_result_of(answer: RemotingCommand, queue: MessageQueue, topic: str, msg_id: str, address: str) -> SendResult:
    """The SendResult of a message that the queue's broker stored. BrokerError when it refused.

    ``msg_id`` is the unique key; for a batch, its keys joined by commas.
    """
    if answer.code not in SEND_STATUS_OF_CODE:
        raise BrokerError(answer.code, answer.remark, address=address)
    fields = answer.ext_fields
    return SendResult(
        send_status=SEND_STATUS_OF_CODE[answer.code],
        msg_id=msg_id,
        offset_msg_id=fields.get("msgId", ""),
        message_queue=MessageQueue(topic, queue.broker_name, parse_int(fields["queueId"])),
        queue_offset=parse_long(fields["queueOffset"]),
        transaction_id=fields.get("transactionId"),
        region_id=fields.get(property_names.MSG_REGION) or "DefaultRegion",
        trace_on=fields.get(property_names.TRACE_ON) != "false",
        recall_handle=fields.get("recallHandle"),
    )


def pull_answer_of(answer: RemotingCommand, address: str) -> PullAnswer:
    """A broker's answer to a pull. BrokerError when it refused."""
    status = PULL_STATUS_OF_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark, address=address)
    fields = answer.ext_fields
    return PullAnswer(
        pull_status=status,
        next_begin_offset=parse_long(fields["nextBeginOffset"]),
        min_offset=parse_long(fields["minOffset"]),
        max_offset=parse_long(fields["maxOffset"]),
        suggest_which_broker_id=parse_long(fields.get("suggestWhichBrokerId") or "0"),
        body=answer.body or b"",
        remark=answer.remark,
        address=address,
    )

"""Numbers of the protocol, what a broker's answer becomes, and refusals with RocketMQ's texts.

Mirrors: Code and the other enums of apache.rocketmq.v2, ResponseBuilder, GrpcProxyException and ProxyException.

    the front refuses    40009 message id cannot be empty
    the broker refuses   50001 org.apache.rocketmq.proxy.common.ProxyException: <its remark>
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from mqlab.cluster.grpc.messages import make
from mqlab.rocketmq.wire.codes import ResponseCode


class Code(IntEnum):
    """The status codes that the front answers."""

    OK = 20000
    MULTIPLE_RESULTS = 30000
    BAD_REQUEST = 40000
    ILLEGAL_TOPIC = 40002
    ILLEGAL_CONSUMER_GROUP = 40003
    ILLEGAL_MESSAGE_TAG = 40004
    ILLEGAL_MESSAGE_KEY = 40005
    ILLEGAL_MESSAGE_GROUP = 40006
    ILLEGAL_MESSAGE_PROPERTY_KEY = 40007
    INVALID_TRANSACTION_ID = 40008
    ILLEGAL_MESSAGE_ID = 40009
    ILLEGAL_INVISIBLE_TIME = 40011
    ILLEGAL_DELIVERY_TIME = 40012
    INVALID_RECEIPT_HANDLE = 40013
    MESSAGE_PROPERTY_CONFLICT_WITH_TYPE = 40014
    UNRECOGNIZED_CLIENT_TYPE = 40015
    MESSAGE_CORRUPTED = 40016
    CLIENT_ID_REQUIRED = 40017
    ILLEGAL_POLLING_TIME = 40018
    UNAUTHORIZED = 40100
    FORBIDDEN = 40300
    MESSAGE_NOT_FOUND = 40401
    TOPIC_NOT_FOUND = 40402
    CONSUMER_GROUP_NOT_FOUND = 40403
    MESSAGE_BODY_TOO_LARGE = 41301
    MESSAGE_BODY_EMPTY = 41302
    TOO_MANY_REQUESTS = 42900
    MESSAGE_PROPERTIES_TOO_LARGE = 43101
    INTERNAL_SERVER_ERROR = 50001
    HA_NOT_AVAILABLE = 50002
    NOT_IMPLEMENTED = 50100
    MASTER_PERSISTENCE_TIMEOUT = 50401
    SLAVE_PERSISTENCE_TIMEOUT = 50402
    FAILED_TO_CONSUME_MESSAGE = 60001


class ClientType(IntEnum):
    """What a client is."""

    PRODUCER = 1
    PUSH_CONSUMER = 2
    SIMPLE_CONSUMER = 3
    PULL_CONSUMER = 4


class MessageType(IntEnum):
    """What kind of message it is; a topic accepts one of them, or all."""

    UNSPECIFIED = 0
    NORMAL = 1
    FIFO = 2
    DELAY = 3
    TRANSACTION = 4


NONE, READ, WRITE, READ_WRITE = 1, 2, 3, 4  # Permission
IPV4, IPV6, DOMAIN_NAME = 1, 2, 3  # AddressScheme
TAG, SQL = 1, 2  # FilterType
IDENTITY, GZIP = 1, 2  # Encoding
MD5 = 2  # DigestType
COMMIT, ROLLBACK = 1, 2  # TransactionResolution
SERVER_CHECK = 2  # TransactionSource

PROXY_EXCEPTION = "org.apache.rocketmq.proxy.common.ProxyException: "

_OF_BROKER: dict[int, Code] = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
}


class StatusError(Exception):
    """A request that is answered with a status other than OK."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def status(self) -> Any:
        """The status to answer."""
        return make("Status", code=self.code, message=self.text)


class ProxyRefusal(StatusError):
    """A refusal that RocketMQ throws as a ProxyException, whose name is then part of the text."""

    def __init__(self, text: str, code: Code = Code.INTERNAL_SERVER_ERROR) -> None:
        super().__init__(code, PROXY_EXCEPTION + text)


def ok() -> Any:
    """The status of what went well."""
    return make("Status", code=Code.OK, message="OK")


def status_of_broker(code: int, remark: str | None) -> Any:
    """The status for a broker's response code. Mirrors ResponseBuilder.buildStatus(int, String)."""
    return make("Status", code=_OF_BROKER.get(code, Code.INTERNAL_SERVER_ERROR), message=remark or str(code))


def common_status(statuses: Iterable[Any]) -> Any:
    """The status of an answer with several entries: theirs if they agree. Its text is the name of the code."""
    codes = {status.code for status in statuses}
    if len(codes) > 1:
        return make("Status", code=Code.MULTIPLE_RESULTS, message=Code.MULTIPLE_RESULTS.name)
    (code,) = codes or {Code.OK}
    return make("Status", code=code, message=Code(code).name)

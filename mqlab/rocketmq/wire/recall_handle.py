"""The text with which a producer recalls a timed message; the broker gives it in the answer to the send.

Mirrors: org.apache.rocketmq.common.producer.RecallMessageHandle.

    base64url of "v1 orders broker-a 1795737225001 7F00…"      version, topic, broker, deliver time (ms), unique key
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from mqlab.errors import CorruptionError

VERSION_1 = "v1"


class RecallHandle(NamedTuple):
    """What a handle says. ``timestamp_text`` is not checked."""

    topic: str
    broker_name: str
    timestamp_text: str
    message_id: str

    def encode(self) -> str:
        """The handle's text. Mirrors HandleV1.buildHandle.

        >>> RecallHandle("tm", "broker-a", "1795737225001", "7F").encode()
        'djEgdG0gYnJva2VyLWEgMTc5NTczNzIyNTAwMSA3Rg=='
        """
        return base64.urlsafe_b64encode(" ".join((VERSION_1, *self)).encode("utf-8")).decode("ascii")


def decode_recall_handle(text: str | None) -> RecallHandle:
    """The handle in a text. Raises CorruptionError with RocketMQ's text. Mirrors decodeHandle.

    >>> decode_recall_handle("djEgdG0gYnJva2VyLWEgMTc5NTczNzIyNTAwMSA3Rg==").message_id
    '7F'
    """
    try:
        decoded = base64.b64decode((text or "").encode("ascii"), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise CorruptionError("recall handle is invalid") from error
    version, *parts = decoded.split(" ")
    if version != VERSION_1 or len(parts) < 4:
        raise CorruptionError("recall handle is invalid")
    return RecallHandle(*parts[:4])

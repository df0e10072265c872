"""Limits for groups that read what is no longer in memory. mqlab keeps and shows them; it holds no group back by them.

Mirrors: ColdDataCgCtrService and AdminBrokerProcessor; codes 2001 to 2004. In RocketMQ the limits count only with
coldDataFlowControlEnable, which is off by default, and the read mode is advice to the operating system.

    UPDATE_COLD_DATA_FLOW_CTR_CONFIG    body group=bytes, one per line
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG    body group
    GET_COLD_DATA_FLOW_CTR_INFO         the limits as JSON
    SET_COMMITLOG_READ_MODE             READ_AHEAD_MODE 0 (normal) or 1 (random)
"""

from __future__ import annotations

from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, whole_or
from mqlab.rocketmq.remoting.settings import parsed_lines
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_json import to_json
from mqlab.rocketmq.wire.java_numbers import long_or

GROUP_THRESHOLD = 3 << 20  # bytes; cgColdReadThreshold
GLOBAL_THRESHOLD = 100 << 20  # bytes; globalColdReadThreshold
READ_AHEAD_MODE = "READ_AHEAD_MODE"
MODES = (0, 1)  # MADV_NORMAL, MADV_RANDOM


class ColdReads:
    """Handlers of the four requests; the limits are memory, as in RocketMQ."""

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}

    def update(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_COLD_DATA_FLOW_CTR_CONFIG: a value that is not a number is left out, as in RocketMQ."""
        for group, limit in parsed_lines(request.body or b"").items():
            threshold = long_or(limit, None)
            if threshold is not None:
                self._limits[group] = threshold
        return request.reply()

    def remove(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """REMOVE_COLD_DATA_FLOW_CTR_CONFIG."""
        self._limits.pop((request.body or b"").decode("utf-8", "replace"), None)
        return request.reply()

    def show(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_COLD_DATA_FLOW_CTR_INFO."""
        shown = {
            "runtimeTable": {},
            "configTable": self._limits,
            "cgColdReadThreshold": GROUP_THRESHOLD,
            "globalColdReadThreshold": GLOBAL_THRESHOLD,
            "globalAcc": 0,
        }
        return request.reply(body=to_json(shown))

    def set_read_mode(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """SET_COMMITLOG_READ_MODE."""
        if not request.ext_fields:
            raise Refused(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error")
        mode = whole_or(request, READ_AHEAD_MODE, None)
        if mode is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
        if mode not in MODES:
            raise Refused(ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error")
        return request.reply(ResponseCode.SUCCESS, f"set commitlog readahead mode success, mode: {mode}")

"""Defects that a broker may have: offsets of groups, locks of queues, retries.

Which one a cluster has is drawn from the cluster's name.
"""

from __future__ import annotations

from typing import Any

from mqlab.lab.simulation.planted.fitting import BROKER, Change, Defect
from mqlab.rocketmq.wire.codes import RequestCode


def _offsets(node: Any) -> Any:
    return node.state.offset_table


def _locks(node: Any) -> Any:
    return node.state.queue_locks


def _remoting(node: Any) -> Any:
    return node.remoting


def _where_it_reads(original: Any, self: Any, group: str, topic: str, queue_id: int, offset: int) -> None:
    original(self, group, topic, queue_id, offset)
    self.commit(group, topic, queue_id, offset)


def _one_for_all(original: Any, self: Any, group: str, topic: str, queue_id: int, offset: int) -> None:
    of_topic = self.queues_of(group, topic) or {}
    original(self, group, topic, queue_id, max([offset, *of_topic.values()]))


def _seconds_for_ms(original: Any, self: Any, lock: Any, now_ms: int) -> bool:
    return bool(now_ms - lock.last_update_ms > self._max_live_ms // 1_000)


def _other_limit(more: int) -> Change:
    def asked(original: Any, self: Any, channel: Any, command: Any) -> None:
        if command.code == RequestCode.CONSUMER_SEND_MSG_BACK and "maxReconsumeTimes" in command.ext_fields:
            command.ext_fields["maxReconsumeTimes"] = str(int(command.ext_fields["maxReconsumeTimes"]) + more)
        original(self, channel, command)

    return asked


DEFECTS = (
    Defect(BROKER, "committed", _offsets, {"pulled": _where_it_reads}),
    Defect(BROKER, "committed", _offsets, {"commit": _one_for_all}),
    Defect(BROKER, "locked", _locks, {"_expired": _seconds_for_ms}),
    Defect(BROKER, "tried", _remoting, {"_asked": _other_limit(1)}),
    Defect(BROKER, "tried", _remoting, {"_asked": _other_limit(-1)}),
)

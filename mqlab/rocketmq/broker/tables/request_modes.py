"""How a group asks for the messages of a topic: by pull, or by pop.

Mirrors: MessageRequestModeManager; file config/messageRequestMode.json.

    topic    group     mode    popShareQueueNum
    orders   billing   PULL    0
"""

from __future__ import annotations

from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json

PULL, POP = "PULL", "POP"


class RequestModes:
    """topic -> group -> what SET_MESSAGE_REQUEST_MODE asked for. ``changed`` is called after every change."""

    def __init__(self) -> None:
        self.changed: Signal[[]] = Signal()
        self._modes: dict[str, dict[str, dict[str, Any]]] = {}

    def set(self, topic: str, group: str, mode: str, share: int) -> None:
        """Remember the mode of a group on a topic."""
        asked = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share, "topic": topic}
        self._modes.setdefault(topic, {})[group] = asked
        self.changed()

    def mode_of(self, topic: str, group: str, default: str = PULL) -> str:
        """The mode of a group on a topic, or the default."""
        return str(self._modes.get(topic, {}).get(group, {}).get("mode", default))

    def share_of(self, topic: str, group: str, default: int = 0) -> int:
        """With how many members each member shares its queues, or the default."""
        return java_json.to_int(self._modes.get(topic, {}).get(group, {}).get("popShareQueueNum", default))

    def encode(self) -> str:
        """The text of the file and of the answer to GET_ALL_MESSAGE_REQUEST_MODE."""
        return java_json.to_json({"messageRequestModeMap": self._modes}).decode("utf-8")

    def decode(self, text: str) -> None:
        """Use the modes of a file. Raises CorruptionError."""
        try:
            self._modes = java_json.table(java_json.loads(text), "messageRequestModeMap")
        except (ValueError, AttributeError) as error:
            raise CorruptionError(
                "request modes cannot be read", expected='{"messageRequestModeMap":{…}}', found=error
            ) from error

"""One message for a reader: its content, its places, its times and its properties.

Mirrors: mqadmin queryMsgById, and the message page of RocketMQ Dashboard. Lab 00 looks at its first message with it.

    MessageView(message)      a MessageExt, or a Record of the store
      topic  tags  keys  body │ ids │ broker  queue  queue_offset  physical_offset │ times │ properties

Left out: the bytes (mqlab.lab.views.hexdump).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from mqlab.lab.views.hexdump import field_value
from mqlab.lab.views.table import Table, text_of_bytes
from mqlab.lab.views.text_width import cut
from mqlab.lab.views.view import View

FACTS = (
    "topic",
    "tags",
    "keys",
    "body",
    "msg_id",
    "offset_msg_id",
    "broker_name",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "store_size",
    "born_timestamp",
    "born_host",
    "store_timestamp",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
)
DULL = {"reconsume_times": 0, "prepared_transaction_offset": 0, "broker_name": "", "store_size": 0}
MAX_BODY_COLUMNS = 200


class MessageView(View):
    """A message as a table of its facts. Facts without information (no tags, never retried) are left out."""

    def __init__(self, message: Any, *, title: str = "") -> None:
        self.message = message
        self.title = title or f"A message of {message.topic}"

    def table(self) -> Table:
        """One row per fact: fact, value; each property is a row of its own."""
        rows = [{"fact": name, "value": value} for name, value in self._facts()]
        rows += [{"fact": f"property {name}", "value": value} for name, value in self._properties().items()]
        return Table(rows, title=self.title)

    def _facts(self) -> list[tuple[str, str]]:
        facts = []
        for name in FACTS:
            value = getattr(self.message, name, None)
            if value is None or (name in DULL and value == DULL[name]):
                continue
            if name == "body":
                size = len(value)
                facts.append((name, f"{cut(text_of_bytes(value), MAX_BODY_COLUMNS)}  ({size} bytes)"))
            else:
                facts.append((name, field_value(name, value)))
        return facts

    def _properties(self) -> Mapping[str, str]:
        held = getattr(self.message, "property_map", None)
        properties: Mapping[str, str] = held if held is not None else self.message.properties
        return properties

    def text(self) -> str:
        return str(self.table())

    def html(self) -> Markup:
        return self.table().html()

    def __repr__(self) -> str:
        return f"<MessageView of {self.message!r}>"

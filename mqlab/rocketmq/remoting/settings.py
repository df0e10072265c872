"""Settings of a running node as a request shows and changes them: one ``name=value`` per line, in Java's spelling.

Mirrors: Configuration and the black lists of AdminBrokerProcessor and DefaultRequestProcessor; codes 25 26 318 319.

    field of the configuration class   transaction_check_max = 15   auto_create_topic_enable = True
    line of a body                     transactionCheckMax=15       autoCreateTopicEnable=true

Left out: the file to which RocketMQ writes changed settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from mqlab.rocketmq.remoting.requests import Refused
from mqlab.rocketmq.wire import java_properties
from mqlab.rocketmq.wire.body import camel_case
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.java_numbers import parse_long

_TRIMMED = "".join(map(chr, range(33)))


def lines_of(settings: Any) -> list[str]:
    """Every field of a configuration as a line."""
    return [
        f"{camel_case(field.name)}={_as_text(getattr(settings, field.name))}" for field in dataclasses.fields(settings)
    ]


def parsed_lines(content: bytes) -> dict[str, str]:
    """The names and values that a body sets. Raises Refused for what is not a property file."""
    try:
        return java_properties.loads(content)
    except ValueError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"string2Properties error: {error}") from error


def refuse_black_listed(names: Collection[str], fixed: Collection[str], black_list: str) -> None:
    """Raise Refused, 16, when a name is ``fixed`` or in the list of a setting, separated by ``;``."""
    if any(name in fixed or name in black_list.split(";") for name in names):
        raise Refused(ResponseCode.NO_PERMISSION, "Can not update config in black list.")


def typed(name: str, value: str, current: object) -> Any:
    """The value as the kind of the one in use. Raises Refused when it is of another kind."""
    if isinstance(current, bool):
        if value.lower() not in ("true", "false"):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{name} is true or false, not {value!r}")
        return value.lower() == "true"
    if isinstance(current, int):
        try:
            return parse_long(value)
        except ValueError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{name} is a whole number, not {value!r}") from error
    return trimmed(value)


def trimmed(value: str) -> str:
    """A text as String.trim leaves it. Mirrors MixAll.properties2Object, which trims texts, but no numbers.

    >>> trimmed("SYNC_FLUSH \t")
    'SYNC_FLUSH'
    """
    return value.strip(_TRIMMED)


def changes_to(settings: Any, values: dict[str, str]) -> dict[str, Any]:
    """What the values change in a configuration, by field. Raises Refused for names and values it cannot have."""
    fields = {camel_case(field.name): field.name for field in dataclasses.fields(settings)}
    for name in values:
        if name not in fields:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"no setting of a running node: {name!r}")
    return {fields[name]: typed(name, value, getattr(settings, fields[name])) for name, value in values.items()}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

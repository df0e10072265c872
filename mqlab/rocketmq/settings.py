"""Settings by name: which dataclass a keyword belongs to, and a clear word for one that belongs nowhere.

Mirrors: broker.conf, where settings of the broker and of its store stand in one file. Lab(broker={...}) does the same.

    {"message_delay_level": "1s 2s", "listen_port": 9} ─▶ StoreConfig(...), BrokerConfig(...)

Left out: reading .properties files.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError, did_you_mean

_IN_MS = re.compile("timeout|time_out|interval|period|mills|live_time|expired_time|time_span")
"""RocketMQ names its durations so; they may be written as "500ms" or "2s"."""


def split_settings(settings: Mapping[str, Any], *configs: Any) -> list[Any]:
    """Each config (a dataclass instance) with the settings that are its fields; UsageError names the nearest valid one.

    A name that two configs share goes to both. A value of another kind than the setting's own is a UsageError, too.
    """
    fields = [{field.name for field in dataclasses.fields(config)} for config in configs]
    known = sorted(set[str]().union(*fields))
    for name in settings:
        if name not in known:
            hint = did_you_mean(name, known, "settings have RocketMQ's names in snake_case")
            raise UsageError(f"there is no setting {name!r}", hint=hint)
    return [
        dataclasses.replace(
            config,
            **{name: _fitting(name, value, getattr(config, name)) for name, value in settings.items() if name in names},
        )
        for config, names in zip(configs, fields, strict=True)
    ]


def _fitting(name: str, value: Any, before: Any) -> Any:
    """The value as its setting wants it.

    >>> _fitting("slave_timeout", "2s", 3000), _fitting("sharp_edges", ["stale_tail_kept"], ())
    (2000, ('stale_tail_kept',))
    """
    if isinstance(before, bool | str):
        if isinstance(value, type(before)):
            return value
    elif isinstance(before, int):
        if isinstance(value, str) and _IN_MS.search(name):
            return milliseconds(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif isinstance(value, list | tuple):
        return tuple(value)
    kind = {bool: "True or False", str: "a text", int: "a whole number"}.get(type(before), "a list")
    raise UsageError(f"{name} is {kind}, not {value!r}", hint=f"its default is {before!r}")

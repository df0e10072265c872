"""Settings by name: which dataclass a keyword belongs to, and a clear word for one that belongs nowhere.

Mirrors: broker.conf, where settings of the broker and of its store stand in one file. Lab(broker={...}) does the same.

    {"message_delay_level": "1s 2s", "listen_port": 9} ─▶ StoreConfig(...), BrokerConfig(...)

Left out: reading .properties files.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from mqlab.errors import UsageError


def split_settings(settings: Mapping[str, Any], *configs: Any) -> list[Any]:
    """Each config (a dataclass instance) with the settings that are its fields; UsageError names the nearest valid one.

    A name that two configs share goes to both.
    """
    fields = [{field.name for field in dataclasses.fields(config)} for config in configs]
    known = sorted(set[str]().union(*fields))
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"there is no setting {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else "settings have RocketMQ's names in snake_case",
            )
    return [
        dataclasses.replace(config, **{name: value for name, value in settings.items() if name in names})
        for config, names in zip(configs, fields, strict=True)
    ]

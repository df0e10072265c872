"""Recorded exchanges of a real 5.3.3 broker, and the comparison of an answer of mqlab's with the recorded one."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqlab.rocketmq.wire.command import RemotingCommand, decode

FOLDER = Path(__file__).parent / "rocketmq5"


@dataclass(frozen=True)
class Exchange:
    """One request of a raw client, and the answer it got ``took_ms`` later."""

    note: str
    sent_ms: int
    took_ms: int
    request: RemotingCommand
    response: RemotingCommand


def recorded(name: str) -> Any:
    """A recorded JSON file."""
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def exchanges(name: str) -> list[Exchange]:
    """The exchanges of a file, in their order."""
    lines = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
    return [
        Exchange(
            entry["note"] or "",
            entry["sentAt"],
            entry["tookMs"],
            _command(entry["request"]),
            _command(entry["response"]),
        )
        for entry in map(json.loads, lines)
    ]


def _command(text: str) -> RemotingCommand:
    return decode(base64.b64decode(text))


def differences(
    got: RemotingCommand, wanted: RemotingCommand, *, apart: Iterable[str] = (), values: Mapping[str, str] | None = None
) -> dict[str, tuple[Any, Any]]:
    """Where two answers differ: code, remark, the set of header fields, and their values but those named ``apart``."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in ("code", "remark"):
        if getattr(got, name) != getattr(wanted, name):
            found[name] = getattr(got, name), getattr(wanted, name)
    expected = dict(wanted.ext_fields) | dict(values or {})
    if sorted(got.ext_fields) != sorted(expected):
        found["fields"] = sorted(got.ext_fields), sorted(expected)
    for field in sorted(set(expected) - set(apart)):
        if got.ext_fields.get(field) != expected[field]:
            found[field] = got.ext_fields.get(field), expected[field]
    return found

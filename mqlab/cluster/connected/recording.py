"""A recording of real connections, decoded: who asked what, when, and what the answer was.

Mirrors: Wireshark's dissector for RocketMQ, over the files that ``mqlab serve --record FILE`` and
``mqlab.connect(..., record=FILE)`` write.

    found = Recording.open("frames.jsonl")
    found.table()                               a row per frame
    found.timeline(without=("HEART_BEAT",))     the picture that a Lab's lab.space_time() draws

A client is called by its client id once it has told it (in a heartbeat), before that by its address.
Left out: the replication link, which is a stream without frames; bytes that are no frames are counted.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.codes import RequestCode, request_name, response_name
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.framing import FrameReader

if TYPE_CHECKING:
    from mqlab.lab.views.table import Table
    from mqlab.lab.views.timeline import Timeline

TELLING = ("topic", "b", "consumerGroup", "a", "group", "queueId", "e", "queueOffset", "msgId", "nextBeginOffset")
"""Header fields that are shown; the single letters are those of SEND_MESSAGE_V2."""
SHOWN_AS = {"a": "producerGroup", "b": "topic", "e": "queueId"}
COLUMNS = ("at_ms", "connection", "sender", "receiver", "frame", "opaque", "bytes", "fields")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. ``asked`` is the code of the request that it answers, None for a request."""

    at_ms: int
    connection: int
    sender: str
    receiver: str
    command: RemotingCommand
    size: int
    asked: int | None

    @property
    def name(self) -> str:
        """The request's name, or the answer's result with what was asked."""
        if self.asked is None:
            return request_name(self.command.code)
        return f"{response_name(self.command.code)} to {request_name(self.asked)}"

    @property
    def fields(self) -> Mapping[str, str]:
        """The header fields that say most."""
        fields = self.command.ext_fields
        return {SHOWN_AS.get(name, name): fields[name] for name in TELLING if fields.get(name)}


class Recording:
    """All frames of a recording, in the order in which they passed. ``broken``: streams that held something else."""

    def __init__(self, frames: Iterable[Frame], broken: int = 0) -> None:
        self.frames = list(frames)
        self.broken = broken

    @classmethod
    def open(cls, path: str | Path) -> Recording:
        """Read a file. UsageError when it is not a recording; a line that was cut by a kill ends it."""
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}") from error
        pieces = []
        for number, line in enumerate(lines, 1):
            try:
                pieces.append(_piece(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    break
                raise UsageError(
                    f"{path}, line {number} is not of a recording: {error}", hint="mqlab serve --record FILE makes one"
                ) from error
        return _decoded(pieces)

    def table(self, *, without: Collection[str] = ()) -> Table:
        """A row per frame; ``without`` are names of requests that are left out, with their answers."""
        from mqlab.lab.views.table import Table

        rows = [
            {
                "at_ms": frame.at_ms,
                "connection": frame.connection,
                "sender": frame.sender,
                "receiver": frame.receiver,
                "frame": frame.name,
                "opaque": frame.command.opaque,
                "bytes": frame.size,
                "fields": ", ".join(f"{name}={value}" for name, value in frame.fields.items()),
            }
            for frame in self._chosen(without)
        ]
        return Table(rows, columns=COLUMNS, title="Recorded frames", empty="no frame was recorded")

    def timeline(self, *, without: Collection[str] = (), scale: str = "rows") -> Timeline:
        """The frames as arrows from node to node, at the time at which they passed the recording process."""
        from mqlab.lab.views.timeline import Moment, Timeline

        moments = [
            Moment(
                frame.at_ms,
                frame.sender,
                "frame",
                " ".join([frame.name, *frame.fields.values()]),
                to=frame.receiver,
                look="frame",
            )
            for frame in self._chosen(without)
        ]
        return Timeline(moments, title="Recorded frames", scale=scale)

    def _chosen(self, without: Collection[str]) -> list[Frame]:
        known = {code.name for code in RequestCode}
        for name in without:
            if name not in known:
                raise UsageError(f"there is no request {name!r}", hint="names are RocketMQ's: PULL_MESSAGE, HEART_BEAT")
        return [
            frame
            for frame in self.frames
            if request_name(frame.command.code if frame.asked is None else frame.asked) not in without
        ]

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return (
            f"<Recording: {len(self.frames)} frames of {len({frame.connection for frame in self.frames})} connections>"
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    at_ms: int
    connection: int
    sender: str
    receiver: str
    data: bytes


def _piece(row: Mapping[str, Any]) -> _Piece:
    return _Piece(
        int(row["at_ms"]),
        int(row["connection"]),
        str(row["from"]),
        str(row["to"]),
        b64decode(row["data"], validate=True),
    )


def _decoded(pieces: Iterable[_Piece]) -> Recording:
    frames: list[Frame] = []
    readers: dict[tuple[int, str], FrameReader | None] = {}
    asked: dict[tuple[int, str, int], int] = {}
    client_ids: dict[str, str] = {}
    # 1. Cut each direction of each connection into frames.
    for piece in pieces:
        way = (piece.connection, piece.sender)
        reader = readers.setdefault(way, FrameReader())
        if reader is None:
            continue
        try:
            reader.feed(piece.data)
            while (command := reader.next_command()) is not None:
                code = None
                if command.is_response:
                    code = asked.get((piece.connection, piece.receiver, command.opaque), 0)
                else:
                    asked[piece.connection, piece.sender, command.opaque] = command.code
                    if command.code == RequestCode.HEART_BEAT:
                        client_ids[piece.sender] = _client_id(command) or piece.sender
                size = len(command.body or b"")
                frames.append(Frame(piece.at_ms, piece.connection, piece.sender, piece.receiver, command, size, code))
        except CorruptionError:
            readers[way] = None
    # 2. A client that told its id is called by it everywhere.
    named = [
        Frame(
            frame.at_ms,
            frame.connection,
            client_ids.get(frame.sender, frame.sender),
            client_ids.get(frame.receiver, frame.receiver),
            frame.command,
            frame.size,
            frame.asked,
        )
        for frame in frames
    ]
    return Recording(named, sum(reader is None for reader in readers.values()))


def _client_id(heartbeat: RemotingCommand) -> str | None:
    try:
        body = java_json.loads((heartbeat.body or b"").decode("utf-8", "replace"))
    except ValueError:
        return None
    return str(body["clientID"]) if isinstance(body, dict) and body.get("clientID") else None

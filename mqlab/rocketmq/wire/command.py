"""One request or answer, and its frame: length, type, header, body.

Mirrors: RemotingCommand, RemotingSerializable and RocketMQSerializable. Lab 00 shows frames, the journal names them.

    i32 length            4 + header + body, not counting itself
    i32 type << 24 | n    type 0: the header is JSON; type 1: RocketMQ's binary form
    u8[n] header          code language version opaque flag remark extFields
    u8[…] body            none and empty are the same

Header fields are always strings on the wire; ``request`` and ``reply`` convert numbers and booleans.
Left out: typed header classes per code; the handlers use the names of the wire.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire.codes import request_name, response_name
from mqlab.rocketmq.wire.layout import Buffer

JSON = 0  # SerializeType.JSON
ROCKETMQ = 1  # SerializeType.ROCKETMQ
RESPONSE_FLAG = 1  # RemotingCommand.RPC_TYPE
ONEWAY_FLAG = 2  # RemotingCommand.RPC_ONEWAY
VERSION = 479  # MQVersion.V5_3_3
LANGUAGE = "PYTHON"
LANGUAGES = (
    "JAVA",
    "CPP",
    "DOTNET",
    "PYTHON",
    "DELPHI",
    "ERLANG",
    "RUBY",
    "OTHER",
    "HTTP",
    "GO",
    "PHP",
    "OMS",
    "RUST",
    "NODE_JS",
)
MAX_FRAME = 16_777_216  # NettyDecoder.FRAME_MAX_LENGTH, the length field included
MAX_HEADER = 0xFFFFFF

_PREFIX = struct.Struct(">iI")
_BINARY_FIXED = struct.Struct(">hbhii")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_quoted = json.encoder.encode_basestring  # what JSONEncoder(ensure_ascii=False) does with a string
# JSONEncoder makes one of these for each object that it encodes. No check of circles, no indentation, no spaces.
_json_chunks = json.encoder.c_make_encoder(None, None, _quoted, None, ":", ",", False, False, True)  # type: ignore[attr-defined]
_USUAL_FIELDS = itemgetter("code", "flag", "opaque", "version", "language")
_json_at_start = json.JSONDecoder().raw_decode
_JSON_BLANKS = " \t\n\r"


@dataclass(slots=True)
class RemotingCommand:
    """A request, or an answer when flag bit 0 is set. ``opaque`` ties the two together. Mirrors RemotingCommand.

    >>> ask = request(105, topic="订单"); ask.ext_fields
    {'topic': '订单'}
    >>> ask.opaque = 7; ask.reply(17, "No topic route info").opaque
    7
    """

    code: int
    ext_fields: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    remark: str | None = None
    flag: int = 0
    opaque: int = 0
    language: str = LANGUAGE
    version: int = VERSION
    serialize_type: int = JSON

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        return bool(self.flag & ONEWAY_FLAG)

    def reply(
        self, code: int = 0, remark: str | None = None, body: bytes | None = None, **fields: str | int | bool | None
    ) -> RemotingCommand:
        """An answer to this request: same opaque, same serialisation; None fields are left out."""
        texts = _texts(fields) if fields else {}
        return RemotingCommand(
            int(code), texts, body, remark, RESPONSE_FLAG, self.opaque, serialize_type=self.serialize_type
        )

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        name = response_name(self.code) if self.is_response else request_name(self.code)
        return f"<{kind} {name} #{self.opaque}, {len(self.body or b'')} B body>"


NOT_SET = "not set any response code"
"""The remark of an answer whose handler in RocketMQ sets nothing but the code."""


def request(code: int, body: bytes | None = None, **fields: str | int | bool | None) -> RemotingCommand:
    """A request; header fields as keywords with the names of the wire, None left out, the rest converted to strings."""
    return RemotingCommand(int(code), _texts(fields), body)


def _texts(fields: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if type(value) is str else str(value) if type(value) is int else java_text(value)
        for name, value in fields.items()
        if value is not None
    }


def java_text(value: Any) -> str:
    """A header value as Java writes it.

    >>> java_text(True), java_text(5), java_text(1.5)
    ('true', '5', '1.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    return str(value)


def encode(command: RemotingCommand) -> bytes:
    """The whole frame. Raises UsageError for a header or frame over the protocol's limits."""
    header = _json_header(command) if command.serialize_type == JSON else _binary_header(command)
    body = command.body or b""
    header_size = len(header)
    length = 4 + header_size + (len(body) if body else 0)
    if length > MAX_FRAME - 4 or header_size > MAX_HEADER:
        raise UsageError(
            f"a frame of {length + 4} bytes (header {header_size}) is over the limit of {MAX_FRAME}",
            hint="send less in one message or batch, or pull fewer messages at once",
        )
    return _PREFIX.pack(length, command.serialize_type << 24 | header_size) + header + body


def _json_header(command: RemotingCommand) -> bytes:
    fields = command.ext_fields
    ext_fields = f'"extFields":{"".join(_json_chunks(fields, 0))},' if fields else ""
    remark = "" if command.remark is None else f'"remark":{_quoted(command.remark)},'
    text = (
        f'{{"code":{int(command.code)},{ext_fields}"flag":{command.flag},"language":"{command.language}",'
        f'"opaque":{command.opaque},{remark}"serializeTypeCurrentRPC":"JSON","version":{command.version}}}'
    )
    return text.encode("utf-8", "replace")


def _binary_header(command: RemotingCommand) -> bytes:
    try:
        return _packed_header(command)
    except struct.error as error:
        raise UsageError(
            f"{command!r} does not fit a binary header: {error}",
            hint="code, version and the length of a field's name have 16 bits there; the JSON form has no such limits",
        ) from error


def _packed_header(command: RemotingCommand) -> bytes:
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else LANGUAGES.index("OTHER")
    remark = (command.remark or "").encode("utf-8", "replace")
    entries = bytearray()
    for name, value in command.ext_fields.items():
        key, data = name.encode("utf-8", "replace"), value.encode("utf-8", "replace")
        entries += _I16.pack(len(key)) + key + _I32.pack(len(data)) + data
    fixed = _BINARY_FIXED.pack(command.code, language, command.version, command.opaque, command.flag)
    return b"".join((fixed, _I32.pack(len(remark)), remark, _I32.pack(len(entries)), entries))


def decode(frame: Buffer) -> RemotingCommand:
    """The command in one whole frame, its length field included. Raises CorruptionError with offset and difference."""
    size = len(frame)
    if size < 8:
        raise CorruptionError("a frame is too short for its two length fields", offset=0, expected=">= 8", found=size)
    # Both length fields must fit the frame before anything is cut out of it.
    length = _PREFIX.unpack_from(frame)[0]
    if length != size - 4:
        raise CorruptionError("a frame's length field is wrong", offset=0, expected=size - 4, found=length)
    return decode_at(frame, 0, size)


def decode_at(stream: Buffer, begin: int, end: int) -> RemotingCommand:
    """The command in the frame between two positions, whose length field is right. Raises CorruptionError as decode."""
    length, type_and_header = _PREFIX.unpack_from(stream, begin)
    serialize_type, header_size = type_and_header >> 24, type_and_header & MAX_HEADER
    if header_size > length - 4:
        raise CorruptionError(
            "a header is longer than its frame", offset=4, expected=f"<= {length - 4}", found=header_size
        )
    # The parts. An empty body counts as no body, as in RocketMQ.
    header_end = begin + 8 + header_size
    header = bytes(stream[begin + 8 : header_end])
    body = bytes(stream[header_end:end]) if header_end < end else None
    if serialize_type == JSON:
        return _from_json(header, body)
    if serialize_type == ROCKETMQ:
        return _from_binary(header, body)
    raise CorruptionError("an unknown header type", offset=4, expected="0 (JSON) or 1 (ROCKETMQ)", found=serialize_type)


def _from_json(header: bytes, body: bytes | None) -> RemotingCommand:
    values = _json_object(header)
    fields = values.get("extFields")
    if fields is None:
        fields = {}
    if type(fields) is not dict:
        raise CorruptionError(
            "extFields must be an object", offset=8, expected="an object", found=type(fields).__name__
        )
    for value in fields.values():
        if type(value) is not str:  # some clients leave numbers and booleans unquoted
            fields = _texts(fields)
            break
    remark = values.get("remark")
    if remark is not None and type(remark) is not str:
        remark = java_text(remark)
    try:
        code, flag, opaque, version, language = _USUAL_FIELDS(values)
    except KeyError:  # a client may leave out what is 0
        code = flag = opaque = version = None
        language = values.get("language", "JAVA")
    if language not in LANGUAGES:
        language = _language(language)
    # The usual header passes with one comparison; every other one is read field by field.
    if not type(code) is type(flag) is type(opaque) is type(version) is int:
        code, flag = _whole(values, "code", "nothing"), _whole(values, "flag", 0)
        opaque, version = _whole(values, "opaque", 0), _whole(values, "version", 0)
    return RemotingCommand(code, fields, body, remark, flag, opaque, language, version, JSON)


def _json_object(header: bytes) -> dict[str, Any]:
    text = str(header, "utf-8", "replace")
    # Stripping copies the header, so it is done only when it is needed.
    if text[:1] != "{" or text[-1:] != "}":
        text = text.strip(_JSON_BLANKS)
    try:
        values, end = _json_at_start(text)
        if end != len(text):
            raise ValueError(f"something follows the value at position {end}: {text[end : end + 20]!r}")
    except (ValueError, RecursionError) as error:
        raise CorruptionError(
            "a JSON header does not parse", offset=8, expected="an object", found=str(error)
        ) from error
    if type(values) is not dict:
        raise CorruptionError(
            "a JSON header must be an object", offset=8, expected="an object", found=type(values).__name__
        )
    return values


def _whole(values: dict[str, Any], name: str, default: int | str) -> int:
    value = values.get(name)
    if value is None:
        value = default
    if type(value) is int:
        return value
    raise CorruptionError(f"{name} of a JSON header must be an integer", offset=8, expected="a number", found=value)


def _language(value: Any) -> str:
    if type(value) is str and value in LANGUAGES:
        return value
    return LANGUAGES[value] if type(value) is int and 0 <= value < len(LANGUAGES) else "OTHER"


def _from_binary(header: bytes, body: bytes | None) -> RemotingCommand:
    try:
        code, language, version, opaque, flag = _BINARY_FIXED.unpack_from(header)
        # Remark and fields have lengths of their own; each is checked before it is used.
        remark, position = _long_text(header, _BINARY_FIXED.size)
        (fields_size,) = _I32.unpack_from(header, position)
        position += 4
        if fields_size < 0 or position + fields_size > len(header):
            raise CorruptionError(
                "the fields of a binary header leave it",
                offset=8 + position,
                expected=f"<= {len(header) - position}",
                found=fields_size,
            )
        fields = _binary_fields(header, position, position + fields_size)
    except struct.error as error:
        raise CorruptionError(
            "a binary header is cut short", offset=8, expected="21 bytes or more", found=f"{len(header)} bytes"
        ) from error
    return RemotingCommand(code, fields, body, remark or None, flag, opaque, _language(language), version, ROCKETMQ)


def _binary_fields(header: bytes, position: int, end: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    while position < end:
        (name_size,) = _I16.unpack_from(header, position)
        position += 2
        if name_size < 0 or position + name_size > end:
            raise CorruptionError(
                "a field's name leaves its header",
                offset=8 + position,
                expected=f"<= {end - position}",
                found=name_size,
            )
        name = header[position : position + name_size].decode("utf-8", "replace")
        value, position = _long_text(header, position + name_size)
        if value:  # a zero-length value reads back as absent
            fields[name] = value
    return fields


def _long_text(header: bytes, position: int) -> tuple[str, int]:
    (size,) = _I32.unpack_from(header, position)
    end = position + 4 + size
    if size < 0 or end > len(header):
        raise CorruptionError(
            "a text leaves its header", offset=8 + position, expected=f"<= {len(header) - position - 4}", found=size
        )
    return header[position + 4 : end].decode("utf-8", "replace"), end

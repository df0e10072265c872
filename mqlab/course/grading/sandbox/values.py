"""Values as they cross between an answer's process and the judge's: by value, with their exact types, never as code.

It is used instead of pickle, which would let an answer run code in the judge.

    None True 7 "x" [..]          as JSON has them
    {"bytes": base64}  {"tuple": [..]}  {"dict": [[key, value], ..]}  {"set": [..]}  {"int": hex}  {"float": "nan"}
    {"data": [module, class, [[field, value], ..]]}     a dataclass or named tuple of mqlab
    {"message": [class, [[field, value], ..]]}          a Message or MessageExt
    {"table": [[row, ..], [column, ..], title]}         what a lab answers with
    {"rows": [[item, ..], title]}                       what lab.admin answers with
    {"error": [module, class, [argument, ..], {..}]}    an exception
    {"answer": [..]} {"world": [..]} {"given": [..]}    an object that stays where it is; see ``Codec``

A JSON object has exactly one key, its tag. A subclass of a plain type crosses as the plain type: what it overrides
stays behind.
Cycles and open files are refused, with the name of what was found.
"""

from __future__ import annotations

import base64
import builtins
import dataclasses
import importlib
import json
import math
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Any

from mqlab import errors
from mqlab.rocketmq.wire.message import Message, MessageExt

MAX_BYTES = 1 << 20
MAX_DEPTH = 60
SAFE_INT_BITS = 63
DATA_ROOMS = (
    *(f"mqlab.rocketmq.{room}." for room in ("wire", "store", "client", "filter", "admin", "machine")),
    *(f"mqlab.lab.{room}." for room in ("runtime", "world")),
)
"""Modules whose dataclasses may cross: values only, nothing that acts when it is made."""

MESSAGE_FIELDS = {
    "Message": tuple(Message.__slots__),
    "MessageExt": (*Message.__slots__, *MessageExt.__slots__),
}

Reference = Callable[[Any], dict[str, Any] | None]
Resolve = Callable[[str, Any], Any]


class NotPlain(TypeError):
    """A value cannot cross; the message names it and says what to return instead."""


class Malformed(ValueError):
    """Data from the other side that no encoder wrote."""


class AnswerError(Exception):
    """An exception of a class that only the answer's process knows; ``kind`` is that class's name."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind
        self.text = text


def _no_reference(value: Any) -> dict[str, Any] | None:
    return None


def _no_resolve(tag: str, payload: Any) -> Any:
    raise Malformed(f"unknown tag {tag!r}")


class Codec:
    """Turns values into JSON data and back.

    ``refer`` is asked first for every value that is not plain; it returns a tagged reference or None. ``resolve`` turns
    a reference of the other side into the stand-in for it here. Raises NotPlain when encoding, Malformed when decoding.
    """

    def __init__(self, refer: Reference = _no_reference, resolve: Resolve = _no_resolve) -> None:
        self._refer = refer
        self._resolve = resolve

    def encode(self, value: Any, depth: int = 0) -> Any:
        """JSON data that ``decode`` turns back into an equal value of the same type.

        >>> Codec().encode({"id": (1, b"ab")})
        {'dict': [['id', {'tuple': [1, {'bytes': 'YWI='}]}]]}
        """
        if depth > MAX_DEPTH:
            raise NotPlain(f"a value nested more than {MAX_DEPTH} deep (or inside itself) cannot be handed over")
        simple = _encode_simple(value)
        if simple is not NOT_SIMPLE:
            return simple
        reference = self._refer(value)
        if reference is not None:
            return reference
        return self._encode_compound(value, depth + 1)

    def _encode_compound(self, value: Any, depth: int) -> Any:
        if may_cross(type(value).__module__) and field_names(type(value)) is not None:
            return self._encode_data(value, depth)
        if isinstance(value, list):
            return self._many(list.__iter__(value), depth)
        if isinstance(value, tuple):
            return {"tuple": self._many(tuple.__iter__(value), depth)}
        if isinstance(value, dict):
            pairs = dict.items(value)
            return {"dict": [[self.encode(key, depth), self.encode(item, depth)] for key, item in pairs]}
        if isinstance(value, (set, frozenset)):
            tag = "set" if isinstance(value, set) else "frozenset"
            return {tag: sorted(self._many(value, depth), key=json.dumps)}
        if isinstance(value, BaseException):
            return self._encode_error(value, depth)
        if isinstance(value, Message):
            return self._encode_message(value, depth)
        if type(value).__module__ == "mqlab.lab.views.table":
            return self._encode_table(value, depth)
        if type(value).__module__ == "mqlab.rocketmq.answers":
            return {"rows": [self._many(value, depth), value.title]}
        raise NotPlain(f"{describe(value)} cannot be handed over: {_advice(value)}")

    def _many(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.encode(value, depth) for value in values]

    def _encode_data(self, value: Any, depth: int) -> Any:
        names = field_names(type(value)) or ()
        fields = [[name, self.encode(getattr(value, name), depth)] for name in names]
        return {"data": [type(value).__module__, type(value).__qualname__, fields]}

    def _encode_message(self, message: Message, depth: int) -> Any:
        kind = MessageExt if isinstance(message, MessageExt) else Message
        fields = [[name, self.encode(getattr(message, name, None), depth)] for name in MESSAGE_FIELDS[kind.__name__]]
        return {"message": [kind.__name__, fields]}

    def _encode_table(self, value: Any, depth: int) -> Any:
        if type(value).__name__ == "Row":
            return {"row": self.encode(value.as_dict(), depth)}
        rows = [self.encode(row.as_dict(), depth) for row in value]
        return {"table": [rows, list(value.columns), value.title]}

    def _encode_error(self, error: BaseException, depth: int) -> Any:
        arguments = []
        values = error.args
        if errors.is_of_spark(error):  # an error of PySpark has a message and no arguments
            values = (errors.words_of(error),)
        elif isinstance(error, OSError) and error.filename is not None:
            values = (error.errno, error.strerror, error.filename)
        for argument in values:
            try:
                arguments.append(self.encode(argument, depth))
            except NotPlain:
                arguments.append(describe(argument))
        attributes = {}
        if type(error).__module__ == errors.__name__:
            for name, attribute in sorted(vars(error).items()):
                if name.isidentifier() and (attribute is None or isinstance(attribute, (str, int, bytes))):
                    attributes[name] = self.encode(attribute, depth)
        return {"error": [type(error).__module__, type(error).__qualname__, arguments, attributes]}

    def decode(self, data: Any, depth: int = 0) -> Any:
        """The value of JSON data; Malformed for anything ``encode`` does not write.

        >>> Codec().decode({"tuple": [1, {"bytes": "YWI="}]})
        (1, b'ab')
        """
        # Forged data must not exhaust the stack. Twice the encoder's limit leaves room for the tags that it adds.
        if depth > 2 * MAX_DEPTH:
            raise Malformed("nested too deep")
        if data is None or isinstance(data, (bool, int, float, str)):
            return data
        if isinstance(data, list):
            return [self.decode(item, depth + 1) for item in data]
        if not isinstance(data, dict) or len(data) != 1:
            raise Malformed(f"expected one tag, found {describe(data)}")
        ((tag, payload),) = data.items()
        try:
            return self._decode_tagged(tag, payload, depth + 1)
        except Malformed:
            raise
        except Exception as error:  # whatever a constructor makes of values that no encoder wrote
            raise Malformed(f"{tag}: {error}") from error

    def _decode_tagged(self, tag: str, payload: Any, depth: int) -> Any:
        # 1. Values that contain no other values.
        plain = _PLAIN_TAGS.get(tag)
        if plain is not None:
            return plain(_expect(str, payload))
        # 2. Containers: their items are decoded first.
        if tag in ("tuple", "set", "frozenset"):
            items = [self.decode(item, depth) for item in _expect(list, payload)]
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](items)
        if tag == "dict":
            return {self.decode(key, depth): self.decode(item, depth) for key, item in _expect(list, payload)}
        # 3. Objects are made by their constructors, and only those of classes that may cross.
        if tag == "data":
            module, name, fields = payload
            return data_class(module, name)(**{_expect(str, n): self.decode(v, depth) for n, v in fields})
        if tag == "error":
            module, name, arguments, attributes = payload
            return _make_error(
                _expect(str, module),
                _expect(str, name),
                [self.decode(item, depth) for item in _expect(list, arguments)],
                {_expect(str, key): self.decode(item, depth) for key, item in _expect(dict, attributes).items()},
            )
        if tag == "message":
            name, fields = payload
            return _make_message(_expect(str, name), {_expect(str, n): self.decode(v, depth) for n, v in fields})
        if tag in ("row", "table"):
            return self._decode_table(tag, payload, depth)
        if tag == "rows":
            from mqlab.rocketmq.answers import Rows

            items, title = payload
            return Rows([self.decode(item, depth) for item in _expect(list, items)], _expect(str, title))
        # 4. Everything else refers to an object that stayed on its own side.
        return self._resolve(tag, payload)

    def _decode_table(self, tag: str, payload: Any, depth: int) -> Any:
        from mqlab.lab.views.table import Row, Table

        if tag == "row":
            return Row(_expect(dict, self.decode(payload, depth)))
        rows, columns, title = payload
        names = dict.fromkeys(_expect(str, name) for name in _expect(list, columns))
        decoded = [_expect(dict, self.decode(row, depth)) for row in _expect(list, rows)]
        if len(names) != len(columns) or any(row.keys() != names.keys() for row in decoded):
            raise Malformed("a table whose rows are not of its columns")  # filling gaps could make it huge
        return Table(decoded, columns=list(names), title=_expect(str, title))


NOT_SIMPLE: Any = object()


def _encode_simple(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        number = int.__index__(value)
        return number if number.bit_length() <= SAFE_INT_BITS else {"int": hex(number)}
    if isinstance(value, float):
        real = float.__float__(value)
        return real if math.isfinite(real) else {"float": float.__repr__(real)}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        tag = "bytes" if isinstance(value, bytes) else "bytearray" if isinstance(value, bytearray) else "memoryview"
        return {tag: base64.b64encode(bytes(memoryview(value))).decode("ascii")}
    if isinstance(value, PurePath):
        return {"path": str(value)}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return _encode_simple(value.item())
    return NOT_SIMPLE


def _unpack(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_PLAIN_TAGS: dict[str, Callable[[str], Any]] = {
    "bytes": _unpack,
    "bytearray": lambda text: bytearray(_unpack(text)),
    "memoryview": lambda text: memoryview(_unpack(text)),
    "int": lambda text: int(text, 16),
    "float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "path": Path,
}


def _expect(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Malformed(f"expected {kind.__name__}, found {describe(value)}")
    return value


def may_cross(module: str) -> bool:
    """Whether dataclasses and named tuples of this module are values that both sides know."""
    return module.startswith(DATA_ROOMS)


def field_names(kind: type) -> tuple[str, ...] | None:
    """The fields that make a dataclass or a named tuple; None for other classes."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind) if field.init)
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def data_class(module: str, name: str) -> Any:
    """The dataclass or named tuple of that name, if it may cross; Malformed otherwise."""
    if not (isinstance(module, str) and isinstance(name, str) and name.isidentifier() and may_cross(module)):
        raise Malformed(f"{module}.{name} is not a value of mqlab")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Malformed(f"there is no {module}.{name}") from error
    if not (isinstance(kind, type) and field_names(kind) is not None and kind.__module__ == module):
        raise Malformed(f"{module}.{name} is not a value of that module")
    return kind


def _make_message(name: str, values: dict[str, Any]) -> Message:
    """A message field by field; Malformed when a field is missing, unknown or of the wrong type."""
    kind = {"Message": Message, "MessageExt": MessageExt}[name]
    if tuple(values) != MESSAGE_FIELDS[name]:
        raise Malformed(f"a {name} with the fields {', '.join(values)}")
    if type(values["properties"]) is not dict or type(values["body"]) is not bytes:
        raise Malformed(f"a {name} whose properties or body are none")
    message = kind.__new__(kind)
    for field, value in values.items():
        setattr(message, field, value)
    return message


def _make_error(module: str, name: str, arguments: list[Any], attributes: dict[str, Any]) -> BaseException:
    home: Any = {room.__name__: room for room in (builtins, sqlite3, errors)}.get(module)
    kind = getattr(home, name, None) if home is not None and name.isidentifier() else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return AnswerError(name.rpartition(".")[2], " ".join(map(str, arguments)))
    try:
        if home is not errors:  # some keep their message apart from ``args``
            return kind(*arguments)
        error = kind.__new__(kind, *arguments)
        error.args = tuple(arguments)
        vars(error).update(attributes)
        return error
    except Exception:  # some classes, such as UnicodeDecodeError, need arguments of a certain kind
        return AnswerError(name, " ".join(map(str, arguments)))


def describe(value: Any) -> str:
    """What a value is, in a few words that no ``__repr__`` of a learner can forge.

    >>> describe([1, 2]), describe(len)
    ('a list', 'the builtin_function_or_method len')
    """
    kind = type(value).__name__
    name = getattr(value, "__name__", None) if not isinstance(value, type) else None
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(name, str):
        return f"the {kind} {name[:80]}"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _advice(value: Any) -> str:
    if hasattr(value, "__next__"):
        return "give a list: return list(...)"
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas", "pyarrow", "pyspark"):
        return "give plain Python values: .tolist(), .to_dict('records'), .collect()"
    return "give plain values (numbers, text, bytes, lists, tuples, dicts, sets) or mqlab's own"


def dump_line(message: dict[str, Any]) -> bytes:
    """One message as one line of ASCII JSON. NotPlain when it is longer than the cap."""
    line = _WRITER.encode(message).encode("ascii") + b"\n"
    if len(line) > MAX_BYTES:
        raise NotPlain(f"a value of {len(line):,} bytes is too large to hand over; the limit is {MAX_BYTES:,}")
    return line


def load_line(line: bytes) -> dict[str, Any]:
    """The message of a line. Malformed if it is not one."""
    try:
        message = _READER.decode(line.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {line[:60]!r}") from error
    if not isinstance(message, dict):
        raise Malformed(f"expected a message, found {describe(message)}")
    return message


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not written by an encoder")


# Made once: a call of an answer is a dozen lines, and json.dumps and json.loads would make these for each.
_WRITER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_READER = json.JSONDecoder(parse_constant=_refuse_constant)

"""lab11.entries: one body of the trace topic, taken apart.

body  Pub␁…␂SubBefore␁…␂SubAf         ──▶   0  Pub        1767225600045  shop     …
                                            1  SubBefore  1767225600291  billing  …
                                            2                                     no end mark
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import OneOf, Rows, Slip
from mqlab.course.kit.rows import WrongRow
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.data.traffic.model import FIRST_DAY_MS
from mqlab.rocketmq.client.sending.trace import CONTENT_SPLITTER, FIELD_SPLITTER
from mqlab.scales import MINUTE

KEYS = ("order-17", "заказ-5", "订单-8", "яд-1", "")
END = FIELD_SPLITTER.encode()
ADDRESS = "10.0.0.7:51234"  # some releases write the client's address at the end of an entry


def entry(*fields: object) -> bytes:
    """One entry as a client writes it, with its end mark.

    >>> entry("Pub", 17, None)
    b'Pub\\x0117\\x01null\\x02'
    """
    texts = ("null" if field is None else str(field).lower() if isinstance(field, bool) else field for field in fields)
    return (CONTENT_SPLITTER.join(map(str, texts)) + FIELD_SPLITTER).encode()


class Writer:
    """Writes entries with values of its random generator; each goes on a little in time."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"lab11.entries {seed}")
        self._now_ms = FIRST_DAY_MS + self._rng.randrange(600 * MINUTE)

    def _next_ms(self) -> int:
        self._now_ms += self._rng.randrange(1, 5_000)
        return self._now_ms

    def _id(self) -> str:
        return f"0A0000{self._rng.randrange(16**26):026X}"

    def _keys(self) -> str:
        return self._rng.choice(KEYS)

    def pub(self, success: bool, *more: str, keys: str | None = "order-1", old: bool = False) -> bytes:
        """A message was sent; an old client does not tell its offset_msg_id."""
        offset_msg_id = () if old else (self._id(),)
        return entry(
            "Pub",
            self._next_ms(),
            "DefaultRegion",
            "shop",
            "orders",
            self._id(),
            "paid",
            keys,
            "10.0.0.2:10911",
            self._rng.randrange(9, 900),
            self._rng.randrange(1, 40),
            0,
            *offset_msg_id,
            success,
            *more,
        )

    def before(self, keys: str | None = None, *more: str) -> bytes:
        """A listener is called."""
        keys = self._keys() if keys is None else keys
        return entry(
            "SubBefore", self._next_ms(), None, "billing", self._id(), self._id(), self._rng.randrange(4), keys, *more
        )

    def after(self, success: bool, *, old: bool = False) -> bytes:
        """A listener is back; an old client tells neither when nor in which group."""
        more = () if old else (0 if success else 4, self._next_ms(), "billing")
        return entry(
            "SubAfter", self._id(), self._id(), self._rng.randrange(1_000, 90_000), success, self._keys(), *more
        )

    def end(self) -> bytes:
        """A transaction is over."""
        msg_id = self._id()
        return entry(
            "EndTransaction",
            self._next_ms(),
            "DefaultRegion",
            "till",
            "orders",
            msg_id,
            "paid",
            "order-9",
            "10.0.0.2:10911",
            2,
            msg_id,
            "COMMIT_MESSAGE",
            False,
        )

    def recalled(self) -> bytes:
        """A kind that newer clients know."""
        return entry("Recall", self._next_ms(), "DefaultRegion", "shop", "orders", self._id(), True)

    def damaged(self) -> bytes:
        """A number that is none."""
        return self.before().replace(b"SubBefore\x011", b"SubBefore\x01x", 1)

    def damaged_later(self) -> bytes:
        """The number is the cost."""
        return entry("SubAfter", self._id(), self._id(), "12x", True, self._keys(), 0, self._next_ms(), "billing")


def calls(seed: int) -> Iterator[Call]:
    """Bodies of new clients, of old ones, damaged ones, and bodies that end too early."""
    write = Writer(seed)
    new = [write.pub(True), write.pub(False, keys=None), write.before(""), write.after(True), write.after(False)]
    yield _call("the body of a new client", *new, write.end(), write.pub(True, ADDRESS))
    old = [write.pub(True, old=True), write.pub(False, old=True, keys=None), write.before("заказ-5", ADDRESS)]
    yield _call("the body of old clients", *old, write.after(True, old=True), write.after(False, old=True))
    short = write.before().rpartition(CONTENT_SPLITTER.encode())[0] + END
    both = write.damaged().rpartition(CONTENT_SPLITTER.encode())[0] + END  # too short, and not a number
    yield _call(
        "a damaged body",
        write.before(),
        write.recalled(),
        short,
        write.damaged(),
        both,
        write.after(True),
        write.damaged_later(),
    )
    last = write.after(True)
    yield _call("a body that ends inside a number", write.before(), last[: last.rindex(b"\x01billing") - 3])
    yield _call("a body that ends inside a letter", write.pub(True), write.before("заказ")[:-2])
    yield _call("an empty body")


def _call(about: str, *pieces: bytes) -> Call:
    body = b"".join(pieces)
    return Call(body=body, right=trace.read_entries(body), about=about)


def _without_the_rest(call: Call) -> list[Row]:
    return [row for row in trace.read_entries(call["body"]) if row["reason"] != trace.NO_END_MARK]


def _rest_as_an_entry(call: Call) -> list[Row]:
    body: bytes = call["body"]
    return trace.read_entries(body if body.endswith(END) or not body else body + END)


def _every_text_is_true(call: Call) -> list[Row]:
    return [row if row["success"] is None else row | {"success": True} for row in trace.read_entries(call["body"])]


def _from_the_end(call: Call) -> OneOf:
    """What comes of the last field, for the keys of a SubBefore entry or the success of a Pub entry."""
    rows = list(zip(trace.read_entries(call["body"]), _fields(call["body"]), strict=True))
    keys = [row | {"keys": field[-1]} if row["kind"] == "SubBefore" else row for row, field in rows]
    success = [row | {"success": field[-1] == "true"} if row["kind"] == "Pub" else row for row, field in rows]
    return OneOf((keys, success))


def _success_at_13(call: Call) -> list[Row]:
    """A Pub entry of 13 fields has no field 13."""
    rows = trace.read_entries(call["body"])
    return [
        row | {"success": None} if row["kind"] == "Pub" and len(field) == 13 else row
        for row, field in zip(rows, _fields(call["body"]), strict=True)
    ]


def _null_is_text(call: Call) -> list[Row]:
    rows = trace.read_entries(call["body"])
    return [row | {"keys": "null"} if row["kind"] == "Pub" and row["keys"] is None else row for row in rows]


def _no_number_is_wrong(call: Call) -> list[Row]:
    """As if an entry with a damaged number had only lost it."""
    return [row for row in trace.read_entries(call["body"]) if row["reason"] != trace.NOT_A_NUMBER]


def _fields(body: bytes) -> Sequence[list[str]]:
    pieces = body.split(END)
    return [piece.decode("utf-8", "replace").split(CONTENT_SPLITTER) for piece in pieces if piece]


def _explain(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    damaged = wrong.right is not None and wrong.right["reason"] == trace.NOT_A_NUMBER
    return refutation("lab11.enough_fields") if damaged else ""


ENTRIES = Rows(
    "lab11.entries",
    "entries(body)",
    points=3,
    about="six bodies",
    calls=calls,
    columns=trace.COLUMNS,
    by=("position",),
    forbids=FORBIDS["lab11.entries"],
    explain=_explain,
    slips=[
        Slip("without the rest", _without_the_rest, belief="lab11.rest_is_nothing"),
        Slip("the rest is an entry", _rest_as_an_entry, belief="lab11.rest_is_whole"),
        Slip("every text is true", _every_text_is_true, belief="lab11.false_is_true"),
        Slip("from the end", _from_the_end, belief="lab11.counted_from_the_end"),
        Slip("success at 13", _success_at_13, belief="lab11.one_release"),
        Slip("every number is one", _no_number_is_wrong, belief="lab11.enough_fields"),
        Slip("null is a text", _null_is_text, belief="lab11.null_is_text"),
    ],
    rules={
        "missing": "Each entry has a row, with its position from 0 on. An unreadable one has a position and a reason",
        "extra": "An entry ends with 0x02. After the last end mark there is nothing, or an entry that was cut",
        "reason": f"The first that is true: {trace.NO_END_MARK!r} after the last 0x02, {trace.UNKNOWN_KIND!r} if "
        f"FIELDS has no such kind, {trace.TOO_SHORT!r} if it has fewer fields than FEWEST, "
        f"{trace.NOT_A_NUMBER!r} if a field of NUMBERS is not a number",
        "kind": "kind is field 0; an entry that has a reason has None in every column but position and reason",
        "success": 'success is True where the string is "true", False where it is another one, and None in an entry '
        "that has no such field",
        "keys": 'keys are the string in the field that FIELDS names, decoded as UTF-8: "" if the message has none, '
        "None for null",
        "": "FIELDS has the number of the field for each column of a kind; a missing field is None",
    },
)

"""The two ids of a message: where it is stored, and the unique key its sender made.

Mirrors: MessageDecoder.createMessageId and decodeMessageId, MessageClientIDSetter. Lab 00, 01.

    offset id    address 4|16   port i32   physical offset i64                        32 or 56 hex digits
    unique key   ip 4|16   pid i16   loader hash i32   ms since the month began i32   counter i16      the same lengths

Left out: Java's lazily refreshed local month; here the month is UTC's and exact, so an id depends on its inputs only.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire.host import V4_SIZE, V6_SIZE, Host, decode_host, encode_host

_OFFSET = struct.Struct(">q")
_UNIQUE = struct.Struct(">Hi")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def offset_msg_id(host: Host, physical_offset: int) -> str:
    """The id by which a broker finds a message without any index: its own address and the position in the log.

    >>> offset_msg_id(("192.168.0.7", 10911), 1048576)
    'C0A8000700002A9F0000000000100000'
    """
    return f"{_host_digits(host)}{physical_offset & 0xFFFFFFFFFFFFFFFF:016X}"


def offset_msg_ids(host: Host, physical_offsets: Iterable[int]) -> str:
    """The ids of several messages of one broker, joined by commas as the answer to a batch has them."""
    digits = _host_digits(host)
    return ",".join([f"{digits}{physical_offset:016X}" for physical_offset in physical_offsets])


@lru_cache(maxsize=1024)
def _host_digits(host: Host) -> str:
    return encode_host(host).hex().upper()


def parse_offset_msg_id(text: str) -> tuple[Host, int]:
    """Host and physical offset of an offset id. Raises CorruptionError for any other text.

    >>> parse_offset_msg_id("C0A8000700002A9F0000000000100000")
    (('192.168.0.7', 10911), 1048576)
    """
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) - _OFFSET.size not in (V4_SIZE, V6_SIZE) or len(text) != 2 * len(data):
        raise CorruptionError("not an offset message id", expected="32 or 56 hex digits", found=repr(text[:80]))
    return decode_host(data[: -_OFFSET.size]), _OFFSET.unpack_from(data, len(data) - _OFFSET.size)[0]


class UniqueIdMaker:
    """Makes the UNIQ_KEYs of one client process: ``ip``, ``pid`` and ``loader_hash`` never change, the counter always.

    >>> maker = UniqueIdMaker("192.168.0.7", 4021, 0x30946E09, counter=10)
    >>> maker.next(1700000000456), maker.next(1700000000456)
    ('C0A800070FB530946E0947B761C8000A', 'C0A800070FB530946E0947B761C8000B')
    """

    __slots__ = ("_counter", "_month_begins_ms", "_month_ends_ms", "_prefix")

    def __init__(self, ip: str, pid: int, loader_hash: int, *, counter: int = 0) -> None:
        try:
            address = ipaddress.ip_address(ip).packed
        except ValueError as error:
            raise UsageError(f"not an address: {ip!r}", hint="a client's ip is numeric, such as 10.0.0.5") from error
        signed_hash = (loader_hash + 2**31) % 2**32 - 2**31
        self._prefix = (address + _UNIQUE.pack(pid & 0xFFFF, signed_hash)).hex().upper()
        self._counter = counter & 0xFFFF
        self._month_begins_ms = self._month_ends_ms = 0

    def next(self, now_ms: int) -> str:
        """A new id; two made in the same ms differ in their counter, which wraps after 65,536."""
        if not self._month_begins_ms <= now_ms < self._month_ends_ms:
            self._enter_month(now_ms)
        passed_ms = (now_ms - self._month_begins_ms) & 0xFFFFFFFF
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        return f"{self._prefix}{passed_ms:08X}{counter:04X}"

    def _enter_month(self, now_ms: int) -> None:
        first = (_EPOCH + now_ms * _MS).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        self._month_begins_ms = (first - _EPOCH) // _MS
        self._month_ends_ms = ((first + timedelta(days=31)).replace(day=1) - _EPOCH) // _MS

    def __repr__(self) -> str:
        return f"<UniqueIdMaker {self._prefix} next counter {self._counter}>"

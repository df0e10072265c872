"""A host: an address and a port, a string in programs and as 8 or 20 bytes in stored units and message ids.

Mirrors: MessageExt.getBornHostBytes and getStoreHostBytes, MessageExtEncoder. Lab 01.

    ("10.1.2.3", 54321)      0a010203 0000d431                              4 bytes and an i32 port
    ("2001:db8::7", 10911)   20010db8000000000000000000000007 00002a9f      16 bytes and an i32 port

Read back, an IPv6 address has Java's spelling: eight groups, no leading zeros, no "::".
Left out: names (a host is stored as numbers only).
"""

from __future__ import annotations

import ipaddress
import struct
from functools import lru_cache

from mqlab.errors import CorruptionError, UsageError

Host = tuple[str, int]

V4_SIZE = 8
V6_SIZE = 20

_V6 = struct.Struct(">8Hi")
_PORT = struct.Struct(">i")


@lru_cache(maxsize=4096)
def encode_host(host: Host) -> bytes:
    """The 8 or 20 bytes of a host; the length says which kind it is. Raises UsageError.

    >>> encode_host(("10.1.2.3", 54321)).hex(), len(encode_host(("::1", 1)))
    ('0a0102030000d431', 20)
    """
    address, port = host
    try:
        return ipaddress.ip_address(address).packed + _PORT.pack(port)
    except (ValueError, struct.error) as error:
        raise UsageError(
            f"not a host: {host!r}", hint='a host is (address, port) with a numeric address: ("10.0.0.1", 10911)'
        ) from error


@lru_cache(maxsize=4096)
def decode_host(data: bytes) -> Host:
    """The host in 8 or 20 bytes. The port is any i32, as stored. Raises CorruptionError.

    >>> decode_host(bytes.fromhex("20010db800000000000000000000000700002a9f"))
    ('2001:db8:0:0:0:0:0:7', 10911)
    """
    if len(data) == V4_SIZE:
        return f"{data[0]}.{data[1]}.{data[2]}.{data[3]}", _PORT.unpack_from(data, 4)[0]
    if len(data) == V6_SIZE:
        *groups, port = _V6.unpack(data)
        return ":".join([f"{group:x}" for group in groups]), port
    raise CorruptionError("a host has a wrong length", expected=f"{V4_SIZE} or {V6_SIZE} bytes", found=len(data))


@lru_cache(maxsize=4096)
def host_of(address: str) -> Host:
    """The host in ``"ip:port"``, as nodes write their addresses. Raises UsageError.

    >>> host_of("10.0.0.2:10911"), host_of("[::1]:10911")
    (('10.0.0.2', 10911), ('::1', 10911))
    """
    ip, _, port = address.rpartition(":")
    if not ip or not port.isdecimal():
        raise UsageError(f"not an address: {address!r}", hint='an address is "ip:port", such as "10.0.0.2:10911"')
    return ip.removeprefix("[").removesuffix("]"), int(port)


def address_text(ip: str, port: int) -> str:
    """The address of a node as a text; ``host_of`` takes it apart.

    >>> address_text("10.0.0.2", 10911), address_text("::1", 10911)
    ('10.0.0.2:10911', '[::1]:10911')
    """
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"

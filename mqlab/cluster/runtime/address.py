"""Where a node listens: an address taken apart, and whether other machines can reach it.

Mirrors: org.apache.rocketmq.common.utils.NetworkUtil.string2SocketAddress.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from mqlab.errors import UsageError


@dataclass(frozen=True, slots=True)
class Address:
    """An address taken apart: "host:port", "[v6]:port" or "v6:port"."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str) -> Address:
    """Take an address apart. UsageError when it is none.

    >>> address_of("broker.example:10911"), address_of("[::1]:9876").host
    (Address(host='broker.example', port=10911), '::1')
    """
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_one = ":" not in host or _is_v6(host)
    if not host or not is_one or set(host) & set(",;/ ") or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{text!r} is not an address", hint='write host:port, such as "127.0.0.1:9876"')
    return Address(host, int(port))


def _is_v6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

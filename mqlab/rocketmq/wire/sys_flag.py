"""The bits of the two sysFlag numbers: one in every stored unit, one in every pull request.

Mirrors: MessageSysFlag and PullSysFlag. Lab 01 decodes the first.

    message  bit 0 compressed | 1 multi tags | 2-3 transaction: 0 none 4 prepared 8 commit 12 rollback
             4 born host IPv6 | 5 store host IPv6 | 6-7 inner batch | 8-10 compression: 1 LZ4, 2 ZSTD, 3 or 0 ZLIB
    pull     1 commit offset valid | 2 may be held | 4 subscription text valid | 8 class filter | 16 lite pull
"""

from __future__ import annotations

COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_MASK = 0xC
TRANSACTION_NOT_TYPE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
HOST_BITS = BORN_HOST_V6 | STORE_HOST_V6  # the hosts decide them, not the sender
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_MASK = 0x700
COMPRESSION_LZ4 = 0x100
COMPRESSION_ZSTD = 0x200
COMPRESSION_ZLIB = 0x300

PULL_COMMIT_OFFSET = 0x1
PULL_SUSPEND = 0x2
PULL_SUBSCRIPTION = 0x4
PULL_CLASS_FILTER = 0x8
PULL_LITE = 0x10

_NAMED_BITS = (
    (COMPRESSED, "compressed"),
    (MULTI_TAGS, "multi tags"),
    (BORN_HOST_V6, "born host IPv6"),
    (STORE_HOST_V6, "store host IPv6"),
    (NEED_UNWRAP, "need unwrap"),
    (INNER_BATCH, "inner batch"),
)
_TRANSACTIONS = {TRANSACTION_PREPARED: "prepared", TRANSACTION_COMMIT: "commit", TRANSACTION_ROLLBACK: "rollback"}
_COMPRESSIONS = {COMPRESSION_LZ4: "LZ4", COMPRESSION_ZSTD: "ZSTD", COMPRESSION_ZLIB: "ZLIB"}


def transaction_type(sys_flag: int) -> int:
    """The two transaction bits of a message's flag, one of the TRANSACTION_ constants."""
    return sys_flag & TRANSACTION_MASK


def with_transaction_type(sys_flag: int, transaction: int) -> int:
    """The flag with its two transaction bits replaced. Mirrors MessageSysFlag.resetTransactionValue."""
    return sys_flag & ~TRANSACTION_MASK | transaction


def compression_name(sys_flag: int) -> str:
    """Which compression a compressed body has; without type bits it is ZLIB, as old clients send it.

    >>> compression_name(0x1), compression_name(0x101), compression_name(0x501)
    ('ZLIB', 'LZ4', 'unknown')
    """
    kind = sys_flag & COMPRESSION_MASK
    return _COMPRESSIONS.get(kind, "unknown") if kind else "ZLIB"


def describe(sys_flag: int) -> str:
    """A description of a message's flag.

    >>> describe(0x301), describe(0x34), describe(0)
    ('compressed ZLIB', 'prepared, born host IPv6, store host IPv6', '')
    """
    words = [name for bit, name in _NAMED_BITS if sys_flag & bit]
    if sys_flag & COMPRESSED:
        words[0] = f"compressed {compression_name(sys_flag)}"
    if transaction_type(sys_flag):
        words.insert(1 if sys_flag & COMPRESSED else 0, _TRANSACTIONS[transaction_type(sys_flag)])
    return ", ".join(words)


def pull_sys_flag(
    *, commit_offset: bool = False, suspend: bool = False, subscription: bool = False, lite: bool = False
) -> int:
    """The flag of a pull request. Mirrors PullSysFlag.buildSysFlag."""
    return (
        PULL_COMMIT_OFFSET * commit_offset
        | PULL_SUSPEND * suspend
        | PULL_SUBSCRIPTION * subscription
        | PULL_LITE * lite
    )

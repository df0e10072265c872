"""Takes from a worker, and from all that it starts, the right to make user namespaces.

Called by mqlab.course.grading.sandbox.worker before any code of an answer runs.

    unshare, clone with CLONE_NEWUSER    EPERM, "not permitted"
    setns, calls of another machine      EPERM
    clone3                               ENOSYS: its flags are in memory, so the C library falls back to clone

In a user namespace a process is root of a world of its own: it can mount file systems, and reaches parts of the kernel
that only root reaches else. Where bubblewrap is not root it has ``--disable-userns`` for that. Where it is, it makes no
user namespace, and the option needs one. So a seccomp filter is installed, which works for both: a few instructions
that the kernel runs before each system call.

Left out: other machines than x86-64 and ARM64 (``is_off`` is false there, and the probe of the walls says so).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

CLONE_NEWUSER = 0x10000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
LOAD, EQUALS, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Codes of the instructions: BPF_LD|W|ABS, BPF_JMP|JEQ|K, JGE, JSET, BPF_RET|K."""
NUMBER_AT, MACHINE_AT, FIRST_ARGUMENT_AT = 0, 4, 16
"""Offsets in struct seccomp_data."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
X32_BIT = 0x40000000
"""Numbers of x86-64's calls with 32-bit pointers begin here."""
MACHINES = {"x86_64": (0xC000003E, 272, 56, 308), "aarch64": (0xC00000B7, 97, 220, 268)}
"""Name -> AUDIT_ARCH, the numbers of unshare, clone and setns."""
CLONE3 = 435


def program_of(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter of a machine: (code, instructions to skip if true, if false, value). KeyError for unknown machines."""
    audit_arch, unshare, clone, setns = MACHINES[machine]
    refused, unknown = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
    return [
        (LOAD, 0, 0, MACHINE_AT),
        (EQUALS, 0, 8, audit_arch),  # else: refuse
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, 6, 0, X32_BIT),  # refuse
        (EQUALS, 5, 0, setns),  # refuse
        (EQUALS, 5, 0, CLONE3),  # unknown
        (EQUALS, 1, 0, unshare),  # look at the flags
        (EQUALS, 0, 4, clone),  # else: allow
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        (HAS_BITS, 0, 2, CLONE_NEWUSER),  # else: allow
        (RETURN, 0, 0, refused),
        (RETURN, 0, 0, unknown),
        (RETURN, 0, 0, ALLOW),
    ]


def switch_off() -> None:
    """Install the filter, for good. OSError if the kernel refuses it; nothing happens on machines without one."""
    if platform.machine() not in MACHINES or platform.system() != "Linux":
        return
    words = program_of(platform.machine())
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *word) for word in words))
    program = struct.pack("HP", len(words), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    filter_at = ctypes.create_string_buffer(program)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER_MODE, filter_at, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"no filter of system calls: {os.strerror(number)}")


def is_off() -> bool:
    """Whether this process cannot make a user namespace. It has one afterwards if it can."""
    return bool(ctypes.CDLL(None).unshare(CLONE_NEWUSER))

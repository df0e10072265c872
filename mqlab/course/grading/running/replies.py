"""What a worker's lines must look like, since the judge trusts nothing else in them; and the line about a death.

Used by mqlab.course.grading.judging.desk.
"""

from __future__ import annotations

from typing import Any

from mqlab.course.grading.sandbox.values import Malformed


def checked(reply: dict[str, Any], number: int) -> str:
    """The op of a reply to the call of a number. Malformed, KeyError or TypeError for anything else."""
    op = reply["op"]
    wanted = {
        "return": ("value",),
        "raise": ("error", "trace"),
        "refused": ("text",),
        "ask": ("world", "verb", "args", "kwargs"),
        "line": ("where",),
    }
    if op not in wanted or reply["call"] != number or any(key not in reply for key in wanted[op]):
        raise Malformed(f"an answer to another question ({str(op)[:20]!r})")
    for key, kind in {
        "trace": str,
        "text": str,
        "where": str,
        "verb": str,
        "world": int,
        "args": list,
        "kwargs": dict,
    }.items():
        if key in wanted[op] and type(reply[key]) is not kind:
            raise Malformed(f"{key} is not of type {kind.__name__}")
    return str(op)


def are_names(names: Any) -> bool:
    """True for a short list of identifiers; "=" follows an optional parameter, "*" means any number more."""
    return (
        isinstance(names, list)
        and len(names) <= 200
        and all(isinstance(n, str) and (n == "*" or n.removesuffix("=").isidentifier()) for n in names)
    )


def down(error: BaseException) -> dict[str, Any]:
    """The message that tells an answer that its process is dead."""
    return {"op": "resume", "error": "NodeDown", "text": str(error)}

"""Every error that mqlab raises on purpose: wrong use, or a failure outside of the caller's code.

Mirrors: the exception packages of RocketMQ's client and remoting modules.

    MqlabError
    ├── UsageError          the call has no meaning: a wrong name, range or combination
    │   └── NotGiven        a part of mqlab that does what an exercise asks for, used in its answer
    ├── CorruptionError     bytes that are not what the format says (file, physical offset, expected, found)
    ├── StoreError          the store refuses a request or cannot continue
    ├── RemotingError       a request got no usable answer (not sent, connection lost, timed out)
    ├── BrokerError         an answer that is not SUCCESS, with its response code
    ├── PartlyDone          a change of several steps of which some failed, with the outcome of each
    ├── ClientError         the client itself refuses (MQClientException)
    ├── FilterError         a filter expression that does not parse or evaluate
    ├── NodeLost            the node ended while a call waited for it
    └── LimitReached        the world was played to its limit and the condition did not hold

Left out: the many Java subclasses that differ only in name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class MqlabError(Exception):
    """The base of all errors: a message, a stable code, and a hint about what to do.

    ``not_done`` is True when the effect definitely did not happen, ``retry_helps`` when trying again may work.
    """

    code = "mqlab"
    not_done = True
    retry_helps = False

    def __init__(self, text: str, *, hint: str = "") -> None:
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)
        self.text = text
        self.hint = hint


class UsageError(MqlabError, ValueError):
    """A call that has no meaning: the message has the value and what is allowed, the hint what to write instead."""

    code = "usage"


class NotGiven(UsageError):
    """A part of mqlab that does what an exercise asks for was used in an answer to it. ``name`` is its full name."""

    code = "not_given"

    def __init__(self, name: str) -> None:
        self.name = name
        why, hint = (
            "it does what you are asked to write",
            "write it with Python itself and with what the exercise gives you",
        )
        if name.startswith("mqlab.lab.world.faults."):
            why, hint = "what is asked for has to happen without a fault", "use members, messages and time"
        super().__init__(f"{name} cannot be used in this exercise: {why}", hint=hint)


class CorruptionError(MqlabError):
    """Bytes that are not what the format says.

    ``what`` is wrong, ``where`` names the file, ``offset`` the position in it or in the log, ``expected`` and ``found``
    the difference; the message has all of it.
    """

    code = "corruption"

    def __init__(
        self,
        text: str,
        *,
        where: str = "",
        offset: int | None = None,
        expected: object = None,
        found: object = None,
        hint: str = "",
    ) -> None:
        # One sentence with everything that is known: where, which position, and the difference.
        position = f" in {where}" if where else ""
        position += f" at offset {offset}" if offset is not None else ""
        difference = f": expected {expected}, found {found}" if expected is not None or found is not None else ""
        super().__init__(f"{text}{position}{difference}", hint=hint)
        self.what = text
        self.where = where
        self.offset = offset
        self.expected = expected
        self.found = found


class StoreError(MqlabError):
    """The store refuses a request or cannot continue (locked, disk full, shut down)."""

    code = "store"


class PartFailed(StoreError):
    """A broker cannot keep what it was asked to, because one of its parts has failed; see rocketmq.store.failures."""


class RemotingError(MqlabError):
    """A request without a usable answer. Mirrors RemotingException and its subclasses, named by ``code``.

    Codes: ``connect`` (no server listens or answers there), ``closed`` (the connection was lost), ``timeout``,
    ``too_much_request``. Only ``connect`` makes it certain that the request had no effect.
    """

    def __init__(self, text: str, *, code: str, hint: str = "") -> None:
        super().__init__(text, hint=hint)
        self.code = code
        self.not_done = code == "connect"
        self.retry_helps = True


class BrokerError(MqlabError):
    """A broker or name server refused a request. Mirrors MQBrokerException; ``response_code`` is its ResponseCode."""

    code = "broker"

    def __init__(self, response_code: int, remark: str | None, *, address: str = "", hint: str = "") -> None:
        super().__init__(
            f"CODE: {response_code}  DESC: {remark}" + (f"  FROM: {address}" if address else ""), hint=hint
        )
        self.response_code = response_code
        self.remark = remark
        self.address = address


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a change: what it was taken on, what became of it in words, and whether it was done."""

    target: str
    outcome: str
    done: bool

    def __str__(self) -> str:
        return f"{self.target}: {self.outcome}"


class PartlyDone(MqlabError):
    """A change of several steps of which some were done and others were not; ``steps`` has every Step in order."""

    code = "partly_done"
    not_done = False
    retry_helps = True

    def __init__(self, name: str, steps: tuple[Step, ...], *, hint: str = "") -> None:
        count = sum(step.done for step in steps)
        lines = "".join(f"\n  {step}" for step in steps)
        super().__init__(f"{name}: {count} of {len(steps)} steps were done{lines}", hint=hint)
        self.steps = steps


class ClientError(MqlabError):
    """The client refuses before or instead of asking a broker. Mirrors MQClientException."""

    code = "client"


class FilterError(MqlabError, ValueError):
    """A filter expression that does not parse (``position`` points into it) or does not evaluate."""

    code = "filter"

    def __init__(self, text: str, *, position: int | None = None, hint: str = "") -> None:
        super().__init__(text, hint=hint)
        self.position = position


class LimitReached(MqlabError):
    """The world was played to its limit and the condition did not hold."""

    code = "limit"


class NodeLost(MqlabError):
    """The node was killed or powered off while a call of the notebook waited for it."""

    code = "node_lost"
    not_done = False


class NodeDown(BaseException):
    """Raised in a listener whose node was killed. ``except Exception`` does not catch it."""


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The hint for a wrong name: the nearest right one; if none is near, ``otherwise`` or all right ones.

    >>> did_you_mean("retry_times", ["retry_times_when_send_failed"]), did_you_mean("x", ["perm", "order"])
    ('did you mean retry_times_when_send_failed?', 'there are perm, order')
    """
    # Imported here: only wrong names need it.
    import difflib

    names = list(names)
    near = [known for known in names if known.startswith(name)] or difflib.get_close_matches(
        name, names, n=1, cutoff=0.5
    )
    return f"did you mean {near[0]}?" if near else otherwise or f"there are {', '.join(names)}"


def is_of_spark(error: BaseException) -> bool:
    """Whether PySpark raised an error; the check does not import pyspark."""
    return hasattr(error, "getSqlState")


def words_of(error: BaseException) -> str:
    """What an exception says; PySpark appends the plan of a query, many lines that are left out.

    >>> words_of(KeyError("订单"))
    "'订单'"
    """
    text = str(error)
    return text.partition(";\n")[0] if is_of_spark(error) else text

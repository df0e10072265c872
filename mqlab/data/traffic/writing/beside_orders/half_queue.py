"""The half queue of a written day: which half messages, real messages and op messages are stored, and when.

Mirrors: TransactionalMessageBridge, TransactionalOpBatchService and TransactionalMessageServiceImpl.check; only what
they leave in the log.

    sent at 10:00:00.200 ─▶ half message n                         its process answers after some milliseconds
      commit             ─▶ the real message                       the op message of the next 3 s names n
      roll back          ─▶ nothing                                the op message names n
      no answer          ─▶ 10:00:30, the check: half message m, with TRANSACTION_CHECK_TIMES 1; its process is asked

    a check begins every 30 s from the start of the broker. It asks one second later when op messages have come since
    the last check, because it looks for more of them first.

Left out: half messages that are given up after fifteen checks, and answers that come after a check.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.writing.pending_rows import TimedRows
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.broker.transaction_check import WAIT_FOR_OP_MS
from mqlab.rocketmq.broker.transactions import SEPARATOR
from mqlab.rocketmq.ports import next_on_grid

HALF, REAL = range(2)
ROW = np.dtype(
    [
        ("time_ms", "i8"),
        ("order", "i8"),
        ("made_ms", "i8"),
        ("half", "i8"),
        ("answer_ms", "u2"),
        ("counter", "u2"),
        ("sender", "u1"),
        ("queue_id", "u1"),
        ("what", "u1"),
        ("checks", "u1"),
        ("answered_at", "u1"),
        ("commits", "?"),
    ]
)
"""``half``: number of the half message; ``checks``: how often it was asked for; ``answered_at``: at which of them."""
_SETTINGS = BrokerConfig()
_EVERY_MS, _TIME_OUT_MS = _SETTINGS.transaction_check_interval, _SETTINGS.transaction_time_out
NO_HALF = 1 << 62
_OP_EVERY_MS, _OP_SIZE = _SETTINGS.transaction_op_batch_interval, _SETTINGS.transaction_op_msg_max_size


@dataclass(frozen=True, slots=True)
class OpMessage:
    """An op message: when it is stored, and the half messages that it names."""

    time_ms: int
    halves: list[int]

    @property
    def body(self) -> bytes:
        return "".join(f"{half}{SEPARATOR}" for half in self.halves).encode()


class OpBatch:
    """Collects half messages that have ended, and says when an op message names them.

    The same rules as mqlab.rocketmq.broker.transactions.Transactions has for one end after another.

    >>> batch = OpBatch(start_ms=0)
    >>> batch.ended([(1_000, 0), (2_500, 1)])
    >>> [(op.time_ms, op.body) for op in batch.until(10_000)]
    [(6000, b'0,1,')]
    """

    def __init__(self, start_ms: int) -> None:
        self._origin_ms = start_ms
        self._last_ms: int | None = None
        self._waiting: list[tuple[int, int]] = []  # when, and which half message; by time

    def ended(self, ends: list[tuple[int, int]]) -> None:
        """Add half messages that end at these times; none is before one that was added earlier."""
        self._waiting += ends

    def until(self, until_ms: int, *, stops: bool = False) -> list[OpMessage]:
        """The op messages up to a moment, that moment included; a broker that ``stops`` then names all the rest."""
        written = []
        while self._waiting and self._waiting[0][0] <= until_ms:
            first_ms = self._waiting[0][0]
            if self._last_ms is None:
                self._last_ms = first_ms
            earliest_ms = max(first_ms, self._last_ms + _OP_EVERY_MS)
            due_ms, count = self._filled(next_on_grid(earliest_ms, _OP_EVERY_MS, self._origin_ms))
            if due_ms > until_ms:
                if not stops:
                    break
                due_ms, count = until_ms, sum(ended_ms <= until_ms for ended_ms, _ in self._waiting)
            written.append(OpMessage(due_ms, [half for _, half in self._waiting[:count]]))
            del self._waiting[:count]
            self._last_ms = due_ms
        return written

    def _filled(self, due_ms: int) -> tuple[int, int]:
        """When the next op message is written, and how many it names: at ``due_ms``, or when enough bytes wait."""
        size = count = 0
        for ended_ms, half in self._waiting:
            if ended_ms > due_ms:
                break
            size += len(str(half)) + len(SEPARATOR)
            count += 1
            if size > _OP_SIZE:
                self._origin_ms = ended_ms  # the service was woken early, and counts its 3 s from here
                return ended_ms, count
        return due_ms, count

    def first_unnamed(self) -> int:
        """The smallest half message that waits for its op message; NO_HALF if none does."""
        return min((half for _, half in self._waiting), default=NO_HALF)

    def __repr__(self) -> str:
        return f"<OpBatch: {len(self._waiting)} half messages wait>"


class HalfQueue:
    """The half queue of one broker, from its start on.

    ``offset`` and ``op_offset``: how far its checks have come; ``open_count``: half messages without an end.
    """

    def __init__(self, start_ms: int) -> None:
        self._sent = TimedRows(ROW)
        self._ends = np.empty(0, ROW)  # that are still to come
        self._ops = OpBatch(start_ms)
        self._unanswered = np.empty(0, ROW)  # in the order of the queue
        self._next_check_ms = start_ms + _EVERY_MS
        self._ask_ms: int | None = None  # when the check that is under way asks
        self._count_at_check = 0
        self._last_named: list[int] = []  # of each op message from op_offset on: the last half message that it names
        self._count = 0
        self.offset = self.op_offset = self.open_count = 0

    def stored(self, sent: Array, until_ms: int, *, stops: bool) -> tuple[Array, list[OpMessage]]:
        """Half and real messages by time up to a moment, that moment included, and the op messages.

        ``sent``: half messages that producers send, any of them later; ``stops``: the broker stops at that moment.
        """
        due = self._sent.due([sent], until_ms)
        due = due[np.argsort(due["time_ms"], kind="stable")]
        rows, ops, done = [], [], 0
        # 1. From one moment of a check to the next. What comes in the same millisecond comes after it.
        while (moment_ms := self._next_check_ms if self._ask_ms is None else self._ask_ms) <= until_ms:
            before = int(np.searchsorted(due["time_ms"], moment_ms, side="left"))
            rows.append(self._put(due[done:before]))
            done = before
            if self._ask_ms is None:
                rows.append(self._end(moment_ms))
                ops += self._name(self._ops.until(moment_ms - 1))  # an op message of this moment comes after the check
                self._begin_check(moment_ms)
            else:
                rows.append(self._put(self._asked(moment_ms)))
                self._ask_ms = None
        # 2. The rest of the stretch.
        rows += [self._put(due[done:]), self._end(until_ms)]
        ops += self._name(self._ops.until(until_ms, stops=stops))
        halves = np.concatenate(rows)
        return halves[np.argsort(halves["time_ms"], kind="stable")], ops

    def _put(self, halves: Array) -> Array:
        """Number half messages in the order of the queue, and remember who answers for them, and when."""
        halves["half"] = self._count + np.arange(len(halves))
        self._count += len(halves)
        self.open_count += int((halves["checks"] == 0).sum())
        is_answered = halves["answered_at"] == halves["checks"]
        ends = halves[is_answered]
        ends["time_ms"] += ends["answer_ms"]
        ends["what"] = REAL
        self._ends = np.concatenate([self._ends, ends])
        self._unanswered = np.concatenate([self._unanswered, halves[~is_answered]])
        return halves

    def _end(self, until_ms: int) -> Array:
        """End what is answered up to a moment; the real messages of what is committed."""
        has_come = self._ends["time_ms"] <= until_ms
        ends, self._ends = self._ends[has_come], self._ends[~has_come]
        ends = ends[np.argsort(ends["time_ms"], kind="stable")]
        self._ops.ended(list(zip(ends["time_ms"].tolist(), ends["half"].tolist(), strict=True)))
        self.open_count -= len(ends)
        committed: Array = ends[ends["commits"]]
        return committed

    def _name(self, ops: list[OpMessage]) -> list[OpMessage]:
        self._last_named += [max(op.halves) for op in ops]
        return ops

    def _begin_check(self, now_ms: int) -> None:
        """Begin a check: ask now or, if there are op messages to read, a second later."""
        self._next_check_ms = now_ms + _EVERY_MS
        self._count_at_check = self._count
        if len(self._unanswered) and now_ms - self._unanswered["made_ms"][0] > _TIME_OUT_MS:
            self._ask_ms = now_ms + (WAIT_FOR_OP_MS if self._last_named else 0)
        else:
            self._end_check(self._unanswered)

    def _asked(self, now_ms: int) -> Array:
        """The copies of the half messages that the check asks for: all before the first that is too young."""
        is_young = now_ms - self._unanswered["made_ms"] <= _TIME_OUT_MS
        count = int(is_young.argmax()) if is_young.any() else len(is_young)
        copies, self._unanswered = self._unanswered[:count].copy(), self._unanswered[count:]
        self._end_check(self._unanswered)
        copies["time_ms"] = now_ms
        copies["checks"] += 1
        return copies

    def _end_check(self, left: Array) -> None:
        """Move the offsets: up to the first half message that has not ended, or is not named, or came later."""
        first_unended = min([*left["half"][:1].tolist(), *self._ends["half"].tolist(), NO_HALF])
        self.offset = min(self._count_at_check, self._ops.first_unnamed(), first_unended)
        while self._last_named and self._last_named[0] < self.offset:
            del self._last_named[0]
            self.op_offset += 1

    def __repr__(self) -> str:
        return f"<HalfQueue: {self._count} half messages, {self.open_count} open>"

"""What happened, one record per step: the only source of timelines, statistics, grading traces and digests.

    StepRecord  step  now_ms         node      kind   cause  about                 changes
                 17   1767225600012  broker-a  frame     14  SEND_MESSAGE_V2 #3    message.stored topic=orders …

``kind`` says why the node acted, ``changes`` what that changed; mqlab.lab.runtime.kinds lists both.
``cause`` is the step that armed this one, -1 for the notebook itself.
Left out: a file format (a journal is rebuilt from its seed and story), and wall-clock time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

from mqlab.errors import UsageError
from mqlab.lab.runtime.kinds import check_kind

if TYPE_CHECKING:
    import hashlib

    import pandas

NOTEBOOK = -1  # the cause of a step that no earlier step armed
HASHED_TOGETHER = 500  # records: fewer calls than one by one, little memory for a long journal


class Change(NamedTuple):
    """One change that a step made: its kind and its values."""

    kind: str
    values: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.kind} " + " ".join(f"{name}={value!r}" for name, value in self.values.items())


new_change = cast("Callable[[tuple[str, dict[str, Any]]], Change]", partial(tuple.__new__, Change))
"""Creates a Change without its Python constructor, for speed: a message causes ten changes."""


@dataclass(slots=True, eq=False)
class StepRecord:
    """One step of one node. ``about`` is the frame that arrived (a RemotingCommand), else None.

    ``changes`` becomes a list with the first one: worlds are kept, and many of their steps change nothing.
    """

    step: int
    now_ms: int
    node: str
    kind: str
    cause: int
    about: Any = None
    changes: list[Change] | tuple[()] = ()

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind in this step."""
        return [change for change in self.changes if change.kind == kind]

    @property
    def about_text(self) -> str:
        """The frame in short: name of the request or of the answer's code, and opaque."""
        if self.about is None:
            return ""
        from mqlab.rocketmq.wire.codes import request_name, response_name

        command = self.about
        if command.flag & 1:
            return f"{response_name(command.code)} answer #{command.opaque}"
        return f"{request_name(command.code)} #{command.opaque}"

    def digest_text(self) -> str:
        """Everything that must be equal in two runs of one story, as one line."""
        line = f"{self.step}|{self.now_ms}|{self.node}|{self.kind}|{self.cause}"
        if (frame := self.about) is not None:
            body = zlib.crc32(frame.body or b"")
            line += f"|{frame.code}/{frame.flag}/{frame.opaque}/{frame.remark}/{frame.ext_fields!r}/{body}"
        for kind, values in self.changes:
            line += f"|{kind}{values!r}"
        return line

    def __repr__(self) -> str:
        about = f" {self.about_text}" if self.about is not None else ""
        changes = "".join(f"\n    {change!r}" for change in self.changes)
        return f"<{self.step} at {self.now_ms} {self.node} {self.kind}{about}>{changes}"


@dataclass(slots=True)
class _Search:
    """The records of one kind, or with changes of it, that are before ``next_step``."""

    next_step: int
    records: list[StepRecord] = field(default_factory=list)
    changes: list[tuple[StepRecord, dict[str, Any]]] = field(default_factory=list)

    def look_at(self, kind: str, records: list[StepRecord]) -> None:
        """Go on with the next records."""
        for record in records:
            changes = [(record, change.values) for change in record.changes if change.kind == kind]
            if changes or record.kind == kind:
                self.records.append(record)
                self.changes += changes
        self.next_step += len(records)


class Journal:
    """The records of one world, in order; indexable by step number.

    ``limit`` bounds how many records stay in memory: the oldest are removed, ``dropped`` counts them, and the digest
    still covers them. ``steps_overlap``: steps run on threads, so any record may still change, and not the last alone.

    >>> journal = Journal(); _ = journal.add(StepRecord(0, 5, "broker-a", "frame", NOTEBOOK)); journal[0].kind
    'frame'
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.steps_overlap = False
        self.dropped = 0
        self.next_step = 0
        self._cut_at = None if limit is None else limit + limit // 4 + 2  # kept records before the oldest go
        self._records: list[StepRecord] = []
        self._hashed = 0  # the first step that the running hash does not cover yet
        self._searches: dict[str, _Search] = {}  # of each kind that was searched: the next search continues it

    @cached_property
    def _hash(self) -> hashlib._Hash:
        """SHA-256 over the steps before ``_hashed``."""
        import hashlib  # not at the top: it loads OpenSSL, which most worlds never need

        return hashlib.sha256()

    def add(self, record: StepRecord) -> StepRecord:
        """Append the record of the step that starts now."""
        self._records.append(record)
        self.next_step += 1
        if self.next_step - self.dropped == self._cut_at:
            self._drop_oldest()
        return record

    def _drop_oldest(self) -> None:
        """Remove records in batches, because removing the head of a list takes time proportional to its length."""
        surplus = len(self._records) - (self.limit or 0)
        self._hash_before(self.dropped + surplus)
        del self._records[:surplus]
        self.dropped += surplus
        self._searches.clear()

    def of(self, kind: str) -> list[StepRecord]:
        """The steps of one kind, and those with a change of this kind; UsageError for an unknown kind."""
        return self._search(kind).records

    def changes(self, kind: str) -> list[tuple[StepRecord, dict[str, Any]]]:
        """Every change of one kind with the step it belongs to, in order; UsageError for an unknown kind."""
        return self._search(kind).changes

    def _search(self, kind: str) -> _Search:
        """What there is of a kind, in lists of its own; a caller in a loop has only the new records searched."""
        known = _Search(self.dropped)
        if not self.steps_overlap:
            known = self._searches.setdefault(kind, known)
        known.look_at(kind, self._records[known.next_step - self.dropped : -1])
        search = _Search(known.next_step, list(known.records), list(known.changes))
        search.look_at(kind, self._records[-1:])  # the last step may still change
        if not search.records:
            check_kind(kind)
        return search

    def digest(self) -> str:
        """SHA-256 over every step so far, hexadecimal: equal for equal seeds and stories, in any process."""
        if not self._records:
            return self._hash.hexdigest()
        self._hash_before(self.next_step - 1)  # the last step may still change
        whole = self._hash.copy()
        whole.update(_hashed(self._records[-1:]))
        return whole.hexdigest()

    def _hash_before(self, end: int) -> None:
        for start in range(self._hashed, end, HASHED_TOGETHER):
            stop = min(start + HASHED_TOGETHER, end)
            self._hash.update(_hashed(self._records[start - self.dropped : stop - self.dropped]))
        self._hashed = max(self._hashed, end)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per step: step, now_ms, node, kind, cause, about, changes (as text)."""
        import pandas

        rows = [
            (r.step, r.now_ms, r.node, r.kind, r.cause, r.about_text, "; ".join(map(repr, r.changes))) for r in self
        ]
        return pandas.DataFrame(rows, columns=["step", "now_ms", "node", "kind", "cause", "about", "changes"])

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(self._records)

    def __len__(self) -> int:
        return self.next_step

    @overload
    def __getitem__(self, step: int) -> StepRecord: ...
    @overload
    def __getitem__(self, step: slice) -> list[StepRecord]: ...
    def __getitem__(self, step: int | slice) -> StepRecord | list[StepRecord]:
        if isinstance(step, slice):
            return [self[i] for i in range(*step.indices(len(self))) if i >= self.dropped]
        position = step if step >= 0 else len(self) + step
        if position >= len(self) or position < 0:
            raise IndexError(f"step {step} is not in a journal of {len(self)} steps")
        if position < self.dropped:
            raise UsageError(
                f"step {step} was dropped: this journal keeps its last {self.limit} steps, from {self.dropped} on",
                hint="raise journal_limit, or replay with until_step",
            )
        return self._records[position - self.dropped]

    def __repr__(self) -> str:
        last = f", last at {self._records[-1].now_ms}" if self._records else ""
        return f"<Journal of {len(self)} steps{last}, {self.dropped} dropped>"


def _hashed(records: list[StepRecord]) -> bytes:
    return "".join([record.digest_text() + "\n" for record in records]).encode("utf-8", "backslashreplace")

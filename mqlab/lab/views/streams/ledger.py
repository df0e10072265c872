"""Whether a sink has each message of a log once: three bars of one length, or the first message that is not there once.

Lab 12 shows it after each thing that is done to a job.

    in the log      ██████████████  640
    in the sink     ██████████████  640
    different ones  ██████████████  640
    ✓ each message is there once

A message is named by any value that two messages do not share, such as (broker_name, physical_offset).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from mqlab.counts import counted
from mqlab.lab.views.charts import Bars
from mqlab.lab.views.picture import Picture
from mqlab.lab.views.table import Table


class Ledger(Picture):
    """Compares the names of all messages in the log with those of all rows in a sink.

    >>> print(Ledger(["a", "b"], ["a", "a"]).verdict)
    ✗ first missing: b; first double: a, 2 times
    """

    def __init__(self, log: Iterable[Hashable], sink: Iterable[Hashable], *, title: str = "") -> None:
        self.log, self.sink, self.title = list(log), Counter(sink), title
        self.missing = [entry for entry in self.log if entry not in self.sink]
        self.doubles = [entry for entry, count in self.sink.items() if count > 1]
        known = set(self.log)
        self.unknown = [entry for entry in self.sink if entry not in known]

    @property
    def is_right(self) -> bool:
        """Whether each message is there once, and nothing else."""
        return not (self.missing or self.doubles or self.unknown)

    @property
    def verdict(self) -> str:
        """The answer in one line: a tick, or the first message of each kind of error."""
        if self.is_right:
            return "✓ each message is there once"
        phrases = [f"first missing: {_name(self.missing[0])}"] if self.missing else []
        if self.doubles:
            phrases.append(f"first double: {_name(self.doubles[0])}, {counted(self.sink[self.doubles[0]], 'times')}")
        if self.unknown:
            phrases.append(f"not in the log: {_name(self.unknown[0])}")
        return f"✗ {'; '.join(phrases)}"

    @property
    def alt(self) -> str:
        return f"{self._bars().alt}. {self.verdict}"

    def table(self) -> Table:
        """The three numbers."""
        return self._bars().table()

    def text(self) -> str:
        return f"{self._bars().text()}\n{self.verdict}"

    def svg(self) -> str:
        return self._bars().svg()

    def _bars(self) -> Bars:
        numbers = {"in the log": len(self.log), "in the sink": self.sink.total(), "different ones": len(self.sink)}
        return Bars(numbers, title=": ".join(filter(None, (self.title, self.verdict))))

    def __repr__(self) -> str:
        return f"<Ledger: {self.verdict}>"


def _name(message: Hashable) -> str:
    return " ".join(map(str, message)) if isinstance(message, tuple) else str(message)

"""The watermark board: a count by time over what a job found, look by look; delay, window and mode are in hand.

    board = watermark_board(looks, delay_min=10, window_min=10, mode="update")      looks: lists of rows, one per batch
    board.set("delay_min", 30)           what the controls do
    board.batches(), board.dropped, board.ledger, board.table()

    batch 4  ██████            2 rows kept   watermark 09:41:57
    batch 5  ████████████      6 rows kept   watermark 09:48:26   ✗ 61 messages dropped, of 2 groups
    in the log 2,113, counted 2,052: ✗ 61 messages are in no count

The rows are read once; what a stream of Spark would keep, give and drop is reckoned in the page.

Mirrors: a streaming aggregation of Spark 4 by functions.window of the column that has the watermark.
Left out: the bytes of the state; a stream with more than one operator that keeps rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from markupsafe import Markup

from mqlab.counts import counted
from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.streams.state_board import StateBoard
from mqlab.lab.views.table import Table
from mqlab.scales import MINUTE, date_time_text

DELAYS_MIN = (0, 5, 10, 20, 30, 40, 50, 60, 90, 120)
WINDOWS_MIN = (1, 5, 10, 30, 60)
MODES = ("update", "append", "complete")
Row = tuple[int, str]  # when it was stored, ms since 1970; by which broker
Group = tuple[int, str]  # when its window begins; of which broker


class CountedBatch(NamedTuple):
    """One batch: its watermark (None: none yet), and what it did. ``counted`` and ``in_log`` are sums of all so far."""

    batch: int
    watermark_ms: int | None
    new: int
    dropped: int
    dropped_groups: int
    kept: int
    given: int
    counted: int
    in_log: int


def reckoned(looks: Sequence[Sequence[Row]], delay_ms: int, window_ms: int, mode: str) -> list[CountedBatch]:
    """Every batch of a stream that counts by window and broker; after the looks comes one without rows.

    A batch drops what belongs to a window that ended before the watermark of the batch before, and forgets afterwards
    what ended before its own. In the mode complete nothing is dropped and nothing is forgotten.

    >>> looks = [[(0, "a")], [(60_000, "a")], [(120_000, "a")], [(30_000, "b")]]
    >>> [(one.kept, one.dropped) for one in reckoned(looks, 0, 60_000, "update")]
    [(1, 0), (2, 0), (2, 0), (1, 1), (1, 0)]
    """
    batches: list[CountedBatch] = []
    groups: Counter[Group] = Counter()
    before: int | None = None
    newest: int | None = None
    counted = in_log = 0
    for number, new in enumerate([*looks, ()]):
        watermark = None if newest is None else newest - delay_ms
        late: list[Group] = []
        touched: set[Group] = set()
        for at_ms, broker in new:
            group = (at_ms // window_ms * window_ms, broker)
            if mode != "complete" and before is not None and group[0] + window_ms <= before:
                late.append(group)
            else:
                groups[group] += 1
                touched.add(group)
            newest = at_ms if newest is None else max(newest, at_ms)
        over = [
            group
            for group in groups
            if mode != "complete" and watermark is not None and group[0] + window_ms <= watermark
        ]
        given_rows = {"update": len(touched), "append": len(over), "complete": len(groups)}[mode]
        for group in over:
            del groups[group]
        counted += len(new) - len(late)
        in_log += len(new)
        batches.append(
            CountedBatch(
                number, watermark, len(new), len(late), len(set(late)), len(groups), given_rows, counted, in_log
            )
        )
        before = watermark
    return batches


class WatermarkBoard(Board):
    """The explorer; ``watermark_board`` makes one. ``state``: delay_min, window_min, mode, batch."""

    module, label = "watermark", "Watermark board"
    state_defaults: ClassVar[Mapping[str, Any]] = {"delay_min": 10, "window_min": 10, "mode": "update", "batch": 0}

    def __init__(self, looks: Sequence[Sequence[Row]], **state: Any) -> None:
        super().__init__(**state)
        self.looks = [sorted(look) for look in looks]
        if not any(self.looks):
            raise UsageError("a watermark board needs a look with a row")
        for name, allowed in (("delay_min", DELAYS_MIN), ("window_min", WINDOWS_MIN), ("mode", MODES)):
            if self.state[name] not in allowed:
                hint = f"one of {', '.join(map(str, allowed))}"
                raise UsageError(f"the watermark board has no {name} {self.state[name]!r}", hint=hint)
        if not 0 <= self.state["batch"] <= len(self.looks):
            raise UsageError(f"there is no batch {self.state['batch']}", hint=f"there are 0 to {len(self.looks)}")

    def batches(self) -> list[CountedBatch]:
        """Every batch with the settings chosen."""
        return reckoned(
            self.looks, self.state["delay_min"] * MINUTE, self.state["window_min"] * MINUTE, self.state["mode"]
        )

    @property
    def dropped(self) -> int:
        """Messages that are in no count in the end."""
        return sum(batch.dropped for batch in self.batches())

    @property
    def ledger(self) -> str:
        """Whether each message of the log is counted, in one line."""
        last = self.batches()[-1]
        missing = last.in_log - last.counted
        verdict = (
            f"✗ {counted(missing, 'messages are', 'message is')} in no count"
            if missing
            else "✓ each message is counted"
        )
        return f"in the log {last.in_log:,}, counted {last.counted:,}: {verdict}"

    def data(self) -> dict[str, Any]:
        """The looks as lists of numbers; everything else is reckoned in the page."""
        brokers = sorted({broker for look in self.looks for _, broker in look})
        first_ms = min(at_ms for look in self.looks for at_ms, _ in look)
        looks = [[[at_ms - first_ms, brokers.index(broker)] for at_ms, broker in look] for look in self.looks]
        return {
            "looks": looks,
            "brokers": brokers,
            "first_ms": first_ms,
            "delays": DELAYS_MIN,
            "windows": WINDOWS_MIN,
            "modes": MODES,
        }

    def table(self) -> Table:
        """One row per batch, with the ledger as its title."""
        rows = [
            {
                "batch": batch.batch,
                "watermark": _clock(batch.watermark_ms),
                "new": batch.new,
                "rows kept": batch.kept,
                "rows given": batch.given,
                "messages dropped": batch.dropped,
                "of groups": batch.dropped_groups,
            }
            for batch in self.batches()
        ]
        return Table(
            rows,
            title=f"Delay {self.state['delay_min']} min, window {self.state['window_min']} min, "
            f"{self.state['mode']}: {self.ledger}",
        )

    def readable(self) -> Markup:
        """The batches as a picture, and the table."""
        rows = [
            {
                "batch": batch.batch,
                "rows_in_state": batch.kept,
                "dropped": batch.dropped_groups,
                "watermark": _clock(batch.watermark_ms),
            }
            for batch in self.batches()
        ]
        return StateBoard(rows, title=self.label).html() + self.table().html()


def _clock(at_ms: int | None) -> str:
    return "" if at_ms is None else date_time_text(at_ms)


def watermark_board(
    looks: Iterable[Iterable[Mapping[str, Any]]],
    *,
    delay_min: int = 10,
    window_min: int = 10,
    mode: str = "update",
    batch: int | None = None,
) -> WatermarkBoard:
    """A count over these looks. Each row has store_timestamp, in ms since 1970, and broker_name.

    ``batch`` is the one that is shown first, by default the one that drops most, or the last. Raises UsageError for a
    setting that the board does not have, and when there is no row at all.

    >>> rows = [[{"store_timestamp": 60_000 * at, "broker_name": "broker-a"}] for at in (0, 20, 40, 5)]
    >>> board = watermark_board(rows)
    >>> board.ledger
    'in the log 4, counted 3: ✗ 1 message is in no count'
    >>> board.set("delay_min", 30); board.dropped
    0
    """
    pairs = [[(row["store_timestamp"], row["broker_name"]) for row in look] for look in looks]
    board = WatermarkBoard(pairs, delay_min=delay_min, window_min=window_min, mode=mode, batch=batch or 0)
    if batch is None:
        board.set("batch", max(board.batches(), key=lambda batch: (batch.dropped, batch.batch)).batch)
    return board

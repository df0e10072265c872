"""How far a group has read a queue, message by message, and the three places that remember one number of it.

Lab 04 shows it before and after crashes.

    orders 0    ■■■■■▤■▒▒▒░░░░░      finished 0..4, 6; in a listener 5; pulled 7..9; not pulled 10..14
                     ▲               in memory 5
                     ▲               at the broker 5
                ▲                    in the file 0

Left out: a time axis (the board mqlab.course.widgets.boards.offset_strip moves in time).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, INK, MUTED, PAPER, RULE, VIOLET, WASH, colour
from mqlab.rocketmq.wire.message import MessageQueue

BAR_PIXELS, BAR_CHARACTERS = 520, 40
CELLS_WITH_NUMBERS = 26
BAR_HEIGHT, MARK_ROW, MARGIN = 26, 22, 18
FINISHED, RUNNING, PULLED, WAITING = VIOLET, colour("pale-amber"), colour("pale-violet"), WASH
LEGEND = (
    (FINISHED, "finished"),
    (RUNNING, "in a listener"),
    (PULLED, "pulled, waiting"),
    (WAITING, "not pulled"),
)
LETTERS = {FINISHED: "■", RUNNING: "▤", PULLED: "▒", WAITING: "░"}


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """One queue of one group: what became of each message, and the next offset by memory, broker and file (or None)."""

    queue: MessageQueue
    min_offset: int
    max_offset: int
    pulled: int
    finished: frozenset[int]
    running: frozenset[int]
    in_memory: int | None
    at_broker: int | None
    in_file: int | None

    @property
    def name(self) -> str:
        """Topic and number of the queue."""
        return f"{self.queue.topic} {self.queue.queue_id}"

    @property
    def places(self) -> list[tuple[str, int | None, str]]:
        """What each of the three remembers: words, offset, colour."""
        return [
            ("in memory", self.in_memory, BLUE),
            ("at the broker", self.at_broker, GREEN),
            ("in the file", self.in_file, AMBER),
        ]

    def state(self, offset: int) -> str:
        """The fill of one message."""
        if offset in self.running:
            return RUNNING
        if offset in self.finished:
            return FINISHED
        return PULLED if offset < self.pulled else WAITING

    def runs(self) -> list[tuple[int, int, str]]:
        """Neighbours of one state: first offset, end, fill."""
        runs: list[tuple[int, int, str]] = []
        for offset in range(self.min_offset, self.max_offset):
            state = self.state(offset)
            if runs and runs[-1][2] == state:
                runs[-1] = (runs[-1][0], offset + 1, state)
            else:
                runs.append((offset, offset + 1, state))
        return runs

    def words(self) -> str:
        """The states in words."""
        parts = []
        for fill, meaning in LEGEND:
            places = [_spelled(first, end) for first, end, state in self.runs() if state == fill]
            if places:
                parts.append(f"{meaning} {', '.join(places[:6])}{', …' if len(places) > 6 else ''}")
        return "; ".join(parts) or "nothing stored"

    def remembered(self) -> str:
        """The three numbers in words."""
        return ", ".join(f"{words} {'nothing' if offset is None else offset}" for words, offset, _ in self.places)


class HowFar(Picture):
    """Standings of queues, drawn.

    >>> queue = MessageQueue("orders", "broker-a", 0)
    >>> print(HowFar([QueueStanding(queue, 0, 4, 3, frozenset({1, 2}), frozenset({0}), 0, 0, None)]))
    orders 0  finished 1..2; in a listener 0; not pulled 3
    ▤▤▤▤▤▤▤▤▤▤■■■■■■■■■■■■■■■■■■■■░░░░░░░░░░
    in memory 0, at the broker 0, in the file nothing
    """

    def __init__(self, standings: Iterable[QueueStanding], *, title: str = "") -> None:
        self.standings = list(standings)
        self.title = title

    @property
    def alt(self) -> str:
        phrases = [
            f"{standing.name}: {standing.words()}; next offset {standing.remembered()}" for standing in self.standings
        ]
        return f"{self.title or 'How far'}: {'; '.join(phrases) or 'no queues'}"

    def table(self) -> Table:
        """One row per queue: the three offsets, and how many messages are in which state."""
        rows = []
        for standing in self.standings:
            counts = {meaning: _count(standing, fill) for fill, meaning in LEGEND}
            rows.append(
                {
                    "queue": standing.name,
                    "in_memory": standing.in_memory,
                    "at_broker": standing.at_broker,
                    "in_file": standing.in_file,
                    **counts,
                }
            )
        return Table(rows, title=self.title, empty="no queues")

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for standing in self.standings:
            x_of = _scale(standing, BAR_CHARACTERS)
            bar = "".join(LETTERS[fill] * (x_of(end) - x_of(first)) for first, end, fill in standing.runs())
            lines += [f"{standing.name}  {standing.words()}", *([bar] if bar else []), standing.remembered()]
        return "\n".join(lines if self.standings else [*lines, "no queues"])

    def svg(self) -> str:
        left = max((text_pixels(standing.name) for standing in self.standings), default=0) + MARGIN + 12
        head = 26 if self.title else 0
        row_height = BAR_HEIGHT + 3 * MARK_ROW + 14
        height = MARGIN + head + row_height * len(self.standings) + 26
        canvas = Canvas(left + BAR_PIXELS + 190, height)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for number, standing in enumerate(self.standings):
            self._queue(canvas, standing, left, MARGIN + head + row_height * number)
        x = left
        for fill, meaning in LEGEND:
            canvas.box(x, height - 24, 12, 12, fill, border=RULE)
            canvas.text(x + 18, height - 14, meaning, MUTED, size=11)
            x += 40 + text_pixels(meaning)
        return canvas.svg()

    def _queue(self, canvas: Canvas, standing: QueueStanding, left: int, y: int) -> None:
        x_of = _scale(standing, BAR_PIXELS)
        canvas.text(MARGIN, y + 18, standing.name)
        canvas.box(left, y, BAR_PIXELS, BAR_HEIGHT, PAPER, border=RULE)
        # 1. The messages: one cell each while there is room for numbers, else stretches of one state.
        cells: Sequence[tuple[int, int, str]] = standing.runs()
        with_numbers = 0 < standing.max_offset - standing.min_offset <= CELLS_WITH_NUMBERS
        if with_numbers:
            cells = [
                (offset, offset + 1, standing.state(offset))
                for offset in range(standing.min_offset, standing.max_offset)
            ]
        for first, end, fill in cells:
            x, width = left + x_of(first), x_of(end) - x_of(first)
            canvas.box(x, y, width, BAR_HEIGHT, fill, border=RULE, title=f"{_spelled(first, end)}: {_meaning(fill)}")
            if with_numbers:
                ink = PAPER if fill == FINISHED else INK
                canvas.text(x + width // 2, y + 17, str(first), ink, anchor="middle", size=10, halo=False)
        # 2. The three places that remember, each with a line from the bar down to its words.
        for row, (words, offset, ink) in enumerate(standing.places):
            mark_y = y + BAR_HEIGHT + MARK_ROW * (row + 1) - 6
            if offset is None:
                canvas.text(left, mark_y + 4, f"{words}: nothing", ink)
                continue
            x = left + x_of(min(max(offset, standing.min_offset), standing.max_offset))
            canvas.line(x, y + BAR_HEIGHT, x, mark_y, ink, dashed=row == 2)
            canvas.text(x + 8, mark_y + 4, f"{words}: next is {offset}", ink, bold=True)
            canvas.box(x - 3, mark_y - 3, 6, 6, ink)


def _scale(standing: QueueStanding, length: int) -> Callable[[int], int]:
    """Offset -> place on a bar of some length; a state of few messages among many stays visible."""
    span = max(standing.max_offset - standing.min_offset, 1)
    if span <= length:
        return lambda offset: (offset - standing.min_offset) * length // span
    # Every stretch gets at least four units; the rest is shared by size.
    runs = standing.runs()
    least = min(4, length // max(len(runs), 1))
    rest = length - least * len(runs)
    ends, x = {standing.min_offset: 0}, 0
    for first, end, _ in runs:
        x += least + (end - first) * rest // span
        ends[end] = x
    ends[standing.max_offset] = length

    def x_of(offset: int) -> int:
        if offset in ends:
            return ends[offset]
        before = max(known for known in ends if known <= offset)
        after = min(known for known in ends if known >= offset)
        return ends[before] + (offset - before) * (ends[after] - ends[before]) // max(after - before, 1)

    return x_of


def _spelled(first: int, end: int) -> str:
    return str(first) if end - first == 1 else f"{first}..{end - 1}"


def _meaning(fill: str) -> str:
    return dict(LEGEND)[fill]


def _count(standing: QueueStanding, fill: str) -> int:
    return sum(end - first for first, end, state in standing.runs() if state == fill)

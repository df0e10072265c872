"""A timeline as SVG: lanes from top to bottom, arrows slanted from sending to arrival, bars for what lasts.

Mirrors: the space-time diagrams of Lamport's paper, turned so that time goes downwards.

       shop          broker-a
        │ ╲ SEND         │        a frame leaves where its sender was and arrives in the row of its arrival
        │     ╲─────────▶■ stored
        │                ┃ held   a pull is a bar from its row to the row in which it is answered

    rows      one row per moment, jumps in time are marked        linear, log      the height is the time

Left out: what a moment is (mqlab.lab.views.timeline).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from mqlab.durations import exact_text, rounded_text
from mqlab.lab.views.picture import CHARACTER, Canvas, Look, legend_places, text_pixels
from mqlab.lab.views.theme import AMBER, INK, MUTED, RULE, colour
from mqlab.lab.views.timeline import LONG_PAUSE_MS, LOOKS, Moment, after
from mqlab.scales import durations, spans

ROW_PIXELS = 28
TIME_PIXELS = 96  # wide enough for TIME_CHARACTERS; hours need more
TIME_CHARACTERS = 14
MIN_LANE_PIXELS = 110
LEAST_PIXELS, LEGEND_ROW = 400, 18
MAX_LANE_PIXELS = 330
MARGIN = 18
SLANT = 12  # pixels; an arrow falls by as much, or more if more happened between sending and arrival
TO_SCALE_LEAST, TO_SCALE_MOST = 240, 1_400
LABEL_PIXELS = 15  # a line of words
HALF_LETTER = 5  # pixels above and below the middle of words
MOST_MOVES = 12  # lines that words move down at most, when time is to scale


class Drawing:
    """Places the moments and draws them; ``rest`` are lines said below."""

    def __init__(
        self, drawn: Sequence[Moment], lanes: Sequence[str], start_ms: int, scale: str, title: str, rest: Sequence[str]
    ) -> None:
        self.drawn, self.lanes, self.start_ms, self.scale = drawn, lanes, start_ms, scale
        self.title, self.rest = title, rest
        self.words = [moment.words(start_ms) for moment in drawn]
        self.spots = self._lane_spots()
        self.top = MARGIN + (22 if title else 0) + 20  # where the lanes begin
        self.first = self.top + (LABEL_PIXELS if drawn and drawn[0].is_arrow else 0)  # room for the words of an arrow
        self.heights, self.foot = self._rows() if scale == "rows" else self._to_scale()
        self._times = [moment.now_ms for moment in drawn]
        self._steps = [-1 if moment.step is None else moment.step for moment in drawn]

    def _rows(self) -> tuple[list[int], int]:
        """The height of each moment, one row each, and a row more for each pause; and where the lanes end."""
        heights, y, before = [], self.first, self.drawn[0].now_ms if self.drawn else 0
        for moment in self.drawn:
            y += ROW_PIXELS * (2 if moment.now_ms - before >= LONG_PAUSE_MS else 1)
            before = moment.now_ms
            heights.append(y - 5)
        return heights, y + 14

    def _to_scale(self) -> tuple[list[int], int]:
        """The height of each moment by its time."""
        long = min(max(ROW_PIXELS * len(self.drawn), TO_SCALE_LEAST), TO_SCALE_MOST)
        self._long = long
        heights = [self._height_at(moment.now_ms) for moment in self.drawn]
        return heights, self.top + 20 + long + 44

    def _first_ms(self) -> int:
        return min((moment.now_ms for moment in self.drawn), default=self.start_ms)

    def _height_at(self, time_ms: int) -> int:
        """Where a time is, when time is to scale; logarithmic: by the logarithm of the ms since the first."""
        first, last = self._first_ms(), max((moment.now_ms for moment in self.drawn), default=self.start_ms)
        passed, whole = max(time_ms - first, 0), max(last - first, 1)
        part = math.log1p(passed) / math.log1p(whole) if self.scale == "log" else passed / whole
        return self.top + 20 + round(min(part, 1.0) * self._long)

    def _sent_height(self, number: int) -> int:
        """Where an arrow begins: where its sender was when it sent it, at least SLANT above its end."""
        moment, y = self.drawn[number], self.heights[number]
        least = y - SLANT
        if moment.sent_ms is None:
            return least
        if self.scale != "rows":
            return min(self._height_at(moment.sent_ms), least) if moment.sent_ms >= self._first_ms() else least
        # 1. The sending step has a row in the sender's lane: the arrow leaves there.
        for row in range(number - 1, -1, -1):
            if (
                moment.sent_step is not None
                and self._steps[row] == moment.sent_step
                and self._ends_in(row, moment.lane)
            ):
                return min(self.heights[row], least)
        # 2. Otherwise it leaves below the last row that was before the sending.
        earlier = bisect_right(self._times, moment.sent_ms, 0, number)
        if moment.sent_step is not None:
            earlier = min(earlier, bisect_right(self._steps, moment.sent_step, 0, number))
        start = self.heights[earlier - 1] + ROW_PIXELS // 2 if earlier else self.first + 4
        return max(min(start, least), self.first + 2)

    def _ends_in(self, at: int, lane: str) -> bool:
        """Whether a moment is, or arrives, in a lane."""
        return (self.drawn[at].to or self.drawn[at].lane) == lane

    def _end_height(self, number: int) -> int:
        """Where a bar ends: at the row in which it was answered, or where the lanes end."""
        moment, y = self.drawn[number], self.heights[number]
        if moment.until_ms is None:
            return self.foot
        if self.scale != "rows":
            return max(self._height_at(moment.until_ms), y + 6)
        # 1. The first row after the answer; without one, the bar goes on to the last row that the answer is in.
        step = moment.until_step
        later = bisect_right(self._times, moment.until_ms) if step is None else bisect_right(self._steps, step)
        is_drawn = self._times[later - 1] == moment.until_ms if step is None else self._steps[later - 1] == step
        if is_drawn:
            return max(self.heights[later - 1], y + 6)
        # 2. The answer has no row: the bar ends between the rows around it.
        return self.foot if later >= len(self.drawn) else max(self.heights[later] - ROW_PIXELS // 2, y + 6)

    def _lane_spots(self) -> dict[str, int]:
        """The place of each lane's line: room to its right for its own labels, within limits."""
        spots, x = {}, self._time_pixels()
        for index, lane in enumerate(self.lanes):
            x += max(text_pixels(lane) // 2 + 8, 24) if index == 0 else 0
            spots[lane] = x
            x += max(MIN_LANE_PIXELS, min(self._label_room(lane), MAX_LANE_PIXELS))
        return spots

    def _time_pixels(self) -> int:
        """Room for the longest time or pause at the left edge."""
        pauses = (exact_text(b.now_ms - a.now_ms) + " later" for a, b in pairwise(self.drawn))
        times = (after(moment.now_ms - self.start_ms) for moment in self.drawn)
        return TIME_PIXELS + CHARACTER * max(0, max(map(len, [*pauses, *times]), default=0) - TIME_CHARACTERS)

    def _label_room(self, lane: str) -> int:
        """Pixels that the labels right of a lane need: its own, and those of arrows to the next lane."""
        here = self.lanes.index(lane)
        needed = [text_pixels(lane) // 2 + 8]
        for moment, words in zip(self.drawn, self.words, strict=True):
            if not moment.is_arrow:
                needed += [text_pixels(words) + 24] if moment.lane == lane else []
            elif {self.lanes.index(name) for name in moment.lane_names} == {here, here + 1}:
                needed.append(text_pixels(words) + 30)
        return max(needed)

    def svg(self) -> str:
        """The whole drawing."""
        # 1. Measure: the wider of lanes and title; the legend gets as many rows as it needs below them.
        looks = [look for name, look in LOOKS.items() if any(moment.look_name == name for moment in self.drawn)]
        last = self.lanes[-1] if self.lanes else None
        right = self._time_pixels() if last is None else self.spots[last] + self._label_room(last)
        wide = max(right, text_pixels(self.title), LEAST_PIXELS)
        places = legend_places([look.meaning for look in looks], wide - MARGIN)
        under = self.foot + 18 * len(self.rest)
        canvas = Canvas(wide + MARGIN, under + 34 + LEGEND_ROW * (places[-1][1] if places else 0))
        # 2. Draw the title and the lanes, then the bars, then the moments over them.
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        for lane in self.lanes:
            canvas.text(self.spots[lane], self.top - 8, lane, bold=True, anchor="middle")
            canvas.line(self.spots[lane], self.top, self.spots[lane], self.foot)
        self._draw_bars(canvas)
        self._draw_times(canvas) if self.scale == "rows" else self._draw_axis(canvas)
        self._draw_moments(canvas)
        for number, line in enumerate(self.rest):
            canvas.text(MARGIN, self.foot + 14 + 18 * number, line, MUTED)
        # 3. The legend explains only the looks that occur.
        for look, (x, row) in zip(looks, places, strict=True):
            y = under + 22 + LEGEND_ROW * row
            self._draw_look(canvas, look, MARGIN + x, y - 4)
            canvas.text(MARGIN + x + 18, y, look.meaning, MUTED, size=11)
        return canvas.svg()

    @staticmethod
    def _draw_look(canvas: Canvas, look: Look, x: int, y: int) -> None:
        if look.shape == "arrow":
            canvas.arrow(x, x + 14, y - 3, look.colour, to_y=y + 3)
        elif look.shape == "bar":
            canvas.box(x + 3, y - 7, 6, 14, colour("pale-amber"), border=AMBER)
        else:
            canvas.mark(look, x + 6, y)

    def _draw_bars(self, canvas: Canvas) -> None:
        for number, moment in enumerate(self.drawn):
            if moment.look == "held":
                x, y = self.spots[moment.lane], self.heights[number]
                end = self._end_height(number)
                canvas.box(x - 4, y, 8, end - y, colour("pale-amber"), border=AMBER, title=self.words[number])

    def _draw_times(self, canvas: Canvas) -> None:
        """The time next to each row, and a dashed line for each pause."""
        before, shown, right = self._first_ms(), "", self._time_pixels() - 8
        for moment, y in zip(self.drawn, self.heights, strict=True):
            if moment.now_ms - before >= LONG_PAUSE_MS:
                line_y = y - ROW_PIXELS
                canvas.line(
                    right + 6, line_y, canvas.width - MARGIN, line_y, RULE, dashed=True
                )  # not through its words
                canvas.text(right, line_y + 4, f"{exact_text(moment.now_ms - before)} later", MUTED, anchor="end")
            before = moment.now_ms
            time = after(moment.now_ms - self.start_ms)
            if time != shown:
                canvas.text(right, y + 4, time, MUTED, anchor="end")
            shown = time

    def _draw_axis(self, canvas: Canvas) -> None:
        """Usual durations since the first moment, where they are to scale."""
        first, right = self._first_ms(), self._time_pixels() - 8
        whole = max((moment.now_ms for moment in self.drawn), default=first) - first
        if self.scale == "log":
            places = [(first + round(tick), f"{rounded_text(tick)} later") for tick in durations(1, whole).ticks]
            places = [(first, after(first - self.start_ms)), *places]
        else:
            step = round(spans(whole).ticks[1])
            earliest = self.start_ms - (self.start_ms - first) // step * step
            places = [(at_ms, after(at_ms - self.start_ms)) for at_ms in range(earliest, first + whole + 1, step)]
        for at_ms, words in places:
            if at_ms <= first + whole:
                y = self._height_at(at_ms)
                canvas.line(right + 4, y, canvas.width - MARGIN, y, RULE, dashed=True)
                canvas.text(right, y + 4, words, MUTED, anchor="end")

    def _draw_moments(self, canvas: Canvas) -> None:
        # 1. The arrows, under all words.
        ways = self._arrow_ways()
        for (x1, y1), (x2, y2) in ways.values():
            inset = 4 if x2 > x1 else -4
            canvas.arrow(x1 + inset, x2 - inset, y1, LOOKS["frame"].colour, to_y=y2)
        # 2. The marks, and their words to the right; to scale, words that have no room move down.
        taken = Taken(self.foot)
        for number, (moment, y) in enumerate(zip(self.drawn, self.heights, strict=True)):
            if moment.is_arrow:
                continue
            look, x = LOOKS[moment.look_name], self.spots[moment.lane]
            label = taken.below(x + 14, y, text_pixels(self.words[number])) if self.scale != "rows" else y
            taken.add(x + 14, label, text_pixels(self.words[number]))
            if look.shape == "bar":
                canvas.line(x - 6, y, x + 6, y, look.colour, thick=True)
            else:
                canvas.mark(look, x, y)
            if label - y > LABEL_PIXELS // 2:
                canvas.line(x + 6, y, x + 12, label, RULE)
            canvas.text(x + 14, label + 4, self.words[number])
        # 3. The words of the arrows, where they cover none of the others.
        taken.arrows = list(ways.values())
        for number, (start, end) in ways.items():
            self._draw_arrow_words(canvas, self.words[number], start, end, taken)

    def _arrow_ways(self) -> dict[int, tuple[tuple[int, int], tuple[int, int]]]:
        """Where each arrow begins and ends, by the number of its moment."""
        return {
            number: (
                (self.spots[moment.lane], self._sent_height(number)),
                (self.spots[moment.to or ""], self.heights[number]),
            )
            for number, moment in enumerate(self.drawn)
            if moment.is_arrow
        }

    def _draw_arrow_words(
        self, canvas: Canvas, words: str, start: tuple[int, int], end: tuple[int, int], taken: Taken
    ) -> None:
        """The words of an arrow, above or below it, where they cover no words and as few arrows as possible."""
        (x1, y1), (x2, y2) = start, end
        wide = text_pixels(words) * 11 // 12
        fall = abs(y2 - y1) * wide // (2 * max(abs(x2 - x1), 1))
        places = []
        for away in (-5 - fall, LABEL_PIXELS - 2 + fall):
            for part in (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2):
                middle, height = x1 + round((x2 - x1) * part), y1 + round((y2 - y1) * part) + away
                places.append((middle, min(max(height, self.top + 8), self.foot)))
        free = [spot for spot in places if taken.is_free(spot[0] - wide // 2, spot[1] - 4, wide)] or places[:1]
        middle, height = min(
            free,
            key=lambda spot: (
                spot[0] - wide // 2 < min(x1, x2) or spot[0] + wide // 2 > max(x1, x2),  # beyond the arrow's lanes
                taken.crossings(spot[0] - wide // 2, spot[1] - 4, wide),
            ),
        )
        if self.scale != "rows":
            height = taken.below(middle - wide // 2, height - 4, wide) + 4
        taken.add(middle - wide // 2, height - 4, wide)
        canvas.text(middle, height, words, INK, anchor="middle", size=11)


class Taken:
    """Where words stand already: (left, middle height, right), and the arrows. No words are moved below ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.arrows: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._places: list[tuple[int, int, int]] = []

    def add(self, x: int, y: int, wide: int) -> None:
        """Words from x on, of some width, the middle of their height at y."""
        self._places.append((x, y, x + wide))

    def is_free(self, x: int, y: int, wide: int) -> bool:
        """Whether words would cover no other ones."""
        return all(
            abs(y - taken_y) >= LABEL_PIXELS - 2 or x + wide < left or x > right
            for left, taken_y, right in self._places
        )

    def crossings(self, x: int, y: int, wide: int) -> int:
        """How many arrows words would cover."""
        return sum(_is_crossed(x, x + wide, y, arrow) for arrow in self.arrows)

    def below(self, x: int, y: int, wide: int) -> int:
        """The first height from y downwards where words are free, at most MOST_MOVES lines below."""
        for move in range(MOST_MOVES):
            lower = y + move * LABEL_PIXELS
            if lower < self._limit and self.is_free(x, lower, wide):
                return lower
        return y


def _is_crossed(left: int, right: int, middle: int, arrow: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    """Whether an arrow runs through words of which the left and right end and the middle height are given."""
    (x1, y1), (x2, y2) = sorted(arrow)
    if max(y1, y2) < middle - HALF_LETTER or min(y1, y2) > middle + HALF_LETTER or x2 <= left or x1 >= right:
        return False
    heights = [y1 + (y2 - y1) * (x - x1) / max(x2 - x1, 1) for x in (max(left, x1), min(right, x2))]
    return min(heights) <= middle + HALF_LETTER and max(heights) >= middle - HALF_LETTER

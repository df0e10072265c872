"""Draws docs/moving-picture.svg: the run of the README's example, message by message.

``python -m docs.moving_picture`` runs the example and writes the picture. Every position and moment is a fact of that
run: the store says where each message is, the deliveries who had it when, the journal when the consumer was killed.
A reader who wants no motion sees the end of the run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PICTURE = HERE / "moving-picture.svg"
WIDTH, HEIGHT = 720, 250
SHOP, BILLING = (70, 115), (640, 115)
CELL, FIRST_CELL, QUEUE_ROWS = 64, 320, (95, 165)
BROKER_MIDDLE = 355
INK, RULE, WAITING, DONE, AGAIN, DEAD = "#24292f", "#8c959f", "#ddf4ff", "#aceebb", "#ffd8b5", "#ffcecb"
DONE_INK, AGAIN_INK = "#1a7f37", "#bc4c00"
SENDING_SECONDS, SLOWER, REST_SECONDS = 3.0, 1.6, 3.0


@dataclass(frozen=True)
class Stored:
    """A message of the run: its key, queue and offset, and when it was stored."""

    key: str
    queue: int
    offset: int
    at_ms: int

    @property
    def place(self) -> tuple[int, int]:
        return FIRST_CELL + CELL * self.offset, QUEUE_ROWS[self.queue]


def example() -> str:
    """The example of the README."""
    found = re.search(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


class Film:
    """The keyframes of one run: virtual milliseconds become seconds of the picture, sends stretched."""

    def __init__(self, lab: Any) -> None:
        start = lab.journal[0].now_ms
        self.stored = [
            Stored(message.keys, message.queue_id, message.queue_offset, message.store_timestamp - start)
            for message in lab.store("broker-a").messages()
            if message.topic == "orders"
        ]
        self.deliveries = [
            (
                self._at(row.message_queue.queue_id, row.queue_offset),
                row.started_ms - start,
                row.ended_ms and row.ended_ms - start,
            )
            for row in lab.deliveries("billing")
        ]
        self.killed_ms = next(step.now_ms for step in lab.journal if step.kind == "fault") - start
        self.sent_ms = max(message.at_ms for message in self.stored)
        self.first_ms = min(begin for _, begin, _ in self.deliveries)
        self.length = self.seconds(max(end or 0 for _, _, end in self.deliveries)) + REST_SECONDS
        self._styles: list[str] = []
        self._shapes: list[str] = []

    def _at(self, queue: int, offset: int) -> Stored:
        return next(message for message in self.stored if (message.queue, message.offset) == (queue, offset))

    def seconds(self, at_ms: int) -> float:
        """When something of the run is shown."""
        if at_ms <= self.sent_ms:
            return SENDING_SECONDS * at_ms / self.sent_ms
        return SENDING_SECONDS + 0.5 + max(at_ms - self.first_ms, 0) / 1000 * SLOWER

    def animate(self, shape: str, frames: list[tuple[float, str]], at_rest: str) -> None:
        """A shape with its states: seconds and CSS; ``at_rest`` is what a reader without motion sees."""
        name = f"m{len(self._styles)}"
        stops = "".join(f"{100 * second / self.length:.2f}%{{{css}}}" for second, css in frames)
        self._styles.append(
            f"@keyframes {name}{{{stops}}}.{name}{{{at_rest};animation:{name} {self.length:.1f}s linear infinite}}"
        )
        self._shapes.append(shape.replace("<g", f'<g class="{name}"', 1))

    def messages(self) -> None:
        """Every message: it leaves the shop, and stays in its queue, whoever reads it."""
        for message in self.stored:
            (x, y), (shop_x, shop_y) = message.place, SHOP
            sent = self.seconds(message.at_ms)
            leaves = max(sent - 0.45, 0.01)
            away, there = f"transform:translate({shop_x - x}px,{shop_y - y}px)", "transform:none"
            number = message.key.removeprefix("order-")
            shape = f"<g>{box(x, y, 40, 34, WAITING)}{text(x, y + 5, number)}</g>"
            hidden, seen = f"{away};opacity:0", f"{there};opacity:1"
            frames = [
                (0, hidden),
                (leaves - 0.01, hidden),
                (leaves, f"{away};opacity:1"),
                (sent, seen),
                (self.length, seen),
            ]
            self.animate(shape, frames, "opacity:1")

    def deliver(self) -> None:
        """Every delivery: a copy goes to the consumer, and comes to an end there, or not."""
        times: dict[str, int] = {}
        for message, begin_ms, end_ms in self.deliveries:
            (x, y), (to_x, to_y) = message.place, BILLING
            times[message.key] = times.get(message.key, 0) + 1
            begin = self.seconds(begin_ms)
            end = self.seconds(end_ms if end_ms else self.killed_ms)
            here, there = "transform:none", f"transform:translate({to_x - x}px,{to_y - y}px)"
            number, colour = message.key.removeprefix("order-"), AGAIN if times[message.key] > 1 else DONE
            frames = [
                (0, f"{here};opacity:0"),
                (begin - 0.26, f"{here};opacity:0"),
                (begin - 0.25, f"{here};opacity:1"),
            ]
            frames += [(begin, f"{there};opacity:1"), (end - 0.01, f"{there};opacity:1"), (end, f"{there};opacity:0")]
            shape = f"<g>{box(x, y, 40, 34, colour)}{text(x, y + 5, number)}</g>"
            self.animate(shape, [*frames, (self.length, f"{there};opacity:0")], "opacity:0")
            if end_ms:
                self._mark(message, times[message.key], end)

    def _mark(self, message: Stored, number: int, end: float) -> None:
        """Below its cell: how often the listener has returned for a message."""
        x, y = message.place
        shape = f"<g>{text(x - 9 + 18 * (number - 1), y + 31, '✓', AGAIN_INK if number > 1 else DONE_INK)}</g>"
        self.animate(
            shape,
            [(0, "opacity:0"), (end - 0.01, "opacity:0"), (end, "opacity:1"), (self.length, "opacity:1")],
            "opacity:1",
        )

    def consumer(self) -> None:
        """The consumer is killed and started again."""
        killed, (x, y) = self.seconds(self.killed_ms), BILLING
        back = self.seconds(next(begin for _, begin, _ in self.deliveries if begin > self.killed_ms)) - 0.4
        shape = f"<g>{box(x, y, 110, 84, DEAD)}{text(x, y + 5, 'killed')}</g>"
        frames = [
            (0, "opacity:0"),
            (killed - 0.01, "opacity:0"),
            (killed, "opacity:1"),
            (back, "opacity:1"),
            (back + 0.3, "opacity:0"),
        ]
        self.animate(shape, [*frames, (self.length, "opacity:0")], "opacity:0")

    def svg(self) -> str:
        """The whole picture."""
        self.messages()
        self.deliver()
        self.consumer()
        title = "A run of the example: billing is killed during its second order and gets the first two again."
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                f"<title>{title}</title>",
                "<style>text{font:14px system-ui,sans-serif;text-anchor:middle}" + "".join(self._styles),
                "@media(prefers-reduced-motion:reduce){g{animation:none!important}}</style>",
                f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>',
                *stage(),
                *self._shapes,
                "</svg>\n",
            ]
        )


def box(x: int, y: int, width: int, height: int, colour: str) -> str:
    left, top = x - width // 2, y - height // 2
    return f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="5" fill="{colour}" stroke="{RULE}"/>'


def text(x: int, y: int, words: str, colour: str = INK) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}">{words}</text>'


def stage() -> list[str]:
    """What does not move: the shop, the broker with its queues, the consumer, and the legend."""
    parts = [box(*SHOP, 90, 84, "#f6f8fa"), text(SHOP[0], 62, "shop"), box(*BILLING, 110, 84, "#f6f8fa")]
    parts += [text(BILLING[0], 62, "billing-1"), text(BROKER_MIDDLE, 30, "broker-a, topic orders")]
    parts.append(f'<rect x="190" y="42" width="330" height="168" rx="8" fill="none" stroke="{RULE}"/>')
    for queue, y in enumerate(QUEUE_ROWS):
        parts.append(text(240, y + 5, f"queue {queue}"))
        parts += [box(FIRST_CELL + CELL * place, y, 48, 42, "#f6f8fa") for place in range(3)]
    parts.append(text(WIDTH // 2 - 110, 235, "✓ handled", DONE_INK))
    parts.append(text(WIDTH // 2 + 70, 235, "✓ handled when delivered again", AGAIN_INK))
    return parts


def draw() -> str:
    """Run the example of the README and draw it."""
    names: dict[str, Any] = {}
    exec(compile(example().replace("print(", "str("), "README.md", "exec"), names)
    return Film(names["lab"]).svg()


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")

"""One page a board: alive without a kernel, with its state in the address.

    boards/retry-clock.html#recorded-run=in+order&delivery=2      a link to one run and one moment of it

Left out: boards of what a notebook made itself (the time machine, the crash matrix, …). They are in the labs' pages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from mqlab.course import widgets
from mqlab.course.site.frame import page
from mqlab.course.widgets.frame.board import Board

BOARDS: dict[str, tuple[Callable[[], Board], str]] = {
    "log-xray": (lambda: widgets.log_xray(), "a store: every action, its bytes, and what a crash takes"),
    "knows": (lambda: widgets.knows_board(), "what name servers, a shop and billing believe about a broker"),
    "allocation": (lambda: widgets.allocation_board(), "who reads which queue when members join and leave"),
    "offset-strip": (lambda: widgets.offset_strip(), "messages finished in any order, and which offset is reported"),
    "lanes": (lambda: widgets.lanes_board(), "events in threads, in order, or in lanes"),
    "leases": (lambda: widgets.lease_board(), "orders on lease to members that work, hang or die"),
    "wheel": (lambda: widgets.wheel_board(), "reminders in a timer wheel that turns, rolls and loses a file"),
    "tag-trap": (lambda: widgets.tag_trap_board(), "two members with different tags in one group"),
    "retry-clock": (lambda: widgets.retry_clock(), "an order that fails, and when it is tried again"),
    "long-poll": (lambda: widgets.long_poll_scope(), "pulls that the broker holds"),
    "backlog-tank": (lambda: widgets.backlog_tank(), "traffic, the lag that it leaves, and the limit that binds"),
}
"""The name of each page, what makes the board, and what the board shows."""


def board_page(name: str) -> str:
    """The page of one board."""
    board = BOARDS[name][0]()
    words = Markup("<p>The address of this page holds what you see: copy it, and others see the same.</p>")
    return page(board.label, words + board.html(), up="../", alone=True)


def put_boards(out: Path) -> None:
    """Write the page of every board to a folder that does not exist yet."""
    out.mkdir()
    for name in BOARDS:
        (out / f"{name}.html").write_text(board_page(name), "utf-8")

"""A board as an anywidget: the only file of explorers that needs anywidget, imported when a board is first shown.

    page ── {"ask": "3", "name": "play", "arguments": {…}} ──▶ board.answer(…)
    page ◀── {"answer": "3", "share": 0.4, "words": "…"} ───── board.progress(0.4, "…")
    page ◀── {"answer": "3", "packed": "…"} or {"error": "…"}
    page ◀─▶ one trait for each state value

``mount_name`` is the name under which the page finds the widget of a cell's output (frame/page/places.js).

Left out: several questions at once; a kernel answers them one after the other.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from mqlab.browser import IN_BROWSER
from mqlab.course.widgets.frame.bundle import with_board

if TYPE_CHECKING:
    from mqlab.course.widgets.frame.board import Board

LIVE = """import {{ live, offerBoard }} from "./frame/page/frame.js";
export default {{
  initialize: ({{ model }}) => offerBoard(board, model),
  render: (context) => live(board, context, {label}),
}};
"""


class BoardWidget(anywidget.AnyWidget):
    """The live form of one board; ``live_widget`` adds a trait for each state value."""

    packed = traitlets.Unicode().tag(sync=True)
    kernel = traitlets.Bool(True).tag(sync=True)
    mount_name = traitlets.Unicode().tag(sync=True)

    def __init__(self, board: Board, esm: str, **state: Any) -> None:
        super().__init__(_esm=esm, packed=board.packed_data(), mount_name=secrets.token_hex(8), **state)
        self._board = board
        self._answering: str | None = None  # the number of the question that is being answered
        self.on_msg(self._asked)
        self.observe(lambda change: in_main_thread(lambda: self._take(change["name"])), names=list(state))

    def progress(self, share: float, words: str) -> None:
        """Tell the page how far the answer that it waits for is."""
        if self._answering is not None:
            self.send({"answer": self._answering, "share": share, "words": words})

    def _take(self, name: str) -> None:
        value = getattr(self, name)  # as it is by now
        if value != self._board.state[name]:
            self._board.took(name, value)

    def _asked(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        in_main_thread(lambda: self._answer(content))

    def _answer(self, content: dict[str, Any]) -> None:
        self._answering = content["ask"]
        try:
            answer = self._board.answer(content["name"], content.get("arguments") or {})
        finally:
            number, self._answering = self._answering, None
        self.send({"answer": number, **answer})


def in_main_thread(action: Callable[[], None]) -> None:
    """Run an action in the thread of the cells, and wait for it; in a browser soon, in the one thread that there is.

    A kernel with subshells (ipykernel 7) may bring what the page asks in a thread of its own. A board's Lab belongs to
    the thread that made it: listeners that wait are coroutines of that thread. While a cell runs, the page waits.
    """
    if IN_BROWSER:  # the page's call cannot wait for another stack; what the event loop calls can
        asyncio.get_event_loop().call_soon(action)
        return
    import IPython  # here: a page can only ask where there is a kernel

    kernel = getattr(IPython.get_ipython(), "kernel", None)
    loop = getattr(kernel, "io_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        action()
        return
    done: Future[None] = Future()

    def run() -> None:
        try:
            action()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    loop.add_callback(run)
    done.result()


def live_widget(board: Board) -> BoardWidget:
    """The widget of a board. Raises TypeError for a state value whose name a widget uses itself."""
    taken = sorted(name for name in board.state if hasattr(BoardWidget, name))
    if taken:
        raise TypeError(f"a state value of {board.label} cannot be called {taken[0]!r}: a widget has that name")
    traits = {name: traitlets.Any().tag(sync=True) for name in board.state}
    kind = type(f"{type(board).__name__}Widget", (BoardWidget,), traits)
    esm = with_board(board.module, LIVE.format(label=json.dumps(board.label)))
    widget: BoardWidget = kind(board, esm, **board.state)
    return widget

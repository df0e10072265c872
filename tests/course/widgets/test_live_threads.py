"""What a page asks in a thread of its own is answered in the thread of the cells, to which a board's Lab belongs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("anywidget")

from mqlab.course.widgets import allocation_board
from mqlab.course.widgets.frame import live
from mqlab.course.widgets.frame.live import in_main_thread


class Loop:
    """The kernel's loop in the main thread: it has add_callback, as tornado's has."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add_callback(self, action: Callable[[], Any]) -> None:
        self._loop.call_soon_threadsafe(action)


def test_a_question_from_another_thread_is_answered_in_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.new_event_loop()
    shell = SimpleNamespace(kernel=SimpleNamespace(io_loop=Loop(loop)))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    ran_in: list[threading.Thread] = []
    failed: list[str] = []

    def fails() -> None:
        raise ValueError("the page is told")

    def page() -> None:
        in_main_thread(lambda: ran_in.append(threading.current_thread()))
        try:
            in_main_thread(fails)
        except ValueError as error:
            failed.append(str(error))
        loop.call_soon_threadsafe(loop.stop)

    asker = threading.Thread(target=page)
    asker.start()
    loop.run_forever()
    asker.join()
    loop.close()
    assert ran_in == [threading.main_thread()]
    assert failed == ["the page is told"]


def test_in_the_main_thread_and_without_a_kernel_it_runs_at_once() -> None:
    ran: list[int] = []
    in_main_thread(lambda: ran.append(1))
    assert ran == [1]


def test_in_a_browser_a_cell_sees_what_it_has_set_and_the_page_is_heard_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "IN_BROWSER", True)
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "get_event_loop", lambda: loop)
    board = allocation_board("AVG", queues=8, members=3, history=[("join", "billing-4")], recorded={})
    widget = board.widget
    board.change(strategy="AVG_BY_CIRCLE")
    board.join("billing-5").leave("billing-1")
    expected = [["join", "billing-4"], ["join", "billing-5"], ["leave", "billing-1"]]
    assert (board.state["strategy"], board.state["history"]) == ("AVG_BY_CIRCLE", expected)
    widget.position = 1  # the page's slider
    assert board.position == 3
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert (board.position, board.state["history"]) == (1, expected)

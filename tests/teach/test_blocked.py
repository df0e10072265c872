"""A check whose answer waits in real time ends, and says at which line."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.client.statuses import CONSUME_SUCCESS
from mqlab.teach import blocked, check
from mqlab.teach.blocked import BlockWatch
from mqlab.teach.checking import CheckFailed

Listener = Callable[[Any, Any], str]
WAITS_S = 0.3


def is_here(filename: str) -> bool:
    return filename == __file__


def two_take_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    with lock:
        pass


def nobody_puts() -> None:
    queue.Queue[int]().get()


@pytest.mark.parametrize(("wait", "text"), [(two_take_a_lock, "with lock:"), (nobody_puts, "queue.Queue[int]().get()")])
def test_a_wait_without_end_is_interrupted_at_its_line(wait: Callable[[], None], text: str) -> None:
    with BlockWatch(is_here, WAITS_S) as watch, pytest.raises(KeyboardInterrupt):
        wait()
    assert watch.place is not None
    assert (watch.place.function, watch.place.text) == (wait.__name__, text)


def test_what_computes_is_left_alone() -> None:
    with BlockWatch(is_here, WAITS_S) as watch:
        until_s = time.process_time() + 3 * WAITS_S
        while time.process_time() < until_s:
            pass
    assert watch.place is None


def test_a_wait_of_a_library_is_left_alone() -> None:
    """Such as Spark's, which waits for its JVM."""
    with BlockWatch(lambda filename: False, WAITS_S) as watch:
        time.sleep(3 * WAITS_S)
    assert watch.place is None


def with_a_real_lock(lab: Any) -> Listener:
    lock = threading.Lock()

    def listener(messages: Any, context: Any) -> str:
        with lock:
            context.sleep("1s")
        return CONSUME_SUCCESS

    return listener


def with_a_lock_and_a_net(lab: Any) -> Listener:
    lock = threading.Lock()

    def listener(messages: Any, context: Any) -> str:
        try:
            lock.acquire()
            context.sleep("1s")
        except BaseException:
            return "RECONSUME_LATER"
        return CONSUME_SUCCESS

    return listener


@pytest.mark.parametrize("answer", [with_a_real_lock, with_a_lock_and_a_net])
def test_a_check_says_what_waits_and_what_to_use(
    answer: Callable[[Any], Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked, "WAITS_S", WAITS_S)
    with pytest.raises(CheckFailed) as failed:
        check("lab04.once", {"once": answer})
    told = str(failed.value)
    assert "Your code waits in real time" in told and "of listener: " in told and "lab.resource" in told

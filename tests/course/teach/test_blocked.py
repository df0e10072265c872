"""A check whose answer waits in real time ends, and says at which line."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqlab.course import check
from mqlab.course.teach import blocked
from mqlab.course.teach.blocked import BlockWatch
from mqlab.course.teach.checking import CheckFailed
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from tests.course.teach.notebook_answers import names_after

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


def a_future_of_nobody() -> None:
    concurrent.futures.Future[int]().result()


def a_process_that_sleeps() -> None:
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])


def a_loop_that_sleeps() -> None:
    asyncio.run(asyncio.sleep(60))


def a_socket_without_a_peer() -> None:
    left, right = socket.socketpair()
    with left, right, selectors.DefaultSelector() as selector:
        selector.register(left, selectors.EVENT_READ)
        selector.select()


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (two_take_a_lock, "with lock:"),
        (nobody_puts, "queue.Queue[int]().get()"),
        (a_future_of_nobody, "concurrent.futures.Future[int]().result()"),
        (a_process_that_sleeps, 'subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])'),
        (a_loop_that_sleeps, "asyncio.run(asyncio.sleep(60))"),
        (a_socket_without_a_peer, "selector.select()"),
    ],
)
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


def test_what_is_ready_but_gets_no_processor_computes() -> None:
    """On a busy machine a thread that computes may get nothing for a while."""
    ready_s = 0.0
    busy = blocked._Busy(lambda: 0.0, lambda: ready_s)
    ready_s = 0.3
    assert not busy.in_the_last(1.0)
    ready_s = 0.6
    assert busy.in_the_last(1.0)
    busy.begin()
    assert not busy.in_the_last(1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how long a thread was ready to run")
def test_a_thread_that_computes_is_ready_all_the_time() -> None:
    ready_s = blocked._readiness_of(threading.get_native_id())
    begun_s, ready_since_s = time.monotonic(), ready_s()
    while time.monotonic() < begun_s + 0.2:
        pass
    assert ready_s() - ready_since_s > 0.75 * (time.monotonic() - begun_s)
    begun_s, ready_since_s = time.monotonic(), ready_s()
    time.sleep(0.5)
    assert ready_s() - ready_since_s < 0.75 * (time.monotonic() - begun_s)


@contextlib.contextmanager
def another_thread_computes(seconds: float) -> Iterator[threading.Thread]:
    """For so many seconds, or until the block ends."""
    over = threading.Event()

    def compute() -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and not over.is_set():
            pass

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def test_who_waits_for_threads_that_compute_has_longer_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    with another_thread_computes(3 * WAITS_S) as busy, BlockWatch(is_here, WAITS_S) as watch:
        busy.join()
    assert watch.place is None
    monkeypatch.setattr(blocked, "LONGER", 2)
    with another_thread_computes(600), BlockWatch(is_here, WAITS_S) as watch, pytest.raises(KeyboardInterrupt):
        nobody_puts()
    assert watch.place is not None and watch.place.function == "nobody_puts"


def test_a_handler_that_python_cannot_put_back_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with BlockWatch(is_here, WAITS_S):
            time.sleep(2 * WAITS_S)  # not interrupted: the handler was left alone
        assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_browser_which_names_no_threads_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "IN_BROWSER", True)
    monkeypatch.delattr(threading, "get_native_id")
    with BlockWatch(is_here, WAITS_S) as watch:
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


def with_a_real_sleep(lab: Any) -> Listener:
    def listener(messages: Any, context: Any) -> str:
        time.sleep(600)
        return CONSUME_SUCCESS

    return listener


@pytest.mark.filterwarnings("ignore:time.sleep:UserWarning")
@pytest.mark.parametrize("answer", [with_a_real_lock, with_a_lock_and_a_net, with_a_real_sleep])
def test_a_check_says_what_waits_and_what_to_use(
    answer: Callable[[Any], Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked, "WAITS_S", WAITS_S)
    with pytest.raises(CheckFailed) as failed:
        check("lab04.once", {"once": answer})
    told = str(failed.value)
    assert "Your code waits in real time" in told and "of listener: " in told and "lab.resource" in told


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

def beside(function, works):
    threads = [Thread(target=function, args=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def in_a_pool(function, works):
    with ThreadPoolExecutor(4) as pool:
        list(pool.submit(function, *work) for work in works)

def lanes(handle):
    def lane(events, context):
        for event in events:
            handle(event, context)

    def listener(messages, context):
        by_order = {}
        for message in messages:
            by_order.setdefault(message.keys, []).append(message)
        WAY(lane, [(events, context) for events in by_order.values()])
        return "SUCCESS"

    return listener
"""


@pytest.mark.parametrize("way", ["beside", "in_a_pool"])
def test_threads_of_python_end_in_one_rule_and_no_traceback(way: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckFailed) as failed:
        check("lab05.lanes", names_after("lab05.lanes", THREADS.replace("WAY", way)))
    text = str(failed.value)
    assert blocked.THREAD_RULE in text and "of lane: handle(event, context)" in text and "hint(" in text
    assert capfd.readouterr().err == ""
    hook = threading.excepthook
    with blocked.ThreadWatch(is_here):
        assert threading.excepthook is not hook
    assert threading.excepthook is hook


def test_a_mistake_in_a_thread_of_the_learner_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with blocked.ThreadWatch(is_here) as watch:
        thread = threading.Thread(target=lambda: 1 // 0)
        thread.start()
        thread.join()
    assert watch.place is None and [one.exc_type for one in told] == [ZeroDivisionError]

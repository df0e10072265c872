"""The processes of submissions: copies of one that has imported what they need."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from mqlab.course.grading.running.copies import Copies, Copy, NoCopy

SECONDS = 120.0


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    made = Copies()
    yield made
    made.close()


@pytest.fixture
def copy(copies: Copies) -> Iterator[Copy]:
    made = copies.make()
    yield made
    made.kill()
    made.close()


def test_a_copy_is_a_session_of_its_own_and_reads_its_own_order(copy: Copy, copies: Copies) -> None:
    other = copies.make()
    assert copy.pid != other.pid
    assert os.getpgid(copy.pid) == os.getsid(copy.pid) == copy.pid
    other.orders.write(b"no order\n")
    other.orders.flush()
    assert (other.wait(SECONDS), other.wait(SECONDS)) == (1, 1)
    assert "JSONDecodeError" in other.last_word()
    other.close()
    with pytest.raises(TimeoutError, match=f"process {copy.pid} continues"):
        copy.wait(0.1)


def test_a_killed_copy_has_the_number_of_its_signal_and_no_word(copy: Copy) -> None:
    copy.kill()
    assert copy.wait(SECONDS) == -signal.SIGKILL
    assert copy.last_word() == ""
    copy.kill()  # no other process may have the number by now


def test_a_copy_whose_order_never_comes_ends(copies: Copies) -> None:
    copy = copies.make()
    copy.orders.close()
    assert copy.wait(SECONDS) == 1
    copy.close()


def test_several_threads_ask_for_copies(copies: Copies) -> None:
    made: list[Copy] = []
    threads = [threading.Thread(target=lambda: made.append(copies.make())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len({copy.pid for copy in made}) == 6
    for copy in made:
        copy.kill()
        assert copy.wait(SECONDS) == -signal.SIGKILL
        copy.close()


def test_an_original_that_was_killed_is_started_again_and_its_copies_go_on() -> None:
    copies = Copies()
    before = copies.make()
    original = copies._original
    assert original is not None
    original.kill()
    original.wait()
    after = copies.make()
    with pytest.raises(TimeoutError):
        before.wait(0)
    for copy in (before, after):
        copy.orders.write(b"{}\n")
        copy.orders.flush()
        assert copy.wait(SECONDS) == 1 and "KeyError" in copy.last_word()
        copy.close()
    copies.close()
    assert original.returncode == -signal.SIGKILL


def test_an_original_that_cannot_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(NoCopy, match="could not be started"):
        Copies().make()

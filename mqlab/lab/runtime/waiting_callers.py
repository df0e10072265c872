"""A caller on a thread of its own waits for a step of a node; both real-time Workers ports wait like this.

Mirrors: a thread of the Java client that is blocked in ``ResponseFuture.waitResponse``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from mqlab.errors import NodeDown, UsageError
from mqlab.rocketmq.promises import Promise

T = TypeVar("T")


def result_now(start: Callable[[], Promise[T]], node: str, who_may_wait: str) -> T:
    """The result of a call that a step of the node itself makes. UsageError when it would have to wait for one."""
    begun = start()
    if not begun.done:
        raise UsageError(
            f"a step of {node} tried to wait on its own thread", hint=f"only a listener or the {who_may_wait} may wait"
        )
    return begun.result()


def wait_for_step(
    start: Callable[[], Promise[T]],
    as_step: Callable[[Callable[[], Any]], None],
    is_gone: Callable[[], bool],
    gone: str,
    look_every_s: float,
) -> T:
    """Hand ``start`` to the node by ``as_step`` and block until its promise settles; NodeDown when the node is gone."""
    settled = threading.Event()
    answers: list[Promise[T]] = []

    def step() -> None:
        try:
            promise = start()
        except Exception as error:
            promise = Promise.failed(error)
        answers.append(promise)
        promise.then(lambda _: settled.set(), lambda _: settled.set())

    as_step(step)
    while not settled.wait(look_every_s):
        if is_gone():
            raise NodeDown(gone)
    return answers[0].result()

"""A stand-in for a browser's Python: each stack is a thread, and one thread runs at a time.

As with JavaScript's promises each stack has its own thread state (locals, tracer), and a stack that waits is woken by a
gate. ``python -m tests.lab.runtime.in_a_browser`` plays the stories of this module there and prints their digests.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any


def pretend() -> None:
    """Make the modules of mqlab that are imported from here on believe that they are in a browser."""
    import mqlab.browser

    begun: list[Callable[[], None]] = []

    def run_js(text: str) -> Callable[[Callable[[], None]], None]:
        assert "callPromising" in text
        return begun.append

    def run_sync(gate: Any) -> None:
        opened = threading.Event()
        runs = begun.copy()
        begun.clear()  # before they run: they begin stacks themselves
        for run in runs:
            threading.Thread(target=run, daemon=True).start()
        gate.add_done_callback(lambda _: opened.set())
        opened.wait()
        gate.result()

    code, ffi = ModuleType("pyodide.code"), ModuleType("pyodide.ffi")
    code.run_js = run_js  # type: ignore[attr-defined]
    ffi.run_sync, ffi.create_proxy = run_sync, lambda run: run  # type: ignore[attr-defined]
    sys.modules |= {"pyodide": ModuleType("pyodide"), "pyodide.code": code, "pyodide.ffi": ffi}
    sys.modules["fcntl"] = sys.modules["resource"] = None  # type: ignore[assignment]
    mqlab.browser.IN_BROWSER = True


def digests() -> list[str]:
    """What three stories left behind: one to its end, one paused and stepped, one killed at every step and line."""
    from mqlab import Lab, Message, every_crash, play
    from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER

    def bill(messages: list[Any], context: Any) -> str:
        context.sleep("300ms")
        context.compute("20ms")
        if messages[0].keys == "order-3" and messages[0].reconsume_times == 0:
            return RECONSUME_LATER
        context.sleep(40)
        return CONSUME_SUCCESS

    def billing(lab: Lab, name: str) -> None:
        consumer = lab.push_consumer("billing", name=name)
        consumer.subscribe("orders", "*")
        consumer.on_messages(bill)
        consumer.start()

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
        billing(lab, "billing-1")
        billing(lab, "billing-2")
        shop = lab.producer("shop")
        for number in range(12):
            shop.send(Message("orders", f"книга {number} 书 📚".encode(), keys=f"order-{number}"))
        lab.run_for("350ms")  # some listeners are in the middle
        lab.kill("billing-1")
        lab.run_for("5s")
        lab.start("billing-1")
        lab.run_for("2s")
        lab.power_off("broker-a")
        lab.run_for("10s")
        lab.start("broker-a")
        lab.run_for("60s")

    def short(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        billing(lab, "billing-1")
        lab.producer("shop").send(Message("orders", b"x", keys="order-1"))
        lab.run_for("3s")

    paused = play(story, seed=7, until_step=400)
    for _ in range(50):
        paused.step()
    paused.run_for("80s")
    crashed = [
        f"{lab.crash_point.kind} {lab.crash_point.number} {lab.journal.digest()}"
        for lab in every_crash(short, node="billing-1")
    ]
    return [play(story, seed=7).journal.digest(), paused.journal.digest(), *crashed]


if __name__ == "__main__":
    if "pretend" in sys.argv:
        pretend()
    print(*digests(), sep="\n")

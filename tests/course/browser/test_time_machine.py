"""The time machine, alone and in JupyterLab: dragged, clicked, forked, by keyboard alone, read by a screen reader."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.course.widgets import explore
from mqlab.lab.views.queue import show_queue
from tests.course.browser.conftest import ROOT, JupyterLab
from tests.course.browser.live_boards import live_page, open_more_settings
from tests.course.browser.pages import RED, open_and_run_all
from tests.course.widgets.stories import NO_TRACE, day

pytestmark = pytest.mark.browser

CELL = """
from stories import NO_TRACE, day
from mqlab.lab.views.queue import show_queue
from mqlab.course.widgets import explore


def queue_now(lab):
    return [show_queue(lab, "orders")] if "orders" in lab.store().topics() else []


explorer = explore(day, seed=7, show=queue_now, client=NO_TRACE, knobs={"orders": (1, 5)})
explorer
"""
TOLD = "print('told', explorer.state['position'], explorer.state['branch'], explorer.state['parameters']['orders'])"
FRAME_MS = 16
# Drags over all stops; measured is the work of the main thread per frame: scripts, style, layout, paint.
DRAG = """async (input) => {
    const stops = Number(input.max);
    for (let stop = 0; stop <= stops; stop += 1) {
        input.value = stop;
        input.dispatchEvent(new Event("input"));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
    return stops + 1;
}"""


def notebook(folder: Path) -> str:
    """A notebook with one time machine and a cell that reads its state."""
    place = folder / "machine"
    place.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests" / "course" / "widgets" / "stories.py", place / "stories.py")
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": source.strip(),
        }
        for number, source in enumerate((CELL, TOLD))
    ]
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (place / "machine.ipynb").write_text(json.dumps(whole), "utf-8")
    return "machine/machine.ipynb"


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_a_drag_is_work_for_less_than_a_frame(chromium: Any, jupyterlab: JupyterLab) -> None:
    """Milliseconds of the main thread, so not beside other work: with the long tests."""
    page = open_and_run_all(chromium, jupyterlab, notebook(jupyterlab.folder))
    bar = page.get_by_role("group", name="Time machine").get_by_role("slider", name="Stop")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    bar.evaluate(DRAG)  # what is drawn for the first time
    before = main_thread_ms(session)
    frames = bar.evaluate(DRAG)
    assert (main_thread_ms(session) - before) / frames < FRAME_MS
    session.detach()


def main_thread_ms(session: Any) -> float:
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


def names_of(session: Any, role: str) -> list[str]:
    """The names that a screen reader says for all elements of a role in the time machine."""
    document = session.send("DOM.getDocument")["root"]["nodeId"]
    box = session.send("DOM.querySelector", {"nodeId": document, "selector": ".mqlab-board"})["nodeId"]
    nodes = session.send("Accessibility.queryAXTree", {"nodeId": box, "role": role})["nodes"]
    return [node.get("name", {}).get("value", "") for node in nodes if not node["ignored"]]


def test_times_stay_in_view_and_an_empty_panel_is_one_line(chromium: Any, tmp_path: Path) -> None:
    page = live_page(chromium, explore(day, seed=7, client=NO_TRACE), tmp_path)
    page.set_viewport_size({"width": 420, "height": 900})
    picture = page.locator(".mq-space").first
    time = picture.locator("text.quiet").first
    before = time.bounding_box()["x"]
    picture.evaluate("box => { box.scrollLeft = 120; }")
    page.wait_for_function("document.querySelector('.mq-space').scrollLeft === 120")
    page.wait_for_timeout(100)
    assert abs(time.bounding_box()["x"] - before) < 1
    panel = page.get_by_role("region", name="Bytes")
    assert panel.bounding_box()["height"] < 90 and page.get_by_text("Nothing yet.").count() == 0  # words of the style
    assert page.get_by_role("button", name="Play again").count() == 0  # until its settings are unfolded
    open_more_settings(page)
    assert page.get_by_role("button", name="Play again").bounding_box()["y"] < picture.bounding_box()["y"]
    page.get_by_role("button", name="End", exact=True).click()
    page.get_by_role("button", name=re.compile("^0, заказ-1")).click()
    assert panel.bounding_box()["height"] > 200


def test_all_lanes_are_seen_at_once_where_the_page_has_room(chromium: Any, tmp_path: Path) -> None:
    page = live_page(chromium, explore(day, seed=7, client=NO_TRACE), tmp_path, width=700)
    room = "(() => { const box = document.querySelector('.mq-space'); return box.scrollWidth - box.clientWidth; })()"
    page.wait_for_function(f"{room} <= 0")
    page.get_by_role("button", name="Step", exact=True).click()
    stop = page.get_by_role("status").filter(has_text="stop 1 of")
    stop.wait_for()
    page.set_viewport_size({"width": 1000, "height": 900})
    page.wait_for_function(f"{room} <= 0 && document.querySelector('.mq-space svg').clientWidth > 700")
    assert page.locator(".mq-space .moment:not(.future)").count() >= 1  # drawn again at the same step


def test_what_a_slow_kernel_repeats_does_not_move_the_hand_back(chromium: Any, tmp_path: Path) -> None:
    explorer = explore(day, seed=7, client=NO_TRACE)
    page = live_page(chromium, explorer, tmp_path)
    status = page.get_by_role("status").first
    status.filter(has_text="stop 0 of").wait_for()
    # Two steps, the second not yet saved when the kernel repeats the first.
    page.get_by_role("button", name="Step", exact=True).evaluate(
        "button => { button.click(); button.click(); window.fromKernel('position', 1); }"
    )
    assert "stop 2 of" in status.inner_text()
    page.wait_for_function("window.mqlabSaved?.position === 2")
    assert explorer.state["position"] == 2
    # With nothing to be saved, the board follows the kernel.
    page.evaluate("window.fromKernel('position', 1)")
    assert "stop 1 of" in status.inner_text()
    page.get_by_role("button", name="Back", exact=True).click()
    status.filter(has_text="stop 0 of").wait_for()


@pytest.mark.long
def test_in_jupyterlab_the_time_machine_is_dragged_clicked_and_forked(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, notebook(jupyterlab.folder))
    session = page.context.new_cdp_session(page)
    sent: list[Any] = []
    session.on("Network.webSocketFrameSent", lambda frame: sent.append(frame))
    session.send("Network.enable")
    is_dragged_clicked_and_forked(page, session, sent)
    # The cell below reads what was done.
    page.locator(".jp-CodeCell").last.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    page.locator(".jp-OutputArea-output").get_by_text(re.compile(r"told \d+ fork 4")).wait_for()
    assert page.locator(RED).count() == 0
    is_told_to_forget_the_fork(page)
    session.detach()


def test_the_time_machine_is_dragged_clicked_and_forked(chromium: Any, tmp_path: Path) -> None:
    explorer = explore(day, seed=7, show=queue_now, client=NO_TRACE, knobs={"orders": (1, 5)})
    page = live_page(chromium, explorer, tmp_path)
    open_more_settings(page)
    session = page.context.new_cdp_session(page)
    sent: list[Any] = []
    to_board = page.to_board

    def noted(content: dict[str, Any]) -> Any:
        sent.append(content)
        return to_board(content)

    page.to_board = noted
    is_dragged_clicked_and_forked(page, session, sent)
    assert (explorer.state["branch"], explorer.state["parameters"]["orders"]) == ("fork", 4)
    is_told_to_forget_the_fork(page)
    assert page.problems == []
    session.detach()


def queue_now(lab: Lab) -> list[Any]:
    """A panel of the learner's own, as in the cell above."""
    return [show_queue(lab, "orders")] if "orders" in lab.store().topics() else []


def is_dragged_clicked_and_forked(page: Any, session: Any, sent: list[Any]) -> None:
    """``sent``: what the page says to the kernel is put there."""
    board = page.get_by_role("group", name="Time machine")
    status = board.get_by_role("status").first
    status.filter(has_text="stop 0 of").wait_for()

    # 1. Dragging goes over every stop with no kernel in between: at most the place is saved when the hand rests.
    bar = board.get_by_role("slider", name="Stop")
    frames = bar.evaluate(DRAG)  # one for each stop and one for the beginning
    assert len(sent) < frames / 2
    status.filter(has_text=re.compile(r"stop (\d+) of \1,")).wait_for()

    # 2. A click on a moment goes there and lights up what belongs to it; a click on a cell lights up the moments.
    board.get_by_role("button", name="Start", exact=True).click()
    moment = board.get_by_role("option", name=re.compile("stored at byte 233"))
    moment.click()
    status.filter(has_text="stored at byte 233").wait_for()
    board.locator("button[aria-current=true]").first.wait_for()
    assert "at byte 233" in board.get_by_role("region", name="Bytes").inner_text()
    board.get_by_role("button", name="End", exact=True).click()
    board.get_by_role("button", name=re.compile("^0, заказ-1")).click()
    board.locator("button[aria-current=true]", has_text="заказ-1").wait_for()
    assert "заказ-1" in board.get_by_role("region", name="Bytes").inner_text()

    # 3. The story's own keyword, by the keyboard alone.
    orders = board.get_by_label("orders", exact=True)
    orders.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    status.filter(has_text=re.compile(rf"stop 0 of (?!{frames - 1}\b)")).wait_for()

    # 4. A fault at a stop gives a fork with the first difference marked.
    bar = board.get_by_role("slider", name="Stop")
    bar.focus()
    for stop in range(1, 11):
        page.keyboard.press("ArrowRight")
        status.filter(has_text=f"stop {stop} of").wait_for()
    board.get_by_role("button", name="Make this fault").click()
    fork = board.get_by_role("region", name=re.compile("The fork: kill broker-a"))
    fork.wait_for()
    assert fork.get_by_role("option", name=re.compile("broker-a: killed")).count() == 1
    assert board.get_by_text("≠ first difference").count() >= 1
    board.get_by_label("From this stop on:").select_option(label="slow the links of")
    board.get_by_role("button", name="Make this fault in the fork").click()
    both = board.get_by_role("region", name=re.compile("The fork: kill broker-a .*; then slow broker-a"))
    both.wait_for()
    assert both.get_by_role("option", name=re.compile("broker-a: killed")).count() == 1

    # 5. A screen reader has a name for every control.
    session.send("Accessibility.enable")
    for role in ("slider", "spinbutton", "combobox", "textbox", "button", "option", "listbox"):
        names = names_of(session, role)
        assert names and "" not in names, role
    assert names_of(session, "slider") == ["Stop"]
    assert names_of(session, "listbox")[0] == "The story: moments"


def is_told_to_forget_the_fork(page: Any) -> None:
    page.get_by_role("button", name="Forget the fork").click()
    page.get_by_role("region", name=re.compile("The fork: ")).wait_for(state="detached")

"""Labs 08c, 15a and 15b as a student meets them: run to their end, and answered with a wrong belief."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.words import refutation
from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

ANY_ACK = """def out_now(pops, acks, now_ms):
    done = {(queue, offset) for _, queue, offset, _ in acks}
    return sorted(
        (queue, offset, popped_ms + invisible_ms)
        for popped_ms, invisible_ms, queue, offsets in pops
        for offset in offsets
        if popped_ms + invisible_ms > now_ms and (queue, offset) not in done
    )"""
SHORTEST = "def invisible_for(work_ms, deaths, choices, repeat_cost, wait_cost):\n    return min(choices)"
WHATEVER_TIME = """def due_at(read_wheel, read_log, second):
    slot, rows = unpack(">qqqii", read_wheel(second % 1_209_600 * 32, 32)), []
    position = slot[2] if slot[0] else -1
    while position != -1:
        unit = unpack(">iqiqiqiiq", read_log(position, 52))
        rows.append((unit[5], unit[6]))
        position = unit[1]
    return rows[::-1]"""
BELIEVED = [
    ("labs/08c-at-any-second.ipynb", "lab08.due_at", WHATEVER_TIME, "lab08.slot_is_its_second"),
    ("labs/15a-leased-not-owned.ipynb", "lab15.out_now", ANY_ACK, "lab15.any_ack"),
    ("labs/15b-when-it-comes-back.ipynb", "lab15.invisible_for", SHORTEST, "lab15.short_is_safe"),
]


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
@pytest.mark.parametrize(("path", "exercise", "answer", "belief"), BELIEVED)
def test_a_lab_runs_and_a_wrong_belief_is_refuted(
    chromium: Any, jupyterlab: JupyterLab, path: str, exercise: str, answer: str, belief: str
) -> None:
    page = open_and_run_all(chromium, jupyterlab, path)
    ran_to_its_end(page, exercises=2)
    check = write_and_check(page, exercise, answer)
    check.get_by_text(refutation(belief).partition(".")[0]).first.wait_for()

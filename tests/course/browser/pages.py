"""What a student does with a page of JupyterLab: opens a notebook and runs it, writes an answer, checks it."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from tests.course.browser.conftest import PATIENCE_MS, JupyterLab

RED = "[data-mime-type='application/vnd.jupyter.stderr']"  # an error as well as what went to stderr
TOLD = "[data-mime-type='text/html']"  # a failed check, which shows no red box


def open_and_run_all(browser: Any, lab: JupyterLab, path: str, patience_ms: int = PATIENCE_MS) -> Any:
    """The page of a notebook after Run All Cells. A notebook that starts Spark may need more patience."""
    page = lab.open(browser, path)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".jp-CodeCell").last.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for(
        timeout=patience_ms
    )
    lab.is_idle()
    return page


def ran_to_its_end(page: Any, exercises: int) -> None:
    """No cell said anything in red, and every check says that nothing was begun."""
    assert page.locator(RED).count() == 0
    assert page.get_by_text("not started").count() == exercises


def runs_to_its_end(browser: Any, lab: JupyterLab, path: str, exercises: int) -> None:
    """A notebook of which no more is asked."""
    ran_to_its_end(open_and_run_all(browser, lab, path), exercises)


def interrupt_until(page: Any, shown: Any) -> None:
    """Kernel > Interrupt Kernel, again and again until something is shown.

    Two that come before a busy kernel looks count as one, and a listener that loops is left at the second.
    """
    from playwright.sync_api import TimeoutError as NotYet

    for _ in range(PATIENCE_MS // 2_000):
        page.get_by_role("menuitem", name="Kernel", exact=True).click()
        page.get_by_role("menuitem", name="Interrupt Kernel").click()
        with contextlib.suppress(NotYet):
            return shown.wait_for(timeout=2_000)
    shown.wait_for()


def write_and_check(page: Any, exercise_id: str, answer: str) -> Any:
    """Replaces an answer cell's text, runs it and then its check, whatever is between them; the check's cell."""
    cell = page.locator(".jp-CodeCell", has_text=f"# exercise: {exercise_id}")
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(f"# exercise: {exercise_id}\n{answer}")
    page.keyboard.press("Shift+Enter")
    check = page.locator(".jp-CodeCell", has_text=f'check("{exercise_id}")')
    check.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    return check

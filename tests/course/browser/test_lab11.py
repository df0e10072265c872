"""Lab 11b as a student meets it: run to its end, boards moved, answers that are told their mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import PATIENCE_MS, JupyterLab
from tests.course.browser.pages import TOLD, open_and_run_all, ran_to_its_end, write_and_check

pytestmark = [pytest.mark.browser, pytest.mark.long]

NOTEBOOK = "labs/11b-slow-and-again.ipynb"


@pytest.mark.parametrize("jupyterlab", ["JupyterLab Dark"], indirect=True)
def test_lab11b_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, NOTEBOOK, patience_ms=4 * PATIENCE_MS)
    ran_to_its_end(page, exercises=3)

    # 1. The boards are there: the slow queue grows, and an echo of the reset is listed.
    percentiles, echoes, *_ = page.locator(".mqlab-board").all()
    percentiles.get_by_role("slider", name="Messages of the second").fill("0")
    percentiles.get_by_text("Of all 1,001 messages together: 60.1 ms.").wait_for()
    echoes.get_by_label("Stretch", exact=True).select_option(label="30 s")
    echoes.get_by_role("list", name="Calls of the cell").get_by_text("k-0, stored 00:00:00").wait_for()

    # 2. The answer of a student who takes every repeated call for a retry.
    retried = '    cause = functions.when(functions.col("retry_times") > 0, "retry").otherwise("first")\n'
    columns = '"group_name", "request_id", "msg_id", "keys", cause.alias("cause")'
    check = write_and_check(
        page,
        "lab11.why_again",
        f"def why_again(messages, calls):\n{retried}    return calls.where(\"keys != ''\").select({columns})",
    )
    check.locator(TOLD, has_text="retry_times counts failures").wait_for()

"""Lab 01 as a student meets it: run to its end, answered wrongly and then better, and the pages beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.course.browser.conftest import JupyterLab
from tests.course.browser.pages import open_and_run_all, ran_to_its_end, runs_to_its_end, write_and_check

pytestmark = pytest.mark.browser

FIRST = "labs/01a-what-the-broker-writes.ipynb"
OTHERS = ("labs/01b-finding-a-message.ipynb", "labs/01c-what-survives.ipynb")
HASHED = """
    data, value = (tags or "").encode("utf-16-be"), 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
"""


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_lab01_is_run_and_answered(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = open_and_run_all(chromium, jupyterlab, FIRST)
    ran_to_its_end(page, exercises=2)
    for body, said in (
        ("return struct.pack('>q', len(tags or ''))", "✗ lab01.tags: "),
        (HASHED.strip(), "2 of 2 public checks pass; hidden checks run at grading"),
    ):
        check = write_and_check(page, "lab01.tags", f"def tag_bytes(tags):\n    {body}")
        check.get_by_text(said).wait_for()
    assert check.get_by_text("have the same code: the broker lets both pass").count() == 1


@pytest.mark.long
@pytest.mark.parametrize("part", OTHERS)
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_the_other_parts_are_run(chromium: Any, jupyterlab: JupyterLab, part: str) -> None:
    runs_to_its_end(chromium, jupyterlab, part, exercises=2)


@pytest.mark.long
@pytest.mark.parametrize("jupyterlab", ["JupyterLab Light"], indirect=True)
def test_from_the_index_one_click_leads_to_the_glossary(chromium: Any, jupyterlab: JupyterLab) -> None:
    page = jupyterlab.open(chromium, "labs/index.ipynb")
    page.get_by_role("link", name="glossary").first.click()
    page.get_by_role("heading", name="Glossary (术语表)").wait_for()
    assert page.get_by_role("cell", name="重试, 消息重试").count() == 1

"""A prediction in JupyterLab: read before it is run, clicked with mouse and keyboard, saved, opened again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.teach import clicking
from mqlab.course.widgets.frame.bundle import bundled
from tests.course.browser.conftest import CLOSE_ALL, OPEN, JupyterLab
from tests.course.browser.live_boards import page_of

pytestmark = pytest.mark.browser

CELLS = (
    "from mqlab.course import predict, reveal",
    'predict("lab00.after_ack")',
    'predict("lab00.audit")',
    'predict("lab00.again", "1")',
    'print("here", sum(1 for _ in range(3)))',
    'reveal("lab00.audit", 3)',
    'from mqlab.course.widgets import log_xray\nxray = log_xray(["append", "dispatch"])\nxray',
)
# Every text that an alert has ever shown, even for a moment, is kept in the page's ``alarms``.
WATCH_ALARMS = """alert => {
  window.alarms = [];
  const note = () => { if (alert.textContent) window.alarms.push(alert.textContent); };
  new MutationObserver(note).observe(alert, { childList: true });
}"""
HAS_FOCUS = "cell => cell === document.activeElement"
MIME = "application/vnd.mqlab.prediction+json"


def notebook(folder: Path, name: str) -> Path:
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for n, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / name
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    return path


def run(page: Any, cell: int) -> Any:
    """Runs one cell and waits for its end; the cell."""
    found = page.locator(".jp-CodeCell").nth(cell)
    found.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    found.locator(".jp-InputPrompt", has_text="]").and_(found.locator(".jp-InputPrompt:not(:has-text('*'))")).wait_for()
    return found


def saved(page: Any, path: Path) -> list[dict[str, Any]]:
    """What the file holds of each prediction, after a save."""
    before = path.stat().st_mtime_ns
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")  # what Ctrl+S does, and it says when it has
    assert path.stat().st_mtime_ns > before
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [
        {key: value for key, value in output["data"][MIME].items() if key != "version"}
        for cell in cells
        for output in cell.get("outputs", [])
        if MIME in output.get("data", {})
    ]


def test_a_click_is_kept_in_the_saved_notebook(
    chromium: Any, jupyterlab: JupyterLab, request: pytest.FixtureRequest
) -> None:
    path = notebook(jupyterlab.folder, "click.ipynb")
    page = jupyterlab.open(chromium, path.name)
    run(page, 0)

    # 1. With the mouse, and another choice after that.
    first = run(page, 1)
    group = first.get_by_role("group", name="Your prediction: Three orders are stored.")
    group.wait_for()
    assert group.get_by_role("radio").count() == 3
    group.get_by_role("radio", name="0: none").check()
    first.get_by_text("You predict 0: none; what is acknowledged is deleted").wait_for()
    first.locator("[role=alert]").evaluate(WATCH_ALARMS)
    group.get_by_role("radio", name="1: one").check()
    first.get_by_text("You predict 1: one").wait_for()
    first.get_by_text("Noted. You can change it").wait_for()
    page.wait_for_timeout(2500)  # the alarm looks a second after a choice whether that is kept
    assert page.evaluate("window.alarms") == []  # the choice before, replaced at once, raises none

    # 2. With the keyboard alone: arrow keys choose and do not leave the cell.
    second = run(page, 2)
    radios = second.get_by_role("radio")
    radios.first.wait_for()
    radios.first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert radios.nth(2).is_checked() and radios.nth(2).evaluate("e => e === document.activeElement")
    second.get_by_text("You predict new ones: none of these").wait_for()
    page.keyboard.press("Escape")
    assert second.evaluate(HAS_FOCUS)  # JupyterLab's own keys work again
    run(page, 3)
    assert saved(page, path) == [
        {"prediction": "lab00.after_ack", "answer": "1", "before_reveal": True},
        {"prediction": "lab00.audit", "answer": "new ones", "before_reveal": True},
        {"prediction": "lab00.again", "answer": "1", "before_reveal": True},
    ]

    # 3. The run has shown what happens: no more buttons, and the choice is answered.
    last = run(page, 5)
    last.get_by_text("A new group begins at the end only if").wait_for()
    second.get_by_text("● new ones").wait_for()
    assert second.get_by_role("radio").count() == 0
    assert saved(page, path)[1] == {"prediction": "lab00.audit", "answer": "new ones", "before_reveal": True}

    board = run(page, 6)
    board.get_by_role("button", name="Next", exact=True).focus()
    page.keyboard.press("Escape")
    assert board.evaluate(HAS_FOCUS)
    saved(page, path)

    # 4. Without its kernel: what was answered is shown, the explorer moves, and nothing is broken.
    jupyterlab.leave()
    jupyterlab.load(path.name)
    page.get_by_text("You predict 1: one").wait_for()
    page.get_by_role("slider", name="Step").wait_for()
    assert page.get_by_text("● new ones").count() == 1 and page.get_by_role("radio").count() == 0
    assert page.get_by_text("model not found").count() == 0

    # 5. Run again with the new kernel: what was chosen before is still chosen.
    run(page, 0)
    again = run(page, 1)
    again.get_by_role("radio", name="1: one").wait_for()
    assert again.get_by_role("radio", name="1: one").is_checked()
    if request.node.get_closest_marker("long"):
        loaded_while_its_kernel_runs(page, jupyterlab, path)
        closed_while_its_kernel_runs(page, jupyterlab, path)


def loaded_while_its_kernel_runs(page: Any, jupyterlab: JupyterLab, path: Path) -> None:
    """The buttons are there, and what a click cannot keep is said."""
    saved(page, path)
    jupyterlab.load(path.name)
    first = page.locator(".jp-CodeCell").nth(1)
    first.get_by_role("radio", name="0: none").check()
    first.get_by_role("alert").get_by_text("Run the cell again").wait_for()
    run(page, 1).get_by_text("You predict 0: none; what is acknowledged is deleted").wait_for()
    assert saved(page, path)[0] == {"prediction": "lab00.after_ack", "answer": "0", "before_reveal": True}


def closed_while_its_kernel_runs(page: Any, jupyterlab: JupyterLab, path: Path) -> None:
    """And opened again in the same page: the same."""
    page.evaluate(CLOSE_ALL)
    page.evaluate(OPEN, path.name)
    jupyterlab.is_idle()
    first = page.locator(".jp-CodeCell").nth(1)
    first.get_by_role("radio", name="1: one").check()
    first.get_by_role("alert").get_by_text("Run the cell again").wait_for()
    run(page, 1).get_by_text("You predict 1: one").wait_for()
    assert saved(page, path)[0] == {"prediction": "lab00.after_ack", "answer": "1", "before_reveal": True}


ASKED = {
    "question": "How many?",
    "legend": "Your prediction",
    "choices": [["0", "none"], ["1", "one"]],
    "answer": "",
    "place": "here",
}
MODEL = """const values = ASKED, callbacks = {};
window.keeps = (kept) => callbacks["msg:custom"]({ kept });
const model = {
  get: (name) => values[name], set: (name, value) => (values[name] = value), save_changes: () => {},
  on: (event, callback) => (callbacks[event] = callback),
};"""


def test_a_choice_that_the_page_does_not_keep_is_said(chromium: Any, tmp_path: Path) -> None:
    module = bundled(clicking.MODULE.read_text("utf-8").replace("export default", "const buttons ="), "teach")
    script = "\n".join([MODEL.replace("ASKED", json.dumps(ASKED)), module])
    shown = "buttons.render({ model, el: document.body });"
    path = tmp_path / "question.html"
    path.write_text(f'<meta charset="utf-8"><body><script type="module">{script}\n{shown}</script>', "utf-8")
    page = page_of(chromium, width=1000)
    page.goto(path.as_uri())
    page.get_by_role("radio", name="0: none").check()
    page.evaluate("window.keeps('0')")  # the kernel has, and no output of this page shows it
    page.get_by_role("alert").get_by_text("Run the cell again").wait_for()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p data-mqlab-kept=here data-chosen=1>1: one</p>')")
    page.get_by_role("radio", name="1: one").check()
    page.evaluate("window.keeps('1')")
    page.get_by_role("alert").wait_for(state="hidden")
    assert page.problems == []


def test_in_a_notebook_opened_again_the_buttons_are_those_that_the_kernel_hears(chromium: Any, tmp_path: Path) -> None:
    module = bundled(clicking.MODULE.read_text("utf-8").replace("export default", "const buttons ="), "teach")
    script = "\n".join([MODEL.replace("ASKED", json.dumps(ASKED)), module])
    opened = "buttons.initialize({ model: { ...model, set: () => (window.toNobody = true) } });"
    again = "buttons.initialize({ model }); window.chosen = () => values.answer;"
    path = tmp_path / "again.html"
    box = '<meta charset="utf-8"><body><div data-mqlab-place="here"></div>'
    path.write_text(f'{box}<script type="module">{script}\n{opened}\n{again}</script>', "utf-8")
    page = page_of(chromium, width=1000)
    page.goto(path.as_uri())
    page.get_by_role("radio", name="1: one").check()
    assert page.evaluate("window.chosen()") == "1" and not page.evaluate("window.toNobody")
    assert page.get_by_role("group").count() == 1 and page.problems == []


def test_a_box_whose_widget_is_faster_than_its_script_stays_whole(chromium: Any, tmp_path: Path) -> None:
    from mqlab.course.widgets import log_xray

    # A plain script runs before the box's module does, and does what a widget does: it marks the box and empties it.
    box = log_xray(["append"])._saved_page("early")
    widget = (
        "document.querySelector('[data-mqlab-place]').dataset.mounted = 'early';"
        "document.querySelector('.mqlab-readable').replaceWith('widget');"
    )
    path = tmp_path / "early.html"
    path.write_text(f'<meta charset="utf-8">{box}<script>{widget}</script>', "utf-8")
    page = page_of(chromium, width=1000)
    page.goto(path.as_uri())
    page.locator("[data-alive]").wait_for()
    page.wait_for_timeout(300)
    assert page.get_by_text("widget").is_visible() and page.get_by_role("alert").count() == 0

"""A board in a page of its own: alive with its Python half behind it, or still as in an exported page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mqlab.course.widgets.frame.board import Board
from mqlab.course.widgets.frame.bundle import with_board
from mqlab.course.widgets.frame.live import LIVE
from tests.course.browser.pages import PATIENCE_MS

# The model that anywidget hands to a module, as far as the frame uses it; its other end is the board of the test.
MODEL = """
const values = STATE;
const callbacks = {};
const fire = (event, ...args) => (callbacks[event] || []).forEach((callback) => callback(...args));
let changed = {};
window.fromKernel = (name, value) => { values[name] = value; fire(`change:${name}`); };
const model = {
  get: (name) => values[name],
  set: (name, value) => { if (values[name] !== value) { values[name] = value; changed[name] = value; } },
  save_changes: () => {
    const names = changed;
    changed = {};
    window.toBoard({ changed: names }).then(() => (window.mqlabSaved = names));
    Object.keys(names).forEach((name) => fire(`change:${name}`));
  },
  on: (event, callback) => { (callbacks[event] ||= []).push(callback); },
  off: (event, callback) => { callbacks[event] = (callbacks[event] || []).filter((each) => each !== callback); },
  send: async (content) => {
    const { messages, state } = await window.toBoard(content);
    for (const [name, value] of Object.entries(state)) {
      if (JSON.stringify(values[name]) !== JSON.stringify(value)) { values[name] = value; fire(`change:${name}`); }
    }
    messages.forEach((message) => fire("msg:custom", message));
  },
};
"""


def live_page(chromium: Any, board: Board, folder: Path, *, width: int = 1000, dark: bool = False) -> Any:
    """A page in which the board is as in a notebook: its questions are answered by ``board``, its state is the same."""
    # 1. The page's messages reach the board as anywidget would bring them.
    widget = board.widget
    messages: list[dict[str, Any]] = []
    widget.send = lambda content, buffers=None: messages.append(content)

    def to_board(content: dict[str, Any]) -> dict[str, Any]:
        messages.clear()
        for name, value in content.get("changed", {}).items():
            setattr(widget, name, value)
        if "ask" in content:
            widget._asked(widget, content, [])
        state = {name: getattr(widget, name) for name in [*board.state, "packed", "kernel"]}
        return {"messages": list(messages), "state": state}

    # 2. The bundle as a notebook runs it.
    state = {**board.state, "packed": board.packed_data(), "kernel": True}
    ending = LIVE.format(label=json.dumps(board.label)).replace("export default", "const shown =")
    script = with_board(board.module, ending)
    start = f"{MODEL.replace('STATE', json.dumps(state))}\n{script}\nshown.render({{ model, el: document.body }});"
    page = page_of(chromium, width=width, dark=dark)
    page.to_board = to_board
    return _opened(page, f'<script type="module">{start}</script>', folder / f"{board.module}-live.html")


def still_page(chromium: Any, board: Board, folder: Path, *, width: int = 420, dark: bool = False) -> Any:
    """The board's page without a kernel, as in an exported notebook."""
    page = page_of(chromium, width=width, dark=dark, offline=True)
    return _opened(page, str(board.html()), folder / f"{board.module}-still.html")


def page_of(chromium: Any, *, width: int, dark: bool = False, offline: bool = False) -> Any:
    """The one page of all boards, or the one without network; ``problems`` are those of what is opened in it next.

    A page of its own would cost each test more time of the processor than what is done in it.
    """
    name = "still" if offline else "live"
    page = _pages.get((chromium, name))
    if page is None or page.is_closed():
        page = _pages[chromium, name] = chromium.new_page(offline=offline)
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script("addEventListener('error', () => (window.mqlabProblem = true))")
        page.add_init_script("addEventListener('unhandledrejection', () => (window.mqlabProblem = true))")
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        if not offline:
            page.expose_function("toBoard", lambda content: page.to_board(content))
    page.problems = []
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if dark else "light")
    return page


_pages: dict[tuple[Any, str], Any] = {}


def _opened(page: Any, body: str, path: Path) -> Any:
    path.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{body}</body></html>', "utf-8")
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelector('.mqlab-board [role=status]')?.textContent || window.mqlabProblem")
    assert page.problems == []
    return page


def open_more_settings(page: Any) -> None:
    """Unfold what a beginner need not see."""
    assert page.locator("details.mq-more[open]").count() == 0
    page.locator("summary", has_text="More settings").click()


def fits(page: Any) -> bool:
    """Whether the page is not wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def words_without_room(page: Any) -> list[str]:
    """Words of drawings that leave their drawing, and controls that leave their board."""
    return list(page.evaluate(WITHOUT_ROOM))


WITHOUT_ROOM = """() => {
  const leaves = (inner, outer) => inner.left < outer.left - 1.5 || inner.right > outer.right + 1.5;
  const found = [];
  for (const text of document.querySelectorAll(".mqlab-board svg text")) {
    const drawing = text.ownerSVGElement.getBoundingClientRect();
    if (leaves(text.getBoundingClientRect(), drawing)) found.push(text.textContent);
  }
  for (const control of document.querySelectorAll(".mqlab-board :is(select, button)")) {
    if (!control.offsetWidth) continue;  // folded
    if (leaves(control.getBoundingClientRect(), document.querySelector(".mqlab-board").getBoundingClientRect())) {
      found.push(control.getAttribute("aria-label") || control.textContent.slice(0, 40));
    }
  }
  return found;
}"""


def unnamed_controls(page: Any) -> list[str]:
    """The controls of the accessibility tree that have no name."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "spinbutton", "textbox", "combobox", "checkbox", "radio", "gridcell", "img", "link"}
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    found = [role for role, name in named if role in roles]
    assert found, "the page has no control at all"
    return [role for role, name in named if role in roles and not name.strip()]

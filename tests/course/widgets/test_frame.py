from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from mqlab.course import widgets
from mqlab.course.widgets.frame import bundle
from mqlab.course.widgets.frame.board import WHOLE_PAGES, Board
from mqlab.course.widgets.frame.bundle import bundled, with_board
from mqlab.course.widgets.frame.live import BoardWidget
from mqlab.course.widgets.frame.packing import unpacked
from mqlab.course.widgets.frame.recorded_board import key_of
from mqlab.errors import UsageError
from tests.course.widgets.small_board import Tank, use_small_module

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def small_module(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_module(monkeypatch)


def sent(widget: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=None: messages.append(content))
    return messages


def test_a_notebook_gets_a_page_that_its_widget_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VSCODE_PID", raising=False)
    tank = Tank()
    data = tank._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html"}
    assert f'data-mqlab-place="{tank.widget.mount_name}"' in data["text/html"]
    assert "data-mqlab-place=" not in str(tank.html()).partition("<script")[0]
    assert "Small tank" in data["text/plain"] and "40" in data["text/plain"]
    assert "<table>" in data["text/html"] and '<script type="module">' in data["text/html"]


def test_where_pages_have_windows_of_their_own_the_widget_is_in_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSCODE_PID", "1")
    data = Tank()._repr_mimebundle_()
    assert WIDGET in data and "<table>" in data["text/html"] and "Small tank" in data["text/plain"]


def test_without_anywidget_there_is_the_page_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "mqlab.course.widgets.frame.live", raising=False)
    assert set(Tank()._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_the_page_has_data_state_and_module_inline() -> None:
    tank = Tank(position=2)
    page = str(tank.html())
    found = re.search(r'class="mqlab-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    inside = json.loads(found[1])
    assert inside["state"] == {"position": 2} and unpacked(inside["packed"]) == {"levels": [0, 40, 20]}
    assert page.count("</script>") == 2 and "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_page_and_cell_share_the_state() -> None:
    tank = Tank()
    tank.set("position", 1)
    tank.widget.position = 2  # as the page does
    tank.set("position", 0)
    assert tank.widget.position == 0 and tank.state == {"position": 0}
    assert tank.moves == [("position", 1), ("position", 2), ("position", 0)]


def test_a_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no state 'place'"):
        Tank(place=1)
    with pytest.raises(UsageError, match="no state 'place'"):
        Tank().set("place", 1)


def test_a_state_may_not_have_a_widgets_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tank, "state_defaults", {"layout": 1})
    with pytest.raises(TypeError, match="cannot be called 'layout'"):
        _ = Tank().widget


def test_no_board_has_a_state_with_a_widgets_own_name() -> None:
    boards = [
        each
        for each in (getattr(widgets, name) for name in widgets.__all__)
        if isinstance(each, type) and issubclass(each, Board)
    ]
    assert len(boards) > 5
    assert [(each.label, name) for each in boards for name in each.state_defaults if hasattr(BoardWidget, name)] == []


def test_a_question_is_answered_with_progress_and_an_error_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Tank().widget
    messages = sent(widget, monkeypatch)
    widget._asked(widget, {"ask": "1-a", "name": "fill", "arguments": {"rate": 4}}, [])
    assert messages[0] == {"answer": "1-a", "share": 0.5, "words": "half full"}
    assert messages[1]["answer"] == "1-a" and unpacked(messages[1]["packed"]) == 25
    widget._asked(widget, {"ask": "2-a", "name": "fill", "arguments": {"rate": 0}}, [])
    assert messages[2] == {"answer": "2-a", "error": "the rate must be positive\n  hint: rate: 3"}
    widget._asked(widget, {"ask": "3-a", "name": "drain"}, [])
    assert "cannot answer 'drain'" in messages[3]["error"]


def test_an_interrupted_answer_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(share: float, words: str = "") -> None:
        raise KeyboardInterrupt

    tank = Tank()
    monkeypatch.setattr(tank, "progress", interrupted)
    assert tank.answer("fill", {"rate": 3}) == {"error": "Interrupted: what was shown before is still shown."}


def test_new_data_reach_an_open_page() -> None:
    tank = Tank()
    before = tank.widget.packed
    tank.levels = [7]
    assert tank.widget.packed == before
    tank.renew()
    assert unpacked(tank.widget.packed) == {"levels": [7]}


def test_beside_a_kernel_runs_are_played_when_they_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The saved page of a learner has the run that was shown; an export and a solution have all that are recorded."""

    def runs_in(page: str) -> int:
        found = re.search(r'class="mqlab-data">(.*?)</script>', page, re.DOTALL)
        assert found is not None
        return len(unpacked(json.loads(found[1])["packed"])["runs"])

    monkeypatch.delenv(WHOLE_PAGES, raising=False)
    happens = ("kill", "power_off")
    board = widgets.knows_board(happens="kill", recorded={"happens": happens})
    assert runs_in(board._repr_mimebundle_()["text/html"]) == 1
    assert runs_in(str(board.html())) == 2 and len(unpacked(board.widget.packed)["runs"]) == 1
    board.play(happens="power_off")
    assert list(unpacked(board.widget.packed)["runs"]) == [key_of(board.settings)]
    monkeypatch.setenv(WHOLE_PAGES, "1")
    board = widgets.knows_board(happens="kill", recorded={"happens": happens})
    assert runs_in(board._repr_mimebundle_()["text/html"]) == 2


def test_modules_are_bundled_once_and_after_what_they_import() -> None:
    text = with_board("tank", "export default board;\n")
    names = ["function element(", "function buttonControl(", "function slider(", "const theDefault = {"]
    assert [text.count(name) for name in names] == [1, 1, 1, 1]
    places = [text.index(name) for name in names]
    assert places == sorted(places) and text.endswith("= widgets_boards_tank_tank;\nexport default board;\n")
    assert re.findall(r"^(?:import|export).*", text, re.MULTILINE) == ["export default board;"]


MODULES = {
    "teach/one.js": 'import { two as other } from "./two.js";\nconst mine = 1;\nexport const one = mine + other;\n',
    "teach/two.js": "const mine = 20;\nexport const two = mine;\n",
    "teach/self.js": 'import { other } from "./other.js";\n',
    "teach/other.js": 'import { self } from "./self.js";\n',
    "teach/strange.js": 'export * from "./two.js";\n',
    "teach/ends.js": 'export const text = "</script>";\n',
}


def test_a_module_keeps_its_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_read", MODULES.__getitem__)
    assert bundled('import { one } from "./one.js";\nexport default one;\n', "teach") == (
        "const teach_two = (() => {\nconst mine = 20;\nconst two = mine;\n\nreturn { two };\n})();\n"
        "const teach_one = (() => {\nconst { two: other } = teach_two;\nconst mine = 1;\nconst one = mine + other;\n\n"
        "return { one };\n})();\n"
        "const { one } = teach_one;\nexport default one;\n"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("self", "in a circle: teach/self.js -> teach/other.js -> teach/self.js"),
        ("strange", r"teach/strange\.js: this form is not bundled: export \*"),
        ("ends", "the end of a script element"),
    ],
)
def test_what_cannot_be_bundled_is_named(name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_read", MODULES.__getitem__)
    with pytest.raises(UsageError, match=words):
        bundled(f'import {{ x }} from "./{name}.js";\n', "teach")


def test_a_module_that_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match=r"no module widgets/boards/nowhere/nowhere\.js in mqlab/course"):
        with_board("nowhere", "")

"""A board as small as one can be, its module beside it as text: for the tests of the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from mqlab.course.widgets.frame import bundle
from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

MODULE = """import { buttonControl } from "../../frame/page/controls.js";
import { element } from "../../frame/page/element.js";
import { slider } from "../../frame/page/slider.js";
export default {
  render({ model, el }) {
    const data = model.get("data");
    const status = element("p", { role: "status" });
    const show = () => { status.textContent = `level ${data.levels[model.get("position")]}`; };
    const bar = slider({ label: "Moment", max: data.levels.length - 1, value: model.get("position"),
      onValue: (value) => { model.set("position", value); model.save_changes(); } });
    model.on("change:position", show);
    const ask = buttonControl("Fill", async () => {
      try { status.textContent = `full at ${await model.ask("fill", { rate: 3 })}`; }
      catch (problem) { status.textContent = problem.message; }
    });
    el.append(bar.el, ask.el, status);
    show();
  },
};
"""


class Tank(Board):
    """A tank whose level is known at three moments."""

    module = "tank"
    label = "Small tank"
    state_defaults: ClassVar[Mapping[str, Any]] = {"position": 0}

    def __init__(self, **state: Any) -> None:
        super().__init__(**state)
        self.levels = [0, 40, 20]
        self.moves: list[tuple[str, Any]] = []

    def data(self) -> Any:
        return {"levels": self.levels}

    def table(self) -> Table:
        return Table([{"moment": at, "level": level} for at, level in enumerate(self.levels)])

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name != "fill":
            return super().asked(name, arguments)
        if arguments["rate"] <= 0:
            raise UsageError("the rate must be positive", hint="rate: 3")
        self.progress(0.5, "half full")
        return 100 // arguments["rate"]

    def state_changed(self, name: str, value: Any) -> None:
        self.moves.append((name, value))


def use_small_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the frame find MODULE as tank.js."""
    read, path = bundle._read, "widgets/boards/tank/tank.js"
    monkeypatch.setattr(bundle, "_read", lambda name: MODULE if name == path else read(name))

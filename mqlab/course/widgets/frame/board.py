"""The frame of all explorers: data made once in Python, a JavaScript module that shows it, with and without a kernel.

    class Tank(Board):
        module, label = "tank", "Backlog tank"         # mqlab/course/widgets/boards/tank/tank.js
        state_defaults = {"position": 0}               # (a ClassVar) small JSON values, shared by page and cell
        def data(self): ...                            # JSON for the page, made once
        def asked(self, name, arguments): ...          # what needs the kernel: other settings, a fault, a fork
        def table(self): ...                           # the text twin

In the module, ``render({ model, el })`` draws into ``el``:

    model.get("data")                  the JSON of data()            model.get("kernel")   false without a kernel
    model.get("position")              a state value                 model.on("change:position", callback)
    model.set("position", 3); model.save_changes()                   the cell then reads board.state["position"]
    await model.ask("play", {seed: 7})                               the answer of asked("play", {"seed": 7})

A cell's output is ``text/html`` with module and data inline, so that an exported page and a notebook without its kernel
are alive; where scripts are removed, the readable form remains. With anywidget there is a widget as well: it takes the
output's box over and answers its questions. It is not saved (frame/page/places.js). While there is
one, a board that records many runs plays each when it is chosen, and the saved page has the run that was shown.
``html()`` has all runs, and so have the outputs of a kernel with MQLAB_WHOLE_PAGES in its environment.
"""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.frame.bundle import with_board
from mqlab.course.widgets.frame.packing import packed
from mqlab.course.widgets.frame.places import place_attribute, view_entry
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.views.table import Table
from mqlab.lab.views.view import View

WHOLE_PAGES = "MQLAB_WHOLE_PAGES"
WITHOUT_SCRIPTS = (
    "Run this cell to move the explorer. Without a kernel, or where scripts are not run, this is all it shows:"
)
INTERRUPTED = "Interrupted: what was shown before is still shown."
STILL = """import {{ still }} from "./frame/page/frame.js";
still(board, {name}, {label});
"""
PAGE = """<div class="mqlab-board" data-mqlab="{name}"{place} role="group" aria-label="{label}">
<div class="mqlab-readable"><p>{words}</p>{readable}</div>
<script type="application/json" class="mqlab-data">{data}</script>
<script type="module">{script}</script></div>"""


def page_script(module: str, name: str, label: str) -> str:
    """What makes the boxes of a page alive that have this name."""
    return with_board(module, STILL.format(name=json.dumps(name), label=json.dumps(label)))


class Board(View):
    """Base of all explorers. A subclass names ``module``, ``label`` and ``state_defaults`` and gives data and table.

    ``state`` holds the current values of the state: what the learner chose in the page is there for a cell to read.
    """

    module: ClassVar[str]
    label: ClassVar[str]
    state_defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **state: Any) -> None:
        unknown = sorted(state.keys() - self.state_defaults.keys())
        if unknown:
            raise UsageError(f"{self.label} has no state {unknown[0]!r}", hint=f"has: {', '.join(self.state_defaults)}")
        self.state: dict[str, Any] = {**self.state_defaults, **state}
        self.plays_later = False  # a kernel answers this page: data() leaves out what can be played when it is chosen
        self._packed: str | None = None
        self._widget: Any = None

    def data(self) -> Any:
        """JSON for the page: everything that it shows without asking the kernel. Called once, until ``renew``."""
        raise NotImplementedError

    def table(self) -> Table:
        """The text twin: the facts that the page shows, as rows."""
        raise NotImplementedError

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The answer to the page's question as JSON. An MqlabError is shown to the learner as text."""
        raise UsageError(f"{self.label} cannot answer {name!r}")

    def state_changed(self, name: str, value: Any) -> None:
        """Called after the page or ``set`` changed a state value."""

    def readable(self) -> Markup:
        """What remains where no script is run: a picture and a table. The default is the table."""
        return self.table().html()

    def combinations(self, recorded: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
        """Each combination of the choices whose runs a page without a kernel has; none while a kernel plays them."""
        if recorded and not self.plays_later:
            for values in itertools.product(*recorded.values()):
                yield dict(zip(recorded, values, strict=True))

    def set(self, name: str, value: Any) -> None:
        """Change a state value from Python; the page follows. UsageError for a state that does not exist."""
        if name not in self.state:
            raise UsageError(f"{self.label} has no state {name!r}", hint=f"has: {', '.join(self.state)}")
        if self._widget is not None:
            setattr(self._widget, name, value)  # what observes it keeps the state at once, in a browser after the cell
        if self._widget is None or self.state[name] != value:
            self.took(name, value)

    def took(self, name: str, value: Any) -> None:
        """Keep a state value that the page or ``set`` has changed."""
        self.state[name] = value
        self.state_changed(name, value)

    def renew(self) -> None:
        """Make the data again; an open page gets ``change:data``."""
        self._packed = None
        if self._widget is not None:
            self._widget.packed = self.packed_data()

    def progress(self, share: float, words: str = "") -> None:
        """Tell the page that is waiting for an answer how far it is, 0 to 1. Without a page this does nothing."""
        if self._widget is not None:
            self._widget.progress(share, words)

    def packed_data(self) -> str:
        """The data as the page gets it, compressed; made when it is first needed."""
        if self._packed is None:
            self._packed = packed(self.data())
        return self._packed

    @property
    def widget(self) -> Any:
        """The live widget, made when first shown. Raises ImportError without anywidget."""
        if self._widget is None:
            from mqlab.course.widgets.frame.live import live_widget

            self._widget = live_widget(self)
        return self._widget

    def text(self) -> str:
        return f"{self.label}\n{self.table()}"

    def html(self) -> Markup:
        """The readable form with module and data inline: alive in every page that runs its scripts."""
        before = self.plays_later, self._packed
        if self.plays_later:
            self.plays_later, self._packed = False, None
        try:
            return self._saved_page()
        finally:
            if before[0]:
                self.plays_later, self._packed = before

    def _saved_page(self, place_id: str = "") -> Markup:
        # A "<" in a state value must not end the script element.
        data = json.dumps({"packed": self.packed_data(), "state": self.state}).replace("<", "\\u003c")
        # The same output may be in a page twice, so its name is one that both have, and not a unique id.
        name = f"{self.module}-{zlib.crc32(data.encode()):08x}"
        return Markup(PAGE).format(
            name=name,
            place=place_attribute(place_id),
            label=self.label,
            words=WITHOUT_SCRIPTS,
            readable=self.readable(),
            data=Markup(data),
            script=Markup(page_script(self.module, name, self.label)),
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        self.plays_later = WHOLE_PAGES not in os.environ
        try:
            widget = self.widget
        except ImportError:
            self.plays_later = False
            return super()._repr_mimebundle_()
        static = {"text/plain": self.text(), "text/html": str(self._saved_page(widget.mount_name))}
        return static | view_entry(widget)

    def answer(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``asked`` as the page gets it: ``{"packed": …}``, or ``{"error": …}`` with the words of what was raised."""
        try:
            return {"packed": packed(self.asked(name, arguments))}
        except MqlabError as error:
            return {"error": str(error)}
        except KeyboardInterrupt:
            return {"error": INTERRUPTED}
        except Exception as error:
            # A learner's own story or callback may raise anything, and the page waits for an answer.
            return {"error": f"{type(error).__name__}: {error}"}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.state.items())
        return f"<{type(self).__name__} {values}>"

"""The stepper to click: Start, Back, Step, End, a player and a slider above the pictures of the current stop.

Lab 00 ends its reading part with it.

    [Start] [Back] [Step] [End]  ▶ ⏸ ⏹   ──●────────   slider: arrow keys
    stop 7 of 31, +3 ms, step 58: broker-a: stored at byte 0
    whatever ``show(lab)`` gives, then the timeline so far: the part that grows comes last, so that nothing jumps

Everything is reached with Tab and pressed with Space. Where widgets are not shown (an exported page, no ipywidgets)
there is a static picture of the end of the story and a table of all stops.
Left out: drawing in the browser (each stop's pictures are drawn by mqlab.views).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mqlab.views.view import View
from mqlab.widgets.stepper import Stepper

if TYPE_CHECKING:
    from mqlab.lab.lab import Lab
    from mqlab.lab.story import Story

Show = Callable[["Lab"], Sequence[View]]
NEWEST_MOMENTS = 12
PLAY_INTERVAL_MS = 900


class Explorer(View):
    """A stepper with buttons. ``stepper`` is the controller; ``widget`` the ipywidgets box, made when first shown."""

    def __init__(self, stepper: Stepper, show: Show | None = None) -> None:
        self.stepper = stepper
        self._show = show
        self._widget: Any = None

    def page(self) -> Markup:
        """The pictures of the current stop, as HTML."""
        label = Markup('<div role="status" aria-live="polite"><b>{}</b></div>').format(self.stepper.label)
        shown = [*(self._show(self.stepper.lab) if self._show else ()), self.stepper.timeline(NEWEST_MOMENTS)]
        return label + Markup("").join(Markup('<div style="margin-top:8px">{}</div>').format(v.html()) for v in shown)

    def text(self) -> str:
        return f"{self.stepper.label}\n{self.stepper.table()}"

    def html(self) -> Markup:
        return self.page() + self.stepper.table().html()

    @property
    def widget(self) -> Any:
        """The box of buttons and pictures; ImportError without ipywidgets."""
        # Made late, because ipywidgets may be missing where only the text is needed.
        if self._widget is None:
            self._widget = _box(self)
        return self._widget

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        static: dict[str, Any] = super()._repr_mimebundle_()
        try:
            shown: dict[str, Any] = self.widget._repr_mimebundle_()
        except ImportError:
            return static
        # The static HTML stays in the bundle: pages that do not show widgets fall back to it.
        return shown | static


def explore(story: Story, *, seed: int = 0, show: Show | None = None, **settings: Any) -> Explorer:
    """Step through a story with buttons. ``show(lab)`` gives more views of each stop; other keywords are ``play``'s."""
    return Explorer(Stepper(story, seed=seed, **settings).first(), show)


def _box(explorer: Explorer) -> Any:
    import ipywidgets

    stepper = explorer.stepper
    # 1. The slider holds the position; everything else follows it or sets it.
    slider = ipywidgets.IntSlider(
        value=stepper.position, min=0, max=len(stepper), description="Stop", continuous_update=False,
        layout=ipywidgets.Layout(width="340px"),
    )  # fmt: skip
    player = ipywidgets.Play(
        value=stepper.position, min=0, max=len(stepper), interval=PLAY_INTERVAL_MS, show_repeat=False
    )
    page = ipywidgets.HTML(value=str(explorer.page()))

    # 2. A new position replays the story and redraws the page.
    def moved(change: Any) -> None:
        stepper.go_to(change["new"])
        page.value = str(explorer.page())

    def button(name: str, tooltip: str, target: Callable[[], int]) -> Any:
        clickable = ipywidgets.Button(description=name, tooltip=tooltip, layout=ipywidgets.Layout(width="72px"))
        clickable.on_click(lambda _: setattr(slider, "value", target()))
        return clickable

    # 3. The player is linked in the browser, so that it runs while the kernel replays.
    slider.observe(moved, names="value")
    ipywidgets.jslink((player, "value"), (slider, "value"))
    buttons = [
        button("Start", "Go to the beginning", lambda: 0),
        button("Back", "One stop back", lambda: max(slider.value - 1, 0)),
        button("Step", "One stop on", lambda: min(slider.value + 1, len(stepper))),
        button("End", "Go to the end", lambda: len(stepper)),
    ]
    return ipywidgets.VBox([ipywidgets.HBox([*buttons, player, slider]), page])

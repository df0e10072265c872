"""Things to click in a notebook, each a thin shell over a plain controller that tests and scripts can drive too.

Mirrors: RocketMQ Dashboard's pages, as far as something moves. Lab 00 has the first.

    explore(story, seed=7)      step through a story: step, back, play, a slider; its controller is a Stepper

Left out: state of their own. What is shown comes from a replay; without ipywidgets the same facts are shown statically.
"""

from mqlab.widgets.explorer import Explorer, explore
from mqlab.widgets.stepper import Stepper

__all__ = ["Explorer", "Stepper", "explore"]

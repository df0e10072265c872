"""Things to click in a notebook, each a thin shell over a plain controller that tests and scripts can use, too.

Mirrors: RocketMQ Dashboard's pages, as far as something moves. Lab 00 has the first one.

    explore(story, seed=7)      step through a story: step, back, play, a slider; its controller is a Stepper

They have no state of their own: what is shown comes from a replay. Without ipywidgets the same facts are static.
"""

from mqlab.widgets.explorer import Explorer, explore
from mqlab.widgets.stepper import Stepper

__all__ = ["Explorer", "Stepper", "explore"]

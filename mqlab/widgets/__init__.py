"""Things to click in a notebook, each a thin shell over a plain controller that tests and scripts can use, too.

Mirrors: the moving parts of RocketMQ Dashboard's pages. Lab 00 has the first one.

    explore(story, seed=7)      step through a story: step, back, play, a slider; its controller is a Stepper
    log_xray()                  a real store: every action, its bytes, and what a crash takes
    retry_clock()               an order that fails, on an axis of log time, with the learner's settings

A widget does not have a state of its own: a replay gives what it shows. Without ipywidgets the facts are static.
"""

from mqlab.widgets.explorer import Explorer, explore
from mqlab.widgets.log_xray import LogXray, log_xray
from mqlab.widgets.retry_clock import RetryClock, retry_clock
from mqlab.widgets.stepper import Stepper

__all__ = ["Explorer", "LogXray", "RetryClock", "Stepper", "explore", "log_xray", "retry_clock"]

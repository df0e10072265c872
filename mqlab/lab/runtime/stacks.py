"""Stacks for plain functions that wait: the one place that says what switches between them.

    Stack(run, parent=None)   a function on a stack of its own; its parent, at first the current stack, gets its result
    stack.switch(*values)     goes there; returns what the next switch back brings
    stack.throw(error)        goes there and raises ``error``; a stack that has not begun ends
    stack.dead                whether the function has ended
    current_stack()           the stack that runs now
    ThreadLocal               base of what is kept per thread

greenlet switches in C. A browser has none: there JavaScript's promises do it (browser_stacks).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mqlab.browser import IN_BROWSER

if TYPE_CHECKING or IN_BROWSER:
    from mqlab.lab.runtime.browser_stacks import Stack, current_stack
else:
    from greenlet import getcurrent as current_stack
    from greenlet import greenlet as Stack

__all__ = ["Stack", "ThreadLocal", "current_stack"]

ThreadLocal: type = object if IN_BROWSER else threading.local
"""In a browser each stack has thread locals of its own, and there is one thread."""

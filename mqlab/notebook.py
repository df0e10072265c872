"""The notebook whose kernel this process is, where it is one.

Mirrors: nothing in RocketMQ. Labs tell of a cell that failed, and end their JVM, through it.

    in a kernel          IPython's shell: its names, its events, its kernel
    in anything else     None; IPython is not imported for it

Left out: IPython in a terminal counts as a notebook, too; ask the shell for its ``kernel``.
"""

from __future__ import annotations

import sys
from typing import Any


def running_shell() -> Any:
    """IPython's shell of this process; None outside of IPython.

    >>> running_shell() is None
    True
    """
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None

"""The notebook whose kernel this process is, if it is one.

It is used to follow cells that fail and to end a JVM together with its kernel.

    in a kernel          IPython's shell: its names, its events, its kernel
    elsewhere            None; IPython is not imported to find this out

IPython in a terminal counts as a notebook, too; its shell has no ``kernel``.
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

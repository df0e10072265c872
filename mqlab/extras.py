"""What each wing needs beyond click and greenlet, and the error of the one who has not installed it.

    pip install mqlab              worlds without pictures, the store, mqlab serve
    pip install "mqlab[lab]"       tables and pictures; mqlab cat, inspect, admin, console, sim
    pip install "mqlab[cluster]"   bodies in LZ4 and ZSTD, mqlab serve --metrics
    pip install "mqlab[grpc]"      mqlab serve --grpc, for RocketMQ's 5.x clients
    pip install "mqlab[spark]"     days of traffic, Arrow, Spark
    pip install "mqlab[course]"    JupyterLab, the labs, the grader
    pip install "mqlab[all]"       everything

A wing calls ``need`` where it is first imported, so that its other modules just import what they use. What has a
substitute (anywidget: boards show their static form) is in the extra and not here.
"""

from __future__ import annotations

import functools
import importlib.util

from mqlab.browser import IN_BROWSER
from mqlab.errors import UsageError

NEEDS = {  # extra -> modules without which its wing cannot be imported; a test compares them with pyproject.toml
    "lab": ("graphviz", "jinja2", "markupsafe", "tqdm", "wcwidth"),
    "cluster": ("lz4", "prometheus_client", "zstandard"),
    "grpc": ("google.protobuf", "grpc"),
    "spark": ("numpy", "pandas", "platformdirs", "pyarrow", "pyspark"),
    "course": ("jupyterlab", "nbval", "numpy", "pandas", "psutil"),
}


class MissingExtra(UsageError, ImportError):
    """A part of mqlab was used whose libraries are not installed. ``extra`` is the extra that brings them."""

    code = "missing_extra"

    def __init__(self, extra: str, modules: tuple[str, ...]) -> None:
        self.extra = extra
        verb = "is" if len(modules) == 1 else "are"
        super().__init__(f"{', '.join(modules)} {verb} not installed", hint=install(extra))


def install(extra: str) -> str:
    """The command that brings an extra.

    >>> install("course")
    'pip install "mqlab[course]"'
    """
    return f'pip install "mqlab[{extra}]"'


@functools.cache
def need(extra: str) -> None:
    """Raises MissingExtra where a module of an extra cannot be found; imports none of them.

    Not in a browser: what its labs need is in the site, and nothing else can be installed there.
    """
    if IN_BROWSER:
        return
    missing = tuple(name for name in NEEDS[extra] if not _is_installed(name))
    if missing:
        raise MissingExtra(extra, missing)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in is missing
        return False

"""``python -m benchmarks [NAME ...] [options]``: run some or all benchmarks with the options given."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "start",
    "store",
    "messages",
    "day",
    "growth",
    "grading",
    "traffic",
    "columns",
    "pipeline",
    "served",
    "grpc",
    "site",
)  # modules of this folder with a main(arguments)


def main(arguments: list[str]) -> None:
    names = [word for word in arguments if word in BENCHMARKS] or list(BENCHMARKS)
    options = [word for word in arguments if word not in BENCHMARKS]
    for name in names:
        importlib.import_module(f"benchmarks.{name}").main(options)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A pytest plugin that records what every simulated Lab of every test did, to compare two versions of the code.

    python -m pytest -p tests.unchanged.plugin --worlds-to before.json tests/lab/scenarios     in the old tree
    python -m pytest -p tests.unchanged.plugin --worlds-as before.json tests/lab/scenarios     in the new tree

The second run prints the worlds that are not in the record, by test, and fails. Tests may be renamed between the two:
worlds are compared as a multiset of digests.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unchanged.traces import captured_labs, is_repeatable, lines_of

worlds: dict[str, list[str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--worlds-to", type=Path, help="write the digests of all simulated Labs to this file")
    parser.addoption("--worlds-as", type=Path, help="compare the digests of all simulated Labs with this file")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with captured_labs() as labs:
        yield
        digests = []
        for lab in labs:
            if is_repeatable(lab):
                text = "\n".join(lines_of(lab))
                digests.append(hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16])
        if digests:
            worlds[item.nodeid] = digests


def pytest_sessionfinish(session: pytest.Session) -> None:
    target, record = session.config.getoption("--worlds-to"), session.config.getoption("--worlds-as")
    if target is not None:
        target.write_text(json.dumps(worlds, indent=0), encoding="utf-8")
    if record is not None:
        left = Counter(digest for digests in json.loads(record.read_text("utf-8")).values() for digest in digests)
        unknown: dict[str, int] = {}
        for test, digests in worlds.items():
            for digest in digests:
                if left[digest] > 0:
                    left[digest] -= 1
                else:
                    unknown[test] = unknown.get(test, 0) + 1
        count = sum(map(len, worlds.values()))
        print(f"\n{count} worlds, {sum(unknown.values())} of them not in {record.name}")
        for test, number in unknown.items():
            print(f"  {number} of {test}")
        if unknown:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

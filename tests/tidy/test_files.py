"""Files stay short, and nothing of one machine or one registry gets into the tree."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, Module, assert_none, modules

FILE_LINES, FUNCTION_LINES = 400, 60
WORK, HOME = "/" + "work", "/" + "root"  # put together here: no path of a machine stands in the tree
SOME_MACHINES = {  # a word, and what it is in; only a text that has the word is searched for the rest
    word: re.compile(pattern)
    for word, pattern in {
        HOME: rf"(?<![\w./~$}}-]){HOME}/[\w.]",
        WORK: rf"(?<![\w./~$}}-]){WORK}/[\w.]",
        "/home/": r"/home/(?!<|you\b|user\b|me\b)\w",
        "/Users/": r"/Users/(?!<|you\b|user\b|me\b)\w",
        "pythonhosted": r"\bfiles\.pythonhosted\.org",
        "pypi": r"\bpypi\.org/simple|\b(?:localhost|127\.0\.0\.1):\d+/pypi",
        "/simple": r"\b(?:localhost|127\.0\.0\.1):\d+/simple",
        "index-url": r"\bindex-url\b(?!=no)",
        "--extra-index": r"--extra-index",
        "--find-links": r"--find-links",
    }.items()
}
MAY_SPEAK_OF_IT = {"tests/tidy/test_files.py", "Makefile"}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git work tree")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_is_long() -> None:
    long = [f"{m.at(1)}: {m.text.count(chr(10))} lines" for m in modules() if m.text.count("\n") > FILE_LINES]
    assert_none(long)


def long_functions(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module.at(node.lineno)}: {node.name} has {lines} lines"


def test_no_function_is_long() -> None:
    assert_none(line for module in modules() for line in long_functions(module))


def test_no_path_or_registry_of_one_machine() -> None:
    found = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        data = path.read_bytes()
        if name in MAY_SPEAK_OF_IT or b"\0" in data[:8000]:
            continue
        text = data.decode("utf-8", errors="replace")
        if machines_in(text):
            for number, line in enumerate(text.splitlines(), start=1):
                found += [f"{name}:{number}: {match}" for match in machines_in(line)]
    assert_none(found)


def machines_in(text: str) -> list[str]:
    """Each path and address of one machine that a text has."""
    return [
        match.group() for word, pattern in SOME_MACHINES.items() if word in text for match in pattern.finditer(text)
    ]


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (f"see {WORK}/lab/x", True),
        (f"{HOME}/.cache", True),
        ("cd /home/anna/mqlab", True),
        ("https://files.pythonhosted.org/x", True),
        ("uv pip install --extra-index y", True),
        ("the /home/you/store folder", False),
        ("framework/main", False),
        (f"{{base}}{WORK}/x", False),
        (f"$HOME{HOME}/x", False),
    ],
)
def test_the_rule_sees_what_it_should(line: str, refused: bool) -> None:
    assert bool(machines_in(line)) is refused


def test_nothing_large_or_built_is_in_the_tree() -> None:
    assert not [path for path in tracked() if path.stat().st_size > 2_000_000]
    assert not [path for path in tracked() if path.suffix in {".pyc", ".whl", ".egg", ".jar", ".so"}]

"""Every path that ARCHITECTURE.md, README.md or a page of docs names is in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, assert_none
from tests.tidy.test_layers import MAY_USE

PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# In backticks or in a picture: a path from the top of the tree, or a file of the package with its folder.
TOP = re.compile(r"(?<![\w./-])((?:mqlab|tests|docs|labs|solutions|benchmarks|datasets)/[\w./*-]*\w)")
IN_PACKAGE = re.compile(r"`([a-z_]+(?:/[a-z_0-9]+)*/[a-z_0-9]+\.py)`")


def exists(path: Path) -> bool:
    """Whether there is such a file or folder. From ``NN`` or ``*`` on a name stands for any: ``labNN.py`` is lab00."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else path.parts
    patterns = [re.sub(r"(NN|\*).*", "*", part) for part in parts]
    if list(parts) == patterns:
        return path.exists()
    first = next(number for number, pattern in enumerate(patterns) if pattern.endswith("*"))
    return any(ROOT.joinpath(*parts[:first]).glob(patterns[first]))


def missing(page: Path, text: str) -> Iterator[str]:
    """The paths named in the text of a page that do not exist, each with its line."""
    for number, line in enumerate(text.splitlines(), 1):
        outside_links = LINK.sub("]", line)
        links = [target for target in LINK.findall(line) if "://" not in target]
        targets = [(target, page.parent / target) for target in links]
        targets += [(path, ROOT / path) for path in TOP.findall(outside_links)]
        for path in IN_PACKAGE.findall(outside_links):
            if not (ROOT / path).exists():
                targets.append((path, ROOT / "mqlab" / path))
        for name, target in targets:
            if not exists(target):
                yield f"{page.name}:{number}: {name} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert_none(missing(page, page.read_text("utf-8")))


def test_the_table_of_wings_has_every_wing() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert set(re.findall(r"^\| \[`(\w+)`\]\(mqlab/\1\)", text, re.MULTILINE)) == set(MAY_USE)


def test_the_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    ("line", "is_missing"),
    [
        ("see [the Lab](mqlab/lab/world/lab.py)", False),
        ("see [the Lab](mqlab/lab/world/gone.py)", True),
        ("see [the Lab](mqlab/lab/world/lab.py#L1)", False),
        ("see [elsewhere](https://example.org/gone)", False),
        ("see `mqlab/lab/world/gone.py`", True),
        ("see `lab/world/lab.py` and `tests/tidy`", False),
        ("see `lab/gone.py`", True),
        ("  name server (mqlab/nobody)", True),
        ("see `solutions/grading/labNN.py`, `solutions/01a-*.ipynb`", False),
        ("see `solutions/grading/taskNN.py`", True),
        ("see `nowhere/01a-*.ipynb` and `labs/77-*.ipynb`", True),
    ],
)
def test_the_rule_sees_what_it_should(line: str, is_missing: bool) -> None:
    assert bool(list(missing(ROOT / "README.md", line))) is is_missing

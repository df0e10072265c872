"""The pages beside the labs: the glossary has every term, the page of what is missing keeps in step with the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.rocketmq.store.config import SHARP_EDGES
from tests.course.labs.notebooks import ROOT, read

LABS = ROOT / "labs"
NUMBERED = [LABS / path.name for path in sorted((ROOT / "solutions").glob("[0-9]*.ipynb"))]
CHINESE = re.compile("[\N{CJK UNIFIED IDEOGRAPH-4E00}-\N{CJK UNIFIED IDEOGRAPH-9FFF}]+")
MIRRORING = ("rocketmq", "lab/runtime", "cluster/runtime")
OTHER_CAPITALS = {
    "AND",
    "CPU",
    "CRC",
    "DLQ",
    "FFFD",
    "IPV4",
    "JSON",
    "RECONSUME_LATER",
    "RMQ",
    "SQL",
    "SQL92",
    "TCP",
    "TIMER_",
    "TIME_WAIT",
    "UTC",
    "UTF",
}


def rows(page: str) -> Iterator[list[str]]:
    """The rows of all tables of a page, without their heads."""
    for cell in read(LABS / page).cells:
        lines = [line for line in cell.source.splitlines() if line.startswith("|")]
        assert cell.cell_type == "markdown"
        for line in lines[2:]:
            yield [part.strip() for part in line.strip("|").split("|")]


def terms() -> list[list[str]]:
    return list(rows("glossary.ipynb"))


def left_out() -> dict[Path, str]:
    """What each module says that it leaves out."""
    found = {}
    for room in MIRRORING:
        for path in sorted((ROOT / "mqlab" / room).rglob("*.py")):
            words = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("Left out:")[2]
            found[path] = words
    return found


def test_the_glossary_has_five_columns_in_order_and_no_term_twice() -> None:
    names = [row[0].lower() for row in terms()]
    assert all(len(row) == 5 and row[2] for row in terms()) and len(names) > 80
    assert len(set(names)) == len(names)
    for cell in read(LABS / "glossary.ipynb").cells[1:]:
        own = [line.split("|")[1].strip().lower() for line in cell.source.splitlines() if line.startswith("|")][2:]
        assert own == sorted(own)
    assert all(CHINESE.search(row[1]) or row[1] in ("BLANK", "DataFrame") for row in terms())
    assert all(row[2][0].islower() or not row[2][0].isalpha() or row[2].startswith("Java") for row in terms())
    assert not any(row[2].endswith(".") for row in terms())


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem[:2])
def test_every_chinese_term_of_a_lab_is_in_the_glossary(path: Path) -> None:
    known = {term for row in terms() for term in CHINESE.findall(row[1])}
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    used = {term for brackets in re.findall(r"\(([^()]*)\)", text) for term in CHINESE.findall(brackets)}
    assert used - known == set()


def test_the_glossary_links_the_labs_that_there_are_and_no_other() -> None:
    for row in terms():
        number = re.search(r"\d\d", row[4])
        assert number is not None, row
        # A lab in parts has a notebook for each of them.
        linked = [f"[{number[0]}]({path.name})" for path in NUMBERED if path.name.startswith(number[0])]
        assert row[4] in (linked or [number[0]]), row[0]


def test_rocketmqs_names_are_spelled_as_the_package_spells_them() -> None:
    text = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "mqlab").rglob("*.py")))
    text += "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "solutions" / "source").glob("[0-9]*.py")))
    squashed = text.replace("_", "").lower()
    for row in terms():
        for name in re.findall(r"`([^`]+)`", row[3]):
            simple = re.split(r"[.=]", name)[-1 if "." in name else 0].replace("_", "").lower()
            assert simple in squashed, name


def test_what_is_not_modelled_is_what_the_modules_leave_out() -> None:
    said = " ".join([*left_out().values(), (ROOT / "docs" / "differences.md").read_text("utf-8")]).lower()
    for row in rows("not-modelled.ipynb"):
        for name in re.findall(r"\*\*([^*]+)\*\*", row[0]):
            stem = name.lower().split("=")[0].replace("static topics", "static topic")
            assert stem in said, f"{name}: no module leaves it out"


def test_a_feature_that_a_module_leaves_out_is_on_the_page() -> None:
    page = " ".join(cell.source for cell in read(LABS / "not-modelled.ipynb").cells).upper()
    for path, words in left_out().items():
        for name in set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", words)) - OTHER_CAPITALS:
            assert name in page, f"{path.relative_to(ROOT)} leaves out {name}"


def test_the_page_of_differences_names_every_sharp_edge_and_no_other() -> None:
    page = (ROOT / "docs" / "differences.md").read_text("utf-8")
    store = page.partition("## The store")[2].partition("\n## ")[0]
    last_cells = [line.split("|")[-2] for line in store.splitlines() if line.startswith("| ")][1:]
    named = {name for cell in last_cells for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`$", cell.strip())}
    assert named == set(SHARP_EDGES)

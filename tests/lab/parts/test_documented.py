"""The page about a learner's broker: its examples give what it says, and it names every part and method."""

from __future__ import annotations

import doctest
from pathlib import Path

from mqlab.lab.parts import KINDS
from tests.lab.parts.brokers import rocketmq_shape
from tests.tidy.sources import ROOT

PAGE = Path(ROOT) / "docs" / "your-broker.md"


def test_the_examples_of_the_page_give_what_it_says() -> None:
    failed, _ = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0


def test_every_interface_has_an_example() -> None:
    sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    without = [section.partition("\n")[0] for section in sections if ">>> " not in section]
    assert not without


def test_the_page_names_every_part_and_every_method_of_a_right_broker() -> None:
    text = PAGE.read_text("utf-8")
    for kind in KINDS:
        assert f"`{kind.file}.py`" in text and kind.name in text
    for name in ("MyPulls", "MyGroups"):
        methods = [one for one in vars(getattr(rocketmq_shape, name)) if not one.startswith("_")]
        assert all(f"`{one}(" in text for one in methods if one not in ("read", "wants"))

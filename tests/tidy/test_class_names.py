"""A public class name says one thing: it exists once, but for names that RocketMQ gives twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.tidy.sources import Module, assert_none, modules, parse

ROCKETMQS_OWN = {
    "Connection",  # org.apache.rocketmq.remoting.protocol.body.Connection, and the port's end of a link
    "ConsumeStatus",  # a body on the wire, and what ConsumerStatsManager counts
}


def doubles(every: Iterable[Module]) -> list[str]:
    """Names of public classes at the top of more than one file, with the files."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in every:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def test_a_public_class_name_exists_once() -> None:
    assert_none(double for double in doubles(modules()) if double.partition(":")[0] not in ROCKETMQS_OWN)


def test_every_exception_is_still_needed() -> None:
    assert {double.partition(":")[0] for double in doubles(modules())} >= ROCKETMQS_OWN


def test_a_double_is_seen() -> None:
    path = modules()[0].path
    twice = [parse(name, path, "class Lag:\n    pass\n") for name in ("mqlab.a", "mqlab.b")]
    assert doubles(twice) == ["Lag: mqlab.a, mqlab.b"]
    assert not doubles([parse("mqlab.a", path, "class _Lag:\n    pass\n")] * 2)

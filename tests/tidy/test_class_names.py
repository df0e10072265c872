"""A public class name says one thing: it exists once, but for names that RocketMQ gives twice."""

from __future__ import annotations

from tests.tidy.measures import double_class_names
from tests.tidy.sources import assert_none, modules, parse

ROCKETMQS_OWN = {
    "Connection",  # org.apache.rocketmq.remoting.protocol.body.Connection, and the port's end of a link
    "ConsumeStatus",  # a body on the wire, and what ConsumerStatsManager counts
}


def test_a_public_class_name_exists_once() -> None:
    assert_none(double for double in double_class_names(modules()) if double.partition(":")[0] not in ROCKETMQS_OWN)


def test_every_exception_is_still_needed() -> None:
    assert {double.partition(":")[0] for double in double_class_names(modules())} >= ROCKETMQS_OWN


def test_a_double_is_seen() -> None:
    path = modules()[0].path
    twice = [parse(name, path, "class Lag:\n    pass\n") for name in ("mqlab.a", "mqlab.b")]
    assert double_class_names(twice) == ["Lag: mqlab.a, mqlab.b"]
    assert not double_class_names([parse("mqlab.a", path, "class _Lag:\n    pass\n")] * 2)

"""The benchmark of `mqlab serve` beside a real RocketMQ runs; rates are not asserted."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.served import KINDS
from tests.interop.java_store import what_is_missing


@pytest.mark.interop
@pytest.mark.skipif(what_is_missing() is not None, reason=f"the Java client {what_is_missing()}")
def test_both_are_measured_in_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["served", "--seconds", "0.5"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == list(KINDS)
    assert all(float(number.replace(",", "")) > 0 for row in rows for number in row[1:])

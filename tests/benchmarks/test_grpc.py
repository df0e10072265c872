"""The benchmark of mqlab's gRPC front beside RocketMQ's proxy runs; rates are not asserted."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.grpc import KINDS
from tests.interop.java_store import what_is_missing


@pytest.mark.interop
@pytest.mark.skipif(what_is_missing() is not None, reason=f"the proxy {what_is_missing()}")
def test_both_are_measured_in_both_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["grpc", "--seconds", "0.5"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == list(KINDS)
    assert all(float(row[at].replace(",", "")) > 0 for row in rows for at in (1, 2, 3, 5, 6))

"""What ``mqlab cat`` and ``mqlab inspect`` print for the real broker's stores, field by field."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mqlab.cli import main


@pytest.mark.parametrize("name", ["clean", "killed", "edges", "edges-killed"])
def test_cat_and_inspect(unpacked_stores, expected, name):
    answers = expected(name)
    printed = CliRunner().invoke(main, ["cat", str(unpacked_stores / name), "--json"])
    assert printed.exit_code == 0, printed.stderr
    assert [json.loads(line) for line in printed.stdout.splitlines()] == answers["messages"]
    summary = json.loads(CliRunner().invoke(main, ["inspect", str(unpacked_stores / name), "--json"]).stdout)
    for bound in ("minPhysicalOffset", "maxPhysicalOffset", "blanks"):
        assert summary[bound] == answers[bound]
    known = {(queue["topic"], queue["queueId"]): queue for queue in answers["queues"] if queue["maxOffset"]}
    assert len(summary["queues"]) == len(known)
    for queue in summary["queues"]:
        assert queue.items() <= known[queue["topic"], queue["queueId"]].items()
    assert summary["problems"] == []

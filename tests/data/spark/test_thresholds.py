"""Thresholds of the rules: a table whose numbers a file may change."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.data.spark.thresholds import Thresholds
from mqlab.errors import UsageError


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    path.write_text('{"slow_times": 3, "skew": 1.5}')
    limits = Thresholds.from_file(path)
    changed = {name: (here, built_in) for name, here, built_in, _ in limits.rows() if here != built_in}
    assert changed == {"slow_times": (3, 5.0), "skew": (1.5, 2.0)}
    assert Thresholds.of(limits.as_dict()) == limits != Thresholds()
    assert all(meaning for _, _, _, meaning in limits.rows())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"slowness": 3}', "unknown threshold 'slowness'[\\s\\S]*slow_times"),
        ('{"skew": "2"}', "expected a number"),
        ('{"skew": -1}', "0 or more"),
        ('{"skew": true}', "expected a number"),
        ("[1]", "no JSON object"),
        ("{", "cannot read"),
    ],
)
def test_what_is_no_table_of_thresholds_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "limits.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        Thresholds.from_file(path)

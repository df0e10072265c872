"""The biography of a message: its units, calls and offsets, as the other tables have them, in time order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mqlab.data.spark import pipeline
from mqlab.errors import UsageError
from tests.data.spark.pipeline.day import Day
from tests.data.spark.pipeline.world import AUDIT, BILLING, FAILS_TWICE, LATE, NEVER_BACK, POISON, QUIET, SENT_TWICE

pytestmark = pytest.mark.spark


def test_it_tells_of_a_message_that_failed_twice(day: Day) -> None:
    told = pipeline.biography(day.out, FAILS_TWICE)
    its = [row for row in told if row.group in (None, BILLING) and row.what != "became"]
    assert [row.what for row in its] == [
        "born",
        "stored",
        "called",
        "returned",
        "parked",
        "stored for a retry",
        "called",
        "returned",
        "parked",
        "stored for a retry",
        "called",
        "returned",
    ]
    assert [row.told.split()[0] for row in its if row.what == "returned"] == ["FAILED", "FAILED", "SUCCESS"]
    times = [row.time_ms for row in told if row.time_ms is not None]
    assert times == sorted(times)
    ends = {row.group: row.told for row in told if row.what == "became"}
    assert ends.keys() == {BILLING, AUDIT, QUIET}
    assert ends[BILLING].startswith("consumed after 3 calls") and ends[QUIET].startswith("untraced after 0 calls")
    assert pipeline.biography(day.out, day.world.ids[FAILS_TWICE]).rows == told.rows
    assert FAILS_TWICE in str(told) and "after failure 2" in str(told)


def test_units_and_calls_are_those_of_the_tables(day: Day) -> None:
    for keys in (POISON, NEVER_BACK, SENT_TWICE, LATE):
        what = Counter(row.what for row in pipeline.biography(day.out, keys))
        units = [row for row in day.rows("messages") if row["keys"] == keys]
        calls = [row for row in day.rows("deliveries") if row["keys"] == keys]
        # A sender that sends once more makes a message once more, with the same id.
        assert what["born"] == len({row["born_timestamp"] for row in units if row["kind"] == "normal"})
        assert what["parked"] == sum(row["parked"] for row in units)
        assert what["stored"] == sum(row["kind"] == "normal" and not row["parked"] for row in units)
        assert what["dead letter"] == sum(row["kind"] == "dead" for row in units)
        assert what["called"] == what["returned"] == sum(row["ended"] is not None for row in calls)
        assert what["no result"] == sum(row["ended"] is None for row in calls)


def test_a_key_that_nobody_used_and_a_folder_of_something_else_are_refused(day: Day, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no message in .* has the key or id 'k'[\s\S]*compared whole"):
        pipeline.biography(day.out, "k")
    with pytest.raises(UsageError, match="not an output of 'mqlab spark run'"):
        pipeline.biography(tmp_path, POISON)

"""Lag over time from snapshots: what the lag table says at the end, and what plain counting says before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.data.spark.report import keep_offsets, lag_over_time, write_report
from mqlab.errors import UsageError
from tests.data.spark.pipeline.day import Day
from tests.data.spark.pipeline.world import NEVER_BACK

pytestmark = pytest.mark.spark


def ms(day: Day, keys: str) -> int:
    (row,) = [row for row in day.rows("messages") if row["keys"] == keys and row["kind"] == "normal"]
    return round(row["store_timestamp"].timestamp() * 1000)


def test_the_last_snapshot_is_the_lag_at_the_end(day: Day, tmp_path: Path) -> None:
    end_ms = max(round(row["store_timestamp"].timestamp() * 1000) for row in day.rows("messages")) + 5_000
    copies = keep_offsets(day.world.directory, tmp_path / "kept", end_ms)
    assert [path.relative_to(tmp_path).as_posix() for path in copies] == [
        f"kept/{broker}/{end_ms}.json" for broker in ("broker-a", "broker-b")
    ]
    frame = lag_over_time(day.out, tmp_path / "kept")
    found = {(row.topic, row.consumer_group): row.lag for row in frame.itertuples()}
    wanted: dict[tuple[str, str], int] = {}
    for row in day.rows("lag"):
        place = row["topic"], row["consumer_group"]
        wanted[place] = wanted.get(place, 0) + row["lag"]
    assert found == wanted and found["orders", "billing"] > 0
    (behind,) = [row.behind_ms for row in frame.itertuples() if row.lag]
    assert behind == end_ms - ms(day, NEVER_BACK)


def test_before_it_counts_what_was_stored_until_then(day: Day, tmp_path: Path) -> None:
    """A snapshot of the middle of the day, with every offset at 0: all messages stored until then are unread."""
    at_ms = ms(day, NEVER_BACK) - 1
    rows = [row for row in day.rows("messages") if row["topic"] == "orders" and row["broker_name"] == "broker-a"]
    times = [round(row["store_timestamp"].timestamp() * 1000) for row in rows]
    folder = tmp_path / "kept" / "broker-a"
    folder.mkdir(parents=True)
    for moment in (at_ms - 1, at_ms):  # of one minute, the last one counts
        queues = {0: 0, 1: 0} if moment == at_ms else {0: 1}
        text = json.dumps({"offsetTable": {"orders@billing": queues}})
        (folder / f"{moment}.json").write_text(text)
    (row,) = lag_over_time(day.out, tmp_path / "kept").itertuples()
    assert (row.lag, row.behind_ms) == (sum(time <= at_ms for time in times), at_ms - min(times))
    assert row.time_ms == at_ms // 60_000 * 60_000 and row.lag < len(rows)


def test_the_page_has_a_section_about_it(day: Day, tmp_path: Path) -> None:
    run = CliRunner().invoke
    kept, page = str(tmp_path / "kept"), tmp_path / "day.html"
    assert run(main, ["spark", "keep-offsets", str(day.world.directory), "--out", kept]).stdout.count(".json") == 2
    told = run(main, ["spark", "report", str(day.out), "--out", str(page), "--offsets-kept", kept])
    assert told.exit_code == 0, told.output
    section = page.read_text("utf-8").partition('id="lag-over-time"')[2].partition("</section>")[0]
    assert section.count("<svg") == 6 and "quiet" in section and "RETRY" not in section
    assert "lag-over-time" not in write_report(day.out, page).read_text("utf-8")


def test_what_is_no_snapshot_is_refused(day: Day, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no snapshot of consumerOffset.json[\s\S]*keep-offsets"):
        lag_over_time(day.out, tmp_path)
    (tmp_path / "broker-a").mkdir()
    (tmp_path / "broker-a" / "noon.json").write_text("{}")
    with pytest.raises(UsageError, match="named by no time"):
        lag_over_time(day.out, tmp_path)
    (tmp_path / "broker-a" / "noon.json").rename(tmp_path / "broker-a" / "1731319200000.json")
    with pytest.raises(UsageError, match="no table of messages"):
        lag_over_time(tmp_path, tmp_path)

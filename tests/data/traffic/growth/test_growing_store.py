"""A store that grows: a prefix of the finished one at every moment, whatever happened to it on the way."""

from __future__ import annotations

import filecmp
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.arrow import read_table
from mqlab.data.arrow.growing import confirmed_end
from mqlab.data.traffic import write
from mqlab.data.traffic.growth.commits import committed
from mqlab.data.traffic.growth.growing_store import GrowingStore
from mqlab.data.traffic.growth.plans import GrowthPlan, plan_of
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from mqlab.scales import HOUR, MINUTE


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> GrowthPlan:
    folder = tmp_path_factory.mktemp("finished")
    sizes: dict[str, Any] = {"commit_log_bytes": 1 << 18, "consume_queue_bytes": 2_000}
    written = write(folder / "day", messages=2_000, seed=7, incidents=("stuck_message",), **sizes)
    plan_of(written.stores["broker-a"]).save(folder / "plan")
    return GrowthPlan.load(folder / "plan")


def files_of(store: Path) -> list[str]:
    return sorted(
        str(path.relative_to(store))
        for folder in ("commitlog", "consumequeue")
        for path in (store / folder).rglob("*")
        if path.is_file()
    )


def assert_same_files(one: Path, other: Path) -> None:
    assert files_of(one) == files_of(other)
    assert filecmp.cmpfiles(one, other, files_of(one), shallow=False)[1:] == ([], [])


def test_at_the_end_it_is_the_finished_store(plan: GrowthPlan, tmp_path: Path) -> None:
    store = GrowingStore(plan, tmp_path / "broker-a")
    store.up_to(plan.last_ms)
    assert_same_files(tmp_path / "broker-a", plan.source)
    assert store.done == 2_000


def test_the_bytes_of_a_moment_do_not_depend_on_the_steps_before_it(plan: GrowthPlan, tmp_path: Path) -> None:
    at_once, by_steps = (GrowingStore(plan, tmp_path / name) for name in ("a", "b"))
    moment = plan.first_ms + 12 * HOUR
    at_once.up_to(moment)
    for passed in range(0, 12 * HOUR, 17 * MINUTE):
        by_steps.up_to(plan.first_ms + passed)
    by_steps.up_to(moment)
    assert_same_files(tmp_path / "a", tmp_path / "b")
    stored = read_table(tmp_path / "a", ["store_timestamp"])["store_timestamp"].cast("int64").to_numpy() // 1000
    assert len(stored) == at_once.done > 0
    assert max(stored) <= moment < plan.units["stored_ms"][at_once.done]


def test_half_a_unit_is_not_there_for_a_reader(plan: GrowthPlan, tmp_path: Path) -> None:
    store = GrowingStore(plan, tmp_path / "broker-a")
    store.up_to(plan.first_ms + 6 * HOUR)
    whole = store.done
    store.half_unit()
    log = tmp_path / "broker-a" / "commitlog" / f"{0:020d}"
    assert log.read_bytes()[store.log_end : store.log_end + 8] != bytes(8)
    assert confirmed_end(StoreInspector(tmp_path / "broker-a")) == store.log_end
    assert read_table(tmp_path / "broker-a", ["topic"]).num_rows == whole


def test_a_store_that_was_killed_is_recovered_and_goes_on_as_if_nothing_had_been(
    plan: GrowthPlan, tmp_path: Path
) -> None:
    killed = GrowingStore(plan, tmp_path / "broker-a")
    killed.up_to(plan.first_ms + 6 * HOUR)
    killed.half_unit()
    assert (tmp_path / "broker-a" / "abort").exists()
    recovered = GrowingStore(plan, tmp_path / "broker-a")
    assert (recovered.done, recovered.log_end) == (killed.done, killed.log_end)
    recovered.up_to(plan.last_ms)
    recovered.close()
    assert not (tmp_path / "broker-a" / "abort").exists()
    assert [name for name in files_of(tmp_path / "broker-a") if "index" not in name] == files_of(plan.source)
    assert_same_files(tmp_path / "broker-a", plan.source)


def test_retention_takes_the_oldest_file_and_leaves_offsets_as_they_are(plan: GrowthPlan, tmp_path: Path) -> None:
    store = GrowingStore(plan, tmp_path / "broker-a")
    store.up_to(plan.first_ms + 6 * HOUR)
    with pytest.raises(UsageError, match="one log file"):
        store.delete_oldest()
    next_file_ms = store.next_file_ms()
    assert next_file_ms is not None
    store.up_to(next_file_ms + HOUR)
    assert store.delete_oldest() == f"{0:020d}"
    assert store.log_start == 1 << 18
    rows = read_table(tmp_path / "broker-a", ["topic", "queue_offset", "physical_offset"]).to_pylist()
    assert min(row["physical_offset"] for row in rows) == 1 << 18
    assert min(row["queue_offset"] for row in rows if row["topic"] == "orders") > 0
    assert GrowingStore(plan, tmp_path / "broker-a").log_start == 1 << 18


def test_a_store_that_is_cut_off_has_everything_afterwards_under_the_old_times(
    plan: GrowthPlan, tmp_path: Path
) -> None:
    store = GrowingStore(plan, tmp_path / "broker-a")
    begin = plan.first_ms + 12 * HOUR
    store.up_to(begin)
    before = store.done
    store.cut_off(40 * MINUTE)
    store.up_to(begin + 39 * MINUTE)
    assert store.done == before
    store.up_to(begin + 40 * MINUTE)
    late = plan.units["stored_ms"][before : store.done]
    assert len(late) and late.min() < begin + 20 * MINUTE


def test_offsets_follow_the_listeners_and_end_as_the_finished_store_says(plan: GrowthPlan) -> None:
    ends = dict.fromkeys(plan.queues, 0)
    for number, offset in plan.units[["queue", "queue_offset"]].tolist():
        ends[plan.queues[number]] = offset + 1
    before: dict[str, dict[int, int]] = {}
    for passed in range(0, 24 * HOUR, HOUR):
        now = committed(plan.commits, plan.first_ms + passed)
        for key, queues in now.items():
            for queue_id, offset in queues.items():
                assert before.get(key, {}).get(queue_id, 0) <= offset <= ends.get((key.split("@")[0], queue_id), 0)
        before = now
    finished = read_offsets(plan.source)
    # By the last minute the listeners have had time for everything but the message that hangs.
    last = committed(plan.commits, plan.last_ms + HOUR)
    differing = {
        (key, queue_id)
        for key, queues in last.items()
        for queue_id, offset in queues.items()
        if offset != finished[key][queue_id] and "analytics" not in key
    }
    assert differing == set()
    stuck = {
        key
        for key, queues in last.items()
        for queue, end in queues.items()
        if end < ends.get((key.split("@")[0], queue), 0) and "analytics" not in key
    }
    assert len(stuck) == 1


def read_offsets(store: Path) -> dict[str, dict[int, int]]:
    from mqlab.rocketmq.store import config_texts

    text = (store / "config" / "consumerOffset.json").read_text("utf-8")
    table: dict[str, dict[int, int]] = config_texts.decode("consumerOffset.json", text)["offsetTable"]
    return table

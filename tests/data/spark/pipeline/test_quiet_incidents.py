"""Incidents under the thresholds of the rules: the harm is in the tables, and no suspicion names the group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset
import pytest

from mqlab.data.spark import pipeline
from mqlab.data.traffic import capstone, harm_of, write
from mqlab.data.traffic.trouble.placing import QUIET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqlab.data.traffic import Incident

pytestmark = pytest.mark.spark

MESSAGES, BROKERS = 12_000, 1


def quiet_ones() -> tuple[Incident, ...]:
    """One incident of each quiet kind, as students get them, each of another group."""
    found: dict[str, Incident] = {}
    for number in range(100):
        made = capstone(f"student {number}", b"what only the course knows", messages=MESSAGES, brokers=BROKERS)
        for incident in made.asked.model.incidents or ():
            if isinstance(incident, str) or (incident.kind == "slow_consumer" and incident.cost_ms is None):
                continue
            is_quiet = incident.kind in QUIET or incident.kind == "slow_consumer"
            if is_quiet and incident.group not in {other.group for other in found.values()}:
                found.setdefault(incident.kind, incident)
    assert len(found) == len(QUIET)
    return tuple(found.values())


@pytest.mark.long
@pytest.mark.usefixtures("plans_as_by_itself")
def test_no_rule_names_what_stays_under_its_threshold(spark: SparkSession, tmp_path: Path) -> None:
    made = write(tmp_path / "day", messages=MESSAGES, brokers=BROKERS, seed=7, incidents=quiet_ones())
    assert all(len(told["harmed"]) >= 3 for told in harm_of(made.asked))
    pipeline.run(tmp_path / "day", tmp_path / "out", spark=spark)
    found = pyarrow.dataset.dataset(tmp_path / "out" / "facts" / "suspicions").to_table().to_pylist()
    assert not [row for row in found if row["consumer_group"]]

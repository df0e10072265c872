"""Scores of answers that are found out: findings, stretches of time, sets, alarms."""

from __future__ import annotations

import pytest

from mqlab.course.kit.scores import delay_ms, in_order, jaccard, overlap, recalled


def test_a_decoy_and_an_invented_finding_cost_what_a_right_one_earns() -> None:
    told = recalled(["a", "b", "decoy"], ["a", "b", "c"], ["decoy"])
    assert (told.recall, told.share) == (2 / 3, 1 / 3)
    assert recalled(["a", "x", "y"], ["a", "b"]).share == 0.0


def test_to_name_every_kind_there_is_earns_nothing() -> None:
    kinds = [f"kind {number}" for number in range(12)]
    assert recalled(kinds, kinds[:3], kinds[3:5]).share == 0.0


def test_a_finding_named_twice_counts_once() -> None:
    assert recalled(["a", "a"], ["a"]).share == 1.0


def test_nothing_found_has_no_recall() -> None:
    told = recalled([], ["a"])
    assert (told.recall, told.share) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("found", "right", "share"),
    [
        ((600, 660), (600, 660), 1.0),
        ((600, 660), (660, 700), 0.0),
        ((600, 660), (700, 760), 0.0),
        ((540, 660), (600, 660), 0.5),
        ((660, 600), (600, 660), 0.0),
        ((600, 600), (600, 600), 1.0),
    ],
)
def test_an_overlap_is_the_common_part_over_the_whole(
    found: tuple[int, int], right: tuple[int, int], share: float
) -> None:
    assert overlap(found, right) == share


def test_sets_are_compared_by_their_members() -> None:
    assert jaccard([("a", 1), ("a", 1)], {("a", 1)}) == 1.0
    assert jaccard([], []) == 1.0
    assert jaccard([1], []) == 0.0


def test_an_alarm_before_the_harm_or_too_late_tells_nothing() -> None:
    assert delay_ms([100], 600, 1_200) is None
    assert delay_ms([1_201], 600, 1_200) is None
    assert delay_ms([600], 600, 1_200) == 0


def test_the_most_harmful_comes_first() -> None:
    harm = {"a": 1_000, "b": 100, "c": 90}
    assert in_order(["a", "c", "b"], harm)
    assert not in_order(["b", "a"], harm)
    assert in_order(["unknown", "a"], harm)

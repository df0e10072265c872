"""The war room, the claim board and the replay of a repair, over a day on which a group lost tags and was set back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mqlab.course.widgets.boards.war_room import Claim, WarRoom, claim_board, replay, war_room
from mqlab.data.traffic import write
from mqlab.data.traffic.day_facts import DayFacts, facts_of
from mqlab.data.traffic.playing.repairing import Plan
from mqlab.errors import UsageError

KINDS = ("inconsistent_tags", "wrong_reset")
CLAIMS = (Claim("Mei", "billing lost nothing"), Claim("Олег", "notification is fine"))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> DayFacts:
    folder: Path = tmp_path_factory.mktemp("war-room") / "day"
    write(folder, messages=6_000, seed=5, incidents=KINDS, commit_log_bytes=1 << 20, consume_queue_bytes=20_000)
    return facts_of(folder)


@pytest.fixture(scope="module")
def room(facts: DayFacts) -> WarRoom:
    return war_room(facts)


def test_the_hours_of_the_table_are_the_day_of_the_group(facts: DayFacts, room: WarRoom) -> None:
    life = facts.life[(facts.life["group"] == "billing") & facts.life["reads"]]
    rows = list(room.table())
    assert len(rows) == 24 and sum(row["stored"] for row in rows) == len(life)


def test_the_cursor_tells_the_five_minutes_before_it(facts: DayFacts) -> None:
    shown = war_room(facts, group="notification")
    stored = [shown.at(f"{hour:02}:{minute:02}")["stored"] for hour in range(24) for minute in range(5, 60, 5)]
    life = facts.life[(facts.life["group"] == "notification") & facts.life["reads"]]
    on_the_hour = [shown.at(f"{hour:02}:00")["stored"] for hour in range(1, 25)]
    assert sum(stored) + sum(on_the_hour) == len(life)


def test_findings_are_noted_at_the_cursor(facts: DayFacts) -> None:
    shown = war_room(facts, at="14:35").note("a reset?").go("15:00", "shipping").note("<nothing>")
    assert [tuple(row.as_dict().values()) for row in shown.notes()] == [
        ("14:35", "billing", "a reset?"),
        ("15:00", "shipping", "<nothing>"),
    ]
    assert "<nothing>" not in str(shown.html()).replace("\\u003cnothing>", "")


@pytest.mark.parametrize("moment", ["25:00", "noon", "14"])
def test_what_is_no_moment_is_refused(room: WarRoom, moment: str) -> None:
    with pytest.raises(UsageError, match="is not a moment of a day"):
        room.go(moment)


def test_a_group_that_is_not_there_is_refused(facts: DayFacts) -> None:
    with pytest.raises(UsageError, match="the war room has no group 'finance'"):
        war_room(facts, group="finance")


def test_a_verdict_needs_evidence(facts: DayFacts) -> None:
    board = claim_board(facts, CLAIMS)
    with pytest.raises(UsageError, match="nothing was asked about Mei's claim yet"):
        board.judge("Mei", "true")
    board.ask("Mei", lambda known: f"{len(known.life)} rows").judge("Mei", "false")
    assert [row["verdict"] for row in board.table()] == ["false", "–"]
    assert next(iter(board.table()))["evidence"] == f"{len(facts.life)} rows"


def test_other_verdicts_and_other_people_are_refused(facts: DayFacts) -> None:
    board = claim_board(facts, CLAIMS).ask("Mei", lambda known: 1)
    with pytest.raises(UsageError, match="'maybe' is not a verdict"):
        board.judge("Mei", "maybe")
    with pytest.raises(UsageError, match="there is no claim of 'Bob'"):
        board.ask("Bob", lambda known: 1)


def test_long_evidence_is_cut(facts: DayFacts) -> None:
    board = claim_board(facts, CLAIMS).ask("Mei", lambda known: "word\n" * 100)
    assert len(board.evidence["Mei"]) == 120 and board.evidence["Mei"].endswith("…")


def test_a_replay_counts_first_and_second_deliveries_and_what_is_left(facts: DayFacts) -> None:
    life = facts.life[facts.life["reads"]]
    lost = life[life["successes"] == 0]
    nothing = replay(facts, Plan())
    assert nothing.again == 0 and nothing.missing == len(lost) - nothing.first
    group = lost["group"].iloc[0]
    back = {("notification" if group == "notification" else group, "broker-a", queue): 0 for queue in range(8)}
    told = replay(facts, Plan(back))
    mine = life[life["group"] == group]
    assert told.first == len(mine[mine["successes"] == 0]) and told.again == len(mine[mine["successes"] > 0])
    assert "a second" not in told.alt and f"{told.again:,} again" in told.alt and told.svg().startswith("<svg")
    assert sum(row["again"] for row in told.table()) == told.again


def test_a_replay_of_one_message_counts_one_message(facts: DayFacts) -> None:
    life = facts.life[facts.life["reads"] & (facts.life["group"] == "billing")]
    last = life[life["queue_id"] == 3].sort_values("queue_offset").iloc[-1]
    lonely = life.assign(successes=life["successes"].where(life["msg_id"] != last["msg_id"], 0))
    told = replay(replace(facts, life=lonely), Plan({("billing", "broker-a", 3): int(last["queue_offset"])}))
    assert "would deliver 1 message for the first time" in told.alt

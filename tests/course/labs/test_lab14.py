"""Lab 14: the three clusters can be solved, hidden ones are others, and nearly right answers are told what is wrong."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import pytest

from mqlab.course import answer
from mqlab.course.cases.lab14.book import ROOMS, breaches
from mqlab.course.cases.lab14.findings import FINDING
from mqlab.course.cases.lab14.first_step import ASKED, FIRST_WRONG_STEP, first
from mqlab.course.cases.lab14.following import FOLLOW
from mqlab.course.cases.lab14.short_histories import legal, legal_with_two_brokers, short_histories
from mqlab.course.cases.lab14.shortening import LENGTH, MOST_RUNS, SHRINK
from mqlab.course.cases.lab14.worlds import PATIENTS, day_that_breaks, first_breach, rows_of, sound_day
from mqlab.course.given.lab14.hunting import hunt, message_ids
from mqlab.course.teach.exercises import Finding, manifest
from mqlab.course.words import refutation
from mqlab.lab.simulation.planted import cluster, history
from mqlab.lab.simulation.planted.clusters import CATALOGUE
from tests.course.labs.notebooks import ROOT, read, texts

QUESTIONS = {question.id: question for question in manifest("lab14").predictions}
SOLUTION = ROOT / "solutions" / "14-find-the-bug.ipynb"
RIGHT = {"Tunis": (0, 274, "dispatched"), "Turin": (2, 264, "finished"), "Warsaw": (1, 306, "locked")}


def happened(question_id: str) -> str:
    """What the solution's page says that happened."""
    shown = [texts(cell) for cell in read(SOLUTION).cells if cell.cell_type == "code" and "reveal(" in cell.source]
    told = next(text for text in shown if "✓" in text and QUESTIONS[question_id].question.partition("`")[0] in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    beliefs = {
        "lab14.again": "other",
        "lab14.when_wrong": "fault",
        "lab14.how_many": "most",
        "lab14.kill_too": "yes",
        "lab14.rolled_back": "store",
        "lab14.short_step": "same",
    }
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert belief != happened(question_id)


def test_the_three_clusters_have_a_defect_in_each_room_and_an_alarm_within_three_days() -> None:
    rules = {name: next(rule for rule in ROOMS if cluster(name).is_due_to(rule)) for name in PATIENTS}
    assert {ROOMS[rule] for rule in rules.values()} == {"store", "broker", "client"}
    for name, (day, step, rule) in RIGHT.items():
        it = cluster(name)
        found = first_breach(name, day)
        assert found is not None and (found.rule, found.step) == (rule, step) and rules[name] == rule
        assert it.alarm(it.day(day))
        silent = [room for room in ("store", "broker", "client") if not it.rolled_back(room).alarm(it.day(day))]
        assert silent == [ROOMS[rule]]


@pytest.mark.parametrize("rule", ASKED)
def test_a_hidden_cluster_breaks_the_rule_with_a_defect_that_no_examined_one_has(rule: str) -> None:
    name, day = day_that_breaks(rule, "a test")
    assert first(rows_of(name, day))[0] == rule
    assert not any(cluster(name).has_defect_of(cluster(patient)) for patient in PATIENTS)
    assert day_that_breaks(rule, "another")[0] != name


def test_a_sound_day_breaks_no_rule() -> None:
    assert breaches(rows_of(*sound_day("a test"))) == []


def test_a_room_is_rolled_back_alone() -> None:
    it = cluster("Turin")
    day = it.day(2)
    sound = [history(it.rolled_back(room).play(day)) for room in ("store", "broker")]
    assert sound[0] == sound[1] == history(it.play(day))
    assert history(it.rolled_back("client").play(day)) != sound[0]


def test_neither_notebook_nor_words_name_a_defect() -> None:
    pages = [path.read_text("utf-8") for path in (ROOT / "labs").glob("14-*.ipynb")]
    pages.append((ROOT / "mqlab" / "course" / "words" / "lab14.json").read_text("utf-8"))
    changed = {change.__name__ for defect in CATALOGUE for change in defect.changes.values()} - {"next_batch", "asked"}
    assert len(pages) == 2 and changed
    for page in pages:
        assert not [name for name in changed if name in page]
        assert "CATALOGUE" not in page and "of_the_" not in page and "is_due_to" not in page


def test_the_learners_notebook_shows_no_finding() -> None:
    cells = json.loads(next((ROOT / "labs").glob("14-*.ipynb")).read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert not [step for _, step, _ in RIGHT.values() if str(step) in text]


def judged(exercise: Any, name: str, own: Any, seed: int = 1) -> Finding | None:
    """What the public case of a seed says of an answer."""
    found = exercise.case(seed).run({name: own})
    assert found is None or isinstance(found, Finding)
    return found


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ((0, 274, "dispatched"), ""),
        ((0, 274, "lost"), "one of the nine rules"),
        ((99, 274, "dispatched"), "from 0 to 29"),
        ((2, 274, "dispatched"), "does not show"),
        ((0, 274, "acknowledged"), refutation("lab14.alarm_names_the_cause")),
        ((0, 445, "pulled"), "may be a consequence"),
        ((0, 280, "dispatched"), refutation("lab14.any_breach")),
        ((0, 232, "dispatched"), refutation("lab14.fault_is_cause")),
        ((0, 900, "dispatched"), "broken before this step already"),
        ((0, 100, "dispatched"), "at this step it still holds"),
    ],
)
def test_a_finding_is_told_what_is_wrong_with_it(claim: tuple[int, int, str], words: str) -> None:
    found = judged(FINDING, "finding", lambda: {**RIGHT, "Tunis": claim})
    assert (found.rule if found else "") == "" if not words else found is not None and words in found.rule


def test_a_belief_is_counted_by_its_id() -> None:
    found = judged(FINDING, "finding", lambda: {**RIGHT, "Tunis": (0, 280, "dispatched")})
    assert found is not None and found.belief == "lab14.any_breach"


def test_a_finding_without_a_cluster_is_told_its_name() -> None:
    found = judged(FINDING, "finding", lambda: {"Tunis": RIGHT["Tunis"]}, seed=3)
    assert found is not None and "Warsaw" in found.first_wrong and "a key for each" in found.rule


def test_another_day_of_a_cluster_counts_as_well() -> None:
    found = first_breach("Tunis", 1)
    assert found is not None and found.rule == "dispatched"
    claim = (1, found.step, found.rule)
    assert judged(FINDING, "finding", lambda: {**RIGHT, "Tunis": claim}) is None


def test_no_message_to_a_finding_gives_the_step_or_the_rule_away() -> None:
    for claim in ((0, 100, "dispatched"), (0, 900, "dispatched"), (0, 274, "tried"), (1, 1, "locked")):
        found = judged(FINDING, "finding", lambda claim=claim: {**RIGHT, "Tunis": claim})
        assert found is not None
        said = f"{found.rule} {found.expected}"
        assert "274" not in said and ("dispatched" not in said or claim[2] == "dispatched")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (lambda events, fails: events[::-1], "in their order"),
        (lambda events, fails: [], "must still go wrong"),
        (lambda events, fails: events, "try each single event of it once more"),
        (lambda events, fails: events[:32] if fails(events[:32]) else events[1:], "event of each half"),
        (lambda events, fails: [dict(events[0], at=1)], "leave out, add nothing"),
    ],
)
def test_a_schedule_that_is_not_right_is_told_why(own: Any, words: str) -> None:
    found = judged(SHRINK, "shrink", own)
    assert found is not None and words in found.rule


def by_complements(events: Sequence[Any], fails: Any) -> Sequence[Any]:
    """Another good answer: parts are as many as they have to be."""
    count = 2
    while len(events) > 1:
        size = -(-len(events) // count)
        for start in range(0, len(events), size):
            shorter = [*events[:start], *events[start + size :]]
            if fails(shorter):
                events, count = shorter, max(2, count - 1)
                break
        else:
            if size == 1:
                break
            count = min(len(events), 2 * count)
    return events


def test_what_ddmin_does_by_the_book_needs_more_runs_than_halving() -> None:
    """It begins again with the first part after each success, and is told that its runs are too many, or passes."""
    found = judged(SHRINK, "shrink", by_complements)
    assert found is None or found.rule == refutation("lab14.one_at_a_time")
    assert MOST_RUNS < LENGTH


def test_fails_that_is_asked_for_ever_ends() -> None:
    def never_ends(events: Any, fails: Any) -> Any:
        while True:
            fails(events)

    with pytest.raises(Exception, match="stop when nothing can be left out"):
        judged(SHRINK, "shrink", never_ends)


def test_a_rule_that_is_looked_at_alone_is_told_of_the_others() -> None:
    def tried_only(rows: Sequence[dict[str, Any]]) -> tuple[str | None, int | None]:
        for row in rows:
            if row["what"] == "message.sent_back" and row["retries"] > 2:
                return "tried", row["step"]
        return None, None

    found = judged(FIRST_WRONG_STEP, "first_wrong_step", tried_only)
    assert found is not None and "only where none of the four" in found.rule and "message.sent" in found.first_wrong


@pytest.mark.parametrize("seed", range(10))
def test_each_short_history_breaks_its_rule_at_its_last_row_or_none(seed: int) -> None:
    said = {about: first(rows) for about, rows in short_histories(seed)}
    sound = {about for about in said if "nothing is wrong" in about}
    assert {said[about] for about in sound} == {(None, None)} and len(sound) == 2
    for about, rows in short_histories(seed):
        assert about in sound or said[about][1] == rows[-1]["step"]
    assert {rule for rule, _ in said.values()} == {*ASKED, None}


@pytest.mark.parametrize("misunderstood", ["one_disk", "one_group", "all_forget"])
def test_who_takes_another_broker_group_or_member_sees_nothing(misunderstood: str) -> None:
    assert any(first(rows, **{misunderstood: True}) == (None, None) != first(rows) for _, rows in short_histories(1))


def test_short_histories_hold_all_four_rules_and_everything_that_looks_wrong() -> None:
    for seed in range(20):
        rows = legal(seed)
        assert first(rows) == first(legal_with_two_brokers(seed)) == (None, None)
        for misunderstood in (
            {"any_status": True},
            {"again_is_wrong": True},
            {"remembers": True},
            {"names_the_last": True},
            {"most_retries": 1},
        ):
            assert first(rows, **misunderstood) != (None, None)


def test_a_message_is_followed_to_a_place_that_another_one_had() -> None:
    *of_a_day, kept, lost = FOLLOW.form.calls(1)
    for call in (*of_a_day, kept):
        assert call.right == sorted(set(call.right)) and len(call.right) > 3
    assert len(lost.right) == 2 and len(kept.right) == 5
    found = judged(FOLLOW, "follow", lambda rows, msg_id: [row["step"] for row in rows if row.get("id") == msg_id])
    assert found is not None and "step" in found.first_wrong


def test_the_time_machine_plays_other_days_and_follows_other_messages() -> None:
    machine = hunt(cluster("Bern"), day=1, follow=9)
    assert "Message 9" in str(machine._show(machine.recording.lab)[0])
    assert message_ids(machine.recording.lab)[9].endswith("0003")
    whole = len(machine.stepper)
    reply = answer("lab14.twice", 205, machine)
    assert reply.state != "good" and "still day 1" in reply.headline + reply.note
    machine.play_again(seed=2)
    assert answer("lab14.twice", 317, machine).state == "good"
    machine.play_again(seed=2, follow=4, first_events=12)
    assert len(machine.stepper) < whole
    assert "Message 4" in str(machine._show(machine.recording.lab)[0])


def test_a_machine_over_a_short_schedule_has_no_knob_for_its_events() -> None:
    it = cluster("Bern")
    machine = hunt(it, day=1, events=it.day(1).events[:4])
    assert set(machine.state["parameters"]) == {"follow"}
    assert machine._show(machine.recording.lab) == []


@pytest.mark.parametrize(
    ("day", "value", "state", "said"),
    [
        (3, 3, "good", "not a"),
        (3, 2, "bad", "Set QUIET"),
        (0, 0, "bad", "there is an alarm"),
    ],
)
def test_a_quiet_day_is_judged_by_what_the_learner_has_played(day: int, value: int, state: str, said: str) -> None:
    it = cluster("Wuhan")
    plan = it.day(day)
    reply = answer("lab14.quiet", value, it.alarm(plan), it.play(plan))
    assert reply.state == state and said in f"{reply.headline} {reply.note}"


def test_the_source_of_a_changed_part_is_that_of_the_package() -> None:
    it = cluster("Warsaw")
    lab = it.play(it.day(1), [])
    locks = lab.broker().node.state.queue_locks
    assert inspect.getsource(type(locks)._expired) == inspect.getsource(type(locks).__mro__[1]._expired)

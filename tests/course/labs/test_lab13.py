"""Lab 13: its predictions against the night that the notebook shows, the days of its cases, and what findings say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqlab.course import answer
from mqlab.course.cases.lab13 import alarm as lab13_alarm
from mqlab.course.cases.lab13 import days, repair
from mqlab.course.cases.lab13.alarm import ALARM, IN_TIME_MS
from mqlab.course.cases.lab13.repair import REPAIR
from mqlab.course.cases.lab13.triage import TRIAGE
from mqlab.course.cases.lab13.when import WHEN
from mqlab.course.cases.lab13.whom import WHOM
from mqlab.course.cases.lab13.why import WHY, calls_of
from mqlab.course.given.lab13.alarm_league import MODEL, SIMPLE, false_alarms, heard_after_ms, league, place_of
from mqlab.course.given.lab13.day_answers import rung
from mqlab.course.given.lab13.signs import SIGNS
from mqlab.course.given.lab13.watched_days import (
    BAD_DAYS,
    FIRST,
    GOOD_DAYS,
    SECRET,
    RecordedDay,
    packed,
    recorded,
    watched_days,
)
from mqlab.course.kit.scored import above
from mqlab.course.teach.exercises import Call, Finding, manifest
from mqlab.course.words import refutation
from mqlab.data.traffic import capstone
from mqlab.data.traffic.trouble.capstone import alarm_day
from mqlab.data.traffic.trouble.placing import ALARMING
from solutions.wrong import references
from tests.course.labs.notebooks import ROOT, read, texts
from tests.course.teach.notebook_answers import reference
from tests.course.teach.seeds import first_of

QUESTIONS = {question.id: question for question in manifest("lab13").predictions}
SOLUTIONS = [ROOT / "solutions" / name for name in ("13a-what-went-wrong.ipynb", "13b-what-now.ipynb")]
HOUR, MINUTE = 3_600_000, 60_000


def happened(question_id: str) -> str:
    """What the solution's page says that happened."""
    cells = [cell for path in SOLUTIONS for cell in read(path).cells]
    shown = [texts(cell) for cell in cells if cell.cell_type == "code" and question_id in cell.source]
    told = next(text for text in shown if "it happened" in text)
    line = next(line for line in told.splitlines() if "it happened" in line)
    return line.removeprefix("  it happened").partition(":")[0].strip()


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    beliefs = {
        "lab13.lag_zero": "none",
        "lab13.dead_letters": "three",
        "lab13.repaired": "at_once",
        "lab13.planned": "nobody",
        "lab13.third": "idle",
        "lab13.reset_twice": "nothing",
        "lab13.lag_rings": "never",
    }
    assert beliefs.keys() == QUESTIONS.keys()
    for question_id, belief in beliefs.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""
        assert belief != happened(question_id)


@pytest.mark.parametrize("seed", first_of(1, 20_611))
def test_a_seed_has_every_kind_of_incident_and_a_test_that_harms_nobody(seed: int) -> None:
    made = days.days_of(seed)
    kinds = {told["kind"] for day in made for told in day.incidents}
    assert kinds == set(days.KINDS) == set(SIGNS)
    first = made[0]
    assert first.meant and not first.meant & first.harmed
    assert "shipping" not in {told["group"] for told in first.incidents}
    assert 4 <= len(made) <= 8
    slow = [told for day in made for told in day.incidents if told["kind"] == "slow_consumer"]
    assert any(len(told["clients"]) == days.BROKERS for told in slow)


def test_the_tables_are_there_and_the_stores_are_not() -> None:
    (day, *_) = days.days_of(1)
    assert len(day.facts.life) > 1_000
    assert sorted(path.name for path in Path(day.store).parent.iterdir()) == ["day"]


def told(exercise: Any, call: Call, value: Any) -> Finding | None:
    """The finding about an answer that returns this value for one call."""
    found = exercise.form.judge({exercise.form.name: None, "with_day": lambda *given: value}, [call])
    assert found is None or isinstance(found, Finding)
    return found


def test_times_that_are_nearly_right_pass() -> None:
    for call in WHEN.form.make(1):
        since, until = call.right
        assert told(WHEN, call, (since + MINUTE, until - MINUTE)) is None
        tenth = (until - since) // 11
        assert told(WHEN, call, (since + tenth, until + tenth)) is None


def test_times_of_another_unit_or_zone_are_told_so() -> None:
    call = WHEN.form.make(1)[0]
    since, until = call.right
    seconds = told(WHEN, call, (since // 1000, until // 1000))
    assert seconds is not None and seconds.rule.startswith("Times are ms since 1970")
    zone = told(WHEN, call, (since - 5 * HOUR, until - 5 * HOUR))
    assert zone is not None and zone.belief == "lab13.local_time"


def test_an_incident_of_hours_is_not_in_another_zone_because_it_is_found_at_another_time() -> None:
    call = max(WHEN.form.make(1), key=lambda one: one.right[1] - one.right[0])
    since, until = call.right
    found = told(WHEN, call, (since - 2 * (until - since) - 17 * MINUTE, until))
    assert found is not None and found.belief == "" and "Only the harmed messages count" in found.rule


def test_one_message_in_a_thousand_may_be_missing_and_one_in_ten_not() -> None:
    call = max(WHOM.form.make(1), key=lambda one: len(one.given.harmed))
    every = sorted(call.given.harmed)
    assert told(WHOM, call, days.by_group(set(every[: -len(every) // 1000 or None]))) is None
    assert told(WHOM, call, days.by_group(set(every[len(every) // 10 :]))) is not None


def test_ids_that_do_not_exist_are_told_so() -> None:
    call = WHOM.form.make(1)[0]
    found = told(WHOM, call, {"billing": [f"{number:032X}" for number in range(900)]})
    assert found is not None and "belong together" in found.rule and found.share < 0.01


def test_a_name_that_is_no_address_is_told_so() -> None:
    call = next(one for one in WHY.form.make(1) if one.right)
    found = told(WHY, call, ["billing-1"])
    assert found is not None and "named by its address" in found.rule
    assert told(WHY, call, list(reversed(call.right))) is None


def test_a_triage_of_other_names_is_told_the_names() -> None:
    call = TRIAGE.form.make(1)[0]
    kind = told(TRIAGE, call, [("earthquake", "billing")])
    group = told(TRIAGE, call, [("skipped", "finance")])
    assert kind is not None and "kinds of the table" in kind.rule and "earthquake" in str(kind.found)
    assert group is not None and "is a group" in group.rule and "finance" in str(group.found)


def test_a_finding_too_many_costs_what_a_right_one_gives() -> None:
    call = TRIAGE.form.make(1)[0]
    free = next(
        group
        for group in ("billing", "notification", "shipping", "warehouse")
        if group not in {of for _, of in call.right} and group != "shipping"
    )
    found = told(TRIAGE, call, [*call.right, ("slow_consumer", free)])
    assert found is not None and found.share == pytest.approx(2 / 3)
    another = next(kind for kind in SIGNS if kind != call.right[0][0])
    mistaken = told(TRIAGE, call, [(another, call.right[0][1]), *call.right[1:]])
    assert mistaken is not None and SIGNS[call.right[0][0]] in mistaken.rule


def test_the_most_harmful_comes_first() -> None:
    call = max(TRIAGE.form.make(1), key=lambda one: max(one.given[1].values()))
    found = told(TRIAGE, call, list(reversed(call.right)))
    assert found is not None and found.rule == refutation("lab13.by_time") and found.share == 0.75


def test_a_day_to_repair_has_lost_messages_and_letters_that_may_and_may_not_be_sent_again() -> None:
    healed, poisoned = (call.given for call in REPAIR.form.make(1))
    for asked in (healed, poisoned):
        assert asked.wanted and not asked.wanted & asked.handled and not asked.wanted & asked.living
    dead = healed.day.facts.life[healed.day.facts.life["dead"]]
    assert set(zip(dead["group"], dead["msg_id"], strict=True)) & healed.wanted and poisoned.living


def test_a_plan_that_cannot_be_carried_out_is_told_why() -> None:
    call = REPAIR.form.make(1)[0]
    nothing: dict[str, list[Any]] = {"offsets": [], "again": [], "skip": []}
    far = told(REPAIR, call, nothing | {"offsets": [("billing", "broker-a", 0, 10**6)]})
    alive = told(REPAIR, call, nothing | {"again": [next(iter(call.given.handled))]})
    idle = told(REPAIR, call, nothing)
    assert far is not None and "and not to 1000000" in far.first_wrong
    assert alive is not None and "is not a dead letter" in alive.first_wrong
    assert idle is not None and idle.belief in ("lab13.resend_is_repair", "")


def test_a_plan_is_not_blamed_for_a_retry_that_was_under_way_at_midnight() -> None:
    """It comes once more whatever the plan says; what had been handled may not."""
    found = repair.repairs("repair 2013-13")
    findings = [(told["kind"], told["group"] or "") for told in found.day.incidents]
    call = Call(facts=found.day.store, findings=findings, calendar=list(found.day.calendar), given=found, about="a day")
    plan = reference("lab13.repair")["repair"](found.day.facts, findings, list(found.day.calendar))
    assert repair.delivers(call, plan) is None and found.retried
    again = repair.delivers(call, {**plan, "skip": []})
    assert again is not None and again.belief == "lab13.reset_is_repair"


@pytest.mark.parametrize("name", ["day 2014-63", "why 147"])
def test_the_model_answer_names_the_process_on_days_that_show_little_of_it(name: str) -> None:
    """One call of three failed by chance; the only call that hung began before the harm."""
    why = reference("lab13.why")["why"]
    for call in calls_of([days.day(name)]):
        assert sorted(why(call.given.facts, call["finding"])) == call.right, call.about


def test_an_alarm_is_asked_with_the_past_only() -> None:
    lengths: list[int] = []

    def alarm(so_far: list[Any]) -> bool:
        lengths.append(len(so_far))
        return len(so_far) == 2

    assert rung(alarm, [[{"at_ms": number}] for number in (5, 10, 15)]) == [10]
    assert lengths == [1, 2, 3]


def test_no_frame_above_an_alarm_knows_what_is_to_come() -> None:
    """Behind the wall it has one moment after the other, whatever function the answer calls with_moments."""
    (call, *_) = ALARM.form.make(1)
    told_of: list[Any] = []

    def hear(rows: Any) -> bool:
        told_of.append(rows)
        return False

    ALARM.form.judge({"alarm": None, "with_moments": lambda *given: hear if given == (None,) else None}, [call])
    assert told_of == list(call.given.moments) and not call.arguments


def test_an_alarm_must_ring_in_time_and_not_before() -> None:
    good, *_, bad = ALARM.form.make(1)
    since = bad.given.since_ms
    assert lab13_alarm.rings(good, []) is None and lab13_alarm.rings(bad, [since, since + HOUR]) is None
    assert lab13_alarm.rings(bad, [since + IN_TIME_MS]) is None
    late, never = lab13_alarm.rings(bad, [since + IN_TIME_MS + 1]), lab13_alarm.rings(bad, [])
    early, evening = lab13_alarm.rings(bad, [since - 1, since]), lab13_alarm.rings(good, [days.MIDNIGHT])
    assert late is not None and late.belief == "lab13.end_of_day"
    assert never is not None and never.belief == "lab13.failures_only"
    assert early is not None and "without harm" in early.rule
    assert evening is not None and evening.belief == "lab13.lag_alarm"


def test_the_recorded_days_are_twenty_good_ones_and_two_of_each_kind() -> None:
    recorded_days = watched_days()
    assert Counter(day.kind for day in recorded_days) == {"": GOOD_DAYS} | dict.fromkeys(ALARMING, 2)
    assert len(recorded_days) == GOOD_DAYS + BAD_DAYS
    assert {len(day.moments) for day in recorded_days} == {288}
    assert all(day.since_ms < day.until_ms for day in recorded_days if day.kind)


@pytest.mark.parametrize(("number", "quiet"), [(3, True), (5, False)])
def test_a_recorded_day_can_be_made_again(number: int, quiet: bool) -> None:
    published = watched_days()[number if quiet else GOOD_DAYS + number]
    again = recorded(FIRST + number, quiet=quiet)
    assert again == published and packed([again]) == packed([published])


def test_the_model_answer_reaches_what_the_league_says() -> None:
    names: dict[str, Any] = {}
    exec(references("13")["lab13.alarm"], names)
    assert place_of(MODEL.alarm, names["alarm"], watched_days()) == MODEL


def test_the_league_puts_the_model_answer_first_and_a_silent_alarm_above_one_that_always_rings() -> None:
    rows = league({"silent": lambda so_far: False, "always": lambda so_far: True})
    names = [row.alarm for row in rows]
    assert names[0] == MODEL.alarm and set(names) == {MODEL.alarm, "silent", "always", *SIMPLE}
    assert names.index("silent") < names.index("always")
    always = next(row for row in rows if row.alarm == "always")
    assert always.as_dict()["false alarms"] == "on 32 of 32 days"


def test_an_alarm_before_the_harm_is_false_and_one_after_it_too_late() -> None:
    day = RecordedDay("day 1", "skipped", "billing", 10 * HOUR, 11 * HOUR, ())
    good = RecordedDay("day 2", "", "", 0, 0, ())
    fired = [9 * HOUR, 10 * HOUR + 5 * MINUTE]
    assert false_alarms(day, fired) == [9 * HOUR] and false_alarms(good, fired) == fired
    assert heard_after_ms(day, fired) == 5 * MINUTE and heard_after_ms(good, fired) is None
    assert heard_after_ms(day, [12 * HOUR]) is None
    assert place_of("late", lambda so_far: False, [day, good]).heard == 0


def test_hidden_days_of_an_alarm_are_others_than_the_recorded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab13_alarm, "watch", lambda made: made)  # a day is not written until it is watched
    made = lab13_alarm.hidden_days(7)
    kinds = [{one.kind for one in day.asked.model.incidents if not one.decoy} for day in made]
    assert kinds[:6] == [set()] * 6 and set.union(*kinds[6:]) == set(ALARMING)
    assert len({day.asked.seal for day in made}) == 6, "a bad day is the good one of its number, and an incident"
    assert all(alarm_day(FIRST, SECRET).asked.seal != day.asked.seal for day in made)


def test_who_names_nobody_or_everybody_each_time_earns_nothing() -> None:
    made = WHY.form.make(1)
    floor = WHY.form.floor(made)
    assert 0.2 < floor < 0.8

    def share(value: Any) -> float:
        answers = {WHY.form.name: None, "with_day": lambda *given: value()}
        found = WHY.form.judge(answers, made)
        assert found is not None
        return float(found.share)

    assert share(list) == 0
    rights = iter(call.right for call in made[:-1])
    nearly = share(lambda: next(rights, ["10.0.0.1"]))
    assert nearly == pytest.approx(above(1 - 1 / len(made), floor)) and nearly > 0.5


class Wall:
    """A claim board as a task sees it."""

    def __init__(self, verdicts: int) -> None:
        self.claims, self.verdicts = range(6), range(verdicts)


@pytest.mark.parametrize(
    ("value", "verdicts", "state", "said"),
    [
        (4, 6, "good", "never checked"),
        (5, 6, "bad", "show only the process"),
        (3, 6, "bad", "it did no harm"),
        (4, 2, "open", "4 claims have no verdict yet"),
    ],
)
def test_claims_are_counted_when_all_are_judged(value: int, verdicts: int, state: str, said: str) -> None:
    reply = answer("lab13.false_claims", value, Wall(verdicts))
    assert reply.state == state and said in f"{reply.headline} {reply.note}"


def test_another_night_is_judged_by_its_truth() -> None:
    made = capstone("night of a test", b"the practice of lab 13", messages=8_000, brokers=2)
    harms = [len(one["harmed"]) for one in made.truth()["incidents"]]
    good = answer("lab13.another_night", max(harms), (made, None), "night of a test")
    every = answer("lab13.another_night", sum(harms), (made, None), "night of a test")
    same = answer("lab13.another_night", max(harms), (made, None), "night 2410")
    assert (good.state, every.state, same.state) == ("good", "bad", "open")
    assert "different groups" in f"{every.headline} {every.note}"


class Shown:
    """A replay as a task sees it."""

    first, again = 30, 700


@pytest.mark.parametrize(
    ("value", "moment", "state", "said"),
    [
        (700, "14:00", "good", "no offset divides them"),
        (30, "14:00", "bad", "for the first time"),
        (730, "14:00", "bad", "How many of them"),
        (700, "12:30", "open", "change MOMENT first"),
    ],
)
def test_what_a_reset_gives_again_is_read_off_the_replay(value: int, moment: str, state: str, said: str) -> None:
    reply = answer("lab13.again", value, Shown(), moment)
    assert reply.state == state and said in f"{reply.headline} {reply.note}"

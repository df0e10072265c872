"""A day for each student: exact, different for each student, and closed without the secret."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqlab.data.traffic import SealedDay, alarm_day, capstone
from mqlab.data.traffic.day import MINUTE_MS
from mqlab.data.traffic.draws import _STEP, Draws, SealedDraws, mix
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.trouble.capstone import CALENDAR
from mqlab.data.traffic.trouble.incidents import ALL_KINDS, incidents_of
from mqlab.data.traffic.trouble.placing import ALARMING, DECOYS, LOUD, QUIET, SLOW_MEMBER
from mqlab.data.traffic.trouble.truth import CAUSES
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from tests.data.traffic.disks import seen_on_disk

SECRET = b"what only the course knows"
Told = dict[str, Any]


def made_for(student: str, messages: int = 30_000, brokers: int = 3) -> SealedDay:
    return capstone(student, SECRET, messages=messages, brokers=brokers)


def pairs(told: Told) -> set[tuple[str, str]]:
    return set(map(tuple, told["harmed"]))


def is_quiet(told: Told, made: SealedDay) -> bool:
    """Whether an incident is of the kinds that stay under the thresholds of the ready-made rules."""
    plan = next(i for i in made.asked.model.incidents or () if (i.kind, i.group) == (told["kind"], told["group"]))
    return (SLOW_MEMBER if plan.cost_ms else plan.kind) in QUIET


@pytest.fixture(scope="module")
def a_class() -> list[SealedDay]:
    return [made_for(f"student {number}") for number in range(25)]


def test_every_students_incidents_harm_somebody_and_can_be_told_apart(a_class: list[SealedDay]) -> None:
    kinds, decoys = Counter(), Counter()
    for made in a_class:
        truth = made.truth()
        incidents = truth["incidents"]
        assert len(incidents) == 3 and len(truth["decoys"]) == 2 and truth["student"] == made.student
        assert all(told["harmed"] and told["harm_since_ms"] < told["harm_until_ms"] for told in incidents)
        assert not any(told["harmed"] for told in truth["decoys"])
        assert any(is_quiet(told, made) for told in incidents)
        times = sorted((told["start_ms"], told["end_ms"]) for told in incidents)
        assert any(before[1] > after[0] for before, after in itertools.pairwise(times))
        # A group has one incident, so that each harmed message belongs to one; a sender's concerns all groups.
        groups = [told["group"] for told in incidents if told["group"]]
        assert len(set(groups)) == len(groups) >= 2
        kinds.update(told["kind"] for told in incidents)
        decoys.update(told["kind"] for told in truth["decoys"])
    assert set(kinds) == {*LOUD, *QUIET} - {SLOW_MEMBER}
    assert set(decoys) == set(DECOYS)


def test_where_a_process_is_the_cause_it_is_named(a_class: list[SealedDay]) -> None:
    for made in a_class:
        for told in made.truth()["incidents"]:
            place = {None: made.asked.brokers}.get(told["broker"], 1)
            if told["kind"] in ("lost_answer", "stuck_message", "killed_listener"):
                assert len({client.partition(":")[0] for client in told["clients"]}) == place == 1
            elif told["kind"] == "inconsistent_tags":
                assert len(told["clients"]) == place
            elif told["kind"] in ("wrong_reset", "skipped", "deploy", "poison_message"):
                assert told["clients"] == []
            assert told["client"] == (told["clients"][0] if len(told["clients"]) == 1 else None)


@pytest.mark.parametrize("student", ["anna", "王芳", "Олег", "chloé"])
def test_whom_each_incident_harmed_is_what_the_disks_show(tmp_path: Path, student: str) -> None:
    made = made_for(student, messages=12_000, brokers=2)
    stores = made.write(tmp_path / "day")
    assert all(StoreInspector(store).problems(deep=True) == [] for store in stores.values())
    (key,) = [entry["key"] for entry in made.calendar if entry["what"] == "load test"] or [""]
    shown, incidents = seen_on_disk(tmp_path / "day", but_for_key=key), made.truth()["incidents"]
    assert set().union(*map(pairs, incidents)) == shown.all
    for told in incidents:
        if told["group"]:
            # What is harmed in this group, but for what another incident's sender has stored twice.
            own = {pair for pair in shown.of(told["group"]) if pair[1] not in shown.stored_twice}
            assert own <= pairs(told) <= shown.of(told["group"])
        else:
            assert pairs(told) == {pair for pair in shown.twice if pair[1] in shown.stored_twice}
        assert told["lost"] + told["late"] + told["twice"] >= len(told["harmed"])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("day 180332559-121", id="a failed call is tried again after what a deploy repeated"),
        pytest.param("scan 406", id="two copies are worked on at the same time"),
    ],
)
def test_a_message_that_is_handled_twice_is_harmed(tmp_path: Path, name: str) -> None:
    """Two days of lab 13 on which that happens, once in some hundred days."""
    made = capstone(name, b"lab 13: days to practise on", messages=8_000, brokers=2)
    made.write(tmp_path / "day")
    shown = seen_on_disk(tmp_path / "day")
    assert set().union(*map(pairs, made.truth()["incidents"])) == shown.all


def test_two_students_get_different_days_and_one_gets_the_same_again(tmp_path: Path) -> None:
    days = {name: made_for(name, 2_000, 1) for name in ("anna", "ivan")}
    logs = {name: next(made.write(tmp_path / name)["broker-a"].glob("commitlog/*")) for name, made in days.items()}
    assert logs["anna"].read_bytes() != logs["ivan"].read_bytes()
    assert days["anna"].truth()["incidents"] != days["ivan"].truth()["incidents"]
    again = made_for(" anna ", 2_000, 1)
    (store,) = again.write(tmp_path / "again").values()
    assert next(store.glob("commitlog/*")).read_bytes() == logs["anna"].read_bytes()
    assert again.truth() == days["anna"].truth()
    other = capstone("anna", b"the secret of another course", messages=2_000, brokers=1)
    assert other.truth()["incidents"] != days["anna"].truth()["incidents"]


def test_nothing_that_a_student_has_tells_seed_or_truth(tmp_path: Path) -> None:
    made = made_for("anna", 6_000, 2)
    made.write(tmp_path / "anna")
    # 1. There is nothing beside the directory, and in it no more than stores, calendar and record.
    assert [path.name for path in tmp_path.iterdir()] == ["anna"]
    names = sorted(path.name for path in (tmp_path / "anna").iterdir())
    assert names == ["broker-a", "broker-b", CALENDAR, "incident.json"]
    record = json.loads((tmp_path / "anna" / "incident.json").read_text("utf-8"))
    assert record["asked"].keys() == {"version", "messages", "brokers", "mark"} and "command" not in record
    # 2. No file names an incident, a cause, the student, the secret or what is made of it.
    seal = made.asked.seal
    telling = [SECRET, seal, seal.hex().encode(), b"anna", *(kind.encode() for kind in ALL_KINDS if "_" in kind)]
    telling += [cause.encode() for cause in CAUSES.values()]
    for path in (tmp_path / "anna").rglob("*"):
        if path.is_file():
            found = path.read_bytes()
            assert not [word for word in telling if word in found], path
    # 3. The import that gives the truth of a seeded day gives another one here, and no repr helps.
    public = Asked(record["asked"]["messages"], record["asked"]["brokers"], 0)
    assert not set(incidents_of(public)) & set(incidents_of(made.asked))
    assert not any(text in repr(made) + repr(made.asked) for text in ("anna", repr(seal), seal.hex()))


def test_draws_of_a_sealed_day_do_not_run_backwards() -> None:
    def unshifted(value: int, by: int) -> int:
        found = value
        for _ in range(64 // by):
            found = value ^ (found >> by)
        return found

    def unmixed(value: int) -> int:
        value = unshifted(value, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) % (1 << 64)
        value = unshifted(value, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) % (1 << 64)
        return unshifted(value, 30)

    def is_guessed(draws: Draws) -> bool:
        """From one draw, guess the key of its purpose and with it the next draw."""
        seen, following = (int(bits) for bits in draws.bits(3, np.array([5, 6])))
        key = (unmixed(seen) - 5 * _STEP) % (1 << 64)
        return int(mix(np.array([(6 * _STEP + key) % (1 << 64)], np.uint64))[0]) == following

    assert is_guessed(Draws(7, 0))
    assert not is_guessed(SealedDraws(b"s" * 32, 0))


def test_sealed_draws_depend_on_seal_broker_and_purpose() -> None:
    numbers = np.array([0, 1, -1, 10**12])
    drawn = [
        SealedDraws(seal, broker).bits(purpose, numbers).tolist()
        for seal in (b"s" * 32, b"t" * 32)
        for broker in (0, 1)
        for purpose in (1, 2)
    ]
    assert len({bits for each in drawn for bits in each}) == 8 * len(numbers)
    many = SealedDraws(b"s" * 32, 0).bits(1, np.arange(100_000))
    assert many[70_000] == SealedDraws(b"s" * 32, 0).bits(1, np.array([70_000]))[0]
    for some in (numbers[:0], numbers, np.arange(-2, 11), np.array([8 << 56, -1])):  # few are hashed in another way
        each = [int(SealedDraws(b"s" * 32, 0).bits(1, some[at : at + 1])[0]) for at in range(len(some))]
        assert each == SealedDraws(b"s" * 32, 0).bits(1, np.tile(some, 10)).tolist()[: len(some)]
    assert abs(int(np.bitwise_count(many).sum()) - 32 * 100_000) < 6_000


def test_a_directory_is_finished_by_the_same_call_and_refused_to_another(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(messages: int) -> None:
        raise Stopped

    made = made_for("anna", 2_000, 2)
    whole = made.write(tmp_path / "whole")
    with pytest.raises(Stopped):
        made.write(tmp_path / "day", progress=stop)
    assert sorted(path.name for path in (tmp_path / "day").iterdir()) == [
        ".broker-a.unfinished",
        "incident.unfinished.json",
    ]
    stores = made.write(tmp_path / "day")
    for name, store in stores.items():
        for path in store.rglob("*"):
            assert not path.is_file() or path.read_bytes() == (whole[name] / path.relative_to(store)).read_bytes()
    assert (tmp_path / "day" / CALENDAR).is_file()
    with pytest.raises(UsageError, match="belongs to another run"):
        made_for("ivan", 2_000, 2).write(tmp_path / "day")


def test_the_calendar_has_what_was_planned_and_not_what_was_not(a_class: list[SealedDay]) -> None:
    for made in a_class:
        told = [*made.truth()["incidents"], *made.truth()["decoys"]]
        planned = Counter(t["kind"] for t in told if t["kind"] in ("campaign", "load_test", "group_off"))
        planned["deploy"] = sum("deploy" in t["kind"] for t in told)
        assert Counter(entry["what"] for entry in made.calendar) == Counter(
            {
                what.replace("_", " ").replace("group off", "switched off"): count
                for what, count in planned.items()
                if count
            }
        )
        for entry in made.calendar:
            assert entry["since"] % (5 * MINUTE_MS) == entry["until"] % (5 * MINUTE_MS) == 0
            assert any(entry["since"] <= t["start_ms"] and t["end_ms"] <= entry["until"] for t in told)


def test_alarm_days_are_quiet_or_have_one_incident_that_harms_a_group() -> None:
    kinds = set()
    for number in range(12):
        assert alarm_day(number, SECRET, messages=5_000).truth()["incidents"] == []
        (told,) = alarm_day(number, SECRET, quiet=False, messages=20_000).truth()["incidents"]
        assert told["group"] and len(told["harmed"]) >= 3
        kinds.add(told["kind"])
    assert kinds == set(ALARMING)


@pytest.mark.parametrize(
    ("student", "secret", "message"),
    [("  ", SECRET, "no name"), ("anna", b"short", "at least 16 bytes, this one has 5")],
)
def test_what_cannot_be_sealed_is_refused(student: str, secret: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        capstone(student, secret)

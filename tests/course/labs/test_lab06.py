"""Lab 06: what its cases call right is what a broker does; wrong answers that no file holds are met with the rule."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab06 import collide, detector, migrate, scan, three_valued, who_gets
from mqlab.course.teach.exercises import Finding, manifest
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.wire.java_hash import string_hash
from tests.course.labs.notebooks import ROOT, read, texts
from tests.course.teach.notebook_answers import reference
from tests.course.teach.seeds import first_of

SOLUTIONS = [
    ROOT / "solutions" / f"{name}.ipynb" for name in ("06a-two-tags-in-one-group", "06b-what-a-filter-passes-over")
]
GROUPS = {
    "two tags": (["paid"], ["shipped"]),
    "one code": (["Aa"], ["BB"]),
    "a star": (["*"], ["paid"]),
    "one in common": (["paid", "shipped"], ["paid"]),
}


def group_in_a_lab(wishes: tuple[list[str], ...], text_in_pull: bool, newest: int) -> Any:
    """Two members with these tags, the newest one subscribing once more; each queue gets one order of each tag."""

    def story(lab: Any) -> None:
        lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
        consumers = []
        for number, wish in enumerate(wishes):
            consumer = lab.push_consumer("g", name=f"member-{number}", post_subscription_when_pull=text_in_pull)
            consumer.subscribe("orders", " || ".join(wish))
            consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
            consumer.start()
            consumers.append(consumer)
            lab.run_for("5s")
        lab.run_for("20s")
        consumers[newest].subscribe("orders", " || ".join(wishes[newest]))
        lab.run_for("30s")
        shop = lab.producer("shop")
        for tag in sorted({tag for wish in wishes for tag in wish if tag != "*"} | {"created"}):
            for number in range(4):
                shop.send(Message("orders", b"a book", tags=tag, keys=f"{tag}-{number}"))
        lab.run_for("1m")

    return play(story, seed=7, client={"enable_trace": False})


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("text_in_pull", [False, True])
def test_who_gets_what_is_what_a_running_group_gets(kind: str, text_in_pull: bool) -> None:
    newest = len(kind) % 2
    lab = group_in_a_lab(GROUPS[kind], text_in_pull, newest)
    members = {
        f"member-{number}": {
            "tags": wish,
            "version": int(number == newest),
            "queues": [2 * number, 2 * number + 1],
        }
        for number, wish in enumerate(GROUPS[kind])
    }
    stored = list(lab.store().messages("orders"))
    got, nobody = who_gets.received(members, {one.keys: (one.queue_id, one.tags) for one in stored}, text_in_pull)
    keys = {one.msg_id: one.keys for one in stored}
    delivered: dict[str, set[str]] = {name: set() for name in members}
    for row in lab.deliveries("g", absences=False):
        if row.status == CONSUME_SUCCESS:
            delivered[row.client].add(keys[row.msg_id])
    assert delivered == {name: set(found) for name, found in got.items()}
    assert set(nobody) == set(keys.values()) - set.union(*delivered.values())


@pytest.mark.parametrize("seed", range(6))
def test_pulls_computed_are_pulls_answered(seed: int) -> None:
    for call in scan.queues(seed):
        assert scan.scanned(call["tags"], call["wanted"], call["memory_from"]) == call.right


@pytest.mark.parametrize("seed", range(20))
def test_conditions_read_the_right_way_have_the_value_of_the_package(seed: int) -> None:
    for call in three_valued.expressions(seed):
        assert three_valued.evaluated(call["tree"], call["properties"], three_valued.LogicReading()) == call.right


def test_tags_of_a_case_collide_with_something() -> None:
    for seed in range(20):
        for call in collide.tags(seed):
            assert string_hash(call.right) == string_hash(call["tag"]) and call.right != call["tag"]
            assert call.right.isascii() and call.right.isalpha() and tags.parse(call["tag"]).tags_set == (call["tag"],)


@pytest.mark.parametrize("seed", first_of(0, 1, 2))
def test_the_watchman_is_right_to_be_silent_until_somebody_stays_behind(seed: int) -> None:
    today = detector.day(seed).play({"differing": lambda admin, group, now_ms: []}, seed)
    wrong = [look.now_ms for look in today.looks if look.wrong]
    (left_behind_ms,) = (started for name, (started, _) in today.running.items() if name.endswith("-old"))
    assert wrong and min(wrong) >= left_behind_ms + detector.SETTLED_MS
    newest_ms = max(started for started, _ in today.running.values())
    assert left_behind_ms < newest_ms < left_behind_ms + detector.SETTLED_MS, "somebody is young when it is reported"
    assert not any(look.wrong for look in detector.two_changes(seed).play(today.answers, seed).looks)


def test_rocketmqs_own_comparison_has_false_alarms_during_a_change() -> None:
    names = {"problems": 0}

    def counts(admin: Any, group: str, now_ms: int) -> list[Any]:
        names["problems"] += bool(admin.consumer_problems(group))
        return []

    detector.two_changes(1).play({"differing": counts}, 1)
    assert names["problems"] > 5


def test_members_replaced_one_by_one_lose_nothing_either() -> None:
    def migrate_by_restarts(lab: Any, members: list[Any], listener: Any) -> None:
        for number, member in enumerate(members):
            member.shutdown()
            fresh = lab.push_consumer("billing", name=f"new-{number}")
            fresh.subscribe("orders", "paid || shipped")
            fresh.on_messages(listener)
            fresh.start()
            lab.run_for("10s")
        lab.run_for("20s")

    assert migrate.MIGRATE.case(1).run({"migrate": migrate_by_restarts}) is None


SLIPS = [
    ("collide", "def collide(tag):\n    return tag", "A tag does not collide with itself"),
    ("collide", "def collide(tag):\n    return tag + '!'", "The other tag has as many letters"),
    ("collide", "def collide(tag):\n    return java_hash(tag)", "collide returns a string"),
    ("who_gets", "def who_gets(members, messages, text_in_pull):\n    return {}", "who_gets returns a tuple"),
    (
        "who_gets",
        "def who_gets(members, messages, text_in_pull):\n    return {name: [] for name in members}, list(messages)",
        "the one with the highest version",
    ),
    (
        "scan",
        "def scan(tags, wanted, memory_from):\n    return [(0, tags.count(wanted), len(tags))]",
        "A pull ends with its 32nd message",
    ),
    ("scan", "def scan(tags, wanted, memory_from):\n    return 3", "scan returns a list of tuples"),
    ("three_valued", "def evaluate(tree, properties):\n    return 'unknown'", "evaluate returns True or False or None"),
    ("three_valued", "def evaluate(tree, properties):\n    return True", "neither is ever unknown"),
    ("detector", "def differing(admin, group, now_ms):\n    return ['billing-1']", "differing returns a list of pairs"),
    ("detector", "def differing(admin, group, now_ms):\n    return [('a', 'b')]", "A pair names two members"),
    ("migrate", "def migrate(lab, members, listener):\n    lab.run_for('9s')", "every member must want them by then"),
    (
        "migrate",
        "def migrate(lab, members, listener):\n"
        "    lab.kill('broker-a')\n    lab.run_for('10s')\n    lab.start('broker-a')",
        "The shop keeps sending all the time",
    ),
]


@pytest.mark.parametrize(("name", "source", "words"), SLIPS, ids=lambda value: value[:20])
def test_a_wrong_answer_is_told_the_rule(name: str, source: str, words: str) -> None:
    known = {"java_hash": string_hash}
    exec(source, known)
    (defined,) = next(one.defines for one in manifest("lab06").exercises if one.id == f"lab06.{name}")
    with pytest.raises(CheckFailed) as failed:
        check(f"lab06.{name}", {defined: known[defined]})
    assert words in str(failed.value)


def test_the_first_order_that_is_missed_is_named_with_its_time() -> None:
    def migrate_at_once(lab: Any, members: list[Any], listener: Any) -> None:
        for member in members:
            member.subscribe("orders", "paid || shipped")

    found = migrate.MIGRATE.case(2).run({"migrate": migrate_at_once})
    assert isinstance(found, Finding) and found.rule == migrate.HELD_RULE
    assert "shipped" in found.first_wrong and "from the story's return" in found.first_wrong
    assert found.found == "FILTERED_BY_CLIENT"


def test_every_belief_of_the_meetings_is_met_by_what_happened() -> None:
    """The solution's reveals are what the runs did; the beliefs predict something else."""
    believed = {
        "lab06.colliding": "broker",
        "lab06.pull_carries": "paid",
        "lab06.default": "own",
        "lab06.monitor": "lag",
        "lab06.push": "broker",
        "lab06.empty_scan": "holds",
        "lab06.lag": "1",
        "lab06.who_may_sql": "push",
        "lab06.yesterday": "delivered",
        "lab06.subscribe_now": "yes",
    }
    cells = [cell for path in SOLUTIONS for cell in read(path).cells if cell.cell_type == "code"]
    shown = [texts(cell) for cell in cells if "reveal(" in cell.source]
    for question in manifest("lab06").predictions:
        told = next(text for text in shown if question.question in text)
        happened = next(line for line in told.splitlines() if "it happened" in line)
        assert "✓ " + question.question in told
        if question.id in believed:
            assert question.problem_with(believed[question.id]) == ""
            assert believed[question.id] != happened.removeprefix("  it happened").partition(":")[0].strip()


def test_the_reference_answers_are_those_of_both_parts() -> None:
    assert {name for one in manifest("lab06").exercises for name in one.defines} <= {
        name for one in manifest("lab06").exercises for name in reference(one.id)
    }

"""The harm that the truth counts is what the disks show: computed again from the store, kind by kind."""

from __future__ import annotations

import json

import pytest

from mqlab.data.traffic import Incident, harm_of
from mqlab.data.traffic.day_facts import facts_of
from mqlab.data.traffic.model import TESTER
from mqlab.data.traffic.trouble.harm import WAYS
from mqlab.data.traffic.trouble.incidents import ALL_KINDS
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from tests.data.traffic.conftest import SMALL
from tests.data.traffic.disks import seen_on_disk

BLIND = ("trace_gap",)  # from the disks alone one cannot tell whether these were delivered

HARMLESS = (
    "burst",
    "hot_key",
    "clock_skew",
    "campaign",
    "planned_deploy",
    "big_customer",
    "group_off",
    "load_test",
)


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in BLIND])
def test_the_harm_of_each_kind_is_what_the_disks_show(small_day, kind: str) -> None:
    # A day of few messages; with this seed each kind that can do harm does.
    day = small_day(messages=6_000, seed=2, model=SMALL.changed(index=False, incidents=(kind,)))
    (counted,) = json.loads(day.truth.read_text("utf-8"))["brokers"]["broker-a"]
    (told,) = harm_of(day.asked)
    key = ""
    if kind == "load_test":  # its dead letters are meant to be dead, and say so
        messages = StoreInspector(day.stores["broker-a"]).messages()
        dead = [message for message in messages if message.topic == "%DLQ%shipping"]
        assert dead and all(TESTER[0].encode() in message.body for message in dead)
        key = counted["key"]
    shown = seen_on_disk(day.directory, but_for_key=key)
    assert set(map(tuple, told["harmed"])) == shown.all
    assert bool(shown.all) == (kind not in HARMLESS)
    ways = {way: len(getattr(shown, way)) for way in WAYS}
    assert counted["harmed"] == ways == {way: told[way] for way in WAYS}
    assert StoreInspector(day.stores["broker-a"]).problems(deep=True) == []


def test_an_incident_may_have_its_own_place_time_and_magnitude(small_day) -> None:
    noon = SMALL.start_ms + 12 * 3_600_000
    slow = Incident("slow_consumer", noon, noon + 3_600_000, group="billing", member=1, cost_ms=90, percent=40)
    day = small_day(messages=20_000, model=SMALL.changed(index=False, incidents=(slow,)))
    facts = facts_of(day.directory)
    inside = facts.calls[
        (facts.calls.group == "billing")
        & (facts.calls.started_ms >= noon)
        & (facts.calls.started_ms < noon + 3_600_000)
    ]
    cost = (inside.ended_ms - inside.started_ms).groupby(inside.client).min()
    assert sorted(cost.index) == ["10.20.0.16", "10.20.0.17"]
    assert cost["10.20.0.17"] >= 90 > cost["10.20.0.16"]


@pytest.mark.parametrize(
    ("incident", "message"),
    [
        (Incident("flood", SMALL.start_ms, SMALL.start_ms), "unknown kind of incident 'flood'"),
        (Incident("deploy", SMALL.start_ms, SMALL.start_ms), "deploy needs group"),
        (Incident("deploy", 0, 1, group="billing"), "deploy lasts from 0 to 1, the day from"),
        (Incident("trace_gap", SMALL.start_ms, SMALL.start_ms, 3), "trace_gap is at broker 3"),
        (Incident("skipped", SMALL.start_ms, SMALL.start_ms, group="sales"), "concerns the group 'sales'"),
    ],
)
def test_an_incident_that_cannot_be_is_refused(small_day, incident: Incident, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        small_day(model=SMALL.changed(incidents=(incident,)))

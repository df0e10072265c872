"""The harm that the truth counts is what the disks show: computed again from the store, kind by kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.store import StoreInspector
from mqlab.traffic import Incident
from mqlab.traffic.day_facts import facts_of
from mqlab.traffic.incidents import ALL_KINDS
from mqlab.traffic.model import TESTER
from mqlab.traffic.trouble.harm import LATE_MS
from tests.traffic.conftest import SMALL

BLIND = ("trace_gap",)  # from the disks alone one cannot tell whether these were delivered


def seen(directory: Any) -> dict[str, int]:
    """What the disks show: the same three counts, from the calls and dead letters alone."""
    facts = facts_of(directory)
    life = facts.life[facts.life.reads]
    settled = facts.calls[facts.calls.status.isin(["SUCCESS", "NO_RESULT"])].copy()
    settled["at"] = settled.ended_ms.where(settled.status == "SUCCESS", settled.started_ms)
    first = settled.groupby(["group", "msg_id"])["at"].min().reset_index()
    calls = facts.calls.merge(first, on=["group", "msg_id"])
    never = life[life.done_ms.isna()]
    open_until = SMALL.start_ms + 86_400_000 - LATE_MS
    held = never[~never.dead & (never.calls > 0) & (never.stored_ms < open_until)]
    return {
        "lost": len(never) - len(never[~never.dead & (never.calls > 0)]),
        "late": int((life.done_ms - life.stored_ms > LATE_MS).sum()) + len(held),
        "twice": len(calls[calls.started_ms > calls["at"]][["group", "msg_id"]].drop_duplicates()),
    }


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in BLIND])
def test_the_harm_of_each_kind_is_what_the_disks_show(small_day, kind: str) -> None:
    day = small_day(messages=20_000, seed=5, model=SMALL.changed(index=False, incidents=(kind,)))
    (told,) = json.loads(day.truth.read_text("utf-8"))["brokers"]["broker-a"]
    shown = seen(day.directory)
    if kind == "load_test":  # its dead letters are meant to be dead, and say so
        messages = StoreInspector(day.stores["broker-a"]).messages()
        dead = [message for message in messages if message.topic == "%DLQ%shipping"]
        assert dead and all(TESTER[0].encode() in message.body for message in dead)
        shown["lost"] -= len(dead)
    assert told["harmed"] == shown
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

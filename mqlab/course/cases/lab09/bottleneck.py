"""lab09.bottleneck: four groups that fall behind, one limit each; which one, and the row that proves it.

    tables["instances"]   second, instance, queues, threads, cores, in_calls, computing     one row per second, instance
    tables["database"]    second, slots, in_use, waiting                                    one row per second
    tables["lag"]         second, arrived, done, behind                                     one row per second
                          ─▶ (limit, table, row): one of "database", "queues", "cores", "threads"

The rows are what a monitor would have taken at the end of each second of a played run. A resource is the
limit if it is saturated for as long as messages wait, and not only now and then.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure
from mqlab.course.kit.shapes import Difference, tuple_of
from mqlab.course.teach.exercises import Call
from mqlab.course.widgets.boards.backlog.limits import computes_from
from mqlab.course.widgets.boards.backlog.runs import TankRun, TankSettings, play_tank
from mqlab.course.words import refutation

DATABASE, QUEUES, CORES, THREADS = "database", "queues", "cores", "threads"
LIMITS = (DATABASE, QUEUES, CORES, THREADS)
BEHIND = 20
PROOF = tuple_of("proof", limit=str, table=str, row=int)
Tables = dict[str, list[dict[str, Any]]]

LIMIT_RULE = (
    "Take the seconds with many waiting messages. Database: all slots are in use, and calls wait for one. Queues: "
    "an instance has none while others have all threads in calls. Cores: as many calls compute as there are cores. "
    "Threads: all are in calls, and none of the above"
)
TABLE_RULE = "The table is the one that shows the limit: database for the database, instances for the others"
ROW_RULE = (
    "The row, counted from 0, shows the limit in a second with waiting messages: a full database with calls "
    "that wait for it; an instance without a queue; an instance whose cores all compute; one whose threads are all in "
    "calls"
)
NO_ROW_RULE = "The row is the number of a row of that table, counted from 0"


def tables_of(run: TankRun) -> Tables:
    """What a monitor has of a run: one sample at the end of each second."""
    settings, seconds = run.settings, [row["second"] for row in run.seconds]
    instances, database = [], []
    for second in seconds:
        now_ms = second * 1_000
        running = [call for call in run.calls if call.begun_ms <= now_ms < call.ended_ms]
        for name, queues in run.owned.items():
            own = [call for call in running if call.instance == name]
            computing = sum(computes_from(call, settings) <= now_ms < call.computed_ms for call in own)
            instances.append(
                {
                    "second": second,
                    "instance": name,
                    "queues": queues,
                    "threads": settings.threads,
                    "cores": settings.cores,
                    "in_calls": len(own),
                    "computing": computing,
                }
            )
        database.append(
            {
                "second": second,
                "slots": settings.slots,
                "in_use": sum(call.entered_ms <= now_ms for call in running),
                "waiting": sum(call.computed_ms <= now_ms < call.entered_ms for call in running),
            }
        )
    lag = [
        {"second": row["second"], "arrived": row["arrived"], "done": row["done"], "behind": row["lag"]}
        for row in run.seconds
    ]
    return {"instances": instances, "database": database, "lag": lag}


def behind_in(tables: Tables) -> set[int]:
    """The seconds at whose end many messages wait."""
    return {row["second"] for row in tables["lag"] if row["behind"] >= BEHIND}


def proves(tables: Tables, limit: str, table: str, row: dict[str, Any]) -> bool:
    """Whether a row of a table shows this limit, in a second in which messages wait."""
    if row["second"] not in behind_in(tables):
        return False
    if limit == DATABASE:
        return table == DATABASE and row["in_use"] == row["slots"] and row["waiting"] > 0
    if table != "instances":
        return False
    if limit == QUEUES:
        return bool(row["queues"] == 0)
    return bool(row["computing"] == row["cores"] if limit == CORES else row["in_calls"] == row["threads"])


def _row(tables: Tables, limit: str) -> tuple[str, str, int]:
    table = DATABASE if limit == DATABASE else "instances"
    return (
        limit,
        table,
        next((index for index, row in enumerate(tables[table]) if proves(tables, limit, table, row)), 0),
    )


def worlds(seed: int) -> list[Call]:
    """One run for each limit. Threads are busy in all of them; with too few threads, cores are in many a second, and in
    some of them a call waits for the database. Where queues are the limit the database is full and no call waits.
    """
    rng = random.Random(f"lab09.bottleneck {seed}")
    peak = rng.randint(14, 17)
    traffic = (2, peak, peak, *[2] * 9)
    by_limit = {
        DATABASE: TankSettings(
            traffic,
            instances=rng.choice((2, 3)),
            threads=12,
            cores=2,
            compute_ms=40,
            wait_ms=900,
            queues=6,
            slots=rng.choice((6, 7)),
        ),
        QUEUES: TankSettings(
            traffic,
            instances=rng.choice((3, 4)),
            threads=3,
            cores=2,
            compute_ms=5,
            wait_ms=rng.choice((500, 600)),
            queues=2,
            slots=6,
        ),
        CORES: TankSettings(
            traffic,
            instances=2,
            threads=rng.choice((6, 8)),
            cores=1,
            compute_ms=rng.choice((190, 210)),
            wait_ms=300,
            queues=4,
            slots=40,
        ),
        THREADS: TankSettings(
            traffic,
            instances=2,
            threads=4,
            cores=1,
            compute_ms=110,
            wait_ms=900,
            queues=4,
            slots=7,
        ),
    }
    calls = [_call(settings, limit) for limit, settings in by_limit.items()]
    rng.shuffle(calls)
    return calls


def _call(settings: TankSettings, limit: str) -> Call:
    tables = tables_of(play_tank(settings))
    about = f"{counted(settings.instances, 'instances')} of {counted(settings.threads, 'threads')}"
    return Call(tables=tables, right=_row(tables, limit), given=limit, about=about)


def _seen(call: Call, value: Any) -> Difference | None:
    limit, table, row = value
    tables: Tables = call["tables"]
    if limit != call.given:
        return Difference(("limit",), "limit", call.given, limit)
    if table not in tables:
        return Difference(("table",), "table", call.right[1], table)
    if not 0 <= row < len(tables[table]):
        return Difference(("row",), "number", f"0 to {len(tables[table]) - 1}", row)
    if table != call.right[1]:
        return Difference(("table",), "table", call.right[1], table)
    if not proves(tables, limit, table, tables[table][row]):
        return Difference(("row",), "row", "a row that shows it", {"row": row, **tables[table][row]})
    return None


def _explained(call: Call, value: tuple[str, str, int], seen: Difference) -> str:
    """What is said to a wrong limit: what a student who names it in this world has not checked."""
    named = value[0]
    if seen.part != "limit":
        return ""
    if named == DATABASE and not any(row["waiting"] for row in call["tables"][DATABASE]):
        return refutation("lab09.full_is_limit")
    if named == THREADS:
        return refutation("lab09.nobody_idle" if call.given == QUEUES else "lab09.threads_busy")
    return refutation("lab09.one_moment") if named in limits_of(call) else ""


def _momentary(limit: str, row: dict[str, Any]) -> bool:
    if limit == DATABASE:
        return bool(row["in_use"] == row["slots"])
    if limit == QUEUES:
        return bool(row["queues"] == 0)
    return bool(row["computing"] == row["cores"] if limit == CORES else row["in_calls"] == row["threads"])


def limits_of(call: Call) -> Sequence[str]:
    """The limits that some second of a call's tables shows, in however few of them."""
    return [
        limit
        for limit in LIMITS
        if any(_momentary(limit, row) for row in call["tables"][DATABASE if limit == DATABASE else "instances"])
    ]


BOTTLENECK = Pure(
    "lab09.bottleneck",
    "bottleneck(tables)",
    points=4,
    about="four groups that fall behind",
    calls=worlds,
    returns=PROOF,
    compares=_seen,
    rules={"": LIMIT_RULE, "limit": LIMIT_RULE, "table": TABLE_RULE, "row": ROW_RULE, "number": NO_ROW_RULE},
    explain=_explained,
    forbids=FORBIDS["lab09.bottleneck"],
)

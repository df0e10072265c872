"""What the disks of a written day hold, as five pandas tables, made in seconds and without Spark.

Mirrors: the tables that `mqlab spark run` makes of a store of any size; here everything is in memory.

    messages   one row per message that is not trace      broker topic tags keys queue_id queue_offset stored_ms
                                                           msg_id sender
    calls      one row per call and message in it          group msg_id broker client try_number started_ms ended_ms
                                                           status: SUCCESS, EXCEPTION, FAILED ..., NO_RESULT
    life       one row per order message and traced group  group msg_id broker queue_id queue_offset tags keys stored_ms
                                                           reads, calls, first_ms, done_ms, last_ms, dead
    offsets    one row per group, topic and queue          group topic broker queue_id committed end
    damaged    one row per trace entry that does not read  broker client entry reason

Times are ms since the epoch; what never happened is NaN. ``sender`` and ``client`` are addresses of processes,
without a port. ``reads`` is false where the group does not subscribe to the message's tag; ``first_ms`` is the
beginning of the first call, ``done_ms`` the end of the first one that succeeded, ``last_ms`` the beginning of the
last one that succeeded. What a damaged entry would have told is missing in ``calls``: a day whose ``damaged`` has
rows may have more calls than it shows.

Left out: batches, transactions and delayed messages, which such a day's order messages are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.arrow import Selection, read_batches, read_store_table, read_table
from mqlab.data.traffic.model import ORDERS, TRACED
from mqlab.errors import UsageError
from mqlab.rocketmq.client.sending.trace import CONTENT_SPLITTER, FIELD_SPLITTER
from mqlab.rocketmq.wire import names

if TYPE_CHECKING:
    import pandas

SUCCESS = "SUCCESS"
STATUSES = (SUCCESS, "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED")
NO_RESULT = "NO_RESULT"
OTHER_ENTRIES = ("Pub", "EndTransaction", "Recall")
_GREATEST = 1 << 53  # beyond it a number of ms is not a time, and no float holds it exactly
_FEW_DIGITS = 16  # a number with fewer is below it
_MESSAGE_COLUMNS = [
    "broker_name",
    "topic",
    "tags",
    "keys",
    "queue_id",
    "queue_offset",
    "store_timestamp",
    "msg_id",
    "born_host",
]
_CALL_COLUMNS = ("group", "msg_id", "broker", "client", "try_number", "request", "started_ms")


@dataclass(frozen=True)
class DayFacts:
    """The five tables of a day; see the head of this file."""

    messages: pandas.DataFrame
    calls: pandas.DataFrame
    life: pandas.DataFrame
    offsets: pandas.DataFrame
    damaged: pandas.DataFrame

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write each table as a Parquet file into a folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for field in fields(self):
            getattr(self, field.name).to_parquet(target / f"{field.name}.parquet", compression="zstd")
        return target

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> DayFacts:
        """The tables of ``save``. Raises UsageError for a folder without them."""
        import pandas

        files = {field.name: Path(folder) / f"{field.name}.parquet" for field in fields(cls)}
        missing = [path.name for path in files.values() if not path.is_file()]
        if missing:
            raise UsageError(
                f"{folder} holds no facts of a day: {', '.join(missing)} is missing",
                hint="facts_of(stores).save(folder) writes them",
            )
        return cls(**{name: pandas.read_parquet(path) for name, path in files.items()})

    def __repr__(self) -> str:
        counts = (f"{len(getattr(self, field.name)):,} {field.name}" for field in fields(self))
        return f"<facts of a day: {', '.join(counts)}>"


def facts_of(stores: str | os.PathLike[str]) -> DayFacts:
    """Read a store or a folder of stores. Raises UsageError for a path without stores."""
    messages = _messages(str(stores))
    calls, damaged = _calls(str(stores))
    offsets = read_store_table(str(stores), "lag").to_pandas()
    offsets = offsets.rename(columns={"broker_name": "broker", "consumer_offset": "committed", "broker_offset": "end"})[
        ["group", "topic", "broker", "queue_id", "committed", "end"]
    ]
    return DayFacts(messages, calls, _life(messages, calls), offsets, damaged)


def _messages(stores: str) -> pandas.DataFrame:
    messages = read_table(stores, _MESSAGE_COLUMNS).to_pandas()
    messages = messages[messages["topic"] != names.TRACE_TOPIC].reset_index(drop=True)
    messages["stored_ms"] = messages.pop("store_timestamp").astype("datetime64[ms, UTC]").astype("int64")
    hosts = messages.pop("born_host").astype(str)
    messages["sender"] = hosts.map({host: host.rpartition(":")[0] for host in hosts.unique()})
    renamed: pandas.DataFrame = messages.rename(columns={"broker_name": "broker"})
    return renamed


def _calls(stores: str) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The two halves of each call, joined: a call that has not ended has no second half; and the damaged entries."""
    import pandas

    began: list[tuple[Any, ...]] = []
    ended: dict[tuple[str, str], tuple[int, str]] = {}
    damaged: list[tuple[str, str, str, str]] = []
    for broker, client, body in _trace_bodies(stores):
        *entries, rest = body.decode("utf-8", "replace").split(FIELD_SPLITTER)
        if rest:
            damaged.append((broker, client, rest, "cut off before its end"))
        for text in entries:
            field = text.split(CONTENT_SPLITTER)
            try:
                if field[0] == "SubBefore":
                    began.append(_begun(field, broker, client))
                elif field[0] == "SubAfter":
                    request, msg_id, cost_ms, status = _ended(field)
                    ended[request, msg_id] = cost_ms, status
                elif field[0] not in OTHER_ENTRIES:
                    raise ValueError("no kind of entry")
            except ValueError as error:
                damaged.append((broker, client, text, str(error)))
    # A trace message that was stored twice tells the same calls again.
    calls = pandas.DataFrame(list(dict.fromkeys(began)), columns=list(_CALL_COLUMNS))
    halves = [ended.get(pair) for pair in zip(calls["request"], calls["msg_id"], strict=True)]
    cost = pandas.Series([half[0] if half else None for half in halves], dtype="float64", index=calls.index)
    calls["ended_ms"] = calls["started_ms"] + cost
    calls["status"] = pandas.Series([half[1] if half else NO_RESULT for half in halves], dtype="object")
    calls = calls.drop(columns="request").sort_values("started_ms", kind="stable", ignore_index=True)
    return calls, pandas.DataFrame(damaged, columns=["broker", "client", "entry", "reason"])


def _begun(field: list[str], broker: str, client: str) -> tuple[Any, ...]:
    """A row of ``_CALL_COLUMNS``. Raises ValueError with the reason for an entry that cannot be one."""
    if len(field) < 8:
        raise ValueError(f"{len(field)} fields instead of 8")
    return field[3], field[5], broker, client, _number(field[6], "retries"), field[4], _number(field[1], "time")


def _ended(field: list[str]) -> tuple[str, str, int, str]:
    """Request, message, cost in ms and status. Raises ValueError with the reason for an entry that cannot be one."""
    if len(field) < 7:
        raise ValueError(f"{len(field)} fields instead of 7")
    status = _number(field[6], "status")
    if status >= len(STATUSES):
        raise ValueError(f"status {status} does not exist")
    return field[1], field[2], _number(field[3], "cost"), STATUSES[status]


def _number(text: str, name: str) -> int:
    if len(text) < _FEW_DIGITS and text.isdigit() and text.isascii():
        return int(text)
    if not (text.isascii() and text.isdigit()) or int(text[:17]) >= _GREATEST or len(text) > 17:
        raise ValueError(f"{name} {text[:20]!r} is not a number")
    return int(text)


def _trace_bodies(stores: str) -> Iterator[tuple[str, str, bytes]]:
    """Broker, address of the client without its port, and body of each message of the trace topic."""
    chosen = Selection(topics=(names.TRACE_TOPIC,))
    for batch in read_batches(stores, ["broker_name", "born_host", "body"], chosen):
        columns = (batch.column(name).to_pylist() for name in ("broker_name", "born_host", "body"))
        for broker, host, body in zip(*columns, strict=True):
            yield broker, host.rpartition(":")[0], body


def _life(messages: pandas.DataFrame, calls: pandas.DataFrame) -> pandas.DataFrame:
    """What became of each order message in each traced group."""
    import pandas

    # 1. One row per order message and group.
    orders = messages[messages["topic"] == ORDERS].drop_duplicates("msg_id").drop(columns=["topic", "sender"])
    life = pandas.concat(
        [orders.assign(group=group.name, reads=orders["tags"].isin(group.tags)) for group in TRACED], ignore_index=True
    )
    # 2. Its calls: the first, the successful ones, their number.
    by = ["group", "msg_id"]
    begun = calls.groupby(by, sort=False)
    done = calls[calls["status"] == SUCCESS].groupby(by, sort=False)
    of_calls = pandas.DataFrame(
        {
            "calls": begun.size(),
            "first_ms": begun["started_ms"].min(),
            "successes": done.size(),
            "done_ms": done["ended_ms"].min(),
            "last_ms": done["started_ms"].max(),
        }
    )
    life = life.merge(of_calls.reset_index(), "left", by)
    for name in ("calls", "successes"):
        life[name] = life[name].fillna(0).astype("int64")
    # 3. Whether a copy of it is a dead letter of that group.
    dead = messages[messages["topic"].str.startswith(names.DLQ_PREFIX)]
    letters = set(zip(dead["topic"].str.removeprefix(names.DLQ_PREFIX), dead["msg_id"], strict=True))
    life["dead"] = [pair in letters for pair in zip(life["group"], life["msg_id"], strict=True)]
    return life

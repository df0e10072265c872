"""lab12.lag_now: how far behind each group is in each of its queues, in messages and in seconds.

    group     queue              messages in the log   committed   end   lag   behind_s
    billing   orders 0 of a      0 .. 41               40          42    2     how old message 40 is
    billing   orders 1 of a      0 .. 29               30          30    0     0, though its last message is an hour old
    billing   %RETRY%billing 0   0 .. 3                3           4     1     …
    shipping  orders 2 of b      18 .. 50              12          51    39    how old 18 is: 12 .. 17 are deleted
    shipping  orders 3 of b      none                  0           0     0     0
    billing   orders 3 of a      0 .. 9                11          11    0     0: the offsets were saved after the read

Now is when the last message of any broker was stored.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab12.moments import BROKERS, NINE
from mqlab.course.given.lab11.lag_board import OFFSETS_FILE, offsets_in
from mqlab.course.kit import OneOf, Rows, Slip, Store
from mqlab.course.kit.rows import WrongRow
from mqlab.course.kit.stores import Stored, shared_folder, store_of
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.rocketmq.store import config_texts
from mqlab.rocketmq.wire.names import retry_topic
from mqlab.scales import HOUR, SECOND

LOG_FILE_BYTES, SPAN_MS = 8_192, 2 * HOUR
GROUPS = ("billing", "shipping")
Row = Mapping[str, Any]
Queue = tuple[str, str, int]  # broker name, topic, queue id


@dataclass(frozen=True, slots=True)
class GroupBacklogs:
    """What is left of the queues of some stores (queue offset -> store time), and what each group has committed."""

    queues: Mapping[Queue, Mapping[int, int]]
    committed: Sequence[Row]

    @property
    def now_ms(self) -> int:
        return max(ms for queue in self.queues.values() for ms in queue.values())


@functools.cache
def board(seed: int) -> Store:
    """The stores of a seed; the first files of broker-b are deleted."""
    rng = random.Random(f"lab12.lag_now {seed}")
    folder = shared_folder("lag")
    for broker in BROKERS:
        store_of(folder / broker, _messages(rng), log_file_bytes=LOG_FILE_BYTES)
    for path in sorted((folder / BROKERS[1] / "commitlog").iterdir())[:2]:
        path.unlink()
    queues = _queues(str(folder))
    for broker in BROKERS:
        table = _committed(rng, broker, queues)
        text = config_texts.encode(OFFSETS_FILE, {"offsetTable": table})
        config = folder / broker / "config"
        config.mkdir(exist_ok=True)
        (config / OFFSETS_FILE).write_text(text, "utf-8")
    return Store(str(folder), f"two brokers of seed {seed}")


@functools.cache
def board_of(folder: str) -> GroupBacklogs:
    """What the stores of a folder show."""
    return GroupBacklogs(_queues(folder), offsets_in(folder))


def _messages(rng: random.Random) -> list[Stored]:
    """Queue 1 has no message in the last hour, queue 3 none at all; what came back is in the retry topics. The last
    message of all is in a topic that nobody reads.
    """
    messages = []
    for number, at_ms in enumerate(sorted(NINE + rng.randrange(SPAN_MS) for _ in range(240))):
        queue_id = rng.choice((0, 0, 1, 2) if at_ms < NINE + SPAN_MS - HOUR else (0, 0, 2))
        messages.append(Stored(at_ms, "orders", queue_id, b"." * 60, {"KEYS": f"O{number}"}))
        if number % 12 == 0:
            group = rng.choice(GROUPS)
            origin = {"RETRY_TOPIC": "orders"}
            # A copy keeps the time at which its order was sent.
            messages.append(Stored(at_ms + 10 * SECOND, retry_topic(group), 0, b"." * 60, origin, born_ms=at_ms))
    return [*messages, Stored(NINE + SPAN_MS + HOUR, "letters", 0, b".", {"KEYS": "L1"})]


def _queues(folder: str) -> dict[Queue, dict[int, int]]:
    from mqlab.data.arrow import read_table

    names = ("broker_name", "topic", "queue_id", "queue_offset", "store_timestamp")
    queues: dict[Queue, dict[int, int]] = {}
    for row in read_table(folder, names).to_pylist():
        queue = queues.setdefault((row["broker_name"], row["topic"], row["queue_id"]), {})
        queue[row["queue_offset"]] = round(row["store_timestamp"].timestamp() * 1000)
    return queues


def _committed(rng: random.Random, broker: str, queues: Mapping[Queue, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for group in GROUPS:
        offsets: dict[str, int] = {}
        for queue_id in range(4):
            places = sorted(queues.get((broker, "orders", queue_id), {}))
            end = places[-1] + 1 if places else 0
            before = max(0, places[0] - rng.randrange(2, 6)) if places else 0
            # Far behind, finished, and a little behind; a group may have committed more than was there when we read.
            offsets[str(queue_id)] = {
                0: before if group == "shipping" else end - rng.randrange(1, 4),
                1: end,
                2: end + rng.randrange(1, 4) if group == "billing" else end - rng.randrange(5, 9),
                3: 0,
            }[queue_id]
        table[f"orders@{group}"] = offsets
        places = sorted(queues.get((broker, retry_topic(group), 0), {}))
        table[f"{retry_topic(group)}@{group}"] = {"0": max(0, places[-1] - rng.randrange(0, 2)) if places else 0}
    return table


def _no_wish(row: Row) -> bool:
    return True


def lag_now(
    backlogs: GroupBacklogs,
    *,
    wanted: Callable[[Row], bool] = _no_wish,
    end: Callable[[Mapping[int, int], int], int] = lambda queue, committed: max(max(queue, default=-1) + 1, committed),
    behind: Callable[[Mapping[int, int], int, int], int] | None = None,
    everywhere: bool = False,
) -> list[Row]:
    """The rows; the arguments are where an answer may err."""
    rows: list[Row] = []
    for row in filter(wanted, backlogs.committed):
        queue = backlogs.queues.get((row["broker_name"], row["topic"], row["queue_id"]), {})
        if everywhere:
            queue = {
                offset: ms
                for (_, topic, queue_id), messages in backlogs.queues.items()
                if (topic, queue_id) == (row["topic"], row["queue_id"])
                for offset, ms in messages.items()
            }
        ends = end(queue, row["committed"])
        behind_s = (behind or _behind_s)(queue, row["committed"], backlogs.now_ms)
        rows.append({**row, "end": ends, "lag": ends - row["committed"], "behind_s": behind_s})
    return rows


def _behind_s(queue: Mapping[int, int], committed: int, now_ms: int) -> int:
    left = [ms for offset, ms in queue.items() if offset >= committed]
    return (now_ms - min(left)) // SECOND if left else 0


def _since_the_last(queue: Mapping[int, int], committed: int, now_ms: int) -> int:
    return (now_ms - max(queue.values())) // SECOND if queue else 0


def _of_the_last_done(queue: Mapping[int, int], committed: int, now_ms: int) -> int:
    return (now_ms - queue[committed - 1]) // SECOND if committed - 1 in queue else 0


def _end_of_messages(queue: Mapping[int, int], committed: int) -> int:
    return max(queue, default=-1) + 1


def _wrongly(**how: Any) -> Callable[[Call], list[Row]]:
    return lambda call: lag_now(board_of(call["messages"]), **how)


def _is_order(row: Row) -> bool:
    return bool(row["topic"] == "orders")


def calls(seed: int) -> list[Call]:
    """One board."""
    stores = board(seed)
    return [Call(messages=stores, committed=stores, right=lag_now(board_of(stores)), about=stores.about)]


def _explain(call: Call, rows: Sequence[Row], wrong: WrongRow) -> str:
    if wrong.part == "missing" and wrong.right is not None:
        queue = board_of(call["messages"]).queues.get(
            tuple(wrong.right[name] for name in ("broker_name", "topic", "queue_id"))
        )
        return refutation("lab12.no_message_no_row") if not queue else ""
    if wrong.part == "behind_s" and wrong.right is not None and wrong.right["lag"] == 0:
        return refutation("lab12.old_is_behind")
    return ""


LAG_NOW = Rows(
    "lab12.lag_now",
    "lag_now(messages, committed)",
    points=4,
    about="two brokers",
    through="rows_of_board",
    forbids=FORBIDS["lab12.lag_now"],
    calls=calls,
    columns=("broker_name", "group_name", "topic", "queue_id", "end", "committed", "lag", "behind_s"),
    by=("broker_name", "group_name", "topic", "queue_id"),
    close={"behind_s": 1},
    seeds=(1,),
    slips=[
        Slip("count", _wrongly(end=lambda queue, committed: max(len(queue), committed)), belief="lab12.count_is_end"),
        Slip("count, below zero", _wrongly(end=lambda queue, committed: len(queue)), belief="lab12.count_is_end"),
        Slip("below zero", _wrongly(end=_end_of_messages), belief="lab12.same_moment"),
        Slip(
            "last offset",
            _wrongly(end=lambda queue, committed: max(max(queue, default=0), committed)),
            belief="lab12.last_is_end",
        ),
        Slip("orders only", _wrongly(wanted=_is_order), belief="lab12.retries_are_others"),
        Slip("since the last message", _wrongly(behind=_since_the_last), belief="lab12.old_is_behind"),
        Slip(
            "since the last one done",
            lambda call: OneOf([_wrongly(behind=_of_the_last_done)(call)]),
            belief="lab12.done_is_behind",
        ),
        Slip("both brokers", _wrongly(everywhere=True), belief="lab12.one_queue"),
    ],
    explain=_explain,
    rules={
        "missing": "Every queue for which a group has committed an offset has a row: start from committed",
        "extra": "A row is a queue for which a group has committed an offset",
        "committed": "committed is that of the group, as it was given",
        "end": "end is one more than the largest queue_offset of the queue at this broker, never less than committed",
        "lag": "lag is end - committed",
        "behind_s": "behind_s is how long the first message that the group has not done is stored, in whole seconds: "
        "now is the latest store_timestamp of all messages; 0 when there is no such message",
    },
)

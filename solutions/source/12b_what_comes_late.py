# %% [markdown] tags=["reading"]
# # 12b Watermarks: what comes late
#
# ## Why
#
# The board in the warehouse has a second page: orders per minute. On Tuesday a switch failed, and for forty minutes the
# job could not see broker-b, which kept storing messages. When the switch was fixed, those minutes stayed empty, though
# the log has them.
#
# A count is kept until no more rows can come to it. If you decide that too early, you lose late rows. If you never
# decide, you keep everything for ever.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 12a](12a-every-number-twice.ipynb). Afterwards you can
#
# - explain what a watermark (水位线) is, what it follows, and which rows it drops;
# - read from two numbers of each batch whether the state (状态) of a stream is bounded;
# - write three streams with state: a count by time, a memory of duplicates, a join of two streams;
# - predict which change of a query its checkpoint refuses, and which it wrongly accepts.

# %%
import contextlib
import shutil
import tempfile
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.given.lab12.streams import make_film, run_of_film
from mqlab.course.widgets import watermark_board

# %%
from mqlab.data import arrow
from mqlab.data.spark import session, state_of
from mqlab.data.spark.pipeline.trace_entries import trace
from mqlab.data.traffic import Incident, live
from mqlab.lab.views import Bars, Histogram, Table
from mqlab.lab.views.streams.ledger import Ledger
from mqlab.lab.views.streams.state_board import StateBoard

# %% [markdown]
# ## A minute that is never over
#
# Two brokers replay a day of a shop. Two things go wrong on it: answers to a sender get lost, and a listener hangs. It
# is nine o'clock:

# %%
NINE, MINUTE = 1_731_315_600_000, 60_000  # nine o'clock of that day, in ms since 1970
lost = Incident("lost_answer", NINE, NINE + 120 * MINUTE, broker=0, client=0)
hangs = Incident(
    "killed_listener", NINE, NINE + 100 * MINUTE, broker=0, group="billing", member=0
)
folder = Path(tempfile.mkdtemp(prefix="mqlab-lab12b-"))
open_days = contextlib.ExitStack()
day = live(folder / "day", seed=7, start="9h", messages=20_000, incidents=(lost, hangs))
broker = open_days.enter_context(day)
broker.table()

# %% [markdown]
# A job polls the logs from time to time. The new rows are a batch. So that you can repeat a query with other settings,
# we film what the job finds:

# %%
COLUMNS = ["topic", "broker_name", "physical_offset", "keys", "tags", "msg_id"]
COLUMNS += ["offset_msg_id", "store_timestamp"]
looks, seen_at = [], {}


def look():
    """Films what is new in the logs since half past eight, as rows."""
    new = []
    for row in arrow.read_table(str(broker.directory), COLUMNS).to_pylist():
        row["store_timestamp"] = round(row["store_timestamp"].timestamp() * 1000)
        place = row["broker_name"], row["physical_offset"]
        if row["store_timestamp"] >= NINE - 30 * MINUTE and place not in seen_at:
            seen_at[place] = len(looks)
            new.append(row)
    looks.append(new)


# %%
look()  # it is nine
broker.advance("20min")
look()
broker.late("broker-b", "40min")  # from now on nobody sees what broker-b stores
for minutes in (20, 12, 7):
    broker.advance(f"{minutes}min")
    look()
for minutes in (11, 30, 20):  # broker-b is back since ten o'clock
    broker.advance(f"{minutes}min")
    look()

# %% tags=["picture"]
orders = [[row for row in new if row["topic"] == "orders"] for new in looks]
counts = {
    f"look {number}, {name}": sum(row["broker_name"] == name for row in new)
    for number, new in enumerate(orders)
    for name in broker.stores
}
Bars(counts, title=f"Orders that are new. It is {broker.now} now", unit="orders")


# %%
def clock(ms):
    """A time as a text."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


# %%
TYPES = {name: "string" for name in COLUMNS if name != "physical_offset"}
TYPES["store_timestamp"] = "timestamp"
FILM = make_film(folder / "film", orders, TYPES)

# %% [markdown]
# `run_of_film(query, film, …)` calls `query(frame, …)`. It gets a streaming DataFrame, and returns another one and an
# output mode (输出模式). The sink of our board is a table with a key: a new row replaces the one with the same key.
#
# | in the query | meaning |
# |---|---|
# | `.withWatermark("store_timestamp", "10 minutes")` | no row comes that is more than 10 minutes older than the newest row |
# | `.groupBy(functions.window("store_timestamp", "10 minutes"), …)` | one group per ten minutes; the column `window` has `start` and `end` |
# | mode `append` | each row is emitted once, when it can change no more |
# | mode `update` | each row is emitted whenever it has changed |
# | mode `complete` | all rows are emitted, each time |
#
# The **watermark** is a point in time: the newest time of all rows of earlier batches, minus the delay. It only
# advances. A group whose time is before the watermark is finished: Spark forgets it after the batch, and from the next
# batch on drops its rows.


# %%
def by_ten_minutes(orders, delay):
    groups = functions.window("store_timestamp", "10 minutes"), "broker_name"
    timely = orders.withWatermark("store_timestamp", delay)
    return timely.groupBy(*groups).count(), "update"


# %% [prediction] lab12.late_rows
# The job did not see broker-b from 09:20 to 10:00. Look 5 at 10:10 has all that it stored since. The looks before it
# were at 9:40, 9:52 and 9:59. The delay is ten minutes. Which of broker-b's orders from 09:20 to 10:00 are counted?
#
# - all: all of them; the log has them, and they have their times {lab12.late_is_counted}
#   > The watermark follows the newest message of all brokers, minus the delay, and not each broker. Older rows are
#   > dropped, and numRowsDroppedByWatermark counts them. A broker that may be an hour late needs a delay of an hour.
# - some: those of about the last twenty minutes
#   = After the look of 9:52 the watermark was 9:42. The groups before it were finished when broker-b came; the one from
#   = 9:40 to 9:50 was not.
# - none: none; they came too late
#   > Only rows before the watermark are too late, and it is behind the newest row by the delay.
# note: There is no error and no warning, only one number in the progress of one batch. It counts what reaches the
#   state, here the counts of two groups and not their orders. That was Tuesday.
# later: -

# %% tags=["picture"]
spark = session()
ten = run_of_film(by_ten_minutes, FILM, "10 minutes")
StateBoard(ten["batches"], title="A delay of ten minutes")


# %%
def board_of(run):
    """The table of the sink: the last row that it was given for each key."""
    return {(row["window"]["start"], row["broker_name"]): row["count"] for row in run}


shown = {
    start[11:16]: count
    for (start, name), count in board_of(ten["rows"]).items()
    if name == "broker-b"
}
away = ["09:20", "09:30", "09:40", "09:50"]
Bars({start: shown.get(start, 0) for start in away}, title="broker-b on the board")

# %%
found = sum(shown.get(start, 0) > 0 for start in away)
reveal("lab12.late_rows", {0: "none", 4: "all"}.get(found, "some"))

# %% [markdown]
# What would another delay have done? The board applies the rules of a watermark to the orders of the looks. Move the
# delay, the window and the batch. Below are the groups of the selected batch: kept, forgotten, or with dropped rows.

# %% tags=["explorer"]
watermark_board(orders, delay_min=10, window_min=10, mode="update")

# %% [answer] lab12.smallest_delay
# ### Your turn: how long to wait
#
# What is the smallest delay in steps of ten minutes with which no order is dropped? The board has a result; change
# `DELAY_MINUTES` to check Spark's.
#
# wrong late: With this delay nothing is dropped. A smaller one is also enough.
# wrong: With this delay rows are dropped, or a smaller one is also enough.
# note: The oldest order of broker-b was fifty minutes old when it came. A smaller delay is enough here, because a group
#   is open until its end has passed, and because of the times of the looks. Do not rely on such luck: make the delay as
#   long as a row can be late.

# %% tags=["parameter"]
### BEGIN SOLUTION
DELAY_MINUTES = 30
### STARTER
# DELAY_MINUTES = 10  # yours to change
### END SOLUTION

delayed = run_of_film(by_ten_minutes, FILM, f"{DELAY_MINUTES} minutes")
StateBoard(delayed["batches"], title=f"A delay of {DELAY_MINUTES} minutes")

# %%
### BEGIN SOLUTION
answer("lab12.smallest_delay", 30, orders, DELAY_MINUTES)
### STARTER
# answer("lab12.smallest_delay", ..., orders, DELAY_MINUTES)
### END SOLUTION

# %% [exercise] lab12.per_minute
# ### Exercise 1: orders per minute
#
# Write `per_minute(messages, late)`. It returns a DataFrame and an output mode. The DataFrame has the columns `minute`
# (when it begins, by `store_timestamp`), `broker_name` and `messages`, the number that the broker stored in that
# minute. A broker may be as late as `late`, such as "60 minutes", and still counts. After each batch, the board shows
# every minute of which the batch has rows. Finished rows are not kept.
#
# `run_of_film(per_minute, FILM, "60 minutes")` tries it on the day above. To see the film of a failed check:
# `StateBoard(run_of_film(per_minute, *show_me("lab12.per_minute").arguments.values())["batches"])`.
#
# hint: You need a watermark with the given delay, one group per minute and broker, and the mode that emits a row
#   whenever it has changed.
# hint: Group by `functions.window("store_timestamp", "1 minute")` itself. Take its start afterwards:
#   `functions.col("window.start").alias("minute")`.
# hint: `counts = ….groupBy(window, "broker_name").agg(functions.count("*").alias("messages"))`, then `return
#   counts.select(…), "update"`.
# note: `late` is another team's promise that nothing is later. Rows that break it are dropped, so put their number next
#   to the board.


# %%
# exercise: lab12.per_minute
def per_minute(messages, late):
    """Orders by minute and broker, and the output mode."""
    ### BEGIN SOLUTION
    timely = messages.withWatermark("store_timestamp", late)
    window = functions.window("store_timestamp", "1 minute")
    counted = timely.groupBy(window, "broker_name")
    counts = counted.agg(functions.count("*").alias("messages"))
    minute = functions.col("window.start").alias("minute")
    return counts.select(minute, "broker_name", "messages"), "update"
    ### END SOLUTION


# %%
check("lab12.per_minute")

# %% [belief] lab12.orders_by_key
# question: Two messages of one minute have the same keys. How many does the board count?
# claim: One; it is one order.
# refutation: Each minute and broker has the number of messages that it stored in this minute. An order has several
#   messages with its keys.

# %% [belief] lab12.now_is_the_minute
# question: To which minute does a message belong?
# claim: To the one in which the job reads it.
# refutation: The time of reading depends on the job. A message belongs to the minute in which it was stored:
#   store_timestamp. By the clock of the job, a late broker has all its messages in one minute.

# %% [belief] lab12.append_is_live
# question: In which mode does a board show the minute that is just over?
# claim: In append, where each row is emitted once.
# refutation: In append a row is emitted when it can change no more: when the watermark has passed its minute. With a
#   delay of an hour the board is an hour behind. update emits a row whenever it has changed, and the sink's key does
#   the rest.

# %% [belief] lab12.complete_is_small
# question: The mode complete emits all rows each time. What does that cost?
# claim: Nothing; the rows are there anyway.
# refutation: To emit all rows, Spark keeps all rows: in complete mode the watermark removes nothing, and the state
#   grows for ever. update emits changed rows, and forgets finished ones.

# %% [belief] lab12.state_forgets
# question: When does a count without a watermark forget a minute?
# claim: When the minute is over.
# refutation: Without a watermark Spark does not know when a minute is over, so it keeps each minute for ever. Use
#   withWatermark.

# %% [markdown]
# ## State: what is kept
#
# Rows in state are rows that Spark keeps from batch to batch, here one per open group, in memory and in the checkpoint.
# The same count with an hour's delay: when do the bars stop growing?

# %% tags=["picture"]
hour = run_of_film(by_ten_minutes, FILM, "60 minutes")
StateBoard(hour["batches"], title="Grouped by the window")


# %%
def by_start(orders, delay):
    """The same groups, named by their beginning."""
    start = functions.window("store_timestamp", "10 minutes").start
    timely = orders.withWatermark("store_timestamp", delay)
    return timely.groupBy(start.alias("start"), "broker_name").count(), "update"


# %% [prediction] lab12.kept_groups
# `by_start` groups by the beginning of the window instead of the window. Its watermark is the same, and so are its
# counts. How many rows does it keep at the end?
#
# - same: as many; these are the same groups {lab12.start_is_the_window}
#   > Spark knows the time of a group from the column with the watermark, or its window. A computed value, such as
#   > window.start or date_trunc, is a plain time that is never over, so every group is kept for ever. Group by the
#   > window itself, and take its start afterwards.
# - more: more, every group that there ever was
#   = window.start is computed from the time, and Spark no longer knows that such a group can be over.
# - none: none; nothing is grouped by the time now
#   > The rows are still grouped, and groups are kept.
# note: The counts are right, so no test of the counts finds it, until the memory is full. Watch the rows in state of a
#   new job for a day before you trust it.
# later: -

# %% tags=["picture"]
started = run_of_film(by_start, FILM, "60 minutes")
StateBoard(started["batches"], title="Grouped by the beginning of the window")

# %%
last, last_by_start = (run["batches"][-1]["rows_in_state"] for run in (hour, started))
reveal("lab12.kept_groups", "same" if last_by_start == last else "more")


# %% [answer] lab12.rows_given
# ### Your turn: the price of a mode
#
# Change `MODE` to `"append"` and to `"complete"` and run the cell again. How many rows does the sink get in mode
# `complete`, in all batches together?
#
# wrong last: Those are the rows of the last batch. Add those of all batches.
# wrong: Add up the bars of mode complete.
# note: In a day with a look every twenty minutes the first row is emitted 72 times, and the sink writes it 72 times.

# %% tags=["parameter"]
### BEGIN SOLUTION
MODE = "complete"
### STARTER
# MODE = "update"  # yours to change
### END SOLUTION

in_mode = run_of_film(
    lambda frame, delay: (by_ten_minutes(frame, delay)[0], MODE), FILM, "60 minutes"
)
given = {
    f"batch {one['batch']}": sum(
        row["batch"] == one["batch"] for row in in_mode["rows"]
    )
    for one in in_mode["batches"]
}
Bars(given, title=f"Rows for the sink in mode {MODE}", unit="rows")

# %%
### BEGIN SOLUTION
answer("lab12.rows_given", len(in_mode["rows"]), in_mode)
### STARTER
# answer("lab12.rows_given", ..., in_mode)
### END SOLUTION

# %% [markdown]
# ## Duplicates: the same message twice
#
# An answer got lost, and the sender sent again, as it should. Both copies are stored. These are the first three pairs
# of the morning:

# %%
copies = {}
for row in chain(*orders):
    copies.setdefault(row["msg_id"], []).append(row)
pairs = [pair for pair in copies.values() if len(pair) > 1]
ids = "msg_id", "offset_msg_id"  # their last twelve characters
Table(
    {
        "stored": clock(row["store_timestamp"])[11:],
        **{name: row[name][-12:] for name in ("keys", "tags", *ids)},
    }
    for pair in pairs[:3]
    for row in pair
)

# %% [prediction] lab12.name_of_a_message
# Which of these columns is equal for two copies of one message, and never for two messages?
#
# - keys: keys, the order's number {lab12.order_has_one}
#   > An order has several messages: created, paid, packed. One row per value of keys would lose the others. The sending
#   > client assigns msg_id, once per message.
# - offset_msg_id: offset_msg_id, the broker's name for a message {lab12.copies_are_equal}
#   > The broker assigns offset_msg_id, offset and store_timestamp each time it stores, so two copies never share them.
#   > The sending client assigns msg_id, which stays the same when it sends again.
# - msg_id: msg_id, the client's name for a message
#   = The client assigned it before the first attempt, so both copies have it, and no other message.
# note: The client stores it as the property UNIQ_KEY. In mqlab's tables it is msg_id, and the broker's id is
#   offset_msg_id.

# %% tags=["picture"]
groups = {
    name: len({row[name] for row in chain(*orders)})
    for name in ("keys", "msg_id", "offset_msg_id")
}
groups = {"rows": sum(map(len, orders)), **groups}
Bars(groups, title="Different values", unit="values")

# %%
equal = {name for name in groups if all(a.get(name) == b.get(name) for a, b in pairs)}
names = {name for name in equal - {"rows"} if groups[name] == len(copies)}
reveal("lab12.name_of_a_message", names.pop())

# %% [markdown]
# To drop duplicates, a stream must remember earlier messages. For how long? A sender retries within seconds, or, if a
# program stores its messages first, after minutes. You must know the longest time, like `late` above.
#
# | in the query | what it remembers |
# |---|---|
# | `.dropDuplicates(["x"])` | each value of x |
# | `.dropDuplicatesWithinWatermark(["x"])` | each value of x, from its first row until the watermark has passed the time of that row and the delay |

# %% [exercise] lab12.without_repeats
# ### Exercise 2: each message once
#
# Write `without_repeats(messages, within)`. It returns a DataFrame and an output mode: the messages, with all their
# columns, each of them in the batch in which it came first. Copies of a message come within `within` of each other,
# such as "10 minutes". The stream remembers no more than it needs.
#
# hint: Which column identifies a message? And which of the two methods above forgets?
# hint: The method that forgets needs a watermark. Its delay is how late a copy may come.
# hint: `messages.withWatermark("store_timestamp", …).dropDuplicatesWithinWatermark([…])`, and the mode that emits each
#   row once.
# note: Compare with `once` of lab 12a: there the sink remembers for ever, in a table on disk. Here the stream remembers
#   for a while. For a ledger take the sink.


# %%
# exercise: lab12.without_repeats
def without_repeats(messages, within):
    """The messages without their copies, and the output mode."""
    ### BEGIN SOLUTION
    timely = messages.withWatermark("store_timestamp", within)
    return timely.dropDuplicatesWithinWatermark(["msg_id"]), "append"
    ### END SOLUTION


# %%
check("lab12.without_repeats")

# %% [belief] lab12.memory_lasts
# question: Copies of a message come within ten minutes. Is a delay of some seconds enough to recognise them?
# claim: Yes; the first copy is known.
# refutation: The first copy is known until the watermark has passed its time plus the delay. With a short delay it is
#   forgotten when the next batch begins, and a later copy passes as new. Make the delay as long as copies take.

# %% [belief] lab12.duplicates_end
# question: When does dropDuplicates without a watermark forget a value?
# claim: When its copy has come.
# refutation: dropDuplicates alone never forgets. Spark does not know how late a copy may come, so it keeps each msg_id
#   for ever. Use withWatermark and dropDuplicatesWithinWatermark.

# %% [belief] lab12.watermark_ends_all
# question: The stream has a watermark. Does dropDuplicates(["msg_id"]) forget older values?
# claim: Yes; a watermark bounds all state.
# refutation: A watermark bounds only state with a time. A msg_id has none, so dropDuplicates keeps each of them for
#   ever, with or without a watermark. dropDuplicatesWithinWatermark remembers a time with each.

# %% [answer] lab12.too_far
# ### Your turn: a copy that comes too late
#
# A small film: one message per minute, and copies of the message of 09:01 that come `GAPS` seconds later. `within` is
# ten minutes, and a batch has ten minutes. Change `GAPS` until your stream emits one copy again. After how many seconds
# does it come?
#
# wrong: Look at the rows of your stream: the copy that has a bar.
# note: Not every copy after ten minutes is too late: state is cleaned after a batch, and by the watermark of the batch
#   before. Spark promises to find copies within the delay, not to let others through.


# %%
def film_with_copies(gaps):
    """M0, M1, ... come a minute apart, and copies of M1. A batch has ten minutes."""
    stored = [(f"M{number}", number * 60) for number in range(60)]
    stored = sorted(
        [*stored, *(("M1", 60 + gap) for gap in gaps)], key=lambda one: one[1]
    )
    batches = [[] for _ in range(6)]
    for name, second in stored:
        row = {"msg_id": name, "keys": name, "store_timestamp": NINE + second * 1000}
        batches[second // 600].append(row)
    shutil.rmtree(folder / "small", ignore_errors=True)
    types = {"msg_id": "string", "keys": "string", "store_timestamp": "timestamp"}
    return make_film(folder / "small", batches, types)


# %% tags=["parameter"]
### BEGIN SOLUTION
GAPS = [3, 400, 2_500]
### STARTER
# GAPS = [3, 400]  # yours to change, seconds
### END SOLUTION

film = film_with_copies(GAPS)
try:
    small_run = run_of_film(without_repeats, film, "10 minutes")
except Exception:
    small_run = None  # exercise 2 is open
passed = small_run["rows"] if small_run else []
at = {row["store_timestamp"][11:]: 1 for row in passed if row["msg_id"] == "M1"}
Bars(at, title="M1 comes out at", unit="times")

# %%
### BEGIN SOLUTION
answer("lab12.too_far", 2_500, GAPS, small_run)
### STARTER
# answer("lab12.too_far", ..., GAPS, small_run)
### END SOLUTION

# %% [markdown]
# ## A call that never answers
#
# The trace (消息轨迹) shows a stuck call sooner than a lag: a client records when it calls a listener (`SubBefore`) and
# when the listener has returned (`SubAfter`). A `SubBefore` without its `SubAfter` is a call that hangs. `trace`
# decodes the bodies of the trace's messages, which takes some seconds:

# %%
NEEDED = ["broker_name", "physical_offset", "msg_id", "born_host", "topic", "body"]
log = (
    spark.read.format("rocketmq").option("startTime", NINE).load(str(broker.directory))
)
raw = log.where("topic = 'RMQ_SYS_TRACE_TOPIC'").select(NEEDED)
wanted = trace(raw).where("type != 'Pub' AND group_name = 'billing'")
entries = [row.asDict() for row in wanted.collect()]

# %%
ENTRY = dict.fromkeys(("type", "group_name", "client", "request_id"), "string")
ENTRY |= {"msg_id": "string", "time": "timestamp"}
filmed = [[] for _ in looks]
for row in entries:
    place = row["broker_name"], row["trace_physical_offset"]
    filmed[seen_at[place]].append(row | {"time": round(row["time"].timestamp() * 1000)})
CALLS = make_film(folder / "calls", filmed, ENTRY)
Table(
    {name: row[name] for name in ENTRY} | {"time": clock(row["time"])}
    for row in filmed[1][:4]
)

# %% [markdown]
# Entries also come late: a client keeps them until it has ten, and broker-b was cut off. Their age when a look found
# them:

# %%
looked_at = [max(row["store_timestamp"] for row in new) for new in looks]
ages = [
    (looked_at[number] - row["time"]) / MINUTE
    for number, new in enumerate(filmed)
    for row in new
]
Histogram(ages, title="Age of entries when they are found", unit="minutes")

# %% [markdown]
# To find the calls without an answer, join calls and answers, two streams. Spark remembers both, because each may come
# first. An outer join (外连接) emits a call without an answer when no answer can come any more. For that it must know that
# the answer comes within some time of the call, and that the watermark has passed that time.

# %% tags=["picture"]
calls = {(row["request_id"], row["msg_id"]): row for row in chain(*filmed)}
answered = {
    (row["request_id"], row["msg_id"])
    for row in chain(*filmed)
    if row["type"] == "SubAfter"
}
hung = sorted(calls[call]["time"] for call in calls.keys() - answered)
minutes = {f"call {number}": (ms - NINE) / MINUTE for number, ms in enumerate(hung)}
Bars(minutes, title="Calls that hang: when they began", unit="minutes after nine")

# %% [prediction] lab12.hung_is_told
# The first of these calls hangs. Its answer must come within two minutes, and entries may be sixty minutes late. The
# looks are at 9:00, 9:20, 9:40, 9:52, 9:59, 10:10, 10:40 and 11:00. In which look is the call reported, at the
# earliest?
#
# - next: in the first look more than two minutes after it began
#   > Its answer may still be under way: entries may be sixty minutes late. Report it now and you also report calls that
#   > did return.
# - passed: when the watermark has passed the end of its two minutes, more than an hour later
#   = The watermark is the newest time minus sixty minutes. Until it has passed, an answer may come.
# - never: never, because a join emits pairs
#   > An outer join also emits a row that stays alone, when no partner can come any more.
# note: A short delay reports early and wrong, a long one late and right. Your entries decide how late, not Spark.
# later: -

# %% tags=["picture"]
over = clock(hung[0] + 2 * MINUTE)  # its two minutes have passed
Table(
    {
        "batch": one["batch"],
        "the look ends at": clock(looked_at[one["batch"]])[11:],
        "watermark": one["watermark"][11:] or "none yet",
        "is past": "yes" if one["watermark"] > over else "no",
    }
    for one in hour["batches"][: len(looks)]  # Spark's, of a delay of sixty minutes
)

# %%
told_in = next(one["batch"] for one in hour["batches"] if one["watermark"] > over)
soonest = next(n for n, ms in enumerate(looked_at) if clock(ms) > over)
reveal("lab12.hung_is_told", "passed" if told_in > soonest else "next")

# %% [exercise] lab12.no_answer
# ### Exercise 3: no answer
#
# Write `no_answer(entries, late)`. `entries` is a stream of trace entries with the columns of the table above; they
# come up to `late` after their `time`. It returns a DataFrame and an output mode: the calls without an answer within
# two minutes, each once, with `request_id`, `msg_id`, `group_name` and `called`, the time of the call. A call is
# reported when no answer to it can come any more. The stream keeps only rows that it still needs.
#
# `run_of_film(no_answer, CALLS, "60 minutes")` tries it on the day above.
#
# hint: Split the stream in two: calls and answers. request_id and msg_id together identify a call, because a message
#   that is called again has another request_id. Rename the columns of one side, so that the condition can name both.
# hint: `calls.join(answers, functions.expr("…"), "leftOuter")`, and keep the rows whose answer is NULL. Both sides need
#   a watermark: put it on `entries` before you split.
# hint: The condition has a range with two ends: `answered BETWEEN called AND called + INTERVAL 2 MINUTES`. An outer
#   join of streams only works in the mode that emits each row once.
# note: If all trace stops, the watermark stands still, and no call is reported. An alarm needs a second one: that new
#   rows arrive at all.


# %%
# exercise: lab12.no_answer
def no_answer(entries, late):
    """Calls without an answer within two minutes, and the output mode."""
    ### BEGIN SOLUTION
    timely = entries.withWatermark("time", late)
    calls = timely.where("type = 'SubBefore'").withColumnRenamed("time", "called")
    answers = timely.where("type = 'SubAfter'").selectExpr(
        "request_id AS request", "msg_id AS message", "time AS answered"
    )
    same = "request_id = request AND msg_id = message"
    soon = "answered BETWEEN called AND called + INTERVAL 2 MINUTES"
    both = calls.join(answers, functions.expr(f"{same} AND {soon}"), "leftOuter")
    alone = both.where("answered IS NULL")
    return alone.select("request_id", "msg_id", "group_name", "called"), "append"
    ### END SOLUTION


# %%
check("lab12.no_answer")

# %% [belief] lab12.inner_join_tells
# question: Which join returns the calls without an answer?
# claim: An inner join; a missing answer is NULL there.
# refutation: An inner join returns pairs. A call without an answer is in no pair, so it is not reported. leftOuter
#   returns it with NULL for the answer.

# %% [belief] lab12.one_watermark_is_enough
# question: The answers have a watermark. Do the calls need one?
# claim: No; Spark runs the query without.
# refutation: Spark runs it and never reports a call. Without a watermark on the calls, Spark cannot know that no answer
#   can come any more, and keeps all calls for ever. Both sides need one.

# %% [belief] lab12.join_waits_for_ever
# question: Does an outer join of two streams need to know how late an answer may come?
# claim: No; it reports a call when it has no answer.
# refutation: An outer join without such a limit would wait for ever, so Spark refuses it. The condition must limit the
#   time between call and answer, and the watermark of the answers shows when that time is over.

# %% [belief] lab12.range_has_one_end
# question: An answer comes at most two minutes after its call. Is that the whole range?
# claim: Yes; it cannot come before its call.
# refutation: You know that no answer comes before its call, but Spark does not. Without "answered >= called" an old
#   answer may belong to a future call, so all answers are kept for ever. The range needs both ends.

# %% [belief] lab12.trace_is_on_time
# question: Entries have times. Does the watermark need a delay?
# claim: No; 0 seconds, because an entry is stored when it happens.
# refutation: Entries come up to late after their time. With a shorter delay the watermark passes an answer that is
#   under way. The answer is dropped, and its call is reported although it returned.

# %% [belief] lab12.message_is_a_call
# question: What identifies a call of a listener?
# claim: msg_id, the message that it is called with.
# refutation: A message may be called again, here after its first call hung. The answer of the second call would then
#   belong to the first, which still hangs. request_id and msg_id together identify a call.

# %% [belief] lab12.alarm_is_a_state
# question: A call hangs for an hour. How often is it reported?
# claim: In each batch, as long as it hangs.
# refutation: An operator who is woken for the same call in each batch switches the alarm off. Report it once, when it
#   is certain: in append mode each row is emitted once.

# %% [answer] lab12.alarms
# ### Your turn: how sure, how soon
#
# Change `LATE_MINUTES` and see how many calls your stream reports by eleven o'clock. How many are there with ninety
# minutes?
#
# wrong all: That is how many hang. The missing ones wait for the watermark.
# wrong: Count the rows that your stream emits with ninety minutes.
# note: With sixty minutes all of them are reported by eleven. And with twenty? Later entries are dropped, and with them
#   calls that hang, or answers to calls that do not.

# %% tags=["parameter"]
### BEGIN SOLUTION
LATE_MINUTES = 90
### STARTER
# LATE_MINUTES = 20  # yours to change
### END SOLUTION

try:
    told = run_of_film(no_answer, CALLS, f"{LATE_MINUTES} minutes")
except Exception:
    told = {"rows": [], "batches": []}  # exercise 3 is open
StateBoard(told["batches"], title=f"{len(told['rows'])} calls are reported")

# %%
### BEGIN SOLUTION
answer("lab12.alarms", len(told["rows"]), told, LATE_MINUTES, hung)
### STARTER
# answer("lab12.alarms", ..., told, LATE_MINUTES, hung)
### END SOLUTION

# %% [markdown]
# ## Break it: a changed query
#
# If you change a query, you want to continue where the old one was. The checkpoint contains offsets in the logs, and
# the state of the old query. It is five past eleven.


# %%
def follow(query, checkpoint, sink, path=None):
    """One run of a job over the logs, with the checkpoint of the runs before."""
    reader = spark.readStream.format("rocketmq")
    reader = reader.option("startingTimestamp", NINE + 100 * MINUTE)
    log = reader.load(str(path or broker.directory)).where("topic = 'orders'")
    frame, mode = query(log)
    writer = frame.writeStream.outputMode(mode).trigger(availableNow=True)
    writer = writer.foreachBatch(lambda rows, number: sink(rows.collect()))
    job = writer.option("checkpointLocation", str(folder / checkpoint)).start()
    job.awaitTermination()
    return state_of(job)


# %%
def ten_minutes(log, *what):
    """A query: something of each ten minutes."""
    timely = log.withWatermark("store_timestamp", "10 minutes")
    ten = functions.window("store_timestamp", "10 minutes")
    return timely.groupBy(ten).agg(*what), "update"


# %%
page = {}


def write_page(rows):
    """The sink: a row that comes again replaces the one before."""
    page.update({row["window"]["start"].strftime("%H:%M"): row[1] for row in rows})


messages = functions.count("*").alias("number")
broker.advance("5min")
follow(lambda log: ten_minutes(log, messages), "counted", write_page)
Bars(
    sorted(page.items()),
    title=f"Messages per ten minutes at {broker.now}",
    unit="messages",
)

# %% [markdown]
# A colleague wants the largest message along with the count:

# %%
largest = functions.max("total_size").alias("largest")
shutil.copytree(folder / "counted", folder / "widened")
broker.advance("5min")


def why(error):
    """The line of a long error that says what is wrong."""
    lines = [line for line in str(error).splitlines() if "mqlab.errors" in line]
    words = lines[0].partition("mqlab.errors.")[2] if lines else str(error)
    return words.replace(str(folder), "").partition("\n")[0].rpartition("] ")[2][:240]


try:
    follow(lambda log: ten_minutes(log, messages, largest), "widened", write_page)
except StreamingQueryException as error:
    print(why(error))

# %% [markdown]
# Spark keeps the types of the state's columns with the state, and refuses a query with other types. Another colleague
# wants bytes instead of messages: one number per ten minutes, as before.

# %% [prediction] lab12.changed_count
# The query now adds up `total_size` instead of counting rows. The checkpoint is that of the count. What is on the board
# for the ten minutes that had begun?
#
# - refused: nothing; Spark also refuses this change
#   > It compares types. The old state is one integer per group, and so is the new one.
# - bytes: the bytes of these ten minutes
#   > The old query read the rows of the first five minutes. Only their number is left of them.
# - mixed: the bytes of the new rows plus the number of the old messages
#   = Both are numbers, so the sum continues from the count.
# note: A changed query is another query: give it its own checkpoint, and set where it begins (`startingTimestamp`).
# later: -

# %%
bytes_stored = functions.sum("total_size").alias("number")
before = dict(page)
try:
    follow(lambda log: ten_minutes(log, bytes_stored), "counted", write_page)
except StreamingQueryException as error:
    print(why(error))
Bars(sorted(page.items()), title="Messages? Bytes?")

# %%
table = arrow.read_table(
    str(broker.directory), ["topic", "store_timestamp", "total_size"]
)
ELEVEN = NINE + 120 * MINUTE
sizes = [
    row["total_size"]
    for row in table.to_pylist()
    if row["topic"] == "orders" and row["store_timestamp"].timestamp() * 1000 >= ELEVEN
]
# %%
old, new = before["11:00"], page["11:00"]
told_as = {old: "refused", sum(sizes): "bytes"}.get(new, "mixed")
print(
    f"11:00 had {old} messages, and has {new:,} now; its {len(sizes)} messages have",
    end="",
)
print(
    f" {sum(sizes):,} bytes, the last {len(sizes) - old} of them {sum(sizes[old:]):,}"
)
reveal("lab12.changed_count", told_as)

# %% [markdown]
# The same checkpoint with the stores of another shop:

# %%
shop = open_days.enter_context(
    live(folder / "other", seed=3, start="11h", messages=6_000)
)
try:
    follow(
        lambda log: ten_minutes(log, messages), "counted", write_page, shop.directory
    )
except StreamingQueryException as error:
    print(why(error))

# %% [markdown]
# And the night of 03:00 once more: the checkpoint is deleted. Two jobs feed two sinks: a list, to which rows are
# appended, and the page of a board, where a row replaces the one with its key.

# %% [prediction] lab12.two_sinks
# Both jobs have read everything. Both checkpoints are deleted, and both jobs are restarted. What do the sinks hold?
#
# - both: both have everything twice
#   > The page has a key. The count of 11:00 comes again, and replaces the count of 11:00.
# - list: the list has everything twice, and the page is as it was
#   = Replacing is idempotent (幂等), appending is not.
# - neither: neither has anything twice
#   > The list does not check what it has. It gets each row a second time, as the board of 12a did.
# note: The page is safe as long as the log has all of each minute. When retention has deleted half of a minute, the
#   smaller count replaces the right one.
# later: -

# %% tags=["picture"]
listed, numbers = [], {}


def append_rows(rows):
    listed.extend((row["broker_name"], row["physical_offset"]) for row in rows)


def write_numbers(rows):
    numbers.update({row["window"]["start"].strftime("%H:%M"): row[1] for row in rows})


def rows_as_they_are(log):
    return log.select("broker_name", "physical_offset"), "append"


follow(rows_as_they_are, "listed", append_rows)
follow(lambda log: ten_minutes(log, messages), "numbers", write_numbers)
in_log = list(listed)
first_numbers = dict(numbers)
Ledger(in_log, listed, title="The list")

# %% tags=["picture"]
shutil.rmtree(folder / "listed")
shutil.rmtree(folder / "numbers")
follow(rows_as_they_are, "listed", append_rows)
follow(lambda log: ten_minutes(log, messages), "numbers", write_numbers)
Ledger(in_log, listed, title="The list, after three o'clock")

# %%
page_is_same, list_is_same = numbers == first_numbers, len(listed) == len(in_log)
outcome = {(True, False): "list", (False, False): "both"}
reveal("lab12.two_sinks", outcome.get((page_is_same, list_is_same), "neither"))

# %%
open_days.close()
shutil.rmtree(folder)

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That a delay is right.** It is another team's promise. A broker that is cut off for a day breaks it, and only one
#   number shows it.
# - **That the watermark advances.** It follows rows. If all brokers are silent, no group is finished and no call is
#   reported.
# - **That state is small.** Here it is some hundred rows in memory. For millions Spark has a state store on disk
#   (RocksDB).

# %% [markdown] tags=["reading"]
# ## How RocketMQ and Spark do it
#
# | what you saw | where it is |
# |---|---|
# | rows in state, dropped rows | Spark: `StreamingQueryProgress`, `stateOperators`: `numRowsTotal`, `numRowsDroppedByWatermark` |
# | the watermark of several streams is the smallest | Spark: `spark.sql.streaming.multipleWatermarkPolicy`, `min` |
# | types of the state are compared, meanings are not | Spark: `StateSchemaCompatibilityChecker` |
# | msg_id | RocketMQ: `MessageClientIDSetter`, the property `UNIQ_KEY` |
# | offset_msg_id | RocketMQ: `MessageDecoder.createMessageId`: the broker's address and the offset |
# | SubBefore, SubAfter | RocketMQ: `ConsumeMessageTraceHookImpl`, `TraceDataEncoder` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab12.tuesday
# **1.** It is Wednesday, and Tuesday's forty minutes of broker-b are missing on the board. The log still has them. How
# do you repair the board?
#
# answer: Count Tuesday again as a batch: read the log from Tuesday's beginning to its end, group by minute and broker,
#   and write the rows to the same table. Its key lets them replace the old ones. The stream only needs a longer delay
#   for the next time.

# %% [reflection] lab12.where_to_wait
# **2.** A delay of an hour keeps an hour of counts in state. Could the job count without state, and the sink add up?
#
# answer: Yes: count within each batch only, and let the sink add each batch's numbers. Then no row is ever too late.
#   But adding is not idempotent: a repeated batch is added again, so the sink must remember batches, or rows, as in
#   12a. Replacing is safe and needs state; adding needs no state and must be made safe.

# %% [reflection] lab12.silent_alarm
# **3.** On Sunday all clients of billing are off. Which of your three streams reports it?
#
# answer: None. There are no calls, so none hangs; and without new rows the watermark stands still. The count shows
#   orders, which continue. The lag in seconds of 12a reports it: the age of the first unfinished message grows.

# %% [markdown] tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).

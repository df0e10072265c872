# %% [markdown] minutes=3 tags=["reading"]
# # Lab 12b: What comes late
#
# ## Why
#
# The board in the warehouse has a second page: orders per minute, one line for each broker. On Tuesday a switch failed, and
# for forty minutes nobody could see broker-b. It went on storing all the same. When the switch was mended, the forty minutes
# of broker-b stayed empty on the board, and they are empty today. The messages are in the log. The job never failed.
#
# A count is not like a row that is written and done: it is kept until nothing can come to it any more. When is that? Whoever
# says it too early loses what comes late, and whoever never says it keeps everything for ever. In this lab you say it: for
# counts, for messages that were stored twice, and for calls that never got an answer.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 12a](12a-every-number-twice.ipynb). When you are done you can
#
# - say what a watermark (水位线) is, whom it follows, and which rows it drops;
# - tell from two numbers of each batch whether the state (状态) of a stream is bounded;
# - write three streams with state: a count by time, a memory of duplicates, a join of two streams;
# - say which change of a query its checkpoint refuses, and which one it takes and should not.

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

# %% [markdown] minutes=11
# ## A minute that is never over
#
# Two brokers play a day of a shop again. Two things go wrong on it, which you will meet below: answers to a sender get lost,
# and a listener hangs. It is nine o'clock:

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
# A job looks now and then. What it finds new is a batch. So that you can run a query again with other settings, which
# brokers that grow do not allow, we film what the job finds:

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
# `run_of_film(query, film, …)` calls `query(frame, …)`. It gets a DataFrame that is a stream, and returns another one and an
# output mode (输出模式). The sink of our board is a table with a key: a row that comes again replaces the one before.
#
# | in the query | what it says |
# |---|---|
# | `.withWatermark("store_timestamp", "10 minutes")` | nothing comes that is more than 10 minutes older than the newest row |
# | `.groupBy(functions.window("store_timestamp", "10 minutes"), …)` | one group for each ten minutes; the column `window` has `start` and `end` |
# | mode `append` | each row is given once, when it can change no more |
# | mode `update` | each row is given whenever it has changed |
# | mode `complete` | all rows are given, each time |
#
# The **watermark** is a moment: the newest time of all rows of earlier batches, less the delay. It only goes forward. A
# group whose time is before the watermark is finished: Spark forgets it after the batch, and from the next batch on drops
# what still comes to it.


# %%
def by_ten_minutes(orders, delay):
    groups = functions.window("store_timestamp", "10 minutes"), "broker_name"
    timely = orders.withWatermark("store_timestamp", delay)
    return timely.groupBy(*groups).count(), "update"


# %% [prediction] lab12.late_rows
# Nobody saw broker-b from 09:20 to 10:00. Look 5 at 10:10 has all that it stored since. The looks before it were at 9:40,
# 9:52 and 9:59. The delay is ten minutes. Which of broker-b's orders from 09:20 to 10:00 are counted?
#
# - all: all of them; the log has them, and they have their times {lab12.late_is_counted}
#   > The watermark follows the newest message of all brokers, less the delay, and not each broker. What is older than the
#   > watermark is dropped when it comes, and numRowsDroppedByWatermark says how many rows. A broker that may be an hour late
#   > needs a delay of an hour.
# - some: those of about the last twenty minutes
#   = After the look of 9:52 the watermark was 9:42. The groups before it were finished when broker-b came; the one from 9:40
#   = to 9:50 was not.
# - none: none, they came too late
#   > Too late is what is before the watermark, and the watermark is behind the newest row by the delay.
# note: No error, no warning: one number in the progress of one batch. It counts what reaches the state, here the counts of two
#   groups and not their orders. That was Tuesday.

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
# What would another delay have done? Spark is not needed for that: the rules of a watermark are few, and the board follows them with
# the orders of the looks. Move the delay, the window and the batch. Under the batches stand the groups of the one that you look at:
# which are kept, which are forgotten, and to which something came too late and was dropped.

# %% tags=["explorer"]
watermark_board(orders, delay_min=10, window_min=10, mode="update")

# %% [answer] lab12.smallest_delay
# ### Your turn: how long to wait
#
# Which is the smallest delay in steps of ten minutes with which no order is dropped? The board has an opinion; change `DELAY_MINUTES`
# to see whether Spark has the same.
#
# wrong late: With this delay nothing is dropped. A smaller one does it as well.
# wrong: With this delay something is dropped, or a smaller one does it as well.
# note: The oldest order of broker-b was fifty minutes old when it came. A smaller delay does it here, because a group is open
#   until its end has passed, and because of where the looks were. Do not rely on such luck: the delay is as long as something
#   can be late.

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
# Write `per_minute(messages, late)`. It returns a DataFrame and an output mode. The DataFrame has the columns `minute` (when
# it begins, by `store_timestamp`), `broker_name` and `messages`, how many the broker stored in that minute. A broker may be as
# late as `late` says, such as "60 minutes", and is counted all the same. The board shows each minute after the batch in
# which something of it came. What can change no more is not kept.
#
# `run_of_film(per_minute, FILM, "60 minutes")` tries it on the day above. When a check has failed, you can look at its film:
# `StateBoard(run_of_film(per_minute, *show_me("lab12.per_minute").arguments.values())["batches"])`.
#
# hint: Three things: a watermark with the delay that you are given, one group for each minute and broker, and the mode in
#   which a row is given whenever it has changed.
# hint: Group by `functions.window("store_timestamp", "1 minute")` itself. The minute is its start, which you take afterwards:
#   `functions.col("window.start").alias("minute")`.
# hint: `counts = ….groupBy(window, "broker_name").agg(functions.count("*").alias("messages"))`, then
#   `return counts.select(…), "update"`.
# note: `late` is a promise of somebody else's: nothing is later than that. What breaks it is dropped, so put the number of
#   dropped rows beside the board.


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

# %% [belief] lab12.now_is_the_minute
# question: To which minute does a message belong?
# claim: To the one in which the job reads it.
# refutation: When the job reads a message depends on the job. A message belongs to the minute in which it was stored:
#   store_timestamp. By the clock of the job a broker that comes late has all its messages in one minute.

# %% [belief] lab12.append_is_live
# question: In which mode does a board show the minute that is just over?
# claim: In append, where each row is given once.
# refutation: In append a row is given when it can change no more: when the watermark has passed its minute. With a delay of an
#   hour the board is an hour behind. update gives a row whenever it has changed, and the key of the sink does the rest.

# %% [belief] lab12.complete_is_small
# question: The mode complete gives all rows each time. What does that cost?
# claim: Nothing; the rows are there anyway.
# refutation: To give all rows, Spark keeps all rows: in complete mode the watermark removes nothing, and the state grows for
#   ever. update gives what has changed, and forgets what is finished.

# %% [belief] lab12.state_forgets
# question: When does a count without a watermark forget a minute?
# claim: When the minute is over.
# refutation: Never. Without a watermark nobody has said when a minute is over, so something may still come, and each minute is
#   kept for ever. withWatermark says it.

# %% [markdown] minutes=12
# ## What is kept
#
# Rows in state are rows that Spark keeps from batch to batch, here one for each group that is open. They are in memory, and in
# the checkpoint. This is the same count with an hour's delay. Watch when the bars stop growing:

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
# `by_start` groups by the beginning of the window instead of the window. Its watermark is the same, and so are its counts.
# How many rows does it keep in the end?
#
# - same: as many, these are the same groups {lab12.start_is_the_window}
#   > Spark knows the time of a group by its column: the one that has the watermark, or its window. A value that is computed
#   > from it, such as window.start or date_trunc, is a plain time, nothing says when it is over, and every group is kept for
#   > ever. Group by the window itself, and take its start afterwards.
# - more: more, every group that there ever was
#   = window.start is computed from the time, and Spark does not know any more that a group of it can be over.
# - none: none, nothing is grouped by the time now
#   > It is grouped all the same, and groups are kept.
# note: The counts are right, so no test of the counts finds it. It is found on the day on which the memory is full. Look at
#   the rows in state of a new job for a day before you trust it.

# %% tags=["picture"]
started = run_of_film(by_start, FILM, "60 minutes")
StateBoard(started["batches"], title="Grouped by the beginning of the window")

# %%
last, last_by_start = (run["batches"][-1]["rows_in_state"] for run in (hour, started))
reveal("lab12.kept_groups", "same" if last_by_start == last else "more")


# %% [answer] lab12.rows_given
# ### Your turn: the price of a mode
#
# Change `MODE` to `"append"` and to `"complete"` and run the cell again. How many rows does the sink get in mode `complete`,
# in all batches together?
#
# wrong last: Those are the rows of the last batch. Add those of all batches.
# wrong: Add up the bars of mode complete.
# note: In a day of looks every twenty minutes the first row is given 72 times, and the sink writes it 72 times.

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

# %% [markdown] minutes=26
# ## The same message twice
#
# An answer got lost, and the sender sent once more, as it should. Both copies are stored. These are the first three pairs of
# the morning:

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
# Which of these columns tells that two rows are one message, and never says so of two messages?
#
# - keys: keys, the order's number {lab12.order_has_one}
#   > An order has several messages: created, paid, packed. Whoever keeps one row for each value of keys loses the others.
#   > msg_id is given by the client that sends, once for each message.
# - offset_msg_id: offset_msg_id, the broker's name for a message {lab12.copies_are_equal}
#   > offset_msg_id, place and store_timestamp are given by the broker each time it stores, so two copies never have the same.
#   > msg_id comes from the client that sends, and stays the same when it sends again.
# - msg_id: msg_id, the client's name for a message
#   = The client gave it before the first attempt, so both copies have it, and no other message.
# note: The client gives it as the property UNIQ_KEY. In mqlab's tables it is msg_id, and what the broker calls a message is
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
# To leave out what comes again, a stream has to remember what has come. For how long? A sender tries again within seconds, or,
# where a program writes its messages down first, after minutes. So much has to be known, as `late` was above.
#
# | in the query | what it remembers |
# |---|---|
# | `.dropDuplicates(["x"])` | each value of x |
# | `.dropDuplicatesWithinWatermark(["x"])` | each value of x, from its first row until the watermark has passed the time of that row and the delay |

# %% [exercise] lab12.without_repeats
# ### Exercise 2: each message once
#
# Write `without_repeats(messages, within)`. It returns a DataFrame and an output mode: the messages, with all their columns,
# each of them in the batch in which it came first. Copies of a message come within `within` of each other, such as
# "10 minutes". The stream does not remember more than it needs.
#
# hint: Which column names a message? And which of the two verbs above forgets?
# hint: The verb that forgets needs a watermark. Its delay is how long a copy may take.
# hint: `messages.withWatermark("store_timestamp", …).dropDuplicatesWithinWatermark([…])`, and the mode in which each row is
#   given once.
# note: Compare with `once` of lab 12a: there the sink knew what it had, for ever, in a table on a disk. Here the stream knows
#   it, for a while. For a ledger take the sink.


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
# question: Copies of a message come within ten minutes. Is a delay of some seconds enough to know them?
# claim: Yes, what has come is known.
# refutation: It is known until the watermark has passed its time and the delay. With a short delay it is forgotten when the
#   next batch begins, and a copy that comes then passes as new. The delay has to be as long as copies take.

# %% [belief] lab12.duplicates_end
# question: When does dropDuplicates without a watermark forget a value?
# claim: When its copy has come.
# refutation: Never. Nobody has said how late a copy may come, so each msg_id is kept for ever. withWatermark and
#   dropDuplicatesWithinWatermark say it.

# %% [belief] lab12.watermark_ends_all
# question: The stream has a watermark. Does dropDuplicates(["msg_id"]) forget what is older?
# claim: Yes, a watermark bounds all state.
# refutation: It bounds only what has a time. A msg_id has none, so dropDuplicates keeps each of them for ever, watermark or
#   not. dropDuplicatesWithinWatermark remembers a time with each.

# %% [answer] lab12.too_far
# ### Your turn: a copy that comes too late
#
# A small film: one message in each minute, and copies of the message of 09:01 that come `GAPS` seconds later. `within` is ten
# minutes, and a batch has ten minutes. Change `GAPS` until one copy comes out of your stream again. After how many seconds
# does it come?
#
# wrong: Look at the rows of your stream: the copy that has a bar.
# note: Not every copy after ten minutes is too late: state is cleaned after a batch, and by the watermark of the batch before.
#   The promise is that copies within the delay are found, and not that others are let through.


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

# %% [markdown] minutes=34
# ## A call that never answers
#
# In 12a a queue stood still for an hour, and the board's lag was 22. The trace (消息轨迹) knows it sooner: a client writes down
# when it calls a listener (`SubBefore`) and when the listener has returned (`SubAfter`). A call of the first kind without one
# of the second hangs. `trace` takes the bodies of the trace's messages apart, in processes of Python that Spark starts for it. That
# takes some seconds:

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
# Entries come late as well: a client keeps them until it has ten, and broker-b was cut off. This is how old entries were when
# a look found them:

# %%
looked_at = [max(row["store_timestamp"] for row in new) for new in looks]
ages = [
    (looked_at[number] - row["time"]) / MINUTE
    for number, new in enumerate(filmed)
    for row in new
]
Histogram(ages, title="Age of entries when they are found", unit="minutes")

# %% [markdown]
# To find the calls without an answer, join calls and answers, two streams. Both are remembered, for each may come first. An
# outer join (外连接) gives a call without an answer when no answer can come any more. It has to know when that is: the answer
# comes within a time of the call, and the watermark has passed that time.

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
# The first of these calls hangs. Its answer would have to come within two minutes, and entries may be sixty minutes late.
# The looks are at 9:00, 9:20, 9:40, 9:52, 9:59, 10:10, 10:40 and 11:00. In which look is the call told, at the earliest?
#
# - next: in the first look more than two minutes after it began
#   > Then its answer may be under way: entries may be sixty minutes late. Who tells it now tells calls that were answered.
# - passed: when the watermark has passed the end of its two minutes, more than an hour later
#   = The watermark is the newest time less sixty minutes. Until it has passed, an answer may come.
# - never: never, for a join tells what comes together
#   > An outer join also gives what stays alone, when nothing can come to it any more.
# note: So a short delay tells early and wrong, a long one late and right. How late is not Spark's choice: it is how late your
#   entries are.

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
# Write `no_answer(entries, late)`. `entries` is a stream of trace entries with the columns of the table above; they come up to
# `late` after their `time`. It returns a DataFrame and an output mode: the calls that got no answer within two minutes, each
# once, with `request_id`, `msg_id`, `group_name` and `called`, the time of the call. A call is told when no answer to it can
# come any more. What is of no use is not kept.
#
# `run_of_film(no_answer, CALLS, "60 minutes")` tries it on the day above.
#
# hint: Cut the stream in two: calls and answers. A call is named by request_id and msg_id together: a message that is called
#   again has another request_id. Rename the columns of one side, so that the condition can name both.
# hint: `calls.join(answers, functions.expr("…"), "leftOuter")`, and keep the rows whose answer is NULL. Both sides need a
#   watermark: put it on `entries` before you cut.
# hint: The condition has a range with two ends: `answered BETWEEN called AND called + INTERVAL 2 MINUTES`. An outer join of
#   streams only works in the mode in which each row is given once.
# note: If nobody writes a trace any more, the watermark stands still, and nothing is told. An alarm needs a second one: that
#   there is news at all.


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
# question: Which join gives the calls without an answer?
# claim: An inner join; what has no answer is NULL there.
# refutation: An inner join gives pairs. A call without an answer is in no pair, so nothing is told. leftOuter gives it with
#   NULL for the answer.

# %% [belief] lab12.one_watermark_is_enough
# question: The answers have a watermark. Do the calls need one?
# claim: No, Spark runs it without.
# refutation: Spark runs it, and never tells a call: without a watermark on the calls nobody says when a call is so old that no
#   answer can come, so all calls are kept for ever. Both sides need one.

# %% [belief] lab12.join_waits_for_ever
# question: Does an outer join of two streams need to know how late an answer may come?
# claim: No, it tells a call when it has no answer.
# refutation: It would wait for ever, so Spark refuses it. It tells a call when no answer can come any more: the condition says
#   within which time an answer belongs to the call, and the watermark of the answers says when that time is over.

# %% [belief] lab12.range_has_one_end
# question: An answer comes at most two minutes after its call. Is that the whole range?
# claim: Yes, it cannot come before its call.
# refutation: You know that it cannot come before its call, and Spark does not. Without "answered >= called" an old answer may
#   belong to a call that is still to come, so all answers are kept for ever. The range needs both ends.

# %% [belief] lab12.trace_is_on_time
# question: Entries have times. Does the watermark need a delay?
# claim: No: 0 seconds, for an entry is stored when it happens.
# refutation: Entries come up to late after their time. With a shorter delay the watermark passes an answer that is under way:
#   it is dropped when it comes, and its call is told though it was answered.

# %% [belief] lab12.message_is_a_call
# question: What names a call of a listener?
# claim: msg_id, the message that it is called with.
# refutation: A message may be called again, here after its first call hung. The answer of the second call would be taken for
#   one of the first, which still hangs. request_id and msg_id together name a call.

# %% [belief] lab12.alarm_is_a_state
# question: A call hangs for an hour. How often is it told?
# claim: In each batch, as long as it hangs.
# refutation: Whoever is woken up in each batch for the same call switches the alarm off. An alarm is told once, when it
#   is sure: in append mode each row is given once.

# %% [answer] lab12.alarms
# ### Your turn: how sure, how soon
#
# Change `LATE_MINUTES` and look how many calls your stream tells by eleven o'clock. How many are there with ninety minutes?
#
# wrong all: That is how many hang. Those that are not told yet wait for the watermark.
# wrong: Count the rows that your stream gives with ninety minutes.
# note: With sixty minutes all of them are told by eleven. And with twenty? Entries that come later than that are dropped, and
#   with them calls that hang, or answers to calls that do not.

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
StateBoard(told["batches"], title=f"{len(told['rows'])} calls are told")

# %%
### BEGIN SOLUTION
answer("lab12.alarms", len(told["rows"]), told, LATE_MINUTES, hung)
### STARTER
# answer("lab12.alarms", ..., told, LATE_MINUTES, hung)
### END SOLUTION

# %% [markdown] minutes=16
# ## Break it
#
# Now the logs themselves, with a checkpoint that stays. Whoever changes a query wants to go on where the old one was. What is
# in the checkpoint? Places in the logs, and the state of the old query. It is five past eleven.


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
# A colleague wants the largest message beside the count:

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
# Spark keeps the types of the state's columns beside the state, and refuses a query whose state has others. Another colleague
# wants bytes instead of messages. It is one number for each ten minutes, as before.

# %% [prediction] lab12.changed_count
# The query now adds up `total_size` instead of counting rows. The checkpoint is that of the count. What is on the board for
# the ten minutes that had begun?
#
# - refused: nothing, Spark refuses this change as well
#   > It compares types. The old state is one whole number for each group, and so is the new one.
# - bytes: the bytes of these ten minutes
#   > The rows of the first five minutes were read by the old query. All that is left of them is their number.
# - mixed: bytes of what is new, and to them is added how many messages there were before
#   = A number is a number: the sum goes on from the count.
# note: A changed query is another query: give it a checkpoint of its own, and tell it where to begin (`startingTimestamp`).

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
# And the night of 03:00 once more: the checkpoint is deleted. Two sinks hang on two jobs: a list, to which rows are added, and
# the page of a board, where a row that comes again replaces the one before.

# %% [prediction] lab12.two_sinks
# Both jobs have read everything. Both checkpoints are deleted, and both jobs are started again. What do the sinks hold?
#
# - both: both have everything twice
#   > The page has a key. The count of 11:00 comes again, and replaces the count of 11:00.
# - list: the list has everything twice, the page is as it was
#   = What replaces is idempotent (幂等), what adds is not.
# - neither: neither has anything twice
#   > Nothing tells the list what it has. It gets each row a second time, as the board of 12a did.
# note: The page is safe as long as the log has everything of each minute. When retention has deleted half of a minute, the
#   smaller count replaces the right one.

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

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **That a delay is right.** It is a promise of somebody else's. A broker that is cut off for a day breaks it, and the job says
#   so in one number.
# - **That the watermark goes on.** It follows rows. If all brokers are silent, nothing is finished and nothing is told.
# - **That state is small.** Here it is some hundred rows in memory. For millions Spark has a state store on disk (RocksDB).

# %% [markdown] minutes=2 tags=["reading"]
# ## RocketMQ and Spark do it so
#
# | what you saw | where it is |
# |---|---|
# | rows in state, dropped rows | Spark: `StreamingQueryProgress`, `stateOperators`: `numRowsTotal`, `numRowsDroppedByWatermark` |
# | the watermark of several streams is the smallest | Spark: `spark.sql.streaming.multipleWatermarkPolicy`, `min` |
# | types of the state are compared, meanings are not | Spark: `StateSchemaCompatibilityChecker` |
# | msg_id | RocketMQ: `MessageClientIDSetter`, the property `UNIQ_KEY` |
# | offset_msg_id | RocketMQ: `MessageDecoder.createMessageId`: the broker's address and the place |
# | SubBefore, SubAfter | RocketMQ: `ConsumeMessageTraceHookImpl`, `TraceDataEncoder` |

# %% [markdown] minutes=5 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab12.tuesday
# **1.** It is Wednesday, and Tuesday's forty minutes of broker-b are missing on the board. The log still has them. How do you
# mend the board?
#
# answer: Count Tuesday once more, as a batch and not as a stream: read the log from Tuesday's beginning to its end, group by
#   minute and broker, and write the rows to the same table. Its key lets them replace what is there. The stream needs no
#   change for that; it needs a longer delay for the next time.

# %% [reflection] lab12.where_to_wait
# **2.** A delay of an hour keeps an hour of counts in state. Could the job count without state, and the sink add up?
#
# answer: Yes: count within each batch only, and let the sink add each batch's numbers to what it has. Then nothing is ever too
#   late. But adding is not idempotent: a batch that comes again is added again, so the sink has to know batches, or rows, and
#   we are back in 12a. Replacing is safe and needs state; adding needs no state and has to be made safe.

# %% [reflection] lab12.silent_alarm
# **3.** On Sunday all clients of billing are off. Which of your three streams tells it?
#
# answer: None. No calls, so none that hangs; and without new rows the watermark stands. The count shows orders, which go on.
#   The lag in seconds of 12a tells it: the age of the first message that is not done grows, whoever is off.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).

# %% [markdown] tags=["reading"]
# # 12a Exactly once: every number twice
#
# ## Why
#
# A board in the warehouse shows today's orders and euros, from a Spark job over the brokers' logs. One night an
# operator deleted a folder named `checkpoint`, "to make the job fresh", and restarted it at 03:00. From then on every
# number was doubled, without an error.
#
# "But Spark is exactly once. The manual says so." The manual is right about Spark's own parts. You kill a job, delete
# its checkpoint, and write the fifteen lines that keep all this off the board.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 10a](10a-spark-reads-the-broker.ipynb) for Spark and [lab
# 04a](04a-how-far-have-we-read.ipynb) for offsets. Afterwards you can
#
# - control where a stream (流) begins, how much one of its batches (微批) holds, and when it ends;
# - read a checkpoint (检查点), and predict what a job does without it;
# - write a sink (Sink, 接收端) that holds each message once, wherever its process crashes;
# - distinguish a slow group from a stuck one.

# %%
import contextlib
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions

from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.given.lab11.lag_board import offsets_in, rows_of_board
from mqlab.course.given.lab12.batch_job import job_story, sold
from mqlab.course.widgets import crash_matrix

# %%
old_questions("lab12")

# %%
from mqlab.data import arrow
from mqlab.data.spark import progress_of, session
from mqlab.data.traffic import live
from mqlab.lab.inspector import StoreInspector
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.batch_strip import BatchStrip

# %% [markdown]
# ## A store that grows
#
# `traffic.live` replays a day of a shop. Two brokers, each a separate process, append that day's messages to their
# files, byte by byte. The day stands still until you advance it. It is nine o'clock:

# %%
folder = Path(tempfile.mkdtemp(prefix="mqlab-lab12-"))
open_days = contextlib.ExitStack()
day = live(folder / "day", seed=7, start="9h", messages=6_000, commit_log_bytes=1 << 17)
broker = open_days.enter_context(day)
broker.table()

# %% [markdown]
# Each log consists of files of 128 KB, so you see within an hour what takes a large broker days. Let ten minutes pass:

# %% tags=["parameter"]
MINUTES = 10
before = broker.table().column("messages")
broker.advance(f"{MINUTES}min")
after = broker.table().column("messages")
new = {
    name: last - first
    for name, first, last in zip(broker.stores, before, after, strict=True)
}
Bars(new, title=f"It is {broker.now}. Stored in {MINUTES} minutes", unit="messages")

# %% [markdown]
# ## Where a stream begins
#
# A stream of Spark is a query that runs again and again, each time over the new rows. Each run is a **batch**. With the
# trigger (触发器) `availableNow` the job reads all available data, batch by batch, and ends. The job of the board works
# like this:


# %%
def catch_up(sink, checkpoint, options, path=None):
    """One run of the job: what is there, batch by batch. What Spark reports of each."""
    reader = spark.readStream.format("rocketmq").options(**options)
    log = reader.load(str(path or broker.directory))
    amount = functions.get_json_object(log.body.cast("string"), "$.amount")
    cents = functions.round(amount.cast("double") * 100).cast("int").alias("cents")
    orders = log.where("topic = 'orders'")
    rows = orders.select("broker_name", "physical_offset", "keys", cents)
    writer = rows.writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / checkpoint)).start()
    query.awaitTermination()
    return query.recentProgress


# %% [markdown]
# These options control where it begins and how much a batch reads. A position in a log is a physical offset (物理偏移量): a
# number of bytes, from the beginning of the first file.
#
# | option | for example | what it does |
# |---|---|---|
# | `startingOffsets` | `earliest`, `latest`, `{"broker-a": 4096}` | begin at the first message still there (this is the default), after the last one, or at this offset |
# | `startingTimestamp` | `1731315600000` | begin in each log at its first message of this time (ms since 1970), found by bisection |
# | `startTime` | `1731315600000` | keep messages that were stored at this time or later |
# | `maxBytesPerTrigger` | `60k`, `60000` | a batch reads at most that many bytes of all logs together |
# | `maxOffsetsPerTrigger` | `500` | a batch reads at most that many messages |

# %% [prediction] lab12.first_batch
# The job starts for the first time. Its options are `startTime` = 08:30 and `maxBytesPerTrigger` = 120k. What does
# batch 0 read?
#
# - log: the beginning of the logs, from midnight
#   = The job reads everything since midnight, 120 KB at a time, and then throws away what is older than 08:30.
# - moment: the messages from 08:30 on {lab12.filter_begins}
#   > startTime only filters the messages that are read. Without a starting option a stream begins at the first message
#   > of each log. startingTimestamp sets the beginning.
# - now: the messages after the start of the job {lab12.latest_is_now}
#   > latest is not the default. A board that begins at latest never shows what was stored before its job was first
#   > started: begin at the time from which you want to know.
# note: In Spark's source for Kafka the default of a stream is latest. Look it up for each source.
# later: A streaming job over the logs of a whole day starts for the first time. Its options are `startTime` = 08:30
#   and `maxBytesPerTrigger` = 120k. What does batch 0 read?

# %%
HALF_PAST_EIGHT = broker.now_ms - 40 * 60_000  # it is ten past nine
spark = session()


def look(frame, batch_id):
    frame.count()  # nobody reads a batch that is not used


by_time = {"startTime": HALF_PAST_EIGHT, "maxBytesPerTrigger": "120k"}
progress = catch_up(look, "first", by_time)

# %% tags=["picture"]
kept = {f"batch {one['batchId']}": one["numInputRows"] for one in progress}
Bars(kept, title="Messages that are left of each batch", unit="messages")

# %%
reveal("lab12.first_batch", "moment" if kept["batch 0"] else "log")

# %% [exercise] lab12.begin
# ### Exercise 1: begin here, and end
#
# Write `begin`. It returns two dictionaries: the options of a stream, and the arguments of `.trigger(**trigger)`. The
# stream begins in each log at the first message that was stored at `at_ms` or later. A batch reads at most `most_bytes`
# of all logs together. After all available data, it ends. It is plain Python, and any answer with this effect is right.
#
# hint: Two options are enough. One sets where each log begins, one limits the bytes of a batch.
# hint: Both are in the table above; the time is `startingTimestamp`, in ms. Values may be numbers or strings.
# hint: `{"availableNow": True}` is the trigger that keeps the limit and ends. `{"once": True}` reads everything in one
#   batch.
# note: A limit smaller than one message does not stop the stream: a batch takes at least one. So you need no minimum.


# %%
# exercise: lab12.begin
def begin(at_ms, most_bytes):
    """The options and the trigger of a stream: two dictionaries."""
    ### BEGIN SOLUTION
    options = {"startingTimestamp": at_ms, "maxBytesPerTrigger": most_bytes}
    return options, {"availableNow": True}
    ### END SOLUTION


# %%
check("lab12.begin")

# %% [belief] lab12.stream_never_ends
# question: Does a stream end?
# claim: No; a stream is never over and waits for the next batch.
# refutation: Whether a stream ends depends on its trigger. availableNow reads the data that is there when it starts,
#   batch by batch, and ends; the next run continues from its checkpoint.

# %% [belief] lab12.once_keeps_limits
# question: What does the trigger once do with a limit of bytes?
# claim: It keeps the limit, as every trigger does.
# refutation: The trigger once reads everything in one batch, whatever the limit. availableNow keeps the limit.

# %% [belief] lab12.offsets_are_bytes
# question: What does maxOffsetsPerTrigger count?
# claim: Bytes, because an offset of a log is a number of bytes.
# refutation: maxOffsetsPerTrigger counts messages, however large they are. maxBytesPerTrigger counts bytes.

# %% [belief] lab12.small_limit_stops
# question: A limit is smaller than the next message. What does the stream do?
# claim: It stops for ever, so the limit needs a minimum.
# refutation: A batch takes at least one message, so a stream always advances. Pass most_bytes without a minimum.

# %% [belief] lab12.time_is_place
# question: May an option for an offset in the log contain a time?
# claim: Yes; a stream finds its offset automatically.
# refutation: startPhysicalOffset and startingOffsets are offsets in bytes, and each log has its own. A point in time
#   goes into startingTimestamp, which finds the offset in each log.

# %% [answer] lab12.four_batches
# ### Your turn: four batches
#
# Change `MOST_BYTES` until the job needs exactly four batches from 08:30 on. How many bytes may a batch have?
#
# wrong: You need four bars. Fewer bytes make more batches.
# note: The limit is divided among the brokers in proportion to what each has left, so all of them advance.

# %% tags=["parameter"]
### BEGIN SOLUTION
MOST_BYTES = 38_000
### STARTER
# MOST_BYTES = 20_000  # yours to change
### END SOLUTION

from_half_past = {"startingTimestamp": HALF_PAST_EIGHT}
shutil.rmtree(folder / "limited", ignore_errors=True)
limited = catch_up(
    look, "limited", {**from_half_past, "maxBytesPerTrigger": MOST_BYTES}
)
kept = {f"batch {one['batchId']}": one["numInputRows"] for one in limited}
Bars(kept, title=f"Batches of {MOST_BYTES:,} bytes", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab12.four_batches", MOST_BYTES, MOST_BYTES, limited)
### STARTER
# answer("lab12.four_batches", ..., MOST_BYTES, limited)
### END SOLUTION

# %% [markdown]
# ## Killed in the middle of a batch
#
# The board's sink puts the rows of a batch into a table, one by one. `into` gives a sink what `foreachBatch` has: a
# connection to its database, the number of the batch, and a function that reads the rows of the batch.


# %%
def into(database, sink):
    """The sink, as foreachBatch calls it."""

    def batch(frame, batch_id):
        def read():
            return [row.asDict() for row in frame.collect()]

        with contextlib.closing(sqlite3.connect(folder / database)) as connection:
            sink(connection, batch_id, read)

    return batch


# %%
TABLE = "CREATE TABLE IF NOT EXISTS sold (broker_name, physical_offset, keys, cents)"
ROW = "INSERT INTO sold VALUES (:broker_name, :physical_offset, :keys, :cents)"


def one_by_one(connection, batch_id, read):
    connection.execute(TABLE)
    for row in read():
        with connection:
            connection.execute(ROW, row)


# %% [markdown]
# This sink crashes in the middle of its work: an exception ends it, and committed rows stay.


# %%
def dies_after(rows):
    """A sink that dies when it has committed so many rows of batch 1."""

    def sink(connection, batch_id, read):
        connection.execute(TABLE)
        for number, row in enumerate(read()):
            if batch_id == 1 and number == rows:
                raise RuntimeError("the end of this process")
            with connection:
                connection.execute(ROW, row)

    return sink


# %%
def run(sink, name, options):
    """Like catch_up; a job that dies has a name for it."""
    try:
        catch_up(into(f"{name}.sqlite", sink), name, options)
        return "ended"
    except StreamingQueryException as error:
        if "the end of this process" not in str(error):
            raise
        return "died"


def in_log():
    topics = arrow.read_table(str(broker.directory), ["topic"])["topic"]
    return topics.to_pylist().count("orders")


# %%
def rows_in(name):
    """Broker name and place of each row in the sink."""
    with contextlib.closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
        connection.execute(TABLE)
        query = "SELECT broker_name, physical_offset FROM sold"
        return connection.execute(query).fetchall()


def ledger(name):
    """Three numbers that are equal when each message is in the sink once."""
    rows = rows_in(name)
    numbers = {"in the log": in_log(), "in the sink": len(rows)}
    return numbers | {"different ones": len(set(rows))}


# %%
THREE_BATCHES = {"maxBytesPerTrigger": "220k"}
lives = [run(dies_after(40), "board", THREE_BATCHES)]
Bars(ledger("board"), title=f"The job has {lives[0]}", unit="orders")


# %%
def strip(name, title):
    progress = progress_of(folder / name, broker.directory, now_ms=broker.now_ms)
    return BatchStrip(progress, title=title)


strip("board", "Killed in batch 1")

# %% [markdown]
# Each broker has a ribbon: finished batches, the batch in which the job crashed, and data not read yet. Spark knows
# this from the checkpoint, a folder. Before a batch begins, Spark writes how far it will read as a file in `offsets`,
# each offset with a checksum of the message before it (`unit`). After the batch it writes a file in `commits`:


# %%
def checkpoint(name):
    batches = sorted(
        (folder / name / "offsets").glob("[0-9]*"), key=lambda p: int(p.name)
    )
    done = folder / name / "commits"
    return Table(
        {
            "batch": path.name,
            **json.loads(path.read_text().splitlines()[-1]),
            "in offsets": "yes",
            "in commits": "yes" if (done / path.name).exists() else "no",
        }
        for path in batches
    )


# %%
checkpoint("board")

# %% [prediction] lab12.killed
# Batch 1 has begun, 40 of its rows are in the sink, and it is not in `commits`. The job is restarted, with a sink that
# does not crash. How often will those 40 rows be in the sink?
#
# - once: once; Spark continues after the last row {lab12.comes_once}
#   > Spark knows batches, not rows. The batch is not in commits, so all of it comes again, with the same range. The
#   > sink gets its rows a second time. It must recognise them by broker_name and physical_offset, which are unique.
# - twice: twice
#   = The batch is not in commits, so all of it comes again, with the range that is in offsets.
# - never: not at all; a failed batch is rolled back
#   > What the sink has committed is not rolled back. Spark does not even know what the sink is.
# note: The whole batch is delivered again: *at least once* (至少一次). But its range is exact: the same number means the
#   same messages, as long as the checkpoint exists.
# later: -

# %%
lives.append(run(one_by_one, "board", THREE_BATCHES))
Bars(ledger("board"), title="The job was started again", unit="orders")

# %%
strip("board", "Started again")

# %%
twice = len(rows_in("board")) - len(set(rows_in("board")))
reveal("lab12.killed", {0: "once", 40: "twice"}.get(twice, "never"))

# %% [answer] lab12.rows_twice
# ### Your turn: another crash
#
# Change `DIES_AFTER` and run the cell: a new job with a new checkpoint crashes there and is restarted. How many rows
# are in the sink twice now?
#
# wrong all: That is the number of all rows in the sink. How many more are there than different ones?
# wrong: Take the bar of all rows in the sink, minus the bar of the different ones.
# note: As many as were committed before the crash. If all rows of a batch are committed together, that is none or all:
#   better, but not good.

# %% tags=["parameter"]
### BEGIN SOLUTION
DIES_AFTER = 25
### STARTER
# DIES_AFTER = 40  # yours to change
### END SOLUTION

shutil.rmtree(folder / "yours", ignore_errors=True)
(folder / "yours.sqlite").unlink(missing_ok=True)
run(dies_after(DIES_AFTER), "yours", THREE_BATCHES)
run(one_by_one, "yours", THREE_BATCHES)
your_rows = rows_in("yours")
Bars(ledger("yours"), title=f"Died after {DIES_AFTER} rows", unit="orders")

# %%
### BEGIN SOLUTION
answer("lab12.rows_twice", 25, your_rows)
### STARTER
# answer("lab12.rows_twice", ..., your_rows)
### END SOLUTION

# %% [markdown]
# ## The night of 03:00
#
# A clean board, with a job that never crashed:

# %%
run(one_by_one, "clean", THREE_BATCHES)
Bars(ledger("clean"), title="Before three o'clock", unit="orders")

# %% [prediction] lab12.no_memory
# An operator deletes the folder `clean`, which is the checkpoint, and restarts the job. The database stays. What is in
# the sink afterwards?
#
# - same: the same rows as before; they are there already
#   > The sink inserts every row that it gets, and the job has forgotten what it sent.
# - twice: every row twice
#   = Without a checkpoint the job starts for the first time: at the beginning of the logs, with batch 0.
# - new: the same rows, and those that are new
#   > That would need a checkpoint. Without it the job does not know where it had ended.
# note: That is what happened at 03:00. Note that the batch numbers begin with 0 again, and the new batch 0 may hold
#   other messages.
# later: -

# %%
shutil.rmtree(folder / "clean")
run(one_by_one, "clean", {"maxBytesPerTrigger": "400k"})
Bars(ledger("clean"), title="After three o'clock", unit="orders")

# %%
checkpoint("clean")

# %%
found = ledger("clean")
is_twice = found["in the sink"] == 2 * found["different ones"]
reveal("lab12.no_memory", "twice" if is_twice else "same")

# %% [markdown]
# ## Who is exactly once?
#
# Three parties must agree on what is done. The **source** can read the same data again. The **checkpoint** knows the
# range of a batch, as long as it exists. The **sink** is yours, and Spark sends it each batch at least once. So the
# sink must recognise a message. Which of its columns identifies one?
#
# `job_story` plays the job in a Lab: a process `job-1` passes the batches below to a sink. It can be killed before
# every line of the sink and restarted.

# %% tags=["parameter"]
BATCHES = [
    [
        {"broker_name": "broker-a", "physical_offset": 0, "keys": "O7", "cents": 1999},
        {"broker_name": "broker-b", "physical_offset": 0, "keys": "O8", "cents": 500},
    ],
    [{"broker_name": "broker-a", "physical_offset": 281, "keys": "O9", "cents": 350}],
]

# %% [exercise] lab12.once
# ### Exercise 2: each message once
#
# Write `once(connection, batch_id, read)`, a sink like `one_by_one`. `connection` is a connection of `sqlite3`,
# `read()` reads the rows of the batch from the log: a list of dictionaries as in `BATCHES`. At the end the table `sold`
# has each message of the log once, with `broker_name`, `physical_offset`, `keys` and `cents`. The database is empty at
# first: `once` makes the table. This happens to it:
#
# - The process is killed before each line, and restarted. A batch comes again, even a finished one.
# - The checkpoint is deleted. Batches have other ranges then, and `batch_id` begins with 0.
# - Retention (过期文件清理) deletes a file of the log. The next `read()` may return less.
# - The rows of a batch are in no order: several tasks read them.
# - A shop sends an order twice: that is two messages. Brokers count their offsets independently: two may have the same
#   one.
# - Readers read the table at any time. A row in it stays in it.
#
# hint: The data at one offset of one broker never changes. Let the table refuse a second row for it: PRIMARY KEY over
#   two columns.
# hint: `INSERT OR IGNORE INTO sold VALUES (…)` skips a row whose key exists. Then repetition does no harm, and you need
#   no memory of batches.
# hint: `with connection:` commits at its end, or not at all. Read once: `connection.executemany("INSERT OR IGNORE …",
#   read())`.
# note: This is an idempotent sink (幂等): doing it twice equals doing it once. At least once plus idempotent is what
#   people call exactly once (精确一次).


# %%
# exercise: lab12.once
def once(connection, batch_id, read):
    """Put the rows of a batch into the table sold, each message once."""
    ### BEGIN SOLUTION
    connection.execute(
        "CREATE TABLE IF NOT EXISTS sold (broker_name TEXT, physical_offset INTEGER,"
        " keys TEXT, cents INTEGER, PRIMARY KEY (broker_name, physical_offset))"
    )
    row = "(:broker_name, :physical_offset, :keys, :cents)"
    with connection:
        connection.executemany(f"INSERT OR IGNORE INTO sold VALUES {row}", read())
    ### END SOLUTION


# %%
check("lab12.once")

# %% [belief] lab12.two_transactions
# question: A sink writes its rows and, in another transaction, that the batch is done. Is that safe?
# claim: Yes; the note shows whether the batch was there.
# refutation: The process may crash between the two. Then rows without the note come twice, or a note without its rows
#   loses them. Commit both together.

# %% [belief] lab12.number_names_a_batch
# question: Batch 0 was done. May the sink skip a batch with the number 0?
# claim: Yes; it is the same batch.
# refutation: A number names a batch only as long as the checkpoint exists. After its deletion, numbers begin with 0
#   again and batches have other ranges. Identify a message by broker_name and physical_offset, not by its batch.

# %% [belief] lab12.batch_is_kept
# question: A sink calls read() twice for one batch. Does it get the same rows?
# claim: Yes; the batch is in memory.
# refutation: Each read() reads the log again, as each action of Spark does without cache(), and retention may have
#   deleted a file meanwhile. Read once.

# %% [belief] lab12.order_is_message
# question: What identifies a row of the log?
# claim: The keys of the message, because an order is an order.
# refutation: A shop that re-sends an order stores a second message with the same keys. The ledger counts messages, and
#   each has its own broker_name and physical_offset.

# %% [belief] lab12.place_without_broker
# question: Can two messages have the same physical_offset?
# claim: No; an offset is taken by one message.
# refutation: Each broker has its own log that begins at 0. Only broker_name and physical_offset together identify a
#   message.

# %% [belief] lab12.delete_then_insert
# question: Deleting the rows of a batch and inserting them again gives the right table. Is it a safe sink?
# claim: Yes; the result is the same each time.
# refutation: If the process crashes between the two transactions, rows are missing from the board until the batch comes
#   again. Delete and insert in one transaction, or do not delete.

# %% [belief] lab12.new_number
# question: Each row gets its own key, such as a uuid or the time. Does that make it unique?
# claim: Yes; no two rows have the same key.
# refutation: When a batch comes again, the same message gets another key, and the table cannot refuse it. Use a key
#   that stays the same: broker_name and physical_offset.

# %% [markdown]
# Here are two other ideas next to yours. Every column is a run in which the job is killed before that line and
# restarted.


# %%
def looks_first(connection, batch_id, read):
    """Rows first, then a note that the batch is done."""
    connection.execute(TABLE)
    connection.execute("CREATE TABLE IF NOT EXISTS done (batch_id PRIMARY KEY)")
    known = connection.execute("SELECT 1 FROM done WHERE batch_id = ?", (batch_id,))
    if known.fetchone() is None:
        with connection:
            connection.executemany(ROW, read())
        with connection:
            connection.execute("INSERT INTO done VALUES (?)", (batch_id,))


# %%
def outcome(lab):
    try:
        rows = [row[:2] for row in sold(lab)]
    except sqlite3.OperationalError:
        return "no table"
    places = {
        (row["broker_name"], row["physical_offset"]) for part in BATCHES for row in part
    }
    if len(rows) > len(set(rows)):
        return "twice"
    return "once" if set(rows) == places else "lost"


# %% tags=["explorer"]
sinks = {"one by one": one_by_one, "looks first": looks_first, "once": once}
kills = {"node": "job-1", "only": lambda point: point.kind == "line", "seed": 7}
kills |= {"outcome": outcome, "good": "once", "client": {"enable_trace": False}}
stories = {name: job_story(sink, BATCHES) for name, sink in sinks.items()}
matrix = crash_matrix(stories, **kills)
matrix

# %%
matrix.table()

# %% [answer] lab12.safe_sinks
# ### Your turn: one transaction
#
# Change `looks_first` above so that the rows and the note are committed together, and run both cells again. At how many
# crash points does `looks_first` not end with "once"?
#
# wrong: Count the runs of its row that do not end with a tick.
# note: Now it survives every crash. Is it as good as `once`? Delete the checkpoint, as at 03:00, and its notes mean
#   other batches.


# %%
### BEGIN SOLUTION
def notes_with_rows(db, number, read):
    """Rows and note in one transaction."""
    db.execute(TABLE)
    db.execute("CREATE TABLE IF NOT EXISTS done (batch_id PRIMARY KEY)")
    known = db.execute("SELECT 1 FROM done WHERE batch_id = ?", (number,))
    if not known.fetchall():
        with db:
            db.executemany(ROW, read())
            db.execute("INSERT INTO done VALUES (?)", (number,))


changed = {"looks first": job_story(notes_with_rows, BATCHES)}
yours = crash_matrix(changed, **kills).run()
answer("lab12.safe_sinks", 0, yours)
### STARTER
# answer("lab12.safe_sinks", ..., matrix)
### END SOLUTION

# %% [markdown]
# Your sink in Spark, a deleted checkpoint, and a day that continues meanwhile. All three bars should have the same
# length.

# %%
run(once, "safe", THREE_BATCHES)
shutil.rmtree(folder / "safe")
broker.advance("10min")
run(once, "safe", {"maxBytesPerTrigger": "400k"})
Bars(ledger("safe"), title="03:00, with your sink", unit="orders")

# %% [markdown]
# ## Break it: deleted log files
#
# The job is off for four hours, and retention deletes the oldest files of the logs:

# %% [prediction] lab12.deleted_files
# The files with the job's next messages are gone. The job is restarted with its checkpoint. What does it do?
#
# - goes: it continues with the first message that is still there
#   > That would be the next silent loss. The source does it only with the option failOnDataLoss=false.
# - stops: it stops with an error
#   = The job has lost messages, and the error reports it.
# - again: it begins at the beginning, as without a checkpoint
#   > Its checkpoint still has the offset. The log has no data there any more.
# note: failOnDataLoss has the same name in Spark's source for Kafka. If a job sets it to false, count the losses
#   elsewhere.
# later: Retention has deleted the files with a streaming job's next messages. The job is restarted with its
#   checkpoint. What does it do?

# %%
broker.advance("4h")
for name in broker.stores:
    while StoreInspector(broker.stores[name]).min_physical_offset < 400_000:
        broker.delete_oldest(name)
strip("safe", f"It is {broker.now}, and retention was here")


# %%
def first_words(error):
    """The line of a long error that says what is wrong."""
    lines = [line for line in str(error).splitlines() if "mqlab.errors" in line]
    words = lines[0].partition("mqlab.errors.")[2] if lines else str(error)
    return words.replace(str(folder), "")[:240]


try:
    catch_up(look, "safe", THREE_BATCHES)
    outcome_of_weekend = "goes"
except StreamingQueryException as error:
    print(first_words(error))
    outcome_of_weekend = "stops"

# %%
reveal("lab12.deleted_files", outcome_of_weekend)

# %% [markdown]
# What about the checkpoint of one cluster and the logs of another, such as last week's copy? The offsets mean nothing
# there. The source checks once per run that a message begins at each offset. (You need a second day below; there it is
# 11:40.)

# %%
second = live(
    folder / "other",
    seed=3,
    start="700min",
    messages=6_000,
    incidents=("stuck_message",),
)
shop = open_days.enter_context(second)
try:
    catch_up(look, "limited", {}, path=shop.directory)
except StreamingQueryException as error:
    print(first_words(error))

# %% [markdown]
# ## A lag of 22, all is well
#
# The other half of the board is a list of groups: how far is each behind (消费堆积)? The committed offsets are in a file
# next to the log, `config/consumerOffset.json`, saved every five seconds. `offsets_in` reads it:

# %%
committed = offsets_in(shop.directory)
print(len(committed), "queues that some group reads, for example")
Table([row for row in committed if row["group_name"] == "billing"][:5])


# %%
def lag_by_group():
    ends = {
        (name, queue.topic, queue.queue_id): queue.max_offset
        for name, path in shop.stores.items()
        for queue in StoreInspector(path).queues()
    }
    lag = {}
    for row in offsets_in(shop.directory):
        place = row["broker_name"], row["topic"], row["queue_id"]
        behind = max(0, ends.get(place, 0) - row["committed"])
        lag[row["group_name"]] = lag.get(row["group_name"], 0) + behind
    return lag


# %%
at_first = {
    (row["group_name"], *list(row.values())[:4]): row
    for row in offsets_in(shop.directory)
}
shop.advance("70min")
Bars(lag_by_group(), title=f"Behind at {shop.now}", unit="messages")

# %% [prediction] lab12.lag_is_trouble
# Two groups have a lag. Which of them is in trouble?
#
# - analytics: analytics; its lag is many times as large
#   > It is large, but it shrinks each hour, because this group counts once per hour. A lag in messages does not show
#   > whether a member is working on it.
# - billing: billing, with its few messages
#   = In one of its queues the committed offset has not moved for more than an hour, though messages arrive. Its
#   = listener hangs.
# - none: neither; both are at work
#   > Look at the queues one by one. In one of them nothing has moved.
# note: The delay of a stuck queue grows by one second each second, however few messages it gets. Put that number on the
#   board.
# later: -

# %%
standing = {}
for row in offsets_in(shop.directory):
    old = at_first[(row["group_name"], *list(row.values())[:4])]
    if row["topic"] == "orders" and row["committed"] == old["committed"]:
        name = f"{row['group_name']}, queue {row['queue_id']} of {row['broker_name']}"
        standing[name] = row["committed"]
Bars(standing, title="Offsets that did not move in 70 minutes")

# %%
groups = {name.partition(",")[0] for name in standing} & {"billing", "analytics"}
reveal("lab12.lag_is_trouble", "billing" if groups == {"billing"} else "none")

# %% [exercise] lab12.lag_now
# ### Exercise 3: behind, in messages and in seconds
#
# Write `lag_now`. It takes two DataFrames: `messages`, all messages of the stores, and `committed` with the columns
# `broker_name`, `group_name`, `topic`, `queue_id` and `committed`. It returns these columns, and three more:
#
# | column | is |
# |---|---|
# | `end` | the queue offset that the next message of the queue will get |
# | `lag` | how many messages there are between `committed` and `end` |
# | `behind_s` | for how long the first message that the group has not done is stored, in whole seconds; 0 if there is none |
#
# - *Now* is the store time of the latest message. Files at the beginning of a log may be deleted.
# - The offsets were saved after the messages were read, so `committed` may exceed the end that `messages` show: then
#   `end` is `committed`.
# - Each row of `committed` has a row in the result.
#
# `rows_of_board(lag_now, shop.directory)` tries it on the day above. The check makes its own stores, which takes some
# seconds.
#
# hint: Join each row of committed with the messages of its queue: broker_name, topic and queue_id. A left join keeps
#   queues without messages. Then one groupBy is enough.
# hint: `end` is the greatest of `max(queue_offset) + 1` and `committed`. The oldest unfinished message is
#   `min(store_timestamp)` where `queue_offset >= committed`.
# hint: `functions.when(condition, column)` is NULL where the condition is false, and `min` leaves NULL out. Now:
#   `messages.agg(functions.max("store_timestamp").alias("now"))` with `crossJoin`. Seconds: cast both to "long" and
#   subtract.
# note: `mqadmin consumerProgress` shows the same two numbers for a running cluster: Diff, and in the dashboard the time
#   of the last message consumed. At work: put an alarm on the seconds.


# %%
# exercise: lab12.lag_now
def lag_now(messages, committed):
    """How far each group is behind in each queue, as a DataFrame."""
    ### BEGIN SOLUTION
    queue = ["broker_name", "topic", "queue_id"]
    now = messages.agg(functions.max("store_timestamp").alias("now"))
    stored = messages.select(*queue, "queue_offset", "store_timestamp")
    is_left = functions.col("queue_offset") >= functions.col("committed")
    left = functions.when(is_left, functions.col("store_timestamp"))
    rows = committed.join(stored, queue, "left").crossJoin(now)
    grouped = rows.groupBy(*queue, "group_name", "committed", "now").agg(
        functions.max("queue_offset").alias("last"), functions.min(left).alias("first")
    )
    end = functions.greatest(functions.col("last") + 1, functions.col("committed"))
    seconds = functions.expr("(unix_millis(now) - unix_millis(first)) div 1000")
    return grouped.select(
        *queue,
        "group_name",
        "committed",
        end.alias("end"),
        (end - functions.col("committed")).alias("lag"),
        functions.coalesce(seconds, functions.lit(0)).alias("behind_s"),
    )
    ### END SOLUTION


# %%
check("lab12.lag_now")

# %% [belief] lab12.count_is_end
# question: A queue has 40 messages in the log. Which queue offset will the next one get?
# claim: It will get 40.
# refutation: end is the largest queue_offset, plus one, and not a number of messages. Retention removes messages at the
#   beginning, and the others keep their queue offsets.

# %% [belief] lab12.last_is_end
# question: The last message of a queue has the queue offset 41. What is the committed offset of a group that has done
#   it?
# claim: It is 41, the message that is done.
# refutation: A committed offset is that of the next message to do: when message 41 is done, it is 42. end also is the
#   next one: the largest queue_offset, plus one.

# %% [belief] lab12.same_moment
# question: Can a group have committed more than is in the log?
# claim: No; so the difference is never below zero.
# refutation: You read the log first and the offsets after it, and the group worked meanwhile. Your log is older: end is
#   never less than committed, and lag never below zero.

# %% [belief] lab12.retries_are_others
# question: Which topics does the group billing read?
# claim: It reads orders only.
# refutation: billing also reads %RETRY%billing, where its failed messages wait. Without it you miss a group that cannot
#   process its failures. Each row of committed is a queue that a group reads.

# %% [belief] lab12.old_is_behind
# question: The last message of a queue is an hour old, and the group has done it. How far is the group behind?
# claim: It is an hour behind.
# refutation: behind_s is the age of the first unfinished message, not of the last message. Where everything is done it
#   is 0.

# %% [belief] lab12.born_is_stored
# question: A message waits in a retry topic. Since when?
# claim: Since it was born, at born_timestamp.
# refutation: behind_s is how long the first message that the group has not done is stored, by its store_timestamp. A copy
#   in a retry topic keeps the birth of its original.

# %% [belief] lab12.done_is_behind
# question: Which message shows how many seconds a group is behind?
# claim: The last one that it has done, at committed - 1.
# refutation: In a quiet queue that one is old. committed is the first unfinished message, and its age is how long it
#   has waited so far.

# %% [belief] lab12.one_queue
# question: Which messages are in queue 0 of orders?
# claim: Those of topic orders with queue_id 0.
# refutation: Each broker has its own queue 0: broker_name, topic and queue_id together identify a queue.

# %% [belief] lab12.no_message_no_row
# question: A queue has no message in the log. Does it belong on the board?
# claim: No; there is nothing to show.
# refutation: A queue without messages also has a row, with lag 0, because a board with vanishing rows is misread. Keep
#   each row of committed with a left join.

# %% [answer] lab12.waited
# ### Your turn: the board of half past one
#
# Let the day continue with `MORE_MINUTES`, anything from 10 to 60, and look at your board. How many seconds is billing
# behind, in the queue where it is furthest behind?
#
# wrong messages: That is its lag in messages. Look at behind_s.
# wrong all: That is the largest of all groups. Look at billing only.
# wrong: Take the largest behind_s among the rows of billing.
# note: Advance by a minute, and it is 60 more. For a working group, however slow, this number also falls.

# %% tags=["parameter"]
### BEGIN SOLUTION
MORE_MINUTES = 20
### STARTER
# MORE_MINUTES = 0  # yours to change
### END SOLUTION

shop.advance(f"{MORE_MINUTES}min")
try:
    your_board = rows_of_board(lag_now, shop.directory)
    worst = sorted(your_board, key=lambda row: -row["behind_s"])[:8]
except Exception:
    your_board = worst = []  # exercise 3 is open
bars = {
    "{group_name}, {topic} {queue_id} of {broker_name}".format(**row): row["behind_s"]
    for row in worst
}
Bars(bars, title=f"Behind at {shop.now}", unit="s")

# %%
### BEGIN SOLUTION
billing = [row["behind_s"] for row in your_board if row["group_name"] == "billing"]
answer("lab12.waited", max(billing), your_board, MORE_MINUTES)
### STARTER
# answer("lab12.waited", ..., your_board, MORE_MINUTES)
### END SOLUTION

# %%
open_days.close()
shutil.rmtree(folder)

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That any sink can do this.** A table with a key can. A file with appended lines cannot, and a sent e-mail cannot
#   be ignored. Spark's own file sink keeps a list of its files for that reason.
# - **That state is as safe.** This job kept nothing in memory between batches. The second part does: counts, joins, and
#   rows that come too late.
# - **That offsets show finished work.** A group commits what its listeners returned, see [lab
#   04b](04b-beginning-again.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ and Spark do it
#
# | what you saw | where it is |
# |---|---|
# | offsets before the batch, commits after it | Spark: `MicroBatchExecution`, `OffsetSeqLog`, `CommitLog` |
# | a batch takes at least one message | `maxBytesPerTrigger`, as in Spark's file source |
# | the first message of a point in time, by bisection | RocketMQ: `ConsumeQueue.getOffsetInQueueByTime`; here over the log's files |
# | retention | `DefaultMessageStore.CleanCommitLogService`, by default files older than 72 hours, at four in the morning |
# | committed offsets, every five seconds | `ConsumerOffsetManager`, `flushConsumerOffsetInterval` |
# | lag | `mqadmin consumerProgress -g billing` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab12.repair
# **1.** It is 08:00, and the board has shown doubled numbers since 03:00. The sink was `one_by_one`. How do you repair
# it?
#
# answer: Stop the job. Keep one row per broker_name and physical_offset. Or, if retention still allows, empty the table
#   and let the job read from midnight with a sink like `once`. Then give the table its key, so that it cannot happen
#   again. Subtracting or halving would be wrong for everything after 03:00.

# %% [reflection] lab12.uniq_key
# **2.** Each message has an id from its client (`UNIQ_KEY`, the column `msg_id`). Why was it not the key of the table?
#
# answer: A repeated send stores a second message with the same id. For a ledger of the log that is two rows, for sold
#   orders it is one. The offset identifies the stored message, the id the message that the client wanted to send, and
#   the keys its subject.

# %% [reflection] lab12.alarm
# **3.** "Alarm if lag > 1,000", says the runbook. What does it find late, and when is it a false alarm?
#
# answer: It finds a queue with little traffic late, or never: one message in ten minutes makes 1,000 in a week. It is a
#   false alarm each evening when many orders arrive and all goes well. Seconds behind grow for the stuck group and fall
#   for the busy one.

# %% [markdown] tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).

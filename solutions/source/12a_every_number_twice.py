# %% [markdown] minutes=3 tags=["reading"]
# # Lab 12a: Every number twice
#
# ## Why
#
# A board hangs in the warehouse: orders today, euros today. A Spark job feeds it from the brokers' logs. One night
# somebody deleted a folder named `checkpoint`, "to make the job fresh", and started it again at 03:00. From then on every
# number on the board was twice as large. Nobody saw an error, because there was none.
#
# "But Spark is exactly once. The manual says so." The manual is right about what Spark has in its own hands. In this lab a
# store grows while you read it, and a job follows it. You kill the job, you delete its memory, and then you write the
# fifteen lines with which nothing of that shows on the board.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 10a](10a-spark-reads-the-broker.ipynb) for Spark and
# [lab 04a](04a-how-far-have-we-read.ipynb) for offsets. When you are done you can
#
# - say where a stream (流) begins, how much one of its batches (微批) holds, and when it ends;
# - read a checkpoint (检查点), and say what a job does without it;
# - write a sink (输出端) that holds each message once, wherever its process dies;
# - tell a group that is slow from one that is stuck.

# %%
import contextlib
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.given.lab11.lag_board import offsets_in, rows_of_board
from mqlab.course.given.lab12.batch_job import job_story, sold
from mqlab.course.widgets import crash_matrix

# %%
from mqlab.data import arrow
from mqlab.data.spark import progress_of, session
from mqlab.data.traffic import live
from mqlab.lab.inspector import StoreInspector
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.batch_strip import BatchStrip

# %% [markdown] minutes=5
# ## A store that grows
#
# `traffic.live` plays a day of a shop again. Two brokers, each a process of its own, append to their files what was stored
# on that day, byte by byte. The day stands still until you let it go on. It is nine o'clock:

# %%
folder = Path(tempfile.mkdtemp(prefix="mqlab-lab12-"))
open_days = contextlib.ExitStack()
day = live(folder / "day", seed=7, start="9h", messages=6_000, commit_log_bytes=1 << 17)
broker = open_days.enter_context(day)
broker.table()

# %% [markdown]
# Each log consists of files of 128 KB, so that you see within an hour what takes a large broker days. Let ten minutes pass.
# When the call returns, the bytes are there:

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

# %% [markdown] minutes=16
# ## Where a stream begins
#
# A stream of Spark is a query that is asked again and again, each time about what is new. Each time is a **batch**. With
# the trigger (触发器) `availableNow` the job reads what is there, batch by batch, and ends. A job that a timer starts every
# ten minutes works like this, and so does the one of the board:


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
# These options say where it begins and how much a batch reads. A place in a log is a physical offset (物理偏移量): a number of
# bytes, from the beginning of the first file.
#
# | option | for example | what it does |
# |---|---|---|
# | `startingOffsets` | `earliest`, `latest`, `{"broker-a": 4096}` | begin at the first message still there (this is the default), after the last one, or at this place |
# | `startingTimestamp` | `1731315600000` | begin in each log at its first message of this time (ms since 1970), found by bisection |
# | `startTime` | `1731315600000` | keep messages that were stored at this time or later |
# | `maxBytesPerTrigger` | `60k`, `60000` | a batch reads so many bytes of all logs together at most |
# | `maxOffsetsPerTrigger` | `500` | a batch reads so many messages at most |

# %% [prediction] lab12.first_batch
# The job starts for the first time. Its options are `startTime` = 08:30 and `maxBytesPerTrigger` = 120k. What does batch 0
# read?
#
# - log: the beginning of the logs, from midnight
#   = The job goes through everything since midnight, 120 KB at a time. Whatever is older than 08:30 is thrown away after it
#   = was read.
# - moment: the messages from 08:30 on {lab12.filter_begins}
#   > startTime only chooses among messages that are read. It does not say where a read begins, and a stream without a
#   > starting option begins at the first message of each log. startingTimestamp says where.
# - now: what comes after the start of the job {lab12.latest_is_now}
#   > latest is not the default. And a board that begins at latest never shows what was stored before its job was first
#   > started: begin at the moment from which on you want to know.
# note: In Spark's source for Kafka the default of a stream is latest. Look it up for each source you use.

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
# Write `begin`. It returns two dictionaries: the options of a stream, and what `.trigger(**trigger)` gets. The stream begins
# in each log at the first message that was stored at `at_ms` or later. A batch reads `most_bytes` of all logs together at
# most. When it has read what is there, it ends. It is plain Python, and many answers are right: they are judged by what the
# source does with them.
#
# hint: Two options are enough. One says where each log begins, one limits the bytes of a batch.
# hint: The table above has both: the moment is `startingTimestamp`, in ms as it is given. Values may be numbers or strings.
# hint: `{"availableNow": True}` is the trigger that keeps to the limit and ends. `{"once": True}` reads everything in one
#   batch.
# note: A limit smaller than one message does not stop the stream: a batch takes one message at least. So you need no
#   minimum of your own.


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
# claim: No, a stream is never over; it can only wait for the next batch.
# refutation: This trigger goes on for ever. availableNow reads what is there when it starts, batch by batch, and ends; the
#   next run goes on from its checkpoint.

# %% [belief] lab12.once_keeps_limits
# question: What does the trigger once do with a limit of bytes?
# claim: It keeps to it, as every trigger does.
# refutation: The trigger once reads everything that is there in one batch, whatever the limit. availableNow keeps to it.

# %% [belief] lab12.offsets_are_bytes
# question: What does maxOffsetsPerTrigger count?
# claim: Bytes, for an offset of a log is a number of bytes.
# refutation: maxOffsetsPerTrigger counts messages, however large they are. maxBytesPerTrigger counts bytes.

# %% [belief] lab12.small_limit_stops
# question: A limit is smaller than the next message. What does the stream do?
# claim: It stands still for ever, so the limit needs a minimum.
# refutation: A batch takes one message at least, so a stream always advances. most_bytes is the limit as it is given, without
#   a minimum of yours.

# %% [belief] lab12.time_is_place
# question: Can a time stand where a place in the log is asked for?
# claim: Yes, a stream finds its place by itself.
# refutation: startPhysicalOffset and startingOffsets are places in bytes, and each log has its own. A moment belongs into
#   startingTimestamp, which finds the place in each log.

# %% [answer] lab12.four_batches
# ### Your turn: four batches
#
# Change `MOST_BYTES` until the job needs exactly four batches from 08:30 on. How many bytes may a batch have?
#
# wrong: Four bars are asked for. Fewer bytes make more batches.
# note: The limit is divided among the brokers in proportion to what each has left, so none of them is left behind.

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

# %% [markdown] minutes=14
# ## Killed in the middle
#
# The board's sink puts the rows of a batch into a table, one after the other. `into` gives a sink what `foreachBatch` has:
# a connection to its database, the number of the batch, and a function that reads the rows of the batch.


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
# This one dies in the middle of its work. Here the process of the sink is also that of your notebook, so it ends by an
# exception; what was committed is there, and nothing after that line runs. (mqlab's own tests do the same with `kill -9`.)


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
# Each broker has a ribbon: what batches have read and finished, the batch in which the job died, and what nobody has read
# yet. How does Spark know that? From the checkpoint, a folder. Before a batch begins, Spark writes into it how far the batch
# will read, as a file in `offsets`. After the batch it writes a file in `commits`:


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
# Batch 1 has begun, 40 of its rows are in the sink, and it is not in `commits`. The job is started again, with a sink that
# does not die. How often will those 40 rows be in the sink?
#
# - once: once, Spark goes on after the last row {lab12.comes_once}
#   > Spark knows batches, not rows. The batch is not in commits, so all of it comes again, with the same borders. The sink
#   > gets its rows a second time, and has to know them: by broker_name and physical_offset, which no other message has.
# - twice: twice
#   = The batch is not in commits, so all of it comes again, with the borders that are in offsets.
# - never: not at all, a batch that failed is rolled back
#   > Nobody rolls back what the sink has committed. Spark does not even know what the sink is.
# note: So the batch is *at least once* (至少一次). Its borders are exact, though, and that is worth much: the same number
#   means the same messages, as long as the checkpoint is there.

# %%
lives.append(run(one_by_one, "board", THREE_BATCHES))
Bars(ledger("board"), title="The job was started again", unit="orders")

# %%
strip("board", "Started again")

# %%
twice = len(rows_in("board")) - len(set(rows_in("board")))
reveal("lab12.killed", {0: "once", 40: "twice"}.get(twice, "never"))

# %% [answer] lab12.rows_twice
# ### Your turn: another death
#
# Change `DIES_AFTER` and run the cell: a new job with a new checkpoint dies there and is started again. How many rows are in
# the sink twice now?
#
# wrong all: That is the number of all rows in the sink. How many are there more than different ones?
# wrong: Take the bar of all rows in the sink, less the bar of the different ones.
# note: As many as were committed before it died. If all rows of a batch are committed together, that is none or all of
#   them: better, but not good.

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

# %% [markdown] minutes=8
# ## The night of 03:00
#
# A clean board, with a job that never died:

# %%
run(one_by_one, "clean", THREE_BATCHES)
Bars(ledger("clean"), title="Before three o'clock", unit="orders")

# %% [prediction] lab12.no_memory
# Somebody deletes the folder `clean`, which is the checkpoint, and starts the job again. The database stays. What is in the
# sink afterwards?
#
# - same: the same rows as before; they are there already
#   > Who would know? The sink inserts what it is given, and the job has forgotten what it has given.
# - twice: every row twice
#   = Without a checkpoint the job starts for the first time: at the beginning of the logs, with batch 0.
# - new: the same rows, and what has come since
#   > That is what a checkpoint is for. Without it nobody knows where the job had ended.
# note: That is what happened at 03:00. And look at the numbers of the batches: they begin with 0 again. Batch 0 may now hold
#   other messages than yesterday's batch 0.

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

# %% [markdown] minutes=32
# ## Who is exactly once?
#
# Three parties have to agree on what has been done. The **source** can read the same again. The **checkpoint** knows what a
# batch is, as long as it is there. The **sink** is yours, and Spark hands it each batch at least once. So the sink needs a
# way to recognize a message that it has. Which of its columns is the name of a message?
#
# `job_story` plays the job in a Lab: a process `job-1` gives a sink the batches below, one after the other. There it can be
# killed before every line of the sink and started again.

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
# Write `once(connection, batch_id, read)`, a sink like `one_by_one`. `connection` is a connection of `sqlite3`, `read()`
# reads the rows of the batch from the log: a list of dictionaries as in `BATCHES`. In the end the table `sold` has each
# message of the log once, with `broker_name`, `physical_offset`, `keys` and `cents`. The database is empty at first: `once`
# makes the table. This happens to it:
#
# - The process is killed before each line, and started again. A batch comes again, also one that was done.
# - The checkpoint is deleted. Batches have other borders then, and `batch_id` begins with 0.
# - Retention (过期文件清理) deletes a file of the log. What one `read()` gave, the next may not give.
# - The rows of a batch are in no order: several tasks read them.
# - A shop sends an order twice: that is two messages. Brokers count their places alone: two may have the same one.
# - Somebody reads the table at any time. What was in it stays in it.
#
# hint: What is in the log at one place of one broker never changes. Let the table refuse a second row for it: PRIMARY KEY
#   over two columns.
# hint: `INSERT OR IGNORE INTO sold VALUES (…)` leaves out a row whose key is there. Then it does not matter what is done
#   twice, and no memory of batches is needed.
# hint: `with connection:` commits at its end, or not at all. Read once: `connection.executemany("INSERT OR IGNORE …", read())`.
# note: This is an idempotent sink (幂等): to do it twice is to do it once. At least once, and idempotent, is what people mean
#   when they say exactly once (精确一次).


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
# claim: Yes, the note tells whether the batch was there.
# refutation: The process may die between the two. Then the rows are there without the note, and come twice, or the note is
#   there without the rows, and they are lost. What belongs together is committed together.

# %% [belief] lab12.number_names_a_batch
# question: Batch 0 was done. May the sink skip a batch with the number 0?
# claim: Yes, it is the same batch.
# refutation: Only as long as the checkpoint is there. When it was deleted, numbers begin with 0 again and batches have other
#   borders. A message is named by its place, broker_name and physical_offset, and not by the batch it comes in.

# %% [belief] lab12.batch_is_kept
# question: A sink calls read() twice for one batch. Does it get the same rows?
# claim: Yes, the batch is in memory.
# refutation: Each read() goes to the log again, as each action of Spark does without cache(), and retention may have deleted
#   a file meanwhile. Read once, and use what you have.

# %% [belief] lab12.order_is_message
# question: What names a row of the log?
# claim: The keys of the message: an order is an order.
# refutation: A shop that sends an order again stores a second message with the same keys. The ledger counts messages, and
#   each has its own place: broker_name and physical_offset.

# %% [belief] lab12.place_without_broker
# question: Can two messages have the same physical_offset?
# claim: No, a place is taken by one message.
# refutation: Each broker has a log of its own, and each log begins at 0. Only broker_name and physical_offset together name a
#   message.

# %% [belief] lab12.delete_then_insert
# question: Deleting the rows of a batch and inserting them again gives the right table. Is it a safe sink?
# claim: Yes, the result is the same each time.
# refutation: If the process dies between the two transactions, rows that were in the table are gone, and the board shows it
#   until the batch comes again. Delete and insert in one transaction, or do not delete.

# %% [belief] lab12.new_number
# question: Each row gets a key of its own, such as a uuid or the time. Does that make it unique?
# claim: Yes, no two rows have the same key.
# refutation: When a batch comes again, the same message gets another key, and the table cannot refuse it. A key has to be
#   what is the same each time: broker_name and physical_offset.

# %% [markdown]
# Two other ideas beside yours. Every column of the picture is a run in which the job is killed before that line and started
# again.


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
# Change `looks_first` above so that the rows and the note are committed together, and run both cells again. For how many of
# the places where it can be killed does `looks_first` not end with "once"?
#
# wrong: Count the runs of its row that do not end with a tick.
# note: Now it is safe from every death. Is it as good as `once`? Delete the checkpoint, as at 03:00, and its notes mean other
#   batches.


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
# And the board itself: your sink in Spark, a checkpoint that is deleted, and a day that goes on meanwhile. Three bars of the
# same length are what we want.

# %%
run(once, "safe", THREE_BATCHES)
shutil.rmtree(folder / "safe")
broker.advance("10min")
run(once, "safe", {"maxBytesPerTrigger": "400k"})
Bars(ledger("safe"), title="03:00, with your sink", unit="orders")

# %% [markdown] minutes=10
# ## Break it
#
# The job has a place in each log. What if nothing is there any more? The job is off for four hours, and retention deletes
# the oldest files of the logs:

# %% [prediction] lab12.deleted_files
# The files with the messages that come next for the job are gone. It is started again with its checkpoint. What does it do?
#
# - goes: it goes on with the first message that is still there
#   > It would be easy, and it would be the next quiet night. The source does that only when it is told to: with the option
#   > failOnDataLoss=false.
# - stops: it stops with an error
#   = Messages that it was to read are lost for it, and that is said aloud.
# - again: it begins at the beginning, as without a checkpoint
#   > It has a checkpoint, and the place in it is not forgotten. The log has nothing there any more.
# note: failOnDataLoss has the same name in Spark's source for Kafka. A job that sets it to false needs somebody who counts
#   what was lost.

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
# And with the checkpoint of one cluster and the logs of another, a copy from last week, say? The places mean nothing there.
# The source checks once per run that each place is one at which a message begins. (A second day, which you need below: in it
# it is 11:40.)

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

# %% [markdown] minutes=30
# ## A lag of 22, all is well
#
# The other half of the board is a list of groups: how far is each behind (消费堆积)? The offsets that groups have committed are
# in a file beside the log, `config/consumerOffset.json`. It is saved every five seconds. `offsets_in` reads it:

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
# - analytics: analytics, its lag is many times as large
#   > It is large, and gets small each hour: this group counts once an hour. A number of messages says how much is left, and
#   > not whether anybody is at work on it.
# - billing: billing, with its few messages
#   = In one of its queues the committed offset has not moved for more than an hour, though messages come. Its listener hangs.
# - none: neither, both are at work
#   > Look at the queues one by one. In one of them nothing has moved.
# note: The trouble of a stuck queue grows by one second each second, however few messages it gets. That is the number to put
#   on the board.

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
# Write `lag_now`. It gets two DataFrames: `messages`, all messages of the stores, and `committed` with the columns
# `broker_name`, `group_name`, `topic`, `queue_id` and `committed`. It returns these columns, and three more:
#
# | column | is |
# |---|---|
# | `end` | the queue offset that the next message of the queue will get |
# | `lag` | how many messages there are between `committed` and `end` |
# | `behind_s` | how old the first message is that the group has not done yet, in whole seconds; 0 if there is none |
#
# *Now* is when the latest message of all was stored. Files at the beginning of a log may be deleted. The offsets were saved a
# moment after the messages were read, so `committed` may be larger than what `messages` show: then `end` is `committed`.
# Each row of `committed` has a row in the result.
#
# `rows_of_board(lag_now, shop.directory)` tries it on the day above. The check makes stores of its own, which takes some seconds.
#
# hint: Join each row of committed with the messages of its queue: broker_name, topic and queue_id. A left join keeps queues
#   without messages. Then one groupBy has everything.
# hint: `end` is the greatest of `max(queue_offset) + 1` and `committed`. The oldest message that is not done is
#   `min(store_timestamp)` where `queue_offset >= committed`.
# hint: `functions.when(condition, column)` is NULL where the condition is false, and `min` leaves NULL out. Now:
#   `messages.agg(functions.max("store_timestamp").alias("now"))` with `crossJoin`. Seconds: cast both to "long" and subtract.
# note: `mqadmin consumerProgress` shows the same two numbers for a running cluster: Diff, and in the dashboard the time of the
#   last message consumed. On Monday, put an alarm on the seconds.


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
# claim: 40.
# refutation: Only if nothing was deleted. Retention takes messages away at the beginning, and the others keep their queue
#   offsets: end is the largest queue_offset, plus one.

# %% [belief] lab12.last_is_end
# question: The last message of a queue has the queue offset 41. What is the committed offset of a group that has done it?
# claim: 41, the one it has done.
# refutation: A committed offset is that of the next message to do, so 42. And end is the next one as well: the largest
#   queue_offset, plus one.

# %% [belief] lab12.same_moment
# question: Can a group have committed more than is in the log?
# claim: No, so the difference is never below zero.
# refutation: You read the log first and the offsets after it, and the group worked meanwhile. Then the log that you have is
#   older: end is never less than committed, and lag never below zero.

# %% [belief] lab12.retries_are_others
# question: Which topics does the group billing read?
# claim: orders.
# refutation: Also %RETRY%billing, where its failed messages wait for it. Whoever leaves it out does not see a group that
#   cannot get on with its failures. Each row of committed is a queue that a group reads.

# %% [belief] lab12.old_is_behind
# question: The last message of a queue is an hour old, and the group has done it. How far is the group behind?
# claim: An hour.
# refutation: behind_s is how old the first message is that is not done, not how old the last message is. Where everything is
#   done it is 0, however old the last message is.

# %% [belief] lab12.done_is_behind
# question: Which message says how many seconds a group is behind?
# claim: The last one that it has done, at committed - 1.
# refutation: That one is done, and in a quiet queue it is old. committed is the first message that is not done: its age is
#   what somebody has waited so far.

# %% [belief] lab12.one_queue
# question: Which messages are in queue 0 of orders?
# claim: Those of topic orders with queue_id 0.
# refutation: Each broker has a queue 0 of its own: broker_name, topic and queue_id together name a queue.

# %% [belief] lab12.no_message_no_row
# question: A queue has no message in the log. Does it belong on the board?
# claim: No, there is nothing to show.
# refutation: A queue without messages has a row as well, with lag 0: a board on which rows come and go is read wrongly. Keep
#   each row of committed: a left join.

# %% [answer] lab12.waited
# ### Your turn: the board of half past one
#
# Let the day go on with `MORE_MINUTES`, anything from 10 to 60, and look at your board. How many seconds is billing behind,
# in the queue where it is furthest behind?
#
# wrong messages: That is its lag in messages. Look at behind_s.
# wrong all: That is the largest of all groups. Look at billing only.
# wrong: Take the largest behind_s among the rows of billing.
# note: Advance by a minute, and it is 60 more. A group that works, however slowly, has a number that also falls.

# %% tags=["parameter"]
### BEGIN SOLUTION
MORE_MINUTES = 20
### STARTER
# MORE_MINUTES = 0  # yours to change
### END SOLUTION

shop.advance(f"{MORE_MINUTES}min")
try:
    your_board = rows_of_board(lag_now, shop.directory)
except Exception:
    your_board = []  # exercise 3 is open
worst = sorted(your_board, key=lambda row: -row["behind_s"])[:8]
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

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **That any sink can do this.** A table with a key can. A file to which lines are appended cannot, and an e-mail that was
#   sent cannot be ignored. Spark's own file sink keeps a list of its files for that reason.
# - **That state is as safe.** This job kept nothing in memory from batch to batch. The second part does: counts, joins, and
#   what is too late for them.
# - **That offsets tell what was done.** A group commits what its listeners returned. What they did is another matter, see
#   [lab 04b](04b-beginning-again.ipynb).

# %% [markdown] minutes=2 tags=["reading"]
# ## RocketMQ and Spark do it so
#
# | what you saw | where it is |
# |---|---|
# | offsets before the batch, commits after it | Spark: `MicroBatchExecution`, `OffsetSeqLog`, `CommitLog` |
# | a batch takes one message at least | `maxBytesPerTrigger`, as in Spark's file source |
# | the first message of a moment, by bisection | RocketMQ: `ConsumeQueue.getOffsetInQueueByTime`; here over the log's files |
# | retention | `DefaultMessageStore.CleanCommitLogService`, by default files older than 72 hours, at four in the morning |
# | committed offsets, every five seconds | `ConsumerOffsetManager`, `flushConsumerOffsetInterval` |
# | lag | `mqadmin consumerProgress -g billing` |

# %% [markdown] minutes=5 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab12.repair
# **1.** It is 08:00, and the board has shown twice the numbers since 03:00. The sink was `one_by_one`. How do you repair it?
#
# answer: Stop the job. Keep one row for each broker_name and physical_offset, or, if retention still allows, empty the table
#   and let the job read from midnight with a sink like `once`. Then give the table its key, so that it cannot happen again.
#   To subtract or to halve the numbers would be wrong for everything that came after 03:00.

# %% [reflection] lab12.uniq_key
# **2.** Messages have an id of their own, which their client gave (`UNIQ_KEY`, the column `msg_id`). Why was it not the key of
# the table?
#
# answer: A send that was tried again stores a second message with the same id. Whether that is one row or two is a question to
#   those who read the board: for a ledger of the log it is two, for sold orders it is one. The place in the log names what
#   is stored, the id names what the client wanted to send, and the keys name what it is about.

# %% [reflection] lab12.alarm
# **3.** "Alarm if lag > 1,000", says the runbook. What does it find late, and when does it cry for nothing?
#
# answer: It finds a queue with little traffic late, or never: one message in ten minutes makes 1,000 in a week. It cries each
#   evening when many orders come and all goes well. Seconds behind grow for the stuck one and fall for the busy one.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).

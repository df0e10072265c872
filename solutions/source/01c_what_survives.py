# %% [markdown] tags=["reading"]
# # 01c Durability: what survives
#
# ## Why
#
# At 02:17 the power fails. At 02:40 the broker runs again, and of forty orders answered with `SUCCESS` it has none.
# "`SUCCESS` means it is on the disk," a colleague had said. You lose queues, pages and power, and see what survives.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](01a-what-the-broker-writes.ipynb). Afterwards you can
#
# - rebuild a lost queue from the log;
# - say what `SUCCESS` promises under each flush policy, and what a crash and a power cut destroy;
# - find where a damaged log ends;
# - say when the broker deletes unread messages.

# %%
import shutil
import struct
import zlib
from pathlib import Path

from mqlab import Lab, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import log_xray
from mqlab.lab.inspector import StoreInspector
from mqlab.lab.views import Table
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.java_hash import tags_code

no_trace = {"enable_trace": False}

# %% [markdown]
# ## Break it: the queues are gone
#
# An operator deleted `consumequeue` while the broker was down.


# %%
def lose_the_queues(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(4):
        shop.send(Message("orders", b"a book", tags="paid", keys=f"order-{number}"))
    lab.run_for("1s")
    lab.kill("broker-a")
    shutil.rmtree(Path(lab.store().directory, "consumequeue"))


lab = play(lose_the_queues, seed=7, client=no_trace)
print("queues:", lab.store().topics())
lab.start("broker-a")
lab.store_map(topic="orders")

# %% [markdown]
# All four entries are back, with their old offsets: the log contains everything for them.

# %% [exercise] lab01.rebuild
# ### Exercise 1: rebuild a consume queue
#
# Write `rebuild`. `units` are the units that the log still has, in order, each as bytes; **the beginning of the log is
# deleted**. `record.decode(unit)` reads a unit; `property_map["TAGS"]` is its tag if there is one. `tags_code(tags)` is
# also given. (The store's own dispatch and its encoder of entries are not allowed in this exercise.)
#
# hint: record.decode(unit) gives topic, queue_id, queue_offset, physical_offset, total_size and property_map. Which of
#   the units belong to the queue?
# hint: struct.pack(">qiq", physical_offset, total_size, code) is an entry. tags_code(tags) is the code, 0 for None.
# hint: The first number to return is the queue_offset that the queue's first unit carries; (0, b"") when the log has no
#   unit of it.
# note: Deleting the consume queue loses nothing, because the log contains everything. A queue is only a faster way into
#   the log.


# %%
# exercise: lab01.rebuild
def rebuild(units, topic, queue_id):
    """The entries of one queue, made from the log.

    Returns a tuple of two: the queue offset of the first entry, and the entries as
    bytes, 20 each, without gaps. (0, b"") if the log has no unit of that queue.
    """
    ### BEGIN SOLUTION
    first, entries = None, b""
    for one in map(record.decode, units):
        if (one.topic, one.queue_id) == (topic, queue_id):
            first = one.queue_offset if first is None else first
            code = tags_code(one.property_map.get("TAGS"))
            entries += struct.pack(">qiq", one.physical_offset, one.total_size, code)
    return first or 0, entries
    ### END SOLUTION


# %%
check("lab01.rebuild")

# %% [belief] lab01.new_file_from_0
# question: A queue is rebuilt, and the log no longer has its beginning. What is the number of its first entry?
# claim: 0: it is a new file.
# refutation: A unit carries its own queue offset: the first entry has that of the queue's first unit still in the log.

# %% [belief] lab01.places_from_first_unit
# question: What is the position of the log's first remaining unit?
# claim: 0.
# refutation: The same as before. An entry's first 8 bytes are the unit's physical offset.

# %% [belief] lab01.prefix_of_topic
# question: The log has units of orders and of orders-eu. Which belong to queue 0 of orders?
# claim: Those with the queue id 0 whose topic begins with orders.
# refutation: A queue has one entry for each unit of its topic and queue id. A topic is its whole name.

# %% [belief] lab01.queue_id_alone
# question: Which units belong to queue 0 of orders?
# claim: Those with the queue id 0.
# refutation: Every topic has a queue 0. A queue has one entry for each unit of its topic and queue id, and no other
#   entries.

# %% [belief] lab01.empty_has_no_number
# question: The log has no unit of a queue any more. What is rebuilt?
# claim: Nothing: there is no first entry, so its number is None.
# refutation: A queue without entries: it begins at 0, and has no bytes.

# %% [belief] lab01.size_of_body
# question: What size is in an entry?
# claim: That of the message's body.
# refutation: Bytes 8 to 11 are the size of the whole unit.

# %% [markdown]
# ## Flush: what SUCCESS promises
#
# Writing puts bytes into the operating system's memory (the page cache, 页缓存), where they survive a killed broker. Only
# **flushing** (刷盘) puts them on the disk.

# %% [prediction] lab01.power
# Forty orders are sent in four seconds, all answered SUCCESS. Then the power is cut. The broker flushes with its
# default settings. How many of the forty are there when it is back?
#
# - 40: all forty; SUCCESS means it is on the disk
#   > By default SUCCESS means written, not synced. A power cut takes everything that was not synced.
# - 35: all but those of the last 500 ms
#   > Every 500 ms the broker checks, and syncs only if four pages (16 KiB) are waiting. Forty small orders are less.
# - 0: none
#   = They were in memory only.
# note: Every 500 ms the broker syncs if four pages (16 KiB) are waiting, and every 10 s it syncs everything.

# %% tags=["parameter"]
BODY = b"a book"


def outage(policy, fault):
    """Forty orders, a fault, a restart."""

    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(40):
            shop.send(Message("orders", BODY, keys=f"order-{number}"))
            lab.run_for("100ms")
        fault(lab, "broker-a")
        lab.start("broker-a")

    return play(story, seed=7, client=no_trace, broker={"flush_disk_type": policy})


# %%
def orders_in(lab):
    return len(list(lab.store().messages("orders")))


rows = []
for policy in ("ASYNC_FLUSH", "SYNC_FLUSH"):
    killed, power_cut = (
        orders_in(outage(policy, fault)) for fault in (Lab.kill, Lab.power_off)
    )
    rows.append(
        {"policy": policy, "after kill -9": killed, "after a power cut": power_cut}
    )
Table(rows, title="40 orders, all answered SUCCESS: how many are there after a restart")

# %%
reveal("lab01.power", rows[0]["after a power cut"])

# %% [markdown]
# So the broker kept its promise at 02:17. Under `ASYNC_FLUSH` (异步刷盘), the default, `SUCCESS` survives a killed process
# but not a machine failure. Under `SYNC_FLUSH` (同步刷盘) the answer waits for the disk.

# %% [answer] lab01.survivors
# ### Your turn: larger orders
#
# Set `BODY` to `b"a book" * 200` (1,200 bytes) here and run the cell with the table again. How many of the forty
# survive a power cut under `ASYNC_FLUSH` now?
#
# wrong all: That is after `kill -9`. Look at the column of the power cut.
# wrong none: That was with small orders: they never filled four pages.
# wrong: Read it from the table: row ASYNC_FLUSH, after a power cut.
# note: More than before, because four pages fill sooner. Whatever was written after the last sync is lost.

# %%
### BEGIN SOLUTION
BODY = b"a book" * 200
### STARTER
# BODY = b"a book"
### END SOLUTION

large_orders = outage("ASYNC_FLUSH", Lab.power_off)
### BEGIN SOLUTION
answer("lab01.survivors", 30, large_orders)
### STARTER
# answer("lab01.survivors", ..., large_orders)
### END SOLUTION

# %% [markdown]
# One order came every 100 ms for half a minute. When was the log flushed?


# %%
def half_a_minute(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(300):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
        lab.run_for("100ms")


lab = play(half_a_minute, seed=7, client=no_trace)
flushed = lab.journal.changes("store.flushed")
rows = [{"after_ms": step.now_ms - lab.began_ms, **values} for step, values in flushed]
Table(rows)

# %% [markdown]
# Either four pages filled first, or ten seconds passed. What the disk lacks now, page by page (4 KiB each):

# %%
lab.unsynced()

# %% [markdown]
# ## The checkpoint
#
# After a flush the broker notes in `checkpoint` up to which time everything is on disk. The file has 4096 bytes and
# uses five numbers. Recovery begins 3 seconds before the older of the first two. After the run above:

# %%
lab.store().checkpoint_hexdump()

# %% [markdown]
# Only the ten-second flushes move the first number, and the file follows within a second, so the flush at 30 seconds is
# missing. The second is still 0: queues are flushed when two whole pages are waiting, else once a minute. (RocketMQ
# moves this number with every entry, synced or not; docs/differences.md says why this project does not.)

# %% [markdown]
# ## Break it: a page is missing
#
# A disk does not write pages in the order in which they were filled. After a power cut an older page may be missing
# while newer ones exist. Sixty orders, the machine fails, and the disk has all but one of the log's four pages:

# %% tags=["parameter"]
MISSING = 2


def torn(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(60):
        shop.send(Message("orders", "一本书".encode(), keys=f"order-{number}"))
    lab.kill("broker-a")
    lab.broker().files.power_cut(keep=lambda part: part.page != MISSING)


hole = play(torn, seed=7, client=no_trace)
Table(hole.store().problems(), columns=["kind", "physical_offset", "text"])

# %% [markdown]
# The queue has entries for all sixty orders, and the log has a hole. `abort` exists, so the broker knows that it did
# not stop cleanly. Start it:

# %%
print(f"readable before: {orders_in(hole)}")
hole.start("broker-a")
report = hole.broker().store.recovery_report
print(report)
print("why there:", report.stop_reason)
print(f"readable now: {orders_in(hole)}")
print(f"the queue: {hole.store().queue('orders', 0)}")

# %% [markdown]
# **Recovery** (恢复) walks along the log and stops at the first unit that is not whole. It cuts off everything after
# that, even whole units, and cuts the queues to match. A queue without holes is worth more than a few messages, because
# its offsets must increase by one.

# %% [answer] lab01.hole
# ### Your turn: the worst page
#
# Change `MISSING` and run the two cells above. Which page must be missing so that none of the sixty orders is left?
#
# wrong last: Pages count from 0, and the last one costs the fewest orders: nothing follows it.
# wrong: Try it: with this page missing, *readable now* is greater than 0.
# note: One lost page of 4 KiB destroys everything after it, however much of that is on the disk.

# %%
### BEGIN SOLUTION
MISSING = 0
hole = play(torn, client=no_trace)
hole.start("broker-a")
answer("lab01.hole", 0, hole)
### STARTER
# answer("lab01.hole", ..., hole)
### END SOLUTION

# %% [markdown]
# Now by hand. Step 3 has forty orders, all dispatched; the log's pages are not on disk yet (□ in *Pages and
# checkpoint*). Steps 4 and 5 are a power cut that destroyed one page of the log, and the recovery, with 14 orders left.
#
# Go back to step 3. Click instead on the one page of `consumequeue` that is not on disk (it becomes ✕), press *Power
# cut, lose marked pages only*, then *Recover*. How many orders did this page cost?

# %% tags=["explorer"]
forty = [
    ("append", {"keys": "order-", "count": 20}),
    ("append", {"keys": "more-", "count": 20}),
]
one_page = ("power_cut", {"lose": [("commitlog/00000000000000000000", 1)]})
xray = log_xray([*forty, ("dispatch", {"units": None}), one_page, "recover"])
xray

# %% [markdown]
# The same page, lost by program:

# %%
queue_page = (
    "power_cut",
    {"lose": [("consumequeue/orders/0/00000000000000000600", 0)]},
)
by_hand = log_xray([*forty, ("dispatch", {"units": None}), queue_page, "recover"])
print("orders in the log:", len(by_hand.units()))
print("orders in the queue:", sum(by_hand.units().column("in its queue")))

# %% [markdown]
# It cost none: recovery made the entries again from the log. The log itself cannot be made from anything.

# %% [exercise] lab01.torn
# ### Exercise 2: find the valid end of a torn log
#
# A unit is whole when its lengths add up, its magic is right, and a non-empty body matches `body_crc`, a CRC-32 with
# the highest bit cleared. `whole_unit` checks lengths and magic for you. In these logs all hosts are IPv4: body crc at
# byte 8 of a unit, body length at byte 84, body from byte 88. `zlib.crc32` computes the sum. (`record.check` and the
# store's recovery are not allowed here.)
#
# hint: Walk: from the start of the first file, call whole_unit(data, at) repeatedly. It has three answers: a size, a
#   BLANK, or neither.
# hint: A BLANK sends you to the start of the next file, if there is one. Anything that is neither ends the log; stop
#   there.
# hint: whole_unit does not check the body. If the body is not empty, compare zlib.crc32(body) & 0x7FFFFFFF with the
#   number at byte 8. The result is int(name) + at.
# note: Whole units after the hole are also lost, because a queue must not have a hole. This is how a broker loses
#   messages that are still on its disk.


# %% tags=["setup"]
def whole_unit(data, at):
    """Lengths and magic only: the unit's size, or "BLANK", or None for anything else."""
    try:
        size, magic = struct.unpack_from(">ii", data, at)
        if magic == -875286124:
            return "BLANK"
        end = at + 84
        for kind in (">i", ">b", ">h"):  # the lengths of body, topic and properties
            (length,) = struct.unpack_from(kind, data, end)
            end += struct.calcsize(kind) + max(length, 0)
    except struct.error:  # the bytes end before the unit does
        return None
    return size if magic == -626843481 and end == at + size <= len(data) else None


# %%
# exercise: lab01.torn
def valid_end(log_files):
    """The physical offset where the log ends.

    log_files: {name: bytes}, in any order. The log ends at the first unit that is not
    whole; a BLANK leads on to the next file, or, in the last file, is the end itself.
    """
    ### BEGIN SOLUTION
    for name in sorted(log_files):
        data, at = log_files[name], 0
        while isinstance(size := whole_unit(data, at), int):
            (crc,) = struct.unpack_from(">i", data, at + 8)
            (length,) = struct.unpack_from(">i", data, at + 84)
            body = data[at + 88 : at + 88 + length]
            if body and zlib.crc32(body) & 0x7FFFFFFF != crc:
                break
            at += size
        if size != "BLANK":
            break
    return int(name) + at
    ### END SOLUTION


# %%
check("lab01.torn")

# %% [belief] lab01.full_file_is_log
# question: The last file ends with a BLANK. Where does the log end?
# claim: At the end of that file: it is full.
# refutation: In the last file, the log ends where the BLANK begins.

# %% [belief] lab01.files_as_they_come
# question: The log's files are given as a dictionary. In which order are they read?
# claim: In that of the dictionary.
# refutation: The log ends at its first unit that is not whole, in the order of the files' names.

# %% [belief] lab01.all_that_reads
# question: After a hole there are whole units. Are they part of the log?
# claim: Yes: they can be read.
# refutation: The log ends at its first unit that is not whole, whatever comes after it.

# %% [belief] lab01.blank_is_the_end
# question: What does a BLANK say?
# claim: That nothing follows.
# refutation: A BLANK ends its file, not the log: continue with the next file.

# %% [belief] lab01.lengths_are_enough
# question: All lengths of a unit add up. Is it whole?
# claim: Yes.
# refutation: Not necessarily: the log ends at its first unit that is not whole, and the body of a whole unit matches
#   body_crc.

# %% [belief] lab01.crc_of_32_bits
# question: What is in body_crc?
# claim: The CRC-32 of the body.
# refutation: 31 bits of it: body_crc is crc32(body) & 0x7FFFFFFF, and 0 for no body.

# %% [belief] lab01.until_the_zeros
# question: Where does a log end after a power cut?
# claim: Where the zeros begin.
# refutation: Newer pages may follow what was lost: the log ends at its first unit that is not whole.

# %% [markdown]
# ## Retention: what the broker deletes
#
# The log grows for ever, the disk does not. The broker deletes whole files, the oldest first, never the last one,
# whether or not they have been read (过期文件清理).
#
# The lab's clock begins on 1 January at 00:00, and all forty orders are sent in its first second.

# %% [prediction] lab01.retention
# A file of the commit log became full at midnight. Files are kept for 72 hours. After how many hours is it deleted?
#
# - 72: after 72 hours
#   > A file must be 72 hours old. But the broker checks at a time of day, which is another setting.
# - 76: after 76 hours
#   = At 04:00 of the fourth day: the file is old enough at midnight, and the broker checks at 04:00.
# - never: never; no consumer has read the orders yet
#   > It makes no difference whether they have been read: in this run there was no consumer.
# note: The broker checks at other hours only if the disk is over 75 % full, and over 85 % it ignores a file's age.


# %% tags=["parameter"]
def forty_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(40):
        shop.send(Message("orders", f"book {number}".encode(), keys=f"order-{number}"))
    lab.run_for("1s")
    shop.shutdown()


# %%
small_files = {
    "mapped_file_size_commit_log": 2048,
    "mapped_file_size_consume_queue": 200,
    "register_name_server_period": 60_000,
}


def three_days(lab):
    forty_orders(lab)
    lab.run_until("store.cleaned", limit="5d")


lab = play(three_days, seed=7, client=no_trace, broker=small_files)
step, cleaned = lab.journal.changes("store.cleaned")[0]
hours = (step.now_ms - lab.began_ms) // 3_600_000
print(cleaned)
reveal("lab01.retention", hours)

# %% [markdown]
# No consumer has read these orders. Queue files that led only to deleted messages are gone as well, and the queue's
# smallest offset has moved:

# %%
queue = lab.store().queue("orders", 0)
print(queue, "  the log begins at", lab.store().min_physical_offset)
for offset in (0, queue.min_offset, queue.max_offset):
    print(f"get from {offset}:", lab.broker().store.get("orders", 0, offset))

# %% [markdown]
# A group whose offset was 0 continues at the smallest offset. It has lost everything before that, with no error in its
# log. Messages wait, but not for ever.
#
# ### A full disk
#
# The broker waits for 04:00 only while the disk has room. Here are forty orders that are **one minute old**, on disks
# filled to four levels:


# %%
def disk_at(used, age):
    def story(lab):
        forty_orders(lab)
        lab.run_for(age)
        lab.disk_full("broker-a", used=used)
        lab.run_for("70s")

    return play(story, seed=7, client=no_trace, broker=small_files)


def kept(lab):
    queue = lab.store().queue("orders", 0)
    return f"{queue.min_offset} to {queue.max_offset - 1}"


# %% tags=["parameter"]
LEVELS = (0.50, 0.80, 0.87, 0.92)

rows = []
for used in LEVELS:
    lab = disk_at(used, "1m")
    more = lab.broker().store.put(Message("orders", b"one more"), queue_id=0)
    rows.append({"disk used": used, "kept": kept(lab), "one more": more.status})
Table(rows)

# %% [markdown]
# At 01:00 of the fourth day the files are 73 hours old, and 04:00 is three hours away. First the disk is half full,
# then 80 %:


# %%
def fuller_and_fuller(lab):
    forty_orders(lab)
    lab.run_for("73h")
    for used in (0.50, 0.80):
        lab.disk_full("broker-a", used=used)
        lab.run_for("70s")
        print(f"{used:.0%} used, kept: {kept(lab)}")


lab = play(fuller_and_fuller, seed=7, client=no_trace, broker=small_files)

# %% [markdown]
# - Over 75 %: files that are old enough are deleted at any hour.
# - Over 85 %: the oldest files are deleted, **however young they are**.
# - Over 90 %: the same, and the broker rejects new messages until there is room.

# %% [answer] lab01.age
# ### Your turn: how old is old enough?
#
# The disk is 80 % full. Change `HOURS` and run the cell: what is the smallest age, in whole hours, at which a file is
# deleted?
#
# wrong seen: That is the age from the example above, and a file is deleted. Is it also deleted an hour earlier?
# wrong morning: That is 04:00 of the fourth day. On a disk that is over 75 % full the broker does not wait for it.
# wrong four: 04:00 is the hour at which the broker checks on an ordinary day. The question is how old a file must be.
# wrong: Run the cell with your number and with one less: a file must be deleted with the first, and none with the
#   second.
# note: On a disk over 75 % only the age counts, not the hour.

# %% tags=["parameter"]
HOURS = 24

old_files = disk_at(0.80, f"{HOURS}h")
print("kept:", kept(old_files))

# %%
### BEGIN SOLUTION
answer("lab01.age", 72, old_files)
### STARTER
# answer("lab01.age", ..., old_files)
### END SOLUTION

# %% [markdown]
# ## The real thing
#
# `datasets/` has two store directories of a **real RocketMQ 5.3.3 broker**, copied from its disk. `clean` was stopped
# properly. `killed` is the same store after a restart, a producer at full speed, and `kill -9`.

# %%
from mqlab.course.teach.datasets import real_store

clean = StoreInspector(real_store("clean"))
print(f"the log ends at {clean.max_physical_offset}, abort: {clean.is_open}")
columns = ["name", "begin_timestamp", "end_timestamp", "hash_slot_count", "entries"]
Table(clean.index_files(), columns=columns)

# %% [markdown]
# An index file is named after the time at which it was made, but a search reads the files whose header covers the
# requested time.

# %%
(message,) = clean.messages("tags", count=1)
clean.hexdump(message.physical_offset)

# %% [markdown]
# Your `read_unit` of the first part can read it. A store of this project opens the real one and continues it (this is
# your own copy):

# %%
with MessageStore.open(clean.directory) as store:
    print(store.recovery_report)
    print(store.put(Message("orders", "от нас".encode(), keys="ours"), queue_id=0))
    found = store.get("orders", queue_id=0, queue_offset=14, max_nums=4)
    rows = [
        (message.queue_offset, message.keys, message.body)
        for message in found.messages()
    ]
Table({"queue_offset": n, "keys": keys, "body": body} for n, keys, body in rows)

# %% [markdown]
# A copy of the killed store runs in a whole Lab, whose clock starts after the store's last message.

# %%
killed = StoreInspector(real_store("killed"))
print(f"the log ends at {killed.max_physical_offset}, abort: {killed.is_open}")
lab = Lab(stores={"broker-a": killed.directory})
report = lab.broker().store.recovery_report
print(report)
print("bytes cut:", killed.max_physical_offset - report.end_offset)
print("index files deleted and made again:", len(report.index_files_deleted))

# %% [markdown]
# Has recovery lost anything? That producer had 2350 answers `SEND_OK`, and the broker ran with `SYNC_FLUSH`:

# %%
sent_before = len(list(clean.messages("flow")))
there_now = len(list(lab.store().messages("flow")))
print("found of what was sent before the kill:", there_now - sent_before)

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **The disk here is simulated.** The lab counts synced pages and takes back the others. Real disks have their own
#   caches, and some of them report a sync that did not happen.
# - **A matching checksum covers only the body.** RocketMQ's recovery checks lengths, magic and body. A flipped bit in a
#   topic, a tag or a queue offset goes unnoticed (the switch `enabledAppendPropCRC` adds a sum over the whole unit).
#   The store of this project notices slightly more; docs/differences.md lists where it differs.
# - **One broker.** With a second copy on another machine, messages survive a power cut without `SYNC_FLUSH`.
# - **Speed.** The cost of a sync depends on the disk; this lab's clock does not charge for it.
# - Not opened here: the files of messages with a delay of any length (`timerwheel`, `timerlog`), which mqlab also
#   writes. Not modelled: files of batch and compaction topics, and the newer queues in RocksDB. [What is not
#   modelled](not-modelled.ipynb) has the whole list.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | flush | `CommitLog.FlushRealTimeService`, `CommitLog.GroupCommitService`, `StoreCheckpoint` |
# | recovery | `CommitLog.recoverAbnormally`, `checkMessageAndReturnSize` |
# | retention | `DefaultMessageStore.CleanCommitLogService`, `CleanConsumeQueueService` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | `SUCCESS` means it is on the disk | with `SYNC_FLUSH`; by default it is in the memory of the machine |
# | `bodyCRC` is a CRC-32 | with its highest bit cleared |
# | files are deleted after 72 hours | when they are that old *and* it is 04:00, or the disk is over 75 % |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab01.two_policies
# **1.** `SYNC_FLUSH` for the orders, `ASYNC_FLUSH` for page views: one broker has one policy. How would you run both?
#
# answer: Two brokers (or two groups of brokers) with different settings in one cluster, and each topic created on one
#   of them only. Producers and consumers learn from the name server where a topic is, so the programs do not change.

# %% [reflection] lab01.keep_behind
# **2.** Recovery cuts whole messages after a hole. When would you rather keep them, and what would have to change?
#
# answer: When each message is independent and losing one is worse than a gap, as with measurements. Queue offsets would
#   then have holes, so a consumer's "next" could point at nothing. A unit's length could no longer lead to the next
#   unit, so each unit would need a mark to find it by.

# %% [reflection] lab01.friday
# **3.** Your slowest group is 60 hours behind on a Friday evening. What do you do before you go home?
#
# answer: At 72 hours, at the next 04:00, the broker begins to delete what the group has not read. Raise
#   `fileReservedTime` on the brokers (it takes effect at run time), check the disk (over 75 % the hour does not count,
#   over 85 % not even the age), and find out why the group is slow.

# %% [markdown] tags=["reading"]
# ## Next
#
# Messages that a consumer could not handle are also stored in the log: [lab 07](07a-failure-takes-time.ipynb). In [lab
# 10](10a-spark-reads-the-broker.ipynb) Spark reads such a directory as a table. All labs: [index](index.ipynb).

# %% [markdown]
# # Lab 01: What the broker writes
#
# ## Why
#
# At 02:17 the power failed in the server room. At 02:40 the broker is running again, and the shop's log says: forty
# orders, forty times `SUCCESS`. The broker has none of them.
#
# "Impossible," says one colleague. "RocketMQ writes to disk. `SUCCESS` means it is on the disk."
#
# "Then the index is broken," says another. "The orders are there, we only cannot find them."
#
# Both opinions are about files. A broker has only five kinds of them, all short and plain, and in this lab you read
# every byte that it writes: with your own code, in files of your own broker and in those of a real one.

# %% [markdown]
# ## Objectives
#
# About 120 minutes. You need [lab 00](00-a-messages-day.ipynb) and a little of Python's `struct`. When you are done you
# can
#
# - name every field of a message in the log, of a queue entry and of an index entry, and read them from bytes;
# - say which of the files are written when a message is sent, and which later;
# - say what `SUCCESS` promises under each flush policy, and what a crash and a power cut take;
# - say when the broker deletes what nobody has read;
# - find where a damaged log ends, and rebuild a lost queue from it.

# %%
import struct
import tempfile
from pathlib import Path

from mqlab import Lab, Message, MessageQueue, play
from mqlab.store import MessageStore, StoreInspector
from mqlab.teach import check, hint, predict, reveal
from mqlab.views import Table
from mqlab.views.hexdump import Hexdump
from mqlab.wire import layout, record, units
from mqlab.wire.java_hash import index_key_hash, tags_code
from mqlab.wire.record import LAYOUT

# %% [markdown]
# Four orders in four seconds. The topic has one queue, message trace is off and the index has five slots instead of
# five million, so that what you see is short. Files are smaller than a real broker's. Nothing else differs.


# %%
def four_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number, pause in enumerate(["1900ms", "600ms", "400ms", "1s"]):
        body = ["книга", "三本书", "🎁 for Anna", "a lamp"][number]
        shop.send(Message("orders", body.encode(), tags="paid", keys=f"order-{number}"))
        lab.run_for(pause)


no_trace = {"enable_trace": False}
five_slots = {"max_hash_slot_num": 5, "max_index_num": 20}
lab = play(four_orders, seed=7, client=no_trace, broker=five_slots)
Table(lab.store().tree(), columns=["path", "kind", "bytes", "holds"])

# %% [markdown]
# `config` and `lock` aside, these are all of them. `commitlog` (提交日志) holds the messages. `consumequeue` (消费队列) and `index` (索引文件) lead to
# them. `checkpoint` (检查点) says how much is surely on the disk. `abort` is there while the broker runs, and is taken
# away by a clean stop (`abort.bak` is what stood in it before). Open them one by one.
#
# Look at the sizes first: the log has a file of 1 MiB (1 GiB on a real broker) for four orders, and a second one made
# ahead. **Files are full size from birth**, filled with zeros, so a file's length never says how much is in it.

# %% [markdown]
# ## The commit log, byte by byte
#
# One message in the log is a **unit**. There is nothing between two units: no padding, no separator. This is the
# layout, as a table, in the order of the bytes. All numbers are big-endian: `i32` is four bytes.

# %%
Table(LAYOUT, columns=["name", "kind", "meaning"])

# %% [markdown]
# And this is the second order. Every byte of it belongs to exactly one field.

# %%
first, second, third, fourth = lab.store().messages("orders")
lab.store().hexdump(second.physical_offset)

# %% [markdown]
# Three things to find in it:
#
# - **Two addresses** with ports of four bytes. An IPv6 address makes a host 20 bytes long instead of 8; bit `0x10`
#   (born host) or `0x20` (store host) of `sys_flag` says so. After an IPv6 host every field stands 12 bytes further.
# - **Two times**: when the sender sent it, when the broker stored it.
# - **`queue_offset`**: the message knows its own number in its queue. Where does the broker get that number from?

# %% [markdown]
# ### Predict
#
# A store can be used without a broker around it: `MessageStore.open(directory)`. With `dispatch=False` it writes the
# log and leaves queues and index alone, until it is told otherwise.

# %%
### BEGIN SOLUTION
predict("lab01.queue_offset", 2)
### STARTER
# predict("lab01.queue_offset", ...)
### END SOLUTION

# %%
### BEGIN SOLUTION
predict("lab01.by_key", 0)
### STARTER
# predict("lab01.by_key", ...)
### END SOLUTION

# %% [markdown]
# ### Run

# %%
folder = tempfile.TemporaryDirectory()
store = MessageStore.open(folder.name, dispatch=False)
keys = ["order-0", "order-1", "order-2"]
results = [store.put(Message("orders", b"a book", keys=key)) for key in keys]
for result in results:
    print(result)

# %%
files = StoreInspector(folder.name)
print("queues with a file:", files.topics(), "  index files:", files.index_files())
reveal("lab01.queue_offset", results[2].queue_offset)

# %%
answers = [store.query("orders", key) for key in keys]
reveal("lab01.by_key", sum(len(answer.records) for answer in answers))

# %% [markdown]
# ### Look
#
# The messages are stored, numbered and answered, and nobody can see them. Now let the store **dispatch** (分发): it walks
# along the log and makes, for each unit, one entry in its queue and one in the index for each key.

# %%
before = store.get("orders", queue_id=0, queue_offset=0)
dispatched = store.dispatch()
after = store.get("orders", queue_id=0, queue_offset=0)
print("before:", before)
print("units dispatched:", dispatched)
print("after: ", after)
print("by key:", store.query("orders", "order-1"))
store.shutdown()

# %% [markdown]
# In a broker this happens within a millisecond or so, on a thread of its own. But it is a step of its own: a broker
# that dies in between has the message and lacks the entries. Recovery has to make them, and can: all they say is in the
# unit.

# %% [markdown]
# ### Exercise 1: decode a unit
#
# Write `read_unit`. `log` is bytes with several units in it; one begins at `start`. It may have IPv6 hosts. Its magic
# may be `DAA320AB` (V2, for long topics): then the topic's length takes two bytes instead of one. The body is returned as
# it is stored. Properties are text: `name 0x01 value 0x02 name 0x01 value 0x02 …`
#
# Stuck? `hint("lab01.unit")` in a cell of your own gives the first of three hints; asking is free.


# %%
# exercise: lab01.unit
def read_unit(log, start):
    """The unit at byte start of log, as a dictionary.

    size, queue_offset, physical_offset, store_timestamp: numbers; body: bytes;
    topic: text; properties: a dictionary of texts.
    """
    ### BEGIN SOLUTION
    head = struct.unpack_from(">5iqqi", log, start)
    size, magic, queue_offset, place, sys_flag = (head[n] for n in (0, 1, 5, 6, 7))
    at = start + 48 + (20 if sys_flag & 0x10 else 8)
    (stored,) = struct.unpack_from(">q", log, at)
    at += 8 + (20 if sys_flag & 0x20 else 8) + 4 + 8
    parts = []
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
        (length,) = struct.unpack_from(kind, log, at)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += length
    pairs = [part.partition("\x01") for part in parts[2].decode().split("\x02") if part]
    return {
        "size": size,
        "queue_offset": queue_offset,
        "physical_offset": place,
        "store_timestamp": stored,
        "body": parts[0],
        "topic": parts[1].decode(),
        "properties": {name: value for name, _, value in pairs},
    }
    ### END SOLUTION


# %%
check("lab01.unit")

# %% [markdown]
# ## The consume queue: twenty bytes a message
#
# An entry says where the message is, how long its unit is, and a code of its tag. This is the second order's.

# %%
queue = lab.store().queue("orders", 0)
Hexdump(queue.hexdump(1).fields, base=20)

# %%
queue.table()

# %% [markdown]
# The consumer's whole way to a message is: entry *n* is at byte 20 · *n*, its first 12 bytes lead to the unit.
#
# All four orders are tagged `paid`, and all four have the same `tags_code` (标签哈希). It is Java's `String.hashCode` of
# the tag: begin with 0; for each 16-bit unit of the text, `hash = 31 * hash + unit`; keep 32 bits, with a sign. The entry
# has eight bytes for it. (In the topic of delayed messages they hold the delivery time instead: lab 08.)
#
# ### Exercise 2: Java's hash, as the entry holds it


# %%
# exercise: lab01.tags
def tag_bytes(tags):
    """The last 8 bytes of the queue entry of a message with these tags.

    tags is one text, or None for a message without tags.
    """
    ### BEGIN SOLUTION
    data = (tags or "").encode("utf-16-be")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
    ### END SOLUTION


# %%
check("lab01.tags")

# %% [markdown]
# ## What does "offset" point at?
#
# ### Predict
#
# Two questions about the number with which a consumer moves along a queue.

# %%
### BEGIN SOLUTION
predict("lab01.committed", 3)
### STARTER
# predict("lab01.committed", ...)
### END SOLUTION

# %%
### BEGIN SOLUTION
predict("lab01.next_begin", 8)
### STARTER
# predict("lab01.next_begin", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def billing(lab, name):
    consumer = lab.push_consumer("billing", name=name)
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: "CONSUME_SUCCESS")
    consumer.start()
    lab.run_for("12s")
    return consumer


def two_lives(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(5):
        if number == 3:
            billing(lab, "first-life").shutdown()
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    billing(lab, "second-life")


# %%
lab = play(two_lives, seed=7, client=no_trace)
_, committed = lab.journal.changes("offset.committed")[0]
print("committed:", committed)
Table(lab.deliveries("billing"), columns=["queue_offset", "client", "status"])

# %%
second_life = [row for row in lab.deliveries("billing") if "second" in row.client]
reveal("lab01.committed", second_life[0].queue_offset)


# %%
def one_refund(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(8):
        tag = "refund" if number == 2 else "paid"
        shop.send(Message("orders", b"a book", tags=tag))
    lab.run_for("1s")


lab = play(one_refund, seed=7, client=no_trace)
queue = MessageQueue("orders", "broker-a", 0)
answer = lab.pull_consumer("audit").pull(queue, "refund", 0, max_nums=32)
print("messages:", [message.queue_offset for message in answer.msg_found_list])
reveal("lab01.next_begin", answer.next_begin_offset)

# %% [markdown]
# ### Files that roll
#
# A queue and a log that grow get new files. A file's name is the place of its first byte, as twenty digits, counted
# from the beginning of the queue or the log. With a log of 2 KiB files and queue files of ten entries:

# %%
small_files = {
    "mapped_file_size_commit_log": 2048,
    "mapped_file_size_consume_queue": 200,
}


def forty_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(40):
        shop.send(Message("orders", f"book {number}".encode(), keys=f"order-{number}"))
    lab.run_for("1s")
    return shop


# %%
lab = play(forty_orders, seed=7, client=no_trace, broker=small_files)
kinds = ("commit log", "consume queue")
rows = [row for row in lab.store().tree() if row.kind in kinds]
Table(rows, columns=["path", "bytes", "holds"])

# %% [markdown]
# No unit crosses the border of two log files. What would not fit goes into the next file, and what is left of this one
# is filled by a **BLANK**: eight bytes that say how much is left, and that nothing follows here. At least these eight
# bytes are always kept free.

# %%
place, size = lab.store().blanks()[0]
print(f"The first file's BLANK is at {place} and stands for {size} bytes.")
lab.store().hexdump(place)

# %% [markdown]
# ### Exercise 3: look up a message by its queue offset
#
# Write `read_next`: what the broker does when a group asks for its next message. You get the offset that the group has
# committed, and the files of the queue and of the log, as dictionaries `{name: bytes}`. **The oldest files of both may
# be gone already.** Files of one folder are all equally long. Unwritten bytes are zeros.


# %%
# exercise: lab01.lookup
def read_next(committed, queue_files, log_files):
    """The message that a group reads next.

    Returns a tuple of two: the bytes of its unit, and the offset that the group commits
    when it is done with it. (None, committed) if there is nothing to read yet.
    """
    ### BEGIN SOLUTION

    def piece(files, place, size):
        length = len(next(iter(files.values())))
        begin = place - place % length
        return files.get(f"{begin:020d}", b"")[place - begin :][:size]

    entry = piece(queue_files, 20 * committed, 20)
    place, size, _ = struct.unpack(">qiq", entry) if entry else (0, 0, 0)
    if size == 0:
        return None, committed
    return piece(log_files, place, size), committed + 1
    ### END SOLUTION


# %%
check("lab01.lookup")

# %% [markdown]
# ## The index: from a key to places
#
# An index file is a hash table on the disk: a header, *S* slots, then entries. A slot holds the number of its newest
# entry, an entry the number of the one before it in the same slot. So each slot is the head of a **chain** (链表).
#
# ### Predict
#
# Back to the four orders, with five slots.

# %%
### BEGIN SOLUTION
predict("lab01.first_entry", 80)
### STARTER
# predict("lab01.first_entry", ...)
### END SOLUTION

# %%
### BEGIN SOLUTION
predict("lab01.time_diff", 1)
### STARTER
# predict("lab01.time_diff", ...)
### END SOLUTION

# %% [markdown]
# ### Run: header, slot, chain

# %%
lab = play(four_orders, seed=7, client=no_trace, broker=five_slots)
index = lab.store().index
name = index.names()[0]
data = Path(index.folder, name).read_bytes()
Hexdump(index.hexdump(name).fields)

# %% [markdown]
# Eight entries for four orders: each is entered under its key and under its unique id, which every message has. The
# next free entry is number 9. Where in the file does the first order's place stand, and what is before it?

# %%
table = index.table(name)
first_entry = next(at for at in range(60, len(data), 20) if any(data[at : at + 20]))
reveal("lab01.first_entry", first_entry)

# %% [markdown]
# Now find `order-2`. The hash is made of topic *and* key, and decides the slot:

# %%
key_hash = index_key_hash("orders#order-2")
slot = key_hash % 5
print(f"hash {key_hash} % 5 = slot {slot}, at byte 40 + 4 * {slot}")
Hexdump(units.index_slot_field_map(data, 40 + 4 * slot), base=40 + 4 * slot)

# %% [markdown]
# And this is the chain that hangs on it, newest first; then the same, byte by byte.


# %%
def entry_row(number):
    names = ("key_hash", "physical_offset", "seconds", "previous")
    values = dict(zip(names, table.entry(number), strict=True))
    return {"entry": number, "byte": table.entry_position(number)} | values


Table(map(entry_row, table.chain(key_hash)), title=f"the chain of slot {slot}")

# %%
from IPython.display import display

for number in table.chain(key_hash):
    display(index.hexdump(name, number))

# %% [markdown]
# Only one of these entries has our hash, the others are unique ids that fell on the same slot, one of them that of
# another order. The key itself is nowhere in the file.
#
# The second order was stored 1,900 ms after the first. Its entries:

# %%
rows = [entry_row(number) for number in range(1, table.entries + 1)]
mine = [row for row in rows if row["physical_offset"] == second.physical_offset]
Table(mine)

# %%
print("stored", second.store_timestamp - first.store_timestamp, "ms after the first")
reveal("lab01.time_diff", mine[0]["seconds"])

# %% [markdown]
# ### Exercise 4: query an index chain
#
# Write `places`. A real index file has 400 MB, so you do not get its bytes but a function: `read(position, size)` gives
# so many bytes from there, at most 40 at once. Who follows the chain reads the header, the slot, and the chain's entries;
# the check counts. An entry's time is the file's `begin_timestamp` plus its seconds. `index_key_hash` is given.


# %%
# exercise: lab01.index
def places(read, slots, topic, key, begin_ms, end_ms):
    """The physical offsets under a key, newest first, as a list.

    read(position, size): bytes of one index file, which has so many slots. Taken are
    entries with the key's hash and begin_ms <= time <= end_ms.
    """
    ### BEGIN SOLUTION
    wanted = index_key_hash(f"{topic}#{key}")
    (begin_timestamp,) = struct.unpack(">q", read(0, 8))
    (number,) = struct.unpack(">i", read(40 + 4 * (wanted % slots), 4))
    found = []
    while number:
        at = 40 + 4 * slots + 20 * number
        key_hash, place, seconds, number = struct.unpack(">iqii", read(at, 20))
        stored_ms = begin_timestamp + 1000 * seconds
        if key_hash == wanted and begin_ms <= stored_ms <= end_ms:
            found.append(place)
    return found
    ### END SOLUTION


# %%
check("lab01.index")

# %% [markdown]
# ## Flush: what SUCCESS promises
#
# Writing puts bytes into the memory of the operating system (the page cache, 页缓存). There every program sees them, and
# a killed broker does not take them along. Only **flushing** (刷盘) puts them on the disk. When does a broker flush?
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab01.power", 0)
### STARTER
# predict("lab01.power", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def outage(policy, fault):
    """Forty orders, a fault, a restart: how many are there?"""

    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(40):
            shop.send(Message("orders", b"a book", keys=f"order-{number}"))
            lab.run_for("100ms")
        fault(lab, "broker-a")
        lab.start("broker-a")

    lab = play(story, seed=7, client=no_trace, broker={"flush_disk_type": policy})
    return len(list(lab.store().messages("orders")))


# %%
rows = []
for policy in ("ASYNC_FLUSH", "SYNC_FLUSH"):
    killed, power_cut = outage(policy, Lab.kill), outage(policy, Lab.power_off)
    rows.append(
        {"policy": policy, "after kill -9": killed, "after a power cut": power_cut}
    )
Table(rows, title="40 orders, all answered SUCCESS: how many are there after a restart")

# %%
reveal("lab01.power", rows[0]["after a power cut"])

# %% [markdown]
# That was the night at 02:17. Nothing was broken: the broker kept what it had promised. Under `ASYNC_FLUSH` (异步刷盘),
# the default, `SUCCESS` survives the death of the process and not that of the machine. Under `SYNC_FLUSH` (同步刷盘) the
# answer waits for the disk, and all messages that wait at the same moment share one flush.
#
# A power cut at 100 ms after the last flush and one at 9 seconds after it differ much. This is when the log was flushed
# while one order came every 100 ms for half a minute:


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
# Sometimes four pages came together first, sometimes ten seconds passed first. What is the disk lacking at this moment?
# The lab's files keep count of every page (4 KiB) that is written and not yet synced. (Index files are synced when they
# are full; after a crash the broker throws the last one away and makes it again.)


# %%
def unsynced_page(part):
    path = Path(part.path).relative_to(Path(lab.store().directory).absolute())
    return {"file": str(path), "page": part.page}


parts = lab.broker().files.unsynced()
Table(unsynced_page(part) for part in parts if part.kind == "page")

# %% [markdown]
# ### The checkpoint
#
# After a flush the broker notes in `checkpoint` until when everything is on the disk: 4096 bytes, of which five numbers
# are used. Recovery begins 3 seconds before the older of the first two. This is the file of the run above:

# %%
meanings = {
    "physic_msg_timestamp": "store time of the last message flushed in the log",
    "logics_msg_timestamp": "store time of the last message entered in a queue",
    "index_msg_timestamp": "last store time in the last index file that became full",
    "master_flushed_offset": "how far the log was copied; 0 without a copy",
    "confirm_physical_offset": "where the last recovery found the last whole unit",
}
specs = [layout.FieldSpec(name, "i64", text) for name, text in meanings.items()]
data = Path(lab.store().directory, "checkpoint").read_bytes()
Hexdump(layout.number_fields(specs, data))

# %% [markdown]
# The first number is from the flush at 20 seconds: only the ten-second flushes move it, and the file follows within a
# second, so the flush at 30 seconds is not in it yet. The second is still 0: queues are flushed when two whole pages are
# waiting, else once a minute. (RocketMQ moves this number with every entry, synced or not; docs/differences.md says why
# this project does not.)

# %% [markdown]
# ## Break it: a page is missing
#
# A disk does not write pages in the order in which they were made. So after a power cut an older page may be missing
# while newer ones are there. Sixty orders, the machine dies, and of the log's four pages the disk has all but the
# third (page 2):


# %%
def torn(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(60):
        shop.send(Message("orders", "一本书".encode(), keys=f"order-{number}"))
    lab.kill("broker-a")
    lab.broker().files.power_cut(keep=lambda part: part.page != 2)


lab = play(torn, seed=7, client=no_trace)
Table(lab.store().problems(), columns=["kind", "physical_offset", "text"])

# %% [markdown]
# The broker is still off. Its files contradict each other: the queue has entries for all sixty orders, the log has a
# hole. `abort` is there, so the broker knows that it did not stop cleanly. Start it:

# %%
print(f"readable before: {len(list(lab.store().messages('orders')))}")
lab.start("broker-a")
report = lab.broker().store.recovery_report
print(report)
print("why there:", report.stop_reason)
print(f"readable now: {len(list(lab.store().messages('orders')))}")
print(f"the queue: {lab.store().queue('orders', 0)}")

# %% [markdown]
# **Recovery** (恢复) walks along the log and stops at the first unit that is not whole. Everything behind it is cut off,
# units that are whole too, and the queues are cut to match. A queue without holes is worth more than a few messages: its
# offsets must go up by one.
#
# ### Exercise 5: find the valid end of a torn log
#
# A unit is whole when its lengths add up, its magic is right, and the body (if it is not empty) fits `body_crc`: CRC-32
# with the highest bit cleared. You are given the first half:


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


# %% [markdown]
# In these logs all hosts are IPv4: body length at byte 84 of a unit, body from byte 88. `zlib.crc32` computes the sum.

# %%
import zlib


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

# %% [markdown]
# ## Break it: the queues are gone
#
# Somebody has deleted `consumequeue` while the broker was down.

# %%
import shutil


def lose_the_queues(lab):
    four_orders(lab)
    lab.kill("broker-a")
    shutil.rmtree(Path(lab.store().directory, "consumequeue"))
    lab.run_for("1s")


lab = play(lose_the_queues, seed=7, client=no_trace)
print("queues:", lab.store().topics())
lab.start("broker-a")
lab.store().queue("orders", 0).table()

# %% [markdown]
# All there, with the offsets they had. Queues (and index) are only a faster way into the log.
#
# ### Exercise 6: rebuild a consume queue
#
# Write `rebuild`. `units` are the units that the log still has, in order, each as bytes; **the beginning of the log is
# deleted**. `record.decode(unit)` reads one, `tags_code(tags)` is given, `property_map["TAGS"]` is the tag if there is
# one.


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

# %% [markdown]
# ## Retention: what the broker deletes
#
# The log grows for ever, the disk does not. The broker deletes whole files, the oldest first, never the last one. Whether
# anybody has read them is no question (过期文件清理).
#
# ### Predict
#
# The lab's clock begins on 1 January at 00:00; all forty orders are sent in its first second. (The broker reports to the
# name server every minute instead of every 30 seconds, so that three days are played sooner.)

# %%
### BEGIN SOLUTION
predict("lab01.retention", 76)
### STARTER
# predict("lab01.retention", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def three_days(lab):
    forty_orders(lab).shutdown()
    lab.run_until("store.cleaned", limit="5d")


slow_reports = small_files | {"register_name_server_period": 60_000}
lab = play(three_days, seed=7, client=no_trace, broker=slow_reports)
step, cleaned = lab.journal.changes("store.cleaned")[0]
hours = (step.now_ms - lab.began_ms) // 3_600_000
print(cleaned)
reveal("lab01.retention", hours)

# %% [markdown]
# ### Look
#
# No consumer has ever read these orders. The log now begins later, queue files that only led to deleted messages are
# gone too, and the queue's smallest offset has moved:

# %%
queue = lab.store().queue("orders", 0)
print(queue, "  the log begins at", lab.store().min_physical_offset)
for offset in (0, queue.min_offset, queue.max_offset):
    print(f"get from {offset}:", lab.broker().store.get("orders", 0, offset))

# %% [markdown]
# A group that stood at 0 is told to go on at the smallest offset. What was before it is lost for that group, without any
# error in its log. This is the honest answer to lab 00's question whether messages wait.
#
# ### A full disk
#
# 04:00 is for quiet nights. The share of the disk that is used (`lab.broker().files.disk_used`) makes the broker act at
# once; it looks every ten seconds.


# %%
def disk_at(ratio):
    def story(lab):
        forty_orders(lab)
        lab.broker().files.disk_used = ratio
        lab.broker().store.retention.arm()
        lab.run_for("70s")

    lab = play(story, seed=7, client=no_trace, broker=small_files)
    kept = lab.store().queue("orders", 0)
    answer = lab.broker().store.put(record.Record("orders", b"one more"))
    orders = f"{kept.min_offset} to {kept.max_offset - 1}"
    return {"disk used": ratio, "orders kept": orders, "one more": answer.status}


# %%
Table(disk_at(ratio) for ratio in (0.50, 0.80, 0.87, 0.92))

# %% [markdown]
# - Over 75 %: files that are old enough go, at any hour. Ours are a minute old, so nothing goes.
# - Over 85 %: the oldest files go, **however young they are**.
# - Over 90 %: the same, and the broker takes no more messages until there is room.

# %% [markdown]
# ## The real thing
#
# `datasets/` holds two store directories of a **real RocketMQ 5.3.3 broker**, as they were on its disk. `clean` was
# stopped properly. `killed` is the same store after the broker was started again, a producer sent as fast as it could,
# and the broker got `kill -9`. Everything you have learnt must hold for them.

# %%
from mqlab.teach.datasets import real_store

clean = StoreInspector(real_store("clean"))
print(f"the log ends at {clean.max_physical_offset}, abort: {clean.is_open}")
columns = ["name", "begin_timestamp", "end_timestamp", "hash_slot_count", "entries"]
Table(clean.index_files(), columns=columns)

# %%
(message,) = clean.messages("tags", count=1)
clean.hexdump(message.physical_offset)

# %% [markdown]
# A unit like ours. If your `read_unit` is done, it can read this too. Try it:
# `read_unit(Path(clean.directory, "commitlog", "0" * 20).read_bytes(), message.physical_offset)`.
#
# A store of this project opens the real one and goes on with it (this is a copy of your own; do what you like):

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
# And the killed one: a whole lab on a copy of it. The clock starts after its last message.

# %%
killed = StoreInspector(real_store("killed"))
print(f"the log ends at {killed.max_physical_offset}, abort: {killed.is_open}")
lab = Lab(stores={"broker-a": killed.directory})
report = lab.broker().store.recovery_report
print(report)
print("bytes cut:", killed.max_physical_offset - report.end_offset)
print("index files deleted and made again:", len(report.index_files_deleted))

# %% [markdown]
# Recovery did not read everything: it began at the newest log file whose first message is 3 seconds older than what the
# checkpoint vouches for. Has it lost anything? That producer had 2350 answers `SEND_OK`, and the broker ran with
# `SYNC_FLUSH`:

# %%
sent_before = len(list(clean.messages("flow")))
there_now = len(list(lab.store().messages("flow")))
print("found of what was sent before the kill:", there_now - sent_before)

# %% [markdown]
# ## What this does not prove
#
# - **The disk here is simulated.** The lab counts pages that were synced and takes back the others. Real disks have
#   caches of their own, and some of them lie about a sync.
# - **A body that fits its check sum says nothing about the rest.** RocketMQ's recovery checks lengths, magic and body.
#   One flipped bit in a topic, a tag or a queue offset goes unnoticed (a switch, `enabledAppendPropCRC`, adds a sum over
#   the whole unit). The store of this project notices a little more; docs/differences.md lists where it differs.
# - **One broker.** With a second copy on another machine a power cut is survived without `SYNC_FLUSH` (lab 02).
# - **Speed.** What a sync costs depends on the disk; this lab's clock does not charge for it.
# - Not opened: files of delayed messages with any time (`timerwheel`), of batch and compaction topics, and the newer
#   queues in RocksDB. [What is not modelled](not-modelled.ipynb) has the whole list.

# %% [markdown]
# ## RocketMQ does it so
#
# | what | where in RocketMQ |
# |---|---|
# | the unit | `MessageExtEncoder.encode`, `MessageDecoder.decode` |
# | append, BLANK | `CommitLog.asyncPutMessage`, `CommitLog.DefaultAppendMessageCallback.doAppend`, `MappedFileQueue` |
# | the next queue offset | `QueueOffsetOperator` (called `ConsumeQueueStore.assignQueueOffset`) |
# | dispatch | `DefaultMessageStore.ReputMessageService`, `CommitLogDispatcherBuildConsumeQueue`, `…BuildIndex` |
# | entry, tag code | `ConsumeQueue.putMessagePositionInfo`, `MessageExtBrokerInner.tagsString2tagsCode` |
# | index | `IndexService`, `IndexFile.putKey`, `IndexFile.selectPhyOffset`, `IndexHeader` |
# | flush | `CommitLog.FlushRealTimeService`, `CommitLog.GroupCommitService`, `StoreCheckpoint` |
# | recovery | `CommitLog.recoverAbnormally`, `checkMessageAndReturnSize` |
# | retention | `DefaultMessageStore.CleanCommitLogService`, `CleanConsumeQueueService` |
#
# Where you may read it differently:
#
# | you may read | it is |
# |---|---|
# | slot *s* is at 40 + (*s* − 1) · 4, entries follow the slots at once | slots count from 0; entry 0 is a gap |
# | `timeDiff` is in milliseconds | whole seconds |
# | the index's slot count is the number of slots | the number of slots in use |
# | the tag code is an 8-byte hash | a 32-bit hash with its sign, or a delivery time |
# | the queue offset is taken from the queue's file | from a table in memory, and written into the unit |
# | the committed offset is the last message read | the next one to read |
# | the index is written with the message | dispatched afterwards, like the queue |
# | `bodyCRC` is a CRC-32 | with its highest bit cleared |
# | files are deleted after 72 hours | when they are that old *and* it is 04:00, or the disk is over 75 % |

# %% [markdown]
# ## Reflect
#
# - `SYNC_FLUSH` for the orders, `ASYNC_FLUSH` for page views: one broker has one policy. How would you run both?
# - Why does an entry hold the unit's size, although the unit begins with it?
# - Recovery cuts whole messages behind a hole. When would you rather keep them, and what would have to change?
# - Your slowest group is 60 hours behind on a Friday evening. What do you do before you go home?

# %% [markdown]
# ## Next
#
# You know what is on the disk. What a broker does with a message that its consumer could not handle is written there too:
# [lab 07](07a-failure-takes-time.ipynb). And the files can be asked in bulk: in
# [lab 10](10-spark-reads-the-broker.ipynb) Spark reads such a directory as a table. All labs: [index](index.ipynb).

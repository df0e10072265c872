# %% [markdown] tags=["reading"]
# # 01b Offsets and index: finding a message
#
# ## Why
#
# "The index is broken," said the second colleague at 02:40. "We just cannot find the orders." Consumers find a message
# by its number in the queue, people by its key. You write both searches.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](01a-what-the-broker-writes.ipynb). Afterwards you can
#
# - say what *offset* points at wherever you meet the word;
# - look up a message by its queue offset in files that have rolled;
# - follow the chain of an index slot, and name what the index does not contain.

# %%
import struct
from pathlib import Path

from mqlab import Message, MessageQueue, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.lab.views import Table
from mqlab.rocketmq.wire.java_hash import index_key_hash

no_trace = {"enable_trace": False}

# %% [markdown]
# ## What does "offset" point at?

# %% [prediction] lab01.committed
# Billing has read orders 0, 1 and 2 of a queue of five, and its committed offset is 3. It is started again. Which order
# does it get first?
#
# - 3: order 3
#   = The committed offset is the next message to read.
# - 4: order 4; 3 is the last one it has read
#   > It has read 0, 1 and 2. A consumer that adds one to its committed offset loses a message at every restart.
# - 2: order 2; the last one may not have been finished
#   > It was finished, and the offset was committed afterwards. The deliveries after the restart begin at 3.
# note: A committed offset always names the next message.

# %% [prediction] lab01.next_begin
# A queue holds orders 0 to 7, and only order 2 is tagged `refund`. A consumer of `refund` pulls from 0 and gets order
# 2. From which offset will it pull next?
#
# - 3: from 3, after the message it got
#   > Then the broker would scan orders 3 to 7 again at every pull. The answer's `nextBeginOffset` is past everything
#   > that it has scanned.
# - 8: from 8
#   = The broker has scanned all eight entries and returns the offset after them.
# - 1: from 1; it has got one message
#   > The number counts entries of the queue, not messages that passed the filter.
# note: `nextBeginOffset` follows the last entry scanned, which may be later than the last message returned. A client
#   uses that number unchanged.


# %% tags=["parameter"]
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
pulled = lab.pull_consumer("audit").pull(queue, "refund", 0, max_nums=32)
print("messages:", [message.queue_offset for message in pulled.msg_found_list])
reveal("lab01.next_begin", pulled.next_begin_offset)

# %% [markdown]
# ## Files that roll
#
# A file's name is the position of its first byte in the queue or the log, as twenty digits. Here with log files of 2
# KiB and queue files of ten entries:


# %%
def forty_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(40):
        shop.send(Message("orders", f"book {number}".encode(), keys=f"order-{number}"))
    lab.run_for("1s")


# %%
def small_files(log_file):
    sizes = {
        "mapped_file_size_commit_log": log_file,
        "mapped_file_size_consume_queue": 200,
    }
    return play(forty_orders, seed=7, client=no_trace, broker=sizes)


# %% tags=["parameter"]
LOG_FILE = 2048

rolled = small_files(LOG_FILE)
kinds = ("commit log", "consume queue")
rows = [row for row in rolled.store().tree() if row.kind in kinds]
Table(rows, columns=["path", "bytes", "holds"])

# %% [markdown]
# No unit crosses the border of two log files. A unit that does not fit goes into the next file, and a **BLANK** fills
# the rest of this one: eight bytes that give the remaining size and mark the end. The broker always keeps room for
# these eight bytes.

# %%
place, size = rolled.store().blanks()[0]
print(f"The first file's BLANK is at {place} and stands for {size} bytes.")
rolled.store().hexdump(place)

# %% [answer] lab01.roll
# ### Your turn: another size
#
# Change `LOG_FILE` to 1152 and run its cell. How many orders are in the first file of the log now?
#
# wrong division: That is the size of the file divided by the size of the first order. Is there room for the eight bytes
#   that must stay free?
# wrong: Run the cell with LOG_FILE = 1152, then the cell of the table, and count the orders whose place is less than 1152.
# note: Five orders of 230 bytes are 1,150 bytes: they would fit, but without the eight bytes that a BLANK needs.

# %%
first_orders = [row for row in rolled.copies() if row.place < 2048]
Table(first_orders, columns=["place", "topic", "queue_offset"])

# %%
### BEGIN SOLUTION
rolled = small_files(1152)
answer("lab01.roll", 4, rolled)
### STARTER
# answer("lab01.roll", ..., rolled)
### END SOLUTION

# %% [exercise] lab01.lookup
# ### Exercise 1: look up a message by its queue offset
#
# Write `read_next`, which does what the broker does when a group asks for its next message. You get the group's
# committed offset, and the files of the queue and of the log, as dictionaries `{name: bytes}`. **The oldest files of
# both may already be deleted.** All files of a folder have the same length. Unwritten bytes are zeros. (Use `struct`;
# `mqlab`'s store and its readers of entries are not allowed in this exercise.)
#
# hint: Entry n is at byte 20 * n of the queue. Which of the files holds that byte? A file's name is the number of its
#   first byte.
# hint: All files of one folder are equally long: begin = position - position % length, name = f"{begin:020d}". The same
#   works for the log.
# hint: If there is no such file, or the entry's size is 0, return (None, committed). Otherwise return the unit and
#   committed + 1, which the group commits when it is done.
# note: One multiplication and two reads, however long the queue is. A group can therefore go back to any message that
#   still exists.


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

# %% [belief] lab01.commits_what_was_read
# question: A group has read message 5. What does it commit?
# claim: 5.
# refutation: 6. The committed offset is the next message to read: a reader adds nothing before reading and one after
#   it.

# %% [belief] lab01.first_file_is_0
# question: The first two files of a queue were deleted. What is the number of its first entry?
# claim: 0.
# refutation: Offsets continue. Entry n begins at byte 20 * n of the queue; a file's name is the number of its first
#   byte.

# %% [belief] lab01.log_from_first_file
# question: The first files of the log were deleted. Where is byte 0 now?
# claim: At the beginning of the first file that is there.
# refutation: Nowhere. A physical offset counts from the first byte the log ever had; a file's name is its first
#   byte's offset.

# %% [belief] lab01.committed_is_last
# question: A group's committed offset is 5. Which message does it read next?
# claim: 6.
# refutation: 5. The committed offset is the next message to read: a reader adds nothing before reading and one after
#   it.

# %% [belief] lab01.unit_is_its_body
# question: An entry leads to a message. Which bytes of the log belong to it?
# claim: Those of its body.
# refutation: All bytes of its unit: they start at the entry's position, and the entry's size counts them.

# %% [belief] lab01.zero_is_nothing
# question: An entry names position 0. Where is its message?
# claim: Nowhere; a zero means that nothing was written.
# refutation: A position of 0 is the log's first byte, and a code of 0 means no tags. Only a size of 0 means that no entry
#   is written yet.

# %% [belief] lab01.zeros_are_entries
# question: A queue's file has room for 6 entries. How many does the queue have?
# claim: Six.
# refutation: As many as were written. Where no entry is written yet, there is nothing to read, and the offset stays the
#   same.

# %% [markdown]
# ## The index: from a key to positions
#
# An index file is a hash table on disk: a header, *S* slots, then entries. A slot contains the number of its newest
# entry, and an entry that of the previous one in the same slot: each slot is the head of a **chain** (链表). Four orders,
# and five slots instead of five million:


# %%
def four_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number, pause in enumerate(["1900ms", "600ms", "400ms", "1s"]):
        shop.send(Message("orders", b"a book", tags="paid", keys=f"order-{number}"))
        lab.run_for(pause)


def with_slots(slots):
    few = {"max_hash_slot_num": slots, "max_index_num": 20}
    return play(four_orders, seed=7, client=no_trace, broker=few)


# %% [prediction] lab01.first_entry
# An index file begins with 40 bytes of header, then S slots of 4 bytes, then entries of 20 bytes. S is 5. At which byte
# does the first entry that is ever written begin?
#
# - 60: at 60, right after the slots
#   > The 20 bytes of entry 0, from 60 to 79, stay unused: entries are numbered from 1, because 0 in a slot means empty.
# - 80: at 80
#   = Entries are numbered from 1.
# - 56: at 56; slots are numbered from 1, so the first is at 36
#   > Slots count from 0: slot s is at 40 + 4 * s. The hexdump of the file shows it.
# note: Entry n is at 40 + 4 * S + 20 * n, and the first one has the number 1.

# %% [prediction] lab01.time_diff
# An index entry contains no time, only the difference from the file's first entry. The second order is stored 1,900 ms
# after the first. What does its entry contain?
#
# - 1900: 1900, milliseconds
#   > Four bytes of milliseconds would be full after 24 days. The entry counts whole seconds.
# - 1: 1, whole seconds, truncated
#   = Whole seconds: enough for 68 years.
# - 2: 2, whole seconds, rounded
#   > RocketMQ truncates the seconds and does not round them.
# note: A search that begins at the exact store time of a message may therefore miss it.

# %%
lab = with_slots(5)
index = lab.store().index
name = index.names()[0]
index.hexdump(name)

# %% [markdown]
# Where in the file is the first order's position, and what comes before it?

# %%
data = Path(index.folder, name).read_bytes()
first_entry = next(at for at in range(60, len(data), 20) if any(data[at : at + 20]))
reveal("lab01.first_entry", first_entry)

# %% [markdown]
# Now find `order-2`. The hash of topic *and* key decides the slot:

# %%
key_hash = index_key_hash("orders#order-2")
slot = key_hash % 5
print(f"hash {key_hash} % 5 = slot {slot}, at byte 40 + 4 * {slot}")
index.hexdump(name, slot=slot)

# %% [markdown]
# All chains, newest first, with the one of `order-2`'s slot highlighted:

# %%
first, second, third, fourth = lab.store().messages("orders")
lab.store_map(third)


# %%
def entry_row(table, number):
    names = ("key_hash", "physical_offset", "seconds", "previous")
    values = dict(zip(names, table.entry(number), strict=True))
    return {"entry": number, "byte": table.entry_position(number)} | values


def chain(lab, key):
    index = lab.store().index
    table = index.table(index.names()[0])
    return [entry_row(table, n) for n in table.chain(index_key_hash(f"orders#{key}"))]


Table(chain(lab, "order-2"), title=f"the chain of slot {slot}")

# %% [markdown]
# Only one of these entries has our hash; the others share the slot. The file does not contain the key itself. One
# entry, byte by byte:

# %%
index.hexdump(name, chain(lab, "order-2")[0]["entry"])

# %% [markdown]
# The second order was stored about 1,900 ms after the first. Its entries:

# %%
table = index.table(name)
rows = [entry_row(table, number) for number in range(1, table.entries + 1)]
mine = [row for row in rows if row["physical_offset"] == second.physical_offset]
Table(mine)

# %% [markdown]
# Each order has two entries: one for its key, as `orders#order-1`, and one for the unique id that every message has. So
# the index also contains messages without a key.

# %%
print("stored", second.store_timestamp - first.store_timestamp, "ms after the first")
reveal("lab01.time_diff", mine[0]["seconds"])

# %% [answer] lab01.one_slot
# ### Your turn: fewer slots
#
# Only a slot says where a search begins. Change `SLOTS` to 1 and run the cell. How many entries does a search for
# `order-0` read?
#
# wrong orders: Each order is entered twice: under its key and under its unique id.
# wrong one: The search takes only one entry, but it must read every entry of the chain to know which one.
# wrong: Count the rows of the chain with one slot.
# note: The chain has every entry of the file. A real file has 5,000,000 slots for at most 20,000,000 entries, so a
#   chain has four on average.

# %% tags=["parameter"]
SLOTS = 5

slot_day = with_slots(SLOTS)
Table(chain(slot_day, "order-0"))

# %%
### BEGIN SOLUTION
slot_day = with_slots(1)
answer("lab01.one_slot", 8, slot_day)
### STARTER
# answer("lab01.one_slot", ..., slot_day)
### END SOLUTION

# %% [exercise] lab01.index
# ### Exercise 2: query an index chain
#
# Write `places`. A real index file has 400 MB, so you get a function instead of its bytes: `read(position, size)`
# returns that many bytes from there, at most 40 at once. Following the chain means reading the header, the slot, and
# the chain's entries; the check counts your reads. An entry's time is the file's `begin_timestamp` (milliseconds) plus
# its seconds. `index_key_hash` is given; `mqlab`'s own readers of the index are not allowed in this exercise.
#
# hint: index_key_hash(f"{topic}#{key}") % slots is the slot. At byte 40 + 4 * slot is the number of its newest entry.
# hint: Entry n is at 40 + 4 * slots + 20 * n: struct.unpack(">iqii", read(..., 20)) gives hash, position, seconds,
#   previous. Continue with previous until it is 0.
# hint: Take a position only if the hash is the key's, and begin_ms <= begin_timestamp + 1000 * seconds <= end_ms;
#   begin_timestamp are the file's first 8 bytes.
# note: The index never contains the key itself. If two keys have the same hash, a search returns the messages of both,
#   and the client compares the real keys.


# %%
# exercise: lab01.index
def places(read, slots, topic, key, begin_ms, end_ms):
    """The physical offsets under a key, newest first, as a list.

    read(position, size): bytes of one index file, which has so many slots. Entries
    with the key's hash and begin_ms <= time <= end_ms belong to the answer.
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

# %% [belief] lab01.slot_is_a_key
# question: Which entries are in a slot's chain?
# claim: Those of one key.
# refutation: A slot's chain holds all hashes that share the slot: only entries with the key's own hash count.

# %% [belief] lab01.difference_in_ms
# question: What is the third number of an entry?
# claim: Milliseconds since the first entry.
# refutation: An entry's third number is whole seconds since the file's begin_timestamp, not ms and not a date.

# %% [belief] lab01.entry_1_is_first
# question: Where is entry 1 of an index?
# claim: Right after the slots.
# refutation: 20 bytes later: entry n is at 40 + 4 * S + 20 * n, so entry 0 is a gap.

# %% [belief] lab01.key_alone_hashed
# question: What is hashed for a key?
# claim: The key.
# refutation: The topic is part of it: a slot is found by the hash of topic#key.

# %% [belief] lab01.chain_oldest_first
# question: Which entry of a chain is found first?
# claim: The oldest.
# refutation: The slot names its newest entry, and each entry the one before it: the newest comes first.

# %% [belief] lab01.slots_from_one
# question: Where is slot s of an index?
# claim: At 40 + 4 * (s - 1).
# refutation: Slots count from 0: slot s is at byte 40 + 4 * s.

# %% [belief] lab01.file_into_memory
# question: How do you search a file?
# claim: Read it into memory and look through it.
# refutation: An index file has hundreds of megabytes: read only what you need, at most 40 bytes at once.

# %% [belief] lab01.index_is_a_list
# question: How is a key found in an index?
# claim: By looking through its entries.
# refutation: A slot leads to its chain, and only the chain is read, entry by entry: an index of millions of entries
#   cannot be searched from its beginning.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | BLANK, the next file | `CommitLog.DefaultAppendMessageCallback.doAppend`, `MappedFileQueue.getLastMappedFile` |
# | from an offset to a unit | `DefaultMessageStore.getMessage`, `ConsumeQueue.iterateFrom` |
# | index | `IndexService`, `IndexFile.putKey`, `IndexFile.selectPhyOffset`, `IndexHeader` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | slot *s* is at 40 + (*s* − 1) · 4, entries follow the slots at once | slots count from 0; entry 0 is a gap |
# | `timeDiff` is in milliseconds | whole seconds |
# | the index's slot count is the number of slots | the number of slots in use |
# | the committed offset is the last message read | the next one to read |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab01.two_keys
# **1.** Two customers' keys have the same hash. What does a search for one of them find?
#
# answer: The broker returns both, because the index contains hashes. The client compares the keys in the messages
#   (`MQAdminImpl.queryMessage`) and drops the other one.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [third part](01c-what-survives.ipynb) the power fails, a page is missing, and a folder is deleted. All labs:
# [index](index.ipynb).

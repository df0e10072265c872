# %% [markdown] tags=["reading"]
# # 01a Commit log: what the broker writes
#
# ## Why
#
# At 02:17 the power failed in the server room. At 02:40 the broker is running again. The shop's log shows forty orders,
# each answered with `SUCCESS`. The broker has none of them.
#
# "Impossible," says one colleague. "`SUCCESS` means it is on the disk."
#
# "Then the index is broken," says another. "We just cannot find the orders."
#
# Both opinions are about files. This part opens the log and the queue, the [second](01b-finding-a-message.ipynb) finds
# messages, and the [third](01c-what-survives.ipynb) cuts the power.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb) and a little of Python's `struct`. Afterwards you can
#
# - name every field of a message in the log and of a queue entry, and read them from bytes;
# - say which files are written when a message is sent, and which later.

# %%
import struct
import tempfile

from mqlab import Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import log_xray
from mqlab.lab.inspector import StoreInspector
from mqlab.lab.views import Table
from mqlab.rocketmq.store import MessageStore

# %% [markdown]
# ## Five kinds of files
#
# Four orders in four seconds. To keep the pictures short, the topic has one queue, message trace is off, the index has
# five slots instead of five million, and files are smaller than a real broker's.


# %% tags=["parameter"]
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
# All files, apart from `config` and `lock`:
#
# - `commitlog` (提交日志) holds the messages;
# - `consumequeue` (消费队列) and `index` (索引文件) lead to them;
# - `checkpoint` (检查点) says how much is safely on disk;
# - `abort` exists while the broker runs.
#
# For four orders the log has a file of 1 MiB (1 GiB on a real broker), and a second one prepared in advance. **Files
# have full size from the start**, filled with zeros, so a file's length never says how much is in it.
#
# How they lead to each other, with one order highlighted:

# %%
first, second, third, fourth = lab.store().messages("orders")
lab.store_map(second)

# %% [markdown]
# Elsewhere you may read that `abort` is empty. It holds the process id of the broker that has the store open; in a Lab
# that is 0.

# %%
(lab.directory / "broker-a" / "abort").read_text()

# %% [markdown]
# ## The consume queue: twenty bytes per message
#
# An entry holds the position of the message in the log, the length of its unit, and a code of its tag. The second
# order's entry:

# %%
lab.store().queue("orders", 0).hexdump(1)

# %% [markdown]
# A consumer finds a message in two steps: entry *n* is at byte 20 · *n*, and its first 12 bytes lead to the unit. All
# four entries:

# %%
lab.store().queue("orders", 0).table()

# %% [markdown]
# All four are tagged `paid`, so they have the same `tags_code` (标签哈希). The broker filters by this number and never
# looks at the tag.

# %% [exercise] lab01.tags
# ### Exercise 1: Java's hash, as the entry holds it
#
# The number is Java's `String.hashCode` of the tag: begin with 0; for each 16-bit unit of the string, `hash = 31 * hash
# + unit`; keep 32 bits, with a sign. The entry stores it in eight bytes. Use `struct` and Python's own `str` and
# `bytes`; `mqlab`'s `tags_code` is not allowed in this exercise.
#
# hint: A Java string is a sequence of 16-bit units. tags.encode("utf-16-be") gives them, two bytes each.
# hint: For each unit: value = 31 * value + unit. Java keeps 32 bits: value & 0xFFFFFFFF. Java's numbers have a sign:
#   from 0x80000000 on, subtract 0x100000000.
# hint: struct.unpack(f">{len(data) // 2}H", data) are the units; struct.pack(">q", value) keeps the sign. No tags:
#   value 0.
# note: `Aa` and `BB` have the same code: the broker lets both pass, and the client compares the strings again.


# %%
# exercise: lab01.tags
def tag_bytes(tags):
    """The last 8 bytes of the queue entry of a message with these tags.

    tags is one string, or None for a message without tags.
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

# %% [belief] lab01.text_is_utf8
# question: What does Java hash in a string?
# claim: Its bytes in UTF-8.
# refutation: Java hashes the 16-bit units of UTF-16, not bytes. An emoji is two units.

# %% [belief] lab01.emoji_is_one
# question: How long is a string with one emoji in Java?
# claim: 1, as in Python.
# refutation: 2. Java hashes the 16-bit units of UTF-16, and an emoji is two of them.

# %% [belief] lab01.several_tags
# question: A message has the tags paid || shipped. What is hashed?
# claim: paid, the first of them.
# refutation: A message has one string of tags: hash = 31 * hash + unit over the whole string, as it is.

# %% [belief] lab01.hash_of_64_bits
# question: The entry has eight bytes for the code. How many bits is the hash?
# claim: 64.
# refutation: The hash is a signed 32-bit number, and the entry keeps its sign: ff ff ff ff in front of a negative one.

# %% [belief] lab01.hash_is_positive
# question: Can a tag code be negative?
# claim: No: a hash is never negative.
# refutation: The hash is a signed 32-bit number, and the entry keeps its sign: ff ff ff ff in front of a negative one.

# %% [answer] lab01.negative
# ### Your turn: a tag with a sign
#
# Change `TAG` until the first of the eight bytes is `ff`, which means that the hash is negative. Use letters and
# digits, of any length. Then answer with your tag.
#
# wrong: This is not the tag of your last run. Run the cell with `TAG` first, then answer with the same tag.
# note: If a program reads the code as a positive number (`& 0xFFFFFFFF`), it never matches such a tag, and the group
#   gets nothing.

# %% tags=["parameter"]
TAG = "paid"


def one_tag(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.producer("shop").send(Message("orders", b"a book", tags=TAG))
    lab.run_for("1s")


tag_day = play(one_tag, seed=7, client=no_trace)
tag_day.store().queue("orders", 0).hexdump(0)

# %%
### BEGIN SOLUTION
TAG = "refunded"
tag_day = play(one_tag, seed=8, client=no_trace)
answer("lab01.negative", TAG, tag_day)
### STARTER
# answer("lab01.negative", ..., tag_day)
### END SOLUTION

# %% [markdown]
# ## The commit log, byte by byte
#
# One message in the log is a **unit**. Nothing separates two units. Every byte belongs to exactly one field, all
# numbers are big-endian, and the order of the fields is fixed. The second order:

# %%
lab = play(four_orders, seed=7, client=no_trace, broker=five_slots)
lab.store().hexdump(second.physical_offset)

# %% [markdown]
# Find in it:
#
# - **Two addresses** with ports of four bytes. An IPv6 address makes a host 20 bytes long instead of 8; bit `0x10`
#   (born host) or `0x20` (store host) of `sys_flag` says so. After an IPv6 host every field starts 12 bytes later.
# - **Two times**: when the sender sent it, when the broker stored it.
# - **Three lengths**, each before the bytes that it counts: body (4 bytes), topic (1 byte), properties (2 bytes).

# %% [answer] lab01.overhead
# ### Your turn: what a key costs
#
# Keys, tags and the unique id are properties: `name 0x01 value 0x02`. Change `KEYS` to `"order-0 customer-7"` and run
# the cell. By how many bytes did the unit grow?
#
# wrong only_the_key: That is the new key alone. What separates two keys?
# wrong: Compare the size of the unit before and after: it is printed.
# note: A key costs its letters and a space. The name `KEYS` appears once, however many keys there are.

# %% tags=["parameter"]
KEYS = "order-0"


def one_order(lab, keys):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.producer("shop").send(Message("orders", b"a book", keys=keys))
    lab.run_for("1s")


keyed = play(lambda lab: one_order(lab, KEYS), seed=7, client=no_trace)
(unit,) = keyed.store().messages("orders")
print("bytes of the unit:", unit.store_size)

# %%
### BEGIN SOLUTION
keyed = play(lambda lab: one_order(lab, "order-0 customer-7"), seed=7, client=no_trace)
answer("lab01.overhead", 11, keyed)
### STARTER
# answer("lab01.overhead", ..., keyed)
### END SOLUTION

# %% [exercise] lab01.unit
# ### Exercise 2: decode a unit
#
# Write `read_unit`. `log` is bytes with several units in it; one begins at `start`. It may have IPv6 hosts. Its magic
# may be `DAA320AB` (V2, for long topics): then the topic's length takes two bytes instead of one. Return the body as it
# is stored. (`mqlab.rocketmq.wire.record` is not allowed in this exercise.)
#
# hint: Up to sys_flag, at byte 36, everything has a fixed position. struct.unpack_from(">5iqqi", log, start) reads the
#   first eight fields.
# hint: Keep a variable `at`. Begin at start + 48 (the born host), add 8, or 20 if sys_flag & 0x10. The store time is
#   there. Next comes the store host: 8, or 20 if sys_flag & 0x20; then 4 and 8 bytes you do not need.
# hint: Now repeat three times: read a length (">i"; ">b", or ">h" when the magic's last byte is 0xAB; ">h"), then that
#   many bytes. For properties: for part in text.split("\x02"): name, _, value = part.partition("\x01").
# note: You can now read any message of any RocketMQ broker with a hex editor. Two things are missing: a unit does not
#   say where the queue's next unit is, and it does not say which groups have read it.


# %%
# exercise: lab01.unit
def read_unit(log, start):
    """The unit at byte start of log, as a dictionary.

    size, queue_offset, physical_offset, store_timestamp: numbers, as they are stored
    (a time is in milliseconds); body: bytes; topic: a string; properties: a dictionary
    of strings.
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

# %% [belief] lab01.one_time
# question: How many times are in a unit?
# claim: One: when it was sent.
# refutation: Two: when it was born and when it was stored. The store time follows the born host.

# %% [belief] lab01.separator_splits
# question: A property's value holds the byte 0x01. Where does the value end?
# claim: Before that byte.
# refutation: At 0x02. Each property is name 0x01 value 0x02; only the first 0x01 of each ends the name.

# %% [belief] lab01.hosts_of_eight
# question: How long is a host in a unit?
# claim: Eight bytes: four of address and four of port.
# refutation: Eight or twenty: bits 0x10 and 0x20 of sys_flag say which of the two hosts take 20 bytes instead of 8.

# %% [belief] lab01.length_of_the_rest
# question: The size of a unit is 120. How many bytes follow the size?
# claim: 120.
# refutation: 116. The first four bytes are the length of the whole unit, themselves included.

# %% [belief] lab01.port_of_two
# question: How many bytes does a port take in a unit?
# claim: Two: it is at most 65535.
# refutation: Four. The store time follows the born host, which takes 8 bytes, or 20.

# %% [belief] lab01.queue_offset_is_bytes
# question: The queue offset in a unit is 40. Which message of its queue is it?
# claim: The third: an entry has 20 bytes.
# refutation: The forty-first. The queue offset is the message's number in its queue, not a position in a file.

# %% [belief] lab01.body_as_sent
# question: A client compresses its large bodies. Which bytes are in the log?
# claim: Those that the sender wrote.
# refutation: The body is returned as it is stored. A compressed one stays compressed until a client reads it, and bit
#   0x1 of sys_flag says so.

# %% [belief] lab01.values_are_stripped
# question: A property's value ends with a space. Does the space belong to it?
# claim: No, spaces at its ends do not count.
# refutation: A value is every byte up to its 0x02, spaces included.

# %% [belief] lab01.topic_length_of_two
# question: How many bytes does the length of a topic take?
# claim: Two, like that of the properties.
# refutation: The topic follows its length, which takes one byte in a V1 unit and two in a V2 unit.

# %% [markdown]
# ## What is written when
#
# The message knows its own number in its queue, `queue_offset`. Where does the broker get that number?
# `MessageStore.open(directory)` opens a store without a broker around it. With `dispatch=False` it writes only the log,
# and leaves queues and index alone until you dispatch.

# %% [prediction] lab01.queue_offset
# The queue has no file yet, and for now nothing writes one. Three orders are stored. Which queue offset does the third
# one get?
#
# - 2: 2, as if the file were there
#   = The broker counts in a table in its memory and writes the number into the unit.
# - 0: 0, as long as the queue's file is empty
#   > The file does not matter: it is written later, from the unit. The number comes from a table in memory.
# - none: none yet; it is assigned when the entry is written
#   > The unit already contains the number, and a unit is never changed afterwards. Its hexdump shows it.
# note: The broker assigns queue offsets when it stores, from a table in memory with one number per queue.

# %% [prediction] lab01.by_key
# The three orders are in the commit log, each with its key, and their producers have SUCCESS. How many of them does a
# search by key find at this moment?
#
# - 3: all three; the index is written with the message
#   > Storing writes only the commit log. The index follows when the store dispatches.
# - 0: none
#   = Nothing leads to them yet.
# - 2: two; the last one is still being written
#   > All three are completely in the log. Only the entries that lead to them are missing.
# note: Dispatching makes queue entries and index entries afterwards. Until then no search and no consumer finds the
#   message.
# later: Three orders with keys are in the commit log, and the dispatch has not reached them yet. How many of them
#   does a search by key find?

# %%
folder = tempfile.TemporaryDirectory()
directory = f"{folder.name}/store"
store = MessageStore.open(directory, dispatch=False)
keys = ["order-0", "order-1", "order-2"]
results = [store.put(Message("orders", b"a book", keys=key)) for key in keys]
for result in results:
    print(result)

# %%
files = StoreInspector(directory)
print("queues with a file:", files.topics(), "  index files:", files.index_files())
reveal("lab01.queue_offset", results[2].queue_offset)

# %%
answers = [store.query("orders", key) for key in keys]
reveal("lab01.by_key", sum(len(found.records) for found in answers))

# %% tags=["picture"]
files.map()

# %% [markdown]
# The orders are stored, numbered and answered, but no arrow leads to a unit. Now let the store **dispatch** (分发). It
# walks along the log and makes, for each unit, one entry in its queue, and one in the index for each key.

# %%
before = store.get("orders", queue_id=0, queue_offset=0)
dispatched = store.dispatch()
after = store.get("orders", queue_id=0, queue_offset=0)
print("before:", before)
print("units dispatched:", dispatched)
print("after: ", after)
print("by key:", store.query("orders", "order-1"))
store.shutdown()

# %% tags=["picture"]
files.map("order-1")

# %% [markdown]
# In a broker a separate thread dispatches all the time, so some time passes between `SUCCESS` and the entry.

# %% [answer] lab01.unseen
# ### Your turn: look through the log
#
# This store dispatches only on command. One order was appended and dispatched. Move *Step* back and forth, and see what
# each step changed.
#
# At the last step, press *Append* twice (under *More settings*), and nothing else. How many of the three orders can a
# consumer read, and a search find?
#
# wrong all: All three are in the log. Look at the queue: how many entries does it have?
# wrong none: One order was dispatched earlier: click on it in the log, and see what is highlighted in the queue and the
#   index.
# wrong: Count the entries under *Consume queues*.
# note: A consumer sees only what is in the queue. Now press *Kill* and *Recover*: recovery makes the other two entries,
#   because the units contain everything for them.

# %% tags=["explorer"]
xray = log_xray([("append", {"keys": "order-0"}), "dispatch"])
xray

# %%
### BEGIN SOLUTION
xray = log_xray(["append", "dispatch", "append", "append"])
answer("lab01.unseen", 1, xray)
### STARTER
# answer("lab01.unseen", ..., xray)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the unit | `MessageExtEncoder.encode`, `MessageDecoder.decode` |
# | append | `CommitLog.asyncPutMessage`, `CommitLog.DefaultAppendMessageCallback.doAppend`, `MappedFileQueue` |
# | the next queue offset | `QueueOffsetOperator` (called `ConsumeQueueStore.assignQueueOffset`) |
# | dispatch | `DefaultMessageStore.ReputMessageService`, `CommitLogDispatcherBuildConsumeQueue`, `…BuildIndex` |
# | entry, tag code | `ConsumeQueue.putMessagePositionInfo`, `MessageExtBrokerInner.tagsString2tagsCode` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the tag code is an 8-byte hash | a 32-bit hash with its sign, or (in the topic of delayed messages) a delivery time |
# | the queue offset is taken from the queue's file | from a table in memory, and written into the unit |
# | the index is written with the message | dispatched afterwards, like the queue |
# | `bodyCRC` is a CRC-32 | with its highest bit cleared |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab01.size_twice
# **1.** Why does an entry contain the unit's size, although the unit begins with it?
#
# answer: The broker then knows from the queue alone how many bytes to send. It adds up sizes until a pull's limit is
#   reached, and hands those ranges of the log to the network without reading them.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](01b-finding-a-message.ipynb) you find messages in the two files: by number, and by key. All labs:
# [index](index.ipynb).

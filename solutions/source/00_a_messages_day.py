# %% [markdown] tags=["reading"]
# # 00 Message flow: a message's day
#
# ## Why
#
# It is 1 January 2026, just after midnight. Billing goes live; the audit service will be ready on Saturday.
#
# "No problem," says one colleague, "the messages will wait for audit."
#
# "They will not," says another. "Billing acknowledges every message, and an acknowledged message is deleted."
#
# One of them is wrong. You will send messages to a broker, let a service acknowledge them, and look into the broker's
# own files.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need Python, and no knowledge of message brokers: the whole cluster runs inside this
# notebook.
#
# Afterwards you can
#
# - name the steps of a message's day, and the machine on which each happens;
# - say what an *acknowledgement* is, who remembers it, and since when;
# - find one message in the three files that mention it;
# - say which messages a service receives again after a crash.

# %% [markdown] tags=["reading"]
# ## The world
#
# Five terms. (The [glossary](glossary.ipynb) has the others, in English and Chinese.)
#
# | word | Chinese,&nbsp;中&#8288;文 | what it is |
# |---|---|---|
# | **broker** | 代理服务器 | the machine that stores messages; ours is `broker-a` |
# | **name server** | 名字服务 | the machine that knows which broker has which topic |
# | **producer** | 生产者 | a program that sends messages; ours is the `shop` |
# | **topic** and **queue** | 主题, 队列 | messages of one kind go to a topic; a topic consists of queues. Ours has one queue, which keeps every picture small |
# | **consumer group** | 消费者组 | a service that reads a topic, on one machine or on many; ours are `billing` and `audit` |
#
# A **story** is a function that gets a `Lab`, a whole cluster with its own clock. `play(story, seed=7)` plays it on a
# fresh cluster and returns the cluster for you to inspect. The clock starts at midnight on 1 January 2026, and a story
# shortens days to seconds. The same seed gives the same day, byte for byte.

# %%
from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import explore
from mqlab.lab.views import Table
from mqlab.lab.views.queue import show_queue

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Morning: the shop sends three orders
#
# Each `Message` has a topic, a body (bytes: the broker never looks inside) and, optionally, keys to find it by.

# %%
ORDERS = {"order-1": "книга", "order-2": "三本书", "order-3": "🎁 for Anna"}


def morning(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for key, body in ORDERS.items():
        shop.send(Message("orders", body.encode(), keys=key))
        lab.run_for("20ms")


lab = play(morning, seed=7, client=no_trace)
lab.timeline()

# %% [markdown]
# The left column is the time since the first line. The same four steps happen three times:
#
# 1. The shop sends a request to the broker. The words on the arrow are the request's name in RocketMQ.
# 2. The broker **writes the message** at the end of one long file, the **commit log** (提交日志).
# 3. The broker writes a small **entry** into the queue. It only says where the message is stored; consumers find
#   messages through entries.
# 4. The answer `SUCCESS` reaches the shop. The broker has the message, so the shop may forget it. (The answer starts at
#    *stored*; it does not wait for the entry.)
#
# "The same as text" below the picture is for searching and for screen readers.

# %% [markdown]
# ## Noon: billing reads
#
# A service reads with a **listener** (监听器), a function that gets messages and returns `CONSUME_SUCCESS` when it is done
# with them. That return value is the acknowledgement (确认).
#
# Answer first: run the cell below the question and click. You may change your mind until the run shows what happens.

# %% [prediction] lab00.after_ack
# Three orders are stored. Billing reads all three and acknowledges them. How many are in the commit log then?
#
# - 3: all three; nothing is removed
#   = Reading never removes a message from the log.
# - 0: none; what is acknowledged is deleted
#   > A classic RabbitMQ queue works that way. RocketMQ only appends to its log: no acknowledgement changes what the log
#   > holds. All three orders are still there.
# - 1: one; the last order stays until the next one comes
#   > The log does not treat the last order differently. All three stay where they were written.
# note: An acknowledgement moves a number and deletes nothing. Messages are deleted when their file expires (72 hours by
#   default), read or unread.

# %% [markdown]
# The listener takes 200 ms per order. `context.sleep` lets virtual time pass.


# %%
def handle(messages, context):
    context.sleep("200ms")
    return CONSUME_SUCCESS


def read_orders(lab, group):
    consumer = lab.push_consumer(group)
    consumer.subscribe("orders", "*")
    consumer.on_messages(handle)
    consumer.start()


def noon(lab):
    morning(lab)
    read_orders(lab, "billing")
    lab.run_for("30s")


lab = play(noon, seed=7, client=no_trace)
columns = ["queue_offset", "client", "started_ms", "ended_ms", "status"]
Table(lab.deliveries("billing"), columns=columns)

# %% [markdown]
# One row per delivery (投递). All three orders start at the same moment, because the client calls the listener in several
# **threads** (线程), by default 20.
#
# And how many messages are in the commit log?

# %%
first, second, third = lab.store().messages("orders")
reveal("lab00.after_ack", len(lab.copies()))

# %%
show_queue(lab, "orders")

# %% [markdown]
# An acknowledgement moves a number: *billing reads 3 next*. That number is the group's **offset** (消费位点). It always
# names the **next** message to read, not the last one read.

# %% [markdown]
# ## Who reads what next?
#
# Is that one number per queue enough to know what each group still has to read?

# %% [exercise] lab00.unread
# ### Exercise 1: what each group still has to read
# Write `unread`. The queue has one entry per order, numbered from 0.
#
# `check(...)` tries your function on queues that you have not seen. If you are stuck, `hint("lab00.unread")` gives the
# first of three hints; hints are free.
#
# hint: A group whose offset is 2 reads order 2 next. Which orders come after it, in a queue of 5?
# hint: `range(2, 5)` counts 2, 3, 4. A group that is missing in `offsets` begins at 0.
# hint: `offsets.get(group, 0)` is where a group begins. Make `list(range(offsets.get(group, 0), stored))` per group.
# note: One number per group is enough. Each group has its own, and no group's reading changes what another reads.


# %%
# exercise: lab00.unread
def unread(stored, offsets, groups):
    """The numbers of the orders that each group still has to read.

    Returns {group: [number, ...]} for the names in groups. stored: how many orders
    the queue has; offsets: what groups read next, as {"billing": 3}; a group that
    has not read anything is missing in it.
    """
    ### BEGIN SOLUTION
    return {group: list(range(offsets.get(group, 0), stored)) for group in groups}
    ### END SOLUTION


# %%
check("lab00.unread")

# %% [markdown]
# ## Three files know your message
#
# How the files lead to each other, with the second order highlighted:

# %%
lab.store_map(second)

# %% [markdown]
# **First file: the commit log.** It holds every message of every topic, one after another. These bytes are the second
# order; the table names their fields in the same order. Find the body, the topic, and the three numbers that say where
# the message belongs: `queue_id`, `queue_offset`, `physical_offset`.

# %%
lab.store().hexdump(second.physical_offset)

# %% [markdown]
# **Second file: the consume queue** (消费队列). It has twenty bytes per message and nothing else. The first eight are the
# position in the commit log; compare them with the `physical_offset` above. An entry's number is the message's **queue
# offset** (队列偏移量): 0, 1, 2, … This is entry 1:

# %%
lab.store().queue("orders", 0).hexdump(1)

# %% [markdown]
# **Third file: `config/consumerOffset.json`.** It says how far each group has read, one number per queue. As a
# dictionary:

# %%
lab.store().config("consumerOffset.json")["offsetTable"]

# %% [markdown]
# (The map shows a fourth file, the index. It leads from keys to messages; lab 01 explains it.)

# %% [answer] lab00.next_byte
# ### Your turn: an order of your own
#
# Write any text into `YOURS`, run the cell, and find your text among the bytes. One more order is sent after yours. At
# which byte of the commit log will it begin?
#
# wrong start: Your own order begins there. The next one begins where yours ends.
# wrong size: That is the length of your order. A position in the log is counted from the first byte of the log.
# wrong number: That is the number of the queue's next entry. A position in the log is counted in bytes.
# wrong: Add the two numbers of your order that give its start and its length: `physical_offset` and `total_size`.
# note: Nothing separates two messages: no gap, no marker. The log grows at its end, whether or not messages are read.

# %% tags=["parameter"]
YOURS = "a lamp"


def one_more(lab):
    morning(lab)
    lab.producer("you").send(Message("orders", YOURS.encode(), keys="order-4"))


my_morning = play(one_more, seed=7, client=no_trace)
*_, mine = my_morning.store().messages("orders")
my_morning.store().hexdump(mine.physical_offset)

# %%
### BEGIN SOLUTION
answer("lab00.next_byte", mine.physical_offset + mine.store_size, my_morning)
### STARTER
# answer("lab00.next_byte", ..., my_morning)
### END SOLUTION

# %% [belief] lab00.any_topics_offset
# question: The table has `letters@press-audit` and `orders@audit`. What is the offset of `audit` in `orders`?
# claim: The first key that ends with the group's name.
# refutation: A key of the table is topic@group, both in full. Another group's name may end the same way.

# %% [exercise] lab00.find
# ### Exercise 2: find your message in three files
#
# Write `find`. It gets these files as plain bytes:
#
# - `entries`: the consume queue file of queue 0. Entry *n* has 20 bytes: the position in the log (8), the size of the
#   message's unit (4), a tag code (8). They are big-endian, `">"` in `struct`. A **unit** is one message as stored in
#   the log.
# - `log`: the commit log file.
# - `offset_table`: the third file, as `{"orders@billing": {0: 3}, …}`: a group's next offset per queue. A group that
#   has not reported yet is missing.
#
# Use `struct` only; mqlab's own readers, such as `lab.store()`, are not allowed in this exercise.
#
# hint: An entry of the queue file is 20 bytes, so entry n begins at byte 20 * n. Which of its bytes are a position?
# hint: struct.unpack_from(">qiq", entries, 20 * queue_offset) reads a position (8 bytes), a size (4) and a tag code
#   (8). The unit is that many bytes of the log, from that position.
# hint: offset_table.get(f"orders@{group}", {}).get(0, 0) is what a group reads next from queue 0. It is past message n
#   when that is greater than n; equal means: message n comes next.
# note: You have done by hand what the broker does for every pull: entry, position, unit. A group is only a number in a
#   small file.

# %%
import struct


# %%
# exercise: lab00.find
def find(queue_offset, entries, log, offset_table):
    """Where is message number queue_offset, and who is past it?

    Returns a tuple of three: its physical offset, the bytes of its unit in the log,
    and those of the groups "audit" and "billing" that are past it, in this order.
    """
    ### BEGIN SOLUTION
    place, size, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    past = []
    for group in ("audit", "billing"):
        reads_next = offset_table.get(f"orders@{group}", {}).get(0, 0)
        if reads_next > queue_offset:
            past.append(group)
    return place, log[place : place + size], past
    ### END SOLUTION


# %%
check("lab00.find")

# %% [belief] lab00.little_endian
# question: How does a file hold the number 1 in four bytes?
# claim: 01 00 00 00, as memory does.
# refutation: Numbers in the files are big-endian: the most significant byte comes first, ">" in struct.

# %% [belief] lab00.offset_is_a_byte
# question: What is a queue offset?
# claim: A position in the queue's file.
# refutation: The number of an entry. Entry n of a queue is at byte 20 * n.

# %% [belief] lab00.read_last
# question: A group's committed offset is 5. Which message has it read last?
# claim: Message 5.
# refutation: The message before it. The committed offset is the next message to read: a group is past a message when
#   the offset it reads next is greater.

# %% [belief] lab00.one_position
# question: billing has read a message. Does audit still get it?
# claim: No: a queue has one position, and it is past that message.
# refutation: Every group has an offset of its own in the table, and gets every message.

# %% [belief] lab00.queue_alone_in_log
# question: Where does a message of a queue end in the log?
# claim: Where the queue's next message begins.
# refutation: The log holds the messages of all topics, one after the other. Bytes 8 to 11 of the entry say how long the
#   unit is.

# %% [belief] lab00.end_not_size
# question: What do bytes 8 to 11 of an entry say?
# claim: Where the unit ends.
# refutation: How long it is. log[a:b] ends at byte b of the log; the unit ends at its position plus its size: log[place
#   : place + size].

# %% [belief] lab00.counted_from_one
# question: What is the number of the first message in a queue?
# claim: 1.
# refutation: Entries count from 0: entry n of the queue is at byte 20 * n.

# %% [belief] lab00.message_in_queue
# question: Where is a message's body?
# claim: In its queue.
# refutation: The entry only leads to the message; the unit is in the log, at that position.

# %% [markdown]
# ## What billing tells the broker

# %% [prediction] lab00.known_when
# Billing's listener has returned CONSUME_SUCCESS, and no more orders come. When does the broker know?
#
# - at once: the answer goes to the broker with each message
#   > One request per message would double the traffic. The client reports later: in billing's lane, nothing leaves for
#   > seconds after the listener returns.
# - later: seconds later, in one report for all messages so far
#   = One number covers all orders at once.
# - never: the broker gets no report at all
#   > The client does report: look for UPDATE_CONSUMER_OFFSET in the timeline. Without that report, billing would start
#   > from the beginning after every restart.
# note: The client keeps its progress in memory and reports it every 5 seconds, first after 10. Between reports, the
#   broker knows less than the client.

# %% [markdown]
# The whole day of the second order:

# %%
lab = play(noon, seed=7, client=no_trace)
lab.timeline(second.msg_id)

# %% [markdown]
# In billing's lane the listener returns, and the client notes the new offset *in memory*. Much later one request for
# all three orders goes to the broker, `UPDATE_CONSUMER_OFFSET`. How much later?

# %%
noted = lab.journal.changes("listener.returned")[-1][0].now_ms
told = lab.journal.changes("offset.committed")[0][0].now_ms
print(f"The broker knew {told - noted} ms after the last listener had returned.")
reveal("lab00.known_when", "later" if told - noted > 1000 else "at once")

# %% [markdown]
# ## Nothing is pushed
#
# To read is to **pull** (拉取): a client names a queue, a start offset, and a maximum number of messages. It gets
# messages, and the offset at which to continue. Change the numbers as you like:

# %% tags=["parameter"]
OFFSETS = [0, 2, 0, 3]


def pull(offset):
    queue = MessageQueue("orders", "broker-a", 0)
    found = puller.pull(queue, "*", offset, max_nums=2)
    return {
        "from": offset,
        "status": found.pull_status,
        "got": ", ".join(message.keys for message in found.msg_found_list or ()),
        "continue at": found.next_begin_offset,
    }


lab = play(morning, seed=7, client=no_trace)
puller = lab.pull_consumer("curious")
Table(pull(offset) for offset in OFFSETS)

# %% [markdown]
# The third pull asks for the same as the first and gets the same. The broker shows messages; it does not hand them out.
#
# Billing is called a *push* consumer, and yet it pulls. Does it ask repeatedly while there is nothing to read? Billing
# starts first:

# %% tags=["parameter"]
PAUSE = "4s"


def billing_first(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    read_orders(lab, "billing")
    shop = lab.producer("shop")
    for key, body in list(ORDERS.items())[:2]:
        lab.run_for(PAUSE)
        shop.send(Message("orders", body.encode(), keys=key))
    lab.run_for("3s")


early_day = play(billing_first, seed=7, client=no_trace)
early_day.timeline()

# %% [markdown]
# The bar in the broker's lane is a pull that found nothing. **The broker holds it** (长轮询) and answers when an order
# comes. While billing handles the order, its next pull is already waiting.
#
# Look at the pull after the second order: it tells the broker *next of orders 0 is 1*. Every pull carries the progress
# so far, in addition to the reports.

# %% [answer] lab00.held
# ### Your turn: how long does an order wait?
#
# Change `PAUSE` to anything from 2 to 60 seconds, run the cell, and look at the times. How many milliseconds pass from
# the moment at which the broker stores the second order to the moment at which billing's listener starts with it?
#
# wrong held: That is how long the broker held the pull before there was an order. Count from `stored at byte …`.
# wrong listener: That includes the listener's work. Count up to its start.
# wrong: Take the times of two lines: `stored at byte …` of the second order, and `listener starts: entry 1`. Give their
#   distance in milliseconds.
# note: The order does not wait for a request, because the request is already at the broker. That is why billing is
#   called a push consumer.

# %%
### BEGIN SOLUTION
answer("lab00.held", 2, early_day)
### STARTER
# answer("lab00.held", ..., early_day)
### END SOLUTION

# %% [markdown]
# ## Read the timeline

# %% [exercise] lab00.timeline
# ### Exercise 3: three moments of an order
#
# Write `read_day`. It gets the rows of a timeline and answers three questions about one message and one group. Each row
# is a dictionary; the journal's details are under `"values"`.
#
# hint: Use three kinds of rows: message.stored, listener.started and offset.committed. Print the values of one row of
#   each.
# hint: Take the message's queue_offset from message.stored. You need it to recognise the commit that passes it: a
#   commit names a group and a queue_offset, not a message.
# hint: One commit may pass several messages at once. Look for the first offset.committed of the group whose
#   queue_offset is greater than the message's; next(..., None) gives None where there is none.
# note: Between seen and known there are seconds in which only the consumer's memory knows. Duplicates come from those
#   seconds.

# %%
from pprint import pprint

lab = play(noon, seed=7, client=no_trace)
rows = lab.timeline().table().to_dicts()
for kind in ("message.stored", "listener.started", "offset.committed"):
    row = next(row for row in rows if row["kind"] == kind)
    names = ("now_ms", "node", "kind", "values")
    pprint({name: row[name] for name in names}, sort_dicts=False)


# %%
# exercise: lab00.timeline
def read_day(rows, msg_id, group):
    """When was the message stored, when did the group first see it,
    and when did the broker first know that the group is past it?

    Returns a tuple of three times (now_ms); None for what did not happen.
    """
    ### BEGIN SOLUTION
    stored_ms = seen_ms = known_ms = offset = None
    for row in rows:
        kind, values, now_ms = row["kind"], row["values"], row["now_ms"]
        if kind == "message.stored" and values["msg_id"] == msg_id:
            stored_ms, offset = now_ms, values["queue_offset"]
        if offset is None or values.get("group") != group:
            continue
        if kind == "listener.started" and values["msg_id"] == msg_id:
            seen_ms = seen_ms or now_ms
        if kind == "offset.committed" and values["queue_offset"] > offset:
            known_ms = known_ms or now_ms
    return stored_ms, seen_ms, known_ms
    ### END SOLUTION


# %%
check("lab00.timeline")

# %% [belief] lab00.anybodys_commit
# question: audit commits an offset past a message. Does the broker know now that billing has read it?
# claim: Yes: the message is acknowledged.
# refutation: The broker knows that a group is past a message from that group's own offset.committed; another group's
#   says nothing about it.

# %% [belief] lab00.commit_for_each
# question: Five messages were read. How many commits does the broker get?
# claim: Five: one for each message.
# refutation: The broker knows that a group is past a message from the first offset.committed greater than its offset;
#   one commit may pass several messages.

# %% [belief] lab00.client_is_broker
# question: A listener has returned CONSUME_SUCCESS. Which machine knows?
# claim: The broker, at once.
# refutation: The broker knows that a group is past a message when it gets the report, offset.committed; what the
#   listener returned, and offset.updated, are only in the client's memory.

# %% [belief] lab00.stored_when_sent
# question: When is a message stored?
# claim: When its producer says that it has sent it.
# refutation: A message is stored when the broker writes it to its log, message.stored: after it was sent.

# %% [belief] lab00.seen_by_anybody
# question: audit has read a message. Has billing seen it?
# claim: Yes: a message is seen once, by the first group that reads it.
# refutation: A group first sees a message at its own first listener.started; other groups do not matter.

# %% [belief] lab00.none_is_zero
# question: A group has never read a message. When did it see it?
# claim: At 0.
# refutation: What did not happen is None, not 0, because something can happen at 0.

# %% [markdown]
# ## Evening: audit arrives late
#
# It is Saturday, 30 seconds later on the story's clock. Audit starts for the first time.

# %% [prediction] lab00.audit
# Audit starts a minute after billing has acknowledged all three orders. How many of them does audit get?
#
# - 3: all three
#   = Audit has its own number, and it begins at 0.
# - 0: none; billing has consumed them
#   > Billing has moved only its own number. The broker keeps no other trace of reading, so audit can read every order.
#   > Afterwards both groups are at 3, each by its own number.
# - new ones: none of these; a group that is late gets what is sent from now on
#   > A new group begins at the end only if the topic's first messages are gone or no longer in memory. These orders are
#   > all there, so audit begins at the first.
# note: Each group has its own position in the same queue. Audit still finds what billing has read.


# %%
def evening(lab, late="30s"):
    noon(lab)
    lab.run_for(late)
    read_orders(lab, "audit")
    lab.run_for("5s")


lab = play(evening, seed=7, client=no_trace)
reveal("lab00.audit", len(lab.deliveries("audit")))

# %% [markdown]
# Each group has its own number for the same queue. Where is audit's?

# %%
show_queue(lab, "orders")

# %% [markdown]
# Audit's client has not reported yet. Thirty seconds later it has:


# %%
def night(lab, late="30s"):
    evening(lab, late)
    lab.run_for("30s")


lab = play(night, seed=7, client=no_trace)
show_queue(lab, "orders")

# %%
names = ["client", "broker_offset", "consumer_offset", "lag"]
progress = [*lab.progress("billing"), *lab.progress("audit")]
Table((row for row in progress if row.topic == "orders"), columns=names)

# %% [markdown]
# `broker_offset` is the number that the queue's next message will get. `consumer_offset` is the next message that the
# group reads. The messages between them are unread: the **lag** (消费堆积).
#
# Every client asks the name server where the topic is, then talks to the broker. The shop does not know billing or
# audit, and they do not know each other.

# %% tags=["nbval-ignore-output"]
lab.diagram()

# %% [markdown]
# ### Step through the day
#
# Now you drive. *Step* moves to the next event, *Back* undoes it, and the slider goes anywhere. Below the picture are
# the files at that moment: the queue, the bytes of a message, and each group's next offset in the client's memory, at
# the broker, and in the file. Click an entry, a message or a moment to highlight everything that belongs to it.
# Under *More settings*, *late* sets how long after billing audit starts; *Play again* replays the day.

# %% tags=["explorer"]
explorer = explore(night, seed=7, client=no_trace)
explorer

# %% [answer] lab00.between
# ### Your turn: find the gap
#
# Find a stop at which billing has finished all three orders, and the broker has heard of none of them. What is the
# number of that stop?
#
# wrong early: At this stop billing's listener has not returned for all three orders yet. Step on to billing's last
#   CONSUME_SUCCESS.
# wrong late: At this stop the broker already has billing's report. Go back to a stop before UPDATE_CONSUMER_OFFSET.
# wrong: Give the number of the stop, as shown below the slider.
# note: At this stop only one process's memory knows that the orders are done. What if that process dies now? The rest
#   of the lab shows it.

# %%
### BEGIN SOLUTION
answer("lab00.between", 18, explorer)
### STARTER
# answer("lab00.between", ..., explorer)
### END SOLUTION

# %% [markdown]
# ## Break it
#
# Billing starts, handles all three orders, and is killed three seconds after its start. Ten seconds later it is started
# again.

# %% [prediction] lab00.again
# Billing has handled all three orders and is killed 3 seconds after it started. It is started again. How many orders
# does its listener get after the restart?
#
# - 3: all three again
#   = The first report would have left after 10 seconds; the process ran for 3.
# - 0: none; it has acknowledged all of them
#   > The acknowledgements were in the memory of the killed process. No report had reached the broker, so the deliveries
#   > after the restart begin at 0.
# - 1: one; the order that it was working on
#   > Billing was working on nothing: all three orders were done. Only reported progress counts, and nothing had been
#   > reported.
# note: The broker had no report yet, so the group resumes from the beginning. At least once means: be ready to see a
#   message again.


# %%
def crash(lab, life="3s"):
    morning(lab)
    read_orders(lab, "billing")
    lab.run_for(life)
    lab.kill("billing-1")
    lab.run_for("10s")
    lab.start("billing-1")
    lab.run_for("15s")


lab = play(crash, seed=7, client=no_trace)
Table(lab.deliveries("billing"), columns=[*columns, "reconsume_times"])

# %%
killed = lab.journal.of("fault.killed")[0].now_ms
reveal("lab00.again", sum(row.started_ms > killed for row in lab.deliveries("billing")))

# %% [markdown]
# Three customers have now paid twice, unless billing is prepared for it. The broker redelivered what, to its knowledge,
# had not been handled. This promise is called **at least once** (至少一次).
#
# `reconsume_times` is 0 in every row: to the broker these are first deliveries, not retries. Nothing in the message
# says that a service has seen it before, so the service must remember.

# %%
lab.timeline(second.msg_id)

# %% [answer] lab00.lives
# ### Your turn: a longer life
#
# Billing died before its first report. Change `LIVES` to something between 9 and 16 seconds, and run the cell. How many
# orders does billing get again in your run?
#
# wrong both: That counts every delivery, before and after the restart. The second process begins after the longest
#   pause in `started_ms`.
# wrong: Count the rows of the second process only: those that started after the kill. There may be none.
# note: The client first reports 10 seconds after its start. A process that ends earlier has reported nothing; one that
#   ends later has reported all three orders.

# %% tags=["parameter"]
### BEGIN SOLUTION
LIVES = "12s"
### STARTER
# LIVES = "3s"
### END SOLUTION

longer_life = play(lambda lab: crash(lab, LIVES), seed=7, client=no_trace)
Table(longer_life.deliveries("billing"), columns=columns)

# %%
### BEGIN SOLUTION
answer("lab00.lives", 0, longer_life)
### STARTER
# answer("lab00.lives", ..., longer_life)
### END SOLUTION

# %% [markdown]
#
# Now kill the broker:


# %%
def broker_crash(lab):
    noon(lab)
    lab.kill("broker-a")
    lab.run_for("5s")
    lab.start("broker-a")
    lab.run_for("40s")


lab = play(broker_crash, seed=7, client=no_trace)
show_queue(lab, "orders")

# %% [exercise] lab00.crash
# ### Exercise 4: where each group resumes after a crash
#
# All consumers are killed at the same moment. You get the rows of the timeline up to that moment, and the names of the
# groups. What will each group read next from the queue when it is started again?
#
# hint: Compare two kinds of rows: offset.updated (whose memory?) and offset.committed (whose memory?). Only one of them
#   survives the consumer's death.
# hint: Go through the rows in order and keep, for each group, the queue_offset of its latest offset.committed.
# hint: Begin with {group: 0 for group in groups}: a group that never reported begins at 0. The queue_offset of a commit
#   is already the next one to read, so add nothing.
# note: This number alone decides what is delivered again.


# %%
# exercise: lab00.crash
def stand(rows, groups):
    """What will each group read next, after all consumers were killed?

    Returns a dictionary {group: queue offset}. The topic has one queue; a group of
    which the broker was never told anything begins at 0.
    """
    ### BEGIN SOLUTION
    told = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "offset.committed" and row["values"]["group"] in told:
            told[row["values"]["group"]] = row["values"]["queue_offset"]
    return told
    ### END SOLUTION


# %%
check("lab00.crash")

# %% [belief] lab00.committed_is_done
# question: A group's committed offset is 5. Where does it resume?
# claim: At 6: 5 is done.
# refutation: A committed offset is the next message to read: add nothing to the number that the broker got.

# %% [belief] lab00.group_exists_when_reporting
# question: A group has never committed. Where does it begin after a crash?
# claim: Nowhere: there is no such group.
# refutation: A group that has reported nothing begins a young queue at offset 0.

# %% [belief] lab00.client_remembers
# question: A consumer is killed and started again. Where does it resume?
# claim: Where it was.
# refutation: A consumer that is started again asks the broker: it resumes at the last reported offset, not from what
#   its client remembered.

# %% [belief] lab00.committed_minus_one
# question: A group's committed offset is 5. Where does it resume?
# claim: At 4: the offset is one ahead.
# refutation: A committed offset is the next message to read, not the last one that was read: subtract nothing from it.

# %% [belief] lab00.late_group_at_the_end
# question: A group that has committed nothing is started again. What does it get?
# claim: New messages only.
# refutation: A group that has committed nothing begins a young queue at offset 0: the queue still has its first
#   message.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Messages do not stay for ever.** The broker deletes whole files of its log, by default 72 hours old (at 04:00),
#   sooner when the disk is full, whether or not they have been read. The orders survive from Thursday to Saturday, but
#   not much longer. Lab 01 shows it.
# - **A killed process is not a power cut.** After `kill` the operating system keeps what the process had written. What
#   a power cut destroys depends on when the broker forces its file to disk (lab 01).
# - **One queue, one broker, one consumer per group.** With several, order and sharing become questions.
# - **Audit got the old orders on one condition.** A new group begins at the start of a queue only while the queue's
#   first message exists and is in memory. On an old topic it begins at the *end*, unless it asks for more.
# - **The network and the clock are simulated,** but the files and frames are real: other tools can read them.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | step | where in RocketMQ |
# |---|---|
# | the shop sends | `DefaultMQProducer.send`, request `SEND_MESSAGE_V2` |
# | the broker writes | `SendMessageProcessor`, `CommitLog.asyncPutMessage` |
# | the entry in the queue | `DefaultMessageStore.ReputMessageService`, `ConsumeQueue` |
# | billing fetches | `DefaultMQPushConsumerImpl.pullMessage`, `PullMessageProcessor` |
# | the broker holds a pull that found nothing | `PullRequestHoldService` |
# | billing is done | `ConsumeMessageConcurrentlyService.processConsumeResult`, `RemoteBrokerOffsetStore.updateOffset` |
# | billing reports | `RemoteBrokerOffsetStore.persistAll`: after 10 s, then every 5 s; also along with the next pull |
# | the broker remembers | `ConsumerOffsetManager`, written to `consumerOffset.json` every 5 s |
#
# Elsewhere you may read "the broker pushes" (it answers pulls), "the broker marks a message as consumed" (it has no
# such mark; a group is one number per queue), "an ack deletes" (true for a classic RabbitMQ queue, not here).

# %% [markdown] tags=["reading"]
# ## Reflect
#
# These questions have no check. Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab00.ten_groups
# **1.** Ten groups read the same topic. What does the tenth cost the broker in disk space?
#
# answer: Almost nothing: one number per queue in `consumerOffset.json`, and a topic for its failures (lab 07). The
#   messages are stored once. (It does cost reading: network and, if it is far behind, disk reads.)

# %% [reflection] lab00.every_message
# **2.** Billing reports its offset every 5 seconds. What would reporting after each message gain, and what would it
# cost?
#
# answer: After a crash you would get one message again instead of seconds of them, for one request per message. There
#   would still be duplicates, because the process can die between the work and the report. So a report every few
#   seconds is enough.

# %% [reflection] lab00.other_broker
# **3.** The colleague who was wrong had a good reason. Which broker had they used before?
#
# answer: Probably RabbitMQ with classic queues, where an acknowledgement removes the message. There a second service
#   needs its own queue, which gets copies only of messages sent after it was bound. Audit would have come too late.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 01](01a-what-the-broker-writes.ipynb) opens all files, cuts the power, and reads what a real RocketMQ broker left
# behind. In [lab 10](10a-spark-reads-the-broker.ipynb) Spark reads them. All labs: [index](index.ipynb).

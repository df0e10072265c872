# %% [markdown] minutes=2 tags=["reading"]
# # Lab 00: A message's day
#
# ## Why
#
# Friday, half past five. Billing is live; the audit service will be ready on Monday.
#
# "No problem," says one colleague, "audit starts on Monday, the messages will wait for it."
#
# "They will not," says another. "Billing acknowledges every message, and what is acknowledged is deleted."
#
# One of them is wrong, and the auditors would like to know which. In this lab you will not have to believe either: you
# will send messages to a broker, let a service acknowledge them, and then open the broker's own files and look.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need Python. You need to know nothing about message brokers, and nothing has to be installed:
# the whole cluster runs inside this notebook.
#
# When you are done you can
#
# - name the steps of a message's day, and say on which machine each happens;
# - find one message in the three files that know of it;
# - say what an *acknowledgement* is, who remembers it, and from when on;
# - say what a service gets again after a crash.

# %% [markdown] minutes=3 tags=["reading"]
# ## The world
#
# Five words are enough to begin with. (All others are in the [glossary](glossary.ipynb), in English and Chinese.)
#
# | word | Chinese,&nbsp;中&#8288;文 | what it is |
# |---|---|---|
# | **broker** | 消息服务器 | the machine that stores messages; ours is `broker-a` |
# | **name server** | 名称服务 | the machine that knows which broker has which topic |
# | **producer** | 生产者 | a program that sends messages; ours is the `shop` |
# | **topic** and **queue** | 主题, 队列 | messages of one kind go to a topic; a topic is made of queues. Ours has one queue, so that every picture stays small |
# | **consumer group** | 消费者组 | a service that reads a topic, on one machine or on many; ours are `billing` and `audit` |
#
# A demonstration in these labs is a **story**: a function that gets a `Lab`, which is a whole cluster with a clock of
# its own. `play(story, seed=7)` tells the story on a fresh cluster and gives it back to you, to be looked at. The same
# seed gives the same day, to the byte, as often as you like.

# %%
from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import explore
from mqlab.lab.views import Table
from mqlab.lab.views.queue import show_queue

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown] minutes=5
# ## Morning: three orders are sent
#
# Each `Message` has a topic, a body (bytes: the broker never looks inside) and, if you like, keys to find it by.

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
# Read the picture from top to bottom; the left column is the time since the first line. Three times the same happens:
#
# 1. The shop sends a request to the broker (an arrow; the words on it are the request's name in RocketMQ).
# 2. The broker **writes the message** at the end of one long file, the **commit log** (提交日志), and notes at which byte.
# 3. It writes an **entry** for the message into the queue. The entry is small; it only says where the message lies.
#    Consumers find messages by these entries.
# 4. The answer `SUCCESS` arrives at the shop. The broker has the message, so the shop may forget it. (The answer's arrow
#    begins at *stored*: it did not wait for the entry.)
#
# Nobody drew this picture: it is made from the journal of the run you have just made. "The same as text" under it is for
# those who cannot see it, or would rather search.

# %% [markdown] minutes=4
# ## Noon: billing reads
#
# A service reads with a **listener** (监听器): a function that gets messages and returns `CONSUME_SUCCESS` when it is done
# with them. That is the acknowledgement (确认). Before you run anything, answer the question: run the cell under it and
# click. You may change your mind until the run has shown what happens.

# %% [prediction] lab00.after_ack
# Three orders are stored. Billing reads all three and acknowledges them. How many are in the commit log then?
#
# - 3: all three; nothing is taken out
#   = The log never loses a message because somebody has read it.
# - 0: none; what is acknowledged is deleted
#   > A classic RabbitMQ queue works so. Here the log is written at its end and nowhere else: no acknowledgement changes
#   > what is in it.
# - 1: one; the last order stays until the next one comes
#   > The last order is nothing special to the log. All of them lie where they were written.
# note: An acknowledgement moves a number, it deletes nothing. Messages go when their file is old (72 hours by
#   default), read or unread.

# %% [markdown]
# The listener takes 200 ms for an order. `context.sleep` passes virtual time: a whole day in these labs takes you no
# longer than a blink.


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
# One row a delivery (投递): which message went to which client, when, and what the listener said. Now the question that the
# two colleagues argued about. How many messages are in the commit log?

# %%
first, second, third = lab.store().messages("orders")
reveal("lab00.after_ack", len(lab.copies()))

# %%
show_queue(lab, "orders")

# %% [markdown]
# An acknowledgement deletes nothing. It moves a number: *billing reads 3 next*. That number is the group's **offset**
# (消费位点), and it always means the **next** message to read, not the last one read.

# %% [markdown] minutes=25
# ## Three files know your message
#
# The broker is an ordinary program with ordinary files. Here is how they lead to each other; the second order is lit up:

# %%
lab.store_map(second)

# %% [markdown]
# **First file: the commit log.** Every message of every topic, one behind the other. These bytes are all that the broker
# has stored of the second order. Each field has a number, and the table under the bytes names them in the same order.
# Look for the body, the topic, and the three numbers that say where the message belongs: `queue_id`, `queue_offset`,
# `physical_offset`.

# %%
lab.store().hexdump(second.physical_offset)

# %% [markdown]
# **Second file: the consume queue** (消费队列). Twenty bytes a message, nothing else. The first eight are the place in
# the commit log: compare them with the `physical_offset` above. The number of an entry is the message's **queue offset**
# (队列偏移量): 0, 1, 2, … This is entry 1:

# %%
lab.store().queue("orders", 0).hexdump(1)

# %% [markdown]
# **Third file: `config/consumerOffset.json`.** It says how far each group has read: one number for each queue. Read into
# a dictionary:

# %%
lab.store().config("consumerOffset.json")["offsetTable"]

# %% [markdown]
# (In the map there is a fourth file, the index. It leads from keys to messages, and belongs to lab 01.)

# %% [answer] lab00.next_byte
# ### Your turn: an order of your own
#
# Write what you like into `YOURS`, run the cell, and find your text among the bytes. Then: one more order is sent after
# yours. At which byte of the commit log will it begin?
#
# wrong start: There your own order begins. The next one begins where yours ends.
# wrong size: That is how long your order is. A place in the log is counted from the first byte of the log.
# wrong number: That is the number of the next entry of the queue. A place in the log is counted in bytes.
# wrong: Add the two numbers of your order that say where it begins and how long it is: `physical_offset` and
#   `total_size`.
# note: There is nothing between two messages: no gap, no separator. The log grows at its end, whatever anybody reads.

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
# question: The table has `letters@press-audit` and `orders@audit`. Which is the offset of `audit` in `orders`?
# claim: The first key that ends with the group's name.
# refutation: A key of the table is topic@group, both in full: another group's name may end in the same way.

# %% [exercise] lab00.find
# ### Exercise 1: find your message in three files
#
# Write `find`. It gets what you have looked at above, as plain bytes:
#
# - `entries`: the consume queue file of queue 0. Entry *n* has 20 bytes: the place in the log (8), the size of the
#   message's unit (4), a tag code (8); big-endian, which `struct` calls `">"`. A **unit** is one message as it stands in
#   the log.
# - `log`: the commit log file.
# - `offset_table`: the third file, as `{"orders@billing": {0: 3}, …}`: group's next offset, for each queue. A group that
#   has not reported an offset yet is not in it.
#
# `struct` is all you need. (mqlab's own readers of these files, `lab.store()` among them, stay closed in this exercise.)
# `check(...)` tries your function on days that you have not seen. When you are stuck, `hint("lab00.find")` gives you the
# first of three hints; asking is free.
#
# hint: An entry of the queue file is 20 bytes, so entry n begins at byte 20 * n. Which of its bytes are a place?
# hint: struct.unpack_from(">qiq", entries, 20 * queue_offset) reads a place (8 bytes), a size (4) and a tag code (8).
#   The unit is that many bytes of the log, from that place.
# hint: offset_table.get(f"orders@{group}", {}).get(0, 0) is what a group reads next from queue 0. It is past message
#   n when that is greater than n; equal means: this one comes next.
# note: You have just done by hand what the broker does for every pull: entry, place, unit. And you have seen that a
#   group is nothing but a number in a small file.

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
# refutation: Numbers in the files are big-endian, the most significant byte comes first: ">" in struct.

# %% [belief] lab00.offset_is_a_byte
# question: What is a queue offset?
# claim: A position in the queue's file.
# refutation: The number of an entry. Entry n of a queue is at byte 20 * n.

# %% [belief] lab00.read_last
# question: A group's committed offset is 5. Which message has it read last?
# claim: Message 5.
# refutation: Message 4. The committed offset is the next message to read: a group is past a message when the offset
#   it reads next is greater.

# %% [belief] lab00.one_position
# question: billing has read a message. Does audit still get it?
# claim: No: a queue has one position, and it is behind that message.
# refutation: Every group has an offset of its own in the table, and gets every message.

# %% [belief] lab00.queue_alone_in_log
# question: Where does a message of a queue end in the log?
# claim: Where the queue's next message begins.
# refutation: The log holds the messages of all topics, one after the other. A unit is as many bytes of the log as the
#   entry's bytes 8 to 11 say.

# %% [belief] lab00.end_not_size
# question: What do bytes 8 to 11 of an entry say?
# claim: Where the unit ends.
# refutation: How long it is. log[a:b] ends at byte b of the log; the unit ends at its place plus its size: log[place
#   : place + size].

# %% [belief] lab00.counted_from_one
# question: Which number has the first message of a queue?
# claim: 1.
# refutation: Entries count from 0: entry n of the queue is at byte 20 * n.

# %% [belief] lab00.message_in_queue
# question: Where is a message's body?
# claim: In its queue.
# refutation: The entry only leads to the message; the unit is in the log, at that place.

# %% [markdown] minutes=7
# ## What billing tells the broker

# %% [prediction] lab00.known_when
# Billing's listener has returned CONSUME_SUCCESS, and no more orders come. When does the broker know?
#
# - at once: the answer goes to the broker with each message
#   > A request for each message would double the traffic. Look at billing's lane: after the listener returns, nothing
#   > leaves it for seconds.
# - later: seconds later, in one report for all messages so far
#   = One number says it for all orders at once.
# - never: the broker gets no report at all
#   > It does get one: look for UPDATE_CONSUMER_OFFSET in the timeline. Without it, billing would begin from the start
#   > again after every restart.
# note: The client keeps its progress in memory and reports it every 5 seconds, the first time after 10. In between, the
#   broker knows less than the client.

# %% [markdown]
# Here is the whole day of the second order, from the shop to the number:

# %%
lab = play(noon, seed=7, client=no_trace)
lab.timeline(second.msg_id)

# %% [markdown]
# Follow billing's lane. The listener runs and returns, and the client notes the new offset *in memory*. Only much later
# does a request go to the broker, `UPDATE_CONSUMER_OFFSET`, one for all three orders. How much later?

# %%
noted = lab.journal.changes("listener.returned")[-1][0].now_ms
told = lab.journal.changes("offset.committed")[0][0].now_ms
print(f"The broker knew {told - noted} ms after the last listener had returned.")
reveal("lab00.known_when", "later" if told - noted > 1000 else "at once")

# %% [markdown] minutes=10
# ## Nothing is pushed
#
# To read is to **pull** (拉取): a client names a queue, the offset to begin at, and how many messages it would like. It
# gets messages, and the offset at which to go on. Here is a client that pulls by hand. The numbers are yours to change:

# %% tags=["parameter"]
OFFSETS = [0, 2, 0, 3]


def pull(offset):
    queue = MessageQueue("orders", "broker-a", 0)
    found = puller.pull(queue, "*", offset, max_nums=2)
    return {
        "from": offset,
        "status": found.pull_status,
        "got": ", ".join(message.keys for message in found.msg_found_list or ()),
        "go on at": found.next_begin_offset,
    }


lab = play(morning, seed=7, client=no_trace)
puller = lab.pull_consumer("curious")
Table(pull(offset) for offset in OFFSETS)

# %% [markdown]
# The third pull asks for the same as the first and gets the same. The broker did not hand the messages out, it showed
# them. The last one asks for an order that does not exist yet, and is told so.
#
# Billing is called a *push* consumer, and yet it pulls. Does it ask again and again while there is nothing to read? Let
# it be there first, and the orders come later:

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
# The bar in the broker's lane is a pull that found nothing. **The broker holds it** (长轮询) and answers when an order comes.
# Billing handles the order, and its next pull is already waiting.
#
# Look also at the pull after the second order: the broker learns *next of orders 0 is 1* from it. Progress is reported
# every few seconds, and it travels along with a pull as well.

# %% [answer] lab00.held
# ### Your turn: how long does an order wait?
#
# Change `PAUSE` to anything from 2 to 60 seconds, run the cell, and look at the times. How many milliseconds pass from
# the moment at which the broker stores the second order to the moment at which billing's listener starts with it?
#
# wrong held: So long the broker held the pull, before there was an order. Count from `stored at byte …` on.
# wrong listener: So long the listener works. Count up to its start.
# wrong: Take the time of the line `stored at byte …` of the second order, and the time of `listener starts: entry 1`. One
#   thousandth of a second is a millisecond.
# note: The order does not wait for a question, because the question is there already. That is why it is called a push consumer.

# %%
### BEGIN SOLUTION
answer("lab00.held", 2, early_day)
### STARTER
# answer("lab00.held", ..., early_day)
### END SOLUTION

# %% [markdown] minutes=15
# ## Read the timeline

# %% [exercise] lab00.timeline
# ### Exercise 2: three moments of an order
#
# Write `read_day`. It gets the rows of a timeline, as you get them here, and answers three questions about one message
# and one group. Each row is a dictionary; what the journal wrote down is under `"values"`.
#
# hint: Three kinds of rows are enough: message.stored, listener.started and offset.committed. Print the values of one
#   row of each.
# hint: message.stored contains the message's queue_offset. You need it to recognise the commit that passes it: a
#   commit names a group and a queue_offset, not a message.
# hint: One commit may pass several messages at once. Look for the first offset.committed of the group whose
#   queue_offset is greater than the message's; next(..., None) gives None where there is none.
# note: Between seen and known lie seconds in which only the consumer's memory knows. Everything about duplicates
#   happens there.

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
# question: audit commits an offset behind a message. Does the broker know now that billing has read it?
# claim: Yes: the message is acknowledged.
# refutation: The broker knows that a group is past a message from that group's own offset.committed; another group's
#   says nothing about it.

# %% [belief] lab00.commit_for_each
# question: Five messages were read. How many commits does the broker get?
# claim: Five: one for each message.
# refutation: The broker knows that a group is past a message from the first offset.committed greater than its offset;
#   one commit may pass several messages.

# %% [belief] lab00.client_is_broker
# question: A listener has returned CONSUME_SUCCESS. Who knows of it?
# claim: The broker, at once.
# refutation: The broker knows that a group is past a message when it is told, with offset.committed; what the
#   listener returned, and offset.updated, are only in the client's memory.

# %% [belief] lab00.stored_when_sent
# question: When is a message stored?
# claim: When its producer says that it has sent it.
# refutation: A message is stored when the broker writes it to its log, message.stored: after it was sent.

# %% [belief] lab00.seen_by_anybody
# question: audit has read a message. Has billing seen it?
# claim: Yes: a message is seen once, by whoever reads it first.
# refutation: A group first sees a message at its own first listener.started; others have nothing to do with it.

# %% [belief] lab00.none_is_zero
# question: A group has never read a message. When did it see it?
# claim: At 0.
# refutation: What did not happen is None, not 0: at 0 something can happen.

# %% [markdown] minutes=16
# ## Evening: audit arrives late
#
# It is Monday: billing has acknowledged everything long ago, and audit starts for the first time.

# %% [prediction] lab00.audit
# Audit starts a minute after billing has acknowledged all three orders. How many of them does audit get?
#
# - 3: all three
#   = Audit has a number of its own, and it begins at 0.
# - 0: none; billing has consumed them
#   > Billing has moved its own number. Nothing else in the broker says that an order was read, so nothing keeps audit
#   > from reading it.
# - new ones: none of these; a group that is late gets what is sent from now on
#   > Some groups do begin at the end: new groups on a topic whose first messages are gone or no longer in memory. These
#   > orders are all there, so audit begins at the first.
# note: Each group has a position of its own in the same queue. What billing has read is not gone for audit.


# %%
def evening(lab, late="30s"):
    noon(lab)
    lab.run_for(late)
    read_orders(lab, "audit")
    lab.run_for("5s")


lab = play(evening, seed=7, client=no_trace)
reveal("lab00.audit", len(lab.deliveries("audit")))

# %% [markdown]
# Audit gets every order, as if billing did not exist: each group has its own number in the same queue. Where is audit's?

# %%
show_queue(lab, "orders")

# %% [markdown]
# Not there. Audit has handled everything, but its client has not reported yet, so the broker knows nothing of it. Thirty
# seconds later it does:


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
# `broker_offset` is the number that the next message of the queue will get, `consumer_offset` the next one that the group
# reads. Between them lie the messages that the group has not read: the **lag** (消费堆积).
#
# And this is who has a connection to whom. Every client talks to the name server, to learn where the topic is, and to the
# broker. The shop knows nothing of billing and audit, nor they of each other.

# %% tags=["nbval-ignore-output"]
lab.diagram()

# %% [markdown]
# ### Step through the day
#
# Now you drive. *Step* goes on to the next thing that happened, *Back* takes it back, and the slider goes anywhere. Under
# the picture are the files of that moment: the queue, the bytes of a message, and what each group reads next, as its
# client remembers it, as the broker knows it, and as the file has it. Click an entry, a message or a moment: what belongs
# to it is lit up everywhere. *late* says how long after billing audit comes; *Play again* tells the day anew.

# %% tags=["explorer"]
explorer = explore(night, seed=7, client=no_trace)
explorer

# %% [answer] lab00.between
# ### Your turn: find the gap
#
# Find a stop at which billing is done with all three orders, and the broker has not been told of one of them. Which
# number has the stop?
#
# wrong early: At this stop billing's listener has not returned for all three orders yet. Go on, to the last
#   CONSUME_SUCCESS of billing.
# wrong late: At this stop the broker has billing's report already. Go back, to a stop before UPDATE_CONSUMER_OFFSET.
# wrong: Give the number of the stop, as it is shown under the slider.
# note: At this stop only the memory of one process knows that the orders are done. What if that process dies now? This is
#   what the rest of the lab is about.

# %%
### BEGIN SOLUTION
answer("lab00.between", 18, explorer)
### STARTER
# answer("lab00.between", ..., explorer)
### END SOLUTION

# %% [markdown] minutes=25
# ## Break it
#
# Billing starts, handles all three orders, and three seconds later its process is killed. Ten seconds after that it is
# started again.

# %% [prediction] lab00.again
# Billing has handled all three orders and is killed 3 seconds after it started. It is started again. How many orders
# does its listener get in its second life?
#
# - 3: all three again
#   = The first report would have left after 10 seconds; the process lived for 3.
# - 0: none; it has acknowledged all of them
#   > The acknowledgements were noted in the memory of the process that died. The broker had heard of none of them.
# - 1: one; the order that it was working on
#   > It was working on nothing: all three were done. What counts is what the broker was told, and that was nothing.
# note: The broker had no report yet, so the group goes on from the beginning. At least once means: be ready to see a
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
# Three customers have now paid twice, unless billing is prepared for it. Nobody made a mistake: the broker delivered
# what, to its knowledge, had not been handled. This promise is called **at least once** (至少一次).
#
# `reconsume_times` is 0 in every row: to the broker these are first deliveries, not retries. A service cannot tell from
# the message that it has seen it before. It has to remember on its own.

# %%
lab.timeline(second.msg_id)

# %% [answer] lab00.lives
# ### Your turn: a longer life
#
# Billing died before it had reported anything. Change `LIVES` to something between 9 and 16 seconds, and run the cell.
# How many orders does billing get again in your run?
#
# wrong both: That is every delivery, of both lives. The second life begins after the longest pause in `started_ms`.
# wrong: Count the rows of the second life only: those that started after the kill. There may be none.
# note: The client reports 10 seconds after its start. A life that ends before that is forgotten as a whole; one that
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
# (The time machine above can do the same with a click: go to a stop, choose *kill* and *billing-1*, say after how long it
# starts again, and make the fault.)
#
# And the broker? Kill it too. What it has written stays: its files are still there, and it reads them when it starts.


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
# ### Exercise 3: say where each group stands after a crash
#
# All consumers are killed at the same moment. You get the rows of the timeline up to that moment, and the names of the
# groups. What will each group read next from the queue when it is started again?
#
# hint: Two kinds of rows speak of progress: offset.updated (whose memory?) and offset.committed (whose memory?). Only
#   one of them is left when the consumer is dead.
# hint: Go through the rows in order and keep, for each group, the queue_offset of its latest offset.committed.
# hint: Begin with {group: 0 for group in groups}: a group that never reported begins at 0. The queue_offset of a
#   commit is already the next one to read: add nothing.
# note: That number, and nothing else, decides what is delivered again.


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
# question: A group's committed offset is 5. Where does it go on?
# claim: At 6: 5 is done.
# refutation: A committed offset is the next message to read: add nothing to the number that the broker got.

# %% [belief] lab00.group_exists_when_reporting
# question: A group has never committed. Where does it begin after a crash?
# claim: Nowhere: there is no such group.
# refutation: A group that has told the broker nothing begins a young queue at offset 0.

# %% [belief] lab00.client_remembers
# question: A consumer is killed and started again. Where does it go on?
# claim: Where it was.
# refutation: A consumer that is started again asks the broker: it goes on at what the broker was told, not from what
#   its client remembered.

# %% [belief] lab00.committed_minus_one
# question: A group's committed offset is 5. Where does it go on?
# claim: At 4: the offset is one ahead.
# refutation: A committed offset is the next message to read, not the last one that was read: subtract nothing from
#   it.

# %% [belief] lab00.late_group_at_the_end
# question: A group that has committed nothing is started again. What does it get?
# claim: New messages only.
# refutation: It begins a young queue at offset 0: the queue still has its first message.

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **Messages do not stay for ever.** The broker deletes whole files of its log, by default when they are 72 hours old
#   (at 04:00), sooner when the disk is full, and it does not ask who has read them. From Friday to Monday the orders
#   do wait; much longer they would not. Lab 01 lets you see it.
# - **A killed process is not a pulled plug.** `kill` leaves what the process had written with the operating system. What
#   a power cut takes depends on when the broker forces its file to disk (lab 01).
# - **One queue, one broker, one consumer a group.** With several, order and sharing become questions.
# - **That audit got the old orders has a condition.** A new group begins at the start of a queue while the queue's first
#   message is still there and in memory; on an old topic it begins at the *end* unless it asks for more.
# - **The network and the clock are simulated,** the files and the frames are not: other tools can read them.

# %% [markdown] minutes=2 tags=["reading"]
# ## RocketMQ does it so
#
# | step | where in RocketMQ |
# |---|---|
# | the shop sends | `DefaultMQProducer.send`, request `SEND_MESSAGE_V2` |
# | the broker writes | `SendMessageProcessor`, `CommitLog.asyncPutMessage` |
# | the entry in the queue | `DefaultMessageStore.ReputMessageService`, `ConsumeQueue` |
# | billing fetches | `DefaultMQPushConsumerImpl.pullMessage`, `PullMessageProcessor` |
# | the broker holds a pull that found nothing | `PullRequestHoldService` |
# | billing is done | `ConsumeMessageConcurrentlyService.processConsumeResult`, `RemoteBrokerOffsetStore.updateOffset` |
# | the broker is told | `RemoteBrokerOffsetStore.persistAll`: after 10 s, then every 5 s; also along with the next pull |
# | the broker remembers | `ConsumerOffsetManager`, written to `consumerOffset.json` every 5 s |
#
# Where you may read it differently: "the broker pushes" (it answers pulls), "the broker marks a message as consumed" (it
# has no such mark; a group is one number a queue), "an ack deletes" (true for a classic RabbitMQ queue, not here).

# %% [markdown] minutes=4 tags=["reading"]
# ## Reflect
#
# There is no check for these. Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab00.ten_groups
# **1.** Ten groups read the same topic. What does the tenth cost the broker in disk space?
#
# answer: Almost nothing: one number for each queue in `consumerOffset.json`, and a topic for its failures, which stays
#   empty while no listener fails (lab 07). The messages are stored once, however many groups read them. (What the tenth
#   group does cost is reading: network and, if it is far behind, disk reads.)

# %% [reflection] lab00.every_message
# **2.** Billing reports its offset every 5 seconds. What would you gain, and what would it cost, to report after each
# message?
#
# answer: After a crash you would get back one message instead of seconds of them. It would cost a request for each
#   message, and the broker would note a new number each time. Duplicates would become fewer, not none: the process can
#   die between the work and the report. So the listener must cope with a message that it has seen in any case, and then
#   a report every few seconds is enough.

# %% [reflection] lab00.other_broker
# **3.** The colleague who was wrong had a good reason to be. Which broker had they used before?
#
# answer: Probably RabbitMQ with classic queues, or another broker whose queue belongs to one service: there a message is
#   removed when it is acknowledged, and a second service needs a queue of its own, which gets copies from the moment on
#   at which it is bound. Audit would have come too late.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# You have found one message in three files. [Lab 01](01a-what-the-broker-writes.ipynb) opens all of them, cuts the power,
# and reads what a real RocketMQ broker left behind. Other programs can read the same files: in
# [lab 10](10a-spark-reads-the-broker.ipynb) Spark counts them. All labs: [index](index.ipynb).

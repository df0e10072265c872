# %% [markdown] tags=["reading"]
# # 07a Retries: failure takes time
#
# ## Why
#
# 14:02. The bank does not answer for one order out of a hundred. The other ninety-nine are paid within seconds. At
# 14:12 an operator restarts billing as a precaution. At 14:13 ninety-nine customers are charged a second time.
#
# The meeting next morning knows why:
#
# - "Retries start after one second. That was too fast for the bank."
# - "It is in the retry topic: the property `RETRY_TOPIC` says so."
# - "After 4 hours and 46 minutes it would have been gone anyway."
# - "We do stop after three retries: `if message.reconsume_times >= 2`."
# - "No status came, so RocketMQ sent it again at once."
#
# None of the five is true. This part follows one failing order to its end and brings it back. The [second
# part](07b-stop-in-time.ipynb) is a billing service that survives such a day.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - say when a failed message is redelivered, and how long it takes until it is dead;
# - say where it waits, and which properties it carries;
# - find a dead letter and resend it to the right group, once.

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import (
    answer,
    check,
    hint,
    mybroker,
    old_questions,
    predict,
    reveal,
    show_me,
)
from mqlab.course.widgets import explore, retry_clock
from mqlab.lab.views import Table
from mqlab.lab.views.message import MessageView
from mqlab.lab.views.timeline import after

# %%
old_questions("lab07")

# %% [markdown]
# ## The bank
#
# Billing asks a bank for the money of each order. The order itself says how the bank reacts, one word per attempt. `no
# 40` means: refuse the first attempt, and pay after 40 ms at the second. The last word holds for all later attempts, so
# a single `no` refuses for ever.


# %% tags=["setup"]
class BankError(Exception):
    """The bank says no."""


def ask_bank(message, context):
    """BankError when the bank refuses. It takes 40 ms, or as many as its word says."""
    words = message.properties.get("bank", "40").split()
    word = words[min(message.reconsume_times, len(words) - 1)]
    context.sleep(40 if word == "no" else int(word))
    if word == "no":
        raise BankError(f"{message.keys} is refused")


# %% [markdown]
# Every day here begins the same way: billing starts, half a minute passes, then the shop sends one order for each
# behaviour of the bank.


# %% tags=["parameter"]
def billing(lab, listener, **settings):
    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("30s")


def send_orders(lab, *banks):
    shop = lab.producer("shop")
    for number, bank in enumerate(banks):
        order = Message("orders", "книга 书 📚".encode(), keys=f"order-{number}")
        order.properties["bank"] = bank
        shop.send(order)


# %% [markdown]
# ## One failure
#
# A listener says "not now" by returning `RECONSUME_LATER`. Raising an exception means the same, and so does returning
# nothing. The order then goes back to the broker, which keeps it for a while (消息回发, 消息重试). How long? The broker has a
# table of delays, level 1 to level 18 (延迟级别):
#
# `1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h`

# %% [prediction] lab07.first_retry
# An order fails for the first time. When does billing get it again?
#
# - 1: after 1 second, which is level 1 {lab07.first_level}
#   > Levels 1 and 2 exist, but a retry uses them only if the listener asks for them. The first retry waits for level 3.
# - 10: after 10 seconds, which is level 3
#   = The first failure asks for level 3 + 0.
# - 0: at once; the broker has it and billing is free
#   > No retry is immediate, or a failing service would be called thousands of times in a moment. The first retry waits
#   > for level 3.
# note: Levels 1 and 2 are for producers of delayed messages.


# %%
def simple(messages, context):
    ask_bank(messages[0], context)
    return CONSUME_SUCCESS


def one_failure(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "no 40")
    lab.run_for("20s")


# %%
def deliveries(lab):
    """When, from where, and with what result billing's listener was called."""
    rows = lab.deliveries("billing", absences=False)  # calls only, nothing filtered
    for row in rows:
        yield {
            "after": after(row.started_ms - rows[0].started_ms),
            "read from": row.message_queue.topic,
            "queue_offset": row.queue_offset,
            "topic it sees": row.topic,
            "reconsume_times": row.reconsume_times,
            "status": row.status,
        }


no_trace = {"enable_trace": False}  # nothing but orders in the log
lab = play(one_failure, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
first, second = lab.deliveries("billing", absences=False)
reveal("lab07.first_retry", (second.started_ms - first.ended_ms) // 1000)

# %% [markdown]
# The second delivery was read from `%RETRY%billing`, the group's **retry topic** (重试主题), which every member reads in
# addition. Yet the listener sees `orders`. `reconsume_times` (重试次数) counts how often the message was sent back: 0 at
# the first delivery, 1 at the second.
#
# 43 ms after the first delivery billing sends the order back, with the request `CONSUMER_SEND_MSG_BACK`. The bars are
# held pulls.

# %%
lab.timeline(first.msg_id)

# %% [markdown]
# ## Until it is dead
#
# Now an order that the bank will never pay, with all settings at their defaults.

# %% [prediction] lab07.calls
# `max_reconsume_times` is not set, which means 16 retries. An order always fails. How often is the listener called with
# it?
#
# - 16: sixteen times {lab07.sixteen_deliveries}
#   > Sixteen is the number of retries. The first delivery is not a retry.
# - 17: seventeen times
#   = One delivery and sixteen retries: `reconsume_times` 0 to 16.
# - 18: eighteen times, once for each level
#   > The table has eighteen levels, and the first two are not used. That leaves sixteen retries.
# note: Sixteen retries are seventeen deliveries.

# %% [prediction] lab07.minutes
# How many whole minutes pass between its first delivery and its last?
#
# - 286: 286; the handbook says 4 hours 46 minutes
#   > That number is rounded up and widely copied. Levels 3 to 18 add up to 17,140 seconds.
# - 285: a little less than that, 285
#   = Levels 3 to 18 are 17,140 seconds: 4 h 45 min 40 s.
# - 105: 105; sixteen retries wait for levels 1 to 16
#   > They wait for levels 3 to 18. The two longest, 1 h and 2 h, take most of the time.
# note: The broker checks every 100 ms whether a message is due. That adds a second or two in all.
# later: -

# %% [markdown]
# Five hours, in virtual time:


# %%
def five_hours(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "no")
    lab.run_for("5h")


lab = play(five_hours, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
lab.waits(rows[0])

# %%
whole_ms = rows[-1].started_ms - rows[0].started_ms
print(len(rows), "deliveries; from the first to the last:", after(whole_ms))
reveal("lab07.calls", len(rows))

# %%
reveal("lab07.minutes", whole_ms // 60_000)

# %% [markdown]
# The bar below a delivery is the wait that followed; the axis is logarithmic. Drawn to scale, you see where the time
# went:

# %%
lab.waits(rows[0], scale="linear")

# %% [exercise] lab07.schedule
# ### Exercise 1: compute the whole schedule
#
# The table is a setting of the broker (`messageDelayLevel`), the number of retries one of the consumer
# (`maxReconsumeTimes`; -1, the default, means 16). Write `schedule` for any table and any number. The listener fails
# immediately, and the broker is punctual. If a retry's level is past the end of the table, it waits for the last level.
# Use plain Python; mqlab's own parser of such tables is not allowed.
#
# hint: `levels.split()` are the delays. Level 1 is number 0 of the list. Turn "5m" into seconds: `int(text[:-1])` times
#   the value of `{"s": 1, "m": 60, "h": 3600, "d": 86400}` for `text[-1]`.
# hint: The failure of the delivery with reconsume_times r waits for level 3 + r, or for the last one if the table is
#   shorter. There is one wait per allowed retry, r = 0, 1, …
# hint: `retries = 16 if max_reconsume_times == -1 else max_reconsume_times`; `for r in range(retries)`: `level = min(3
#   + r, last)`; second += the delay of that level; append (level, second).
# note: With sixteen retries a message may be four and three quarter hours late. If your business cannot wait that long,
#   set max_reconsume_times, and decide what happens to the remaining messages.


# %%
# exercise: lab07.schedule
def schedule(levels, max_reconsume_times):
    """When a message that always fails is retried.

    levels: a text such as "1s 5s 10s 30s 1m"; units s, m, h, d. Returns a list with a
    tuple for each retry: (its delay level, whole seconds since the first failure).
    """
    ### BEGIN SOLUTION
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    delays = [int(text[:-1]) * units[text[-1]] for text in levels.split()]
    retries = 16 if max_reconsume_times == -1 else max_reconsume_times
    planned, second = [], 0
    for failed in range(retries):
        level = min(3 + failed, len(delays))
        second += delays[level - 1]
        planned.append((level, second))
    return planned
    ### END SOLUTION


# %%
check("lab07.schedule")

# %% [belief] lab07.sixteen_is_the_most
# question: `max_reconsume_times` is 20. How many retries are there?
# claim: Sixteen. There are never more.
# refutation: Sixteen is only the default, which -1 stands for. max_reconsume_times may be larger, and the retries past the end
#   of the table wait for its last level.

# %% [belief] lab07.table_begins_again
# question: A message has failed more often than the table has levels. How long does it wait?
# claim: As long as at the first level: the table begins again.
# refutation: The table ends with its last level: all further retries wait for the last one.

# %% [belief] lab07.from_first_failure
# question: The table of levels says 10s 30s. When does the second retry come?
# claim: 30 seconds after the first failure.
# refutation: 40 seconds after it. Each wait begins when the attempt before it has failed: the seconds add up.

# %% [belief] lab07.zero_is_no_limit
# question: max_reconsume_times is 0. What becomes of a message at its first failure?
# claim: It waits; 0 means that there is no limit.
# refutation: A message is dead when its reconsume_times has reached max_reconsume_times. 0 retries are reached at the
#   first failure.

# %% [belief] lab07.no_limit_no_retry
# question: max_reconsume_times is -1. How many retries are there?
# claim: None.
# refutation: 16. -1 means that no limit is set, and the broker's own is 16.

# %% [belief] lab07.last_failure_waits
# question: The last retry has failed. How long does the message wait?
# claim: For the next level.
# refutation: Not at all: after the failure of the last retry there is no further wait. The message is dead.

# %% [belief] lab07.end_of_table
# question: The table has five levels. How many retries are there?
# claim: Three: level 3, 4 and 5.
# refutation: As many as the limit says: all further retries wait for the last one.

# %% [belief] lab07.level_is_index
# question: Where in the list of delays is that of level 3?
# claim: At number 3 of the list.
# refutation: Level 1 is number 0 of the list of delays: the delay of a level is number level - 1 of it.

# %% [markdown]
# ## Change the settings
#
# Two quantities decide how long a failure takes: the number of retries, and how long the trouble lasts.

# %% [answer] lab07.ten_minutes
# ### Your turn: ten minutes
#
# A customer waits at most ten minutes for a decision. Change `RETRIES` and run the cell: what is the largest
# `max_reconsume_times` with which a hopeless order is dead within ten minutes of its first delivery?
#
# wrong one_more: With one more than the right number the order dies after ten minutes and forty seconds. Look at the
#   last line of the axis.
# wrong default: That is the default, which takes hours, as you have seen.
# wrong: Run the cell with your number and with one more. With the first the order must die before the line at ten
#   minutes, with the second after it.
# note: Five retries: 10 s, 30 s, 1 min, 2 min, 3 min make 6 min 40 s. The sixth would wait four minutes more.

# %% tags=["parameter"]
RETRIES = 2


def hopeless(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple, max_reconsume_times=RETRIES)
    send_orders(lab, "no")
    lab.run_for("5h")


hopeless_day = play(hopeless, seed=7, client=no_trace)
hopeless_day.waits(hopeless_day.deliveries("billing", absences=False)[0])

# %%
### BEGIN SOLUTION
answer("lab07.ten_minutes", 5, hopeless_day)
### STARTER
# answer("lab07.ten_minutes", ..., hopeless_day)
### END SOLUTION

# %% [markdown]
# The group also has a number at the broker. It does not decide: a Java client sends its own number with each message
# that it sends back, and that number wins.

# %%
of_the_group = hopeless_day.admin.examine_subscription_group_config("billing")
print(f"the group's own: {of_the_group.retry_max_times}, the client's: {RETRIES}")

# %% [answer] lab07.two_hours
# ### Your turn: the bank is away for two hours
#
# *Play* plays a new day with your settings. The bank is away for two hours from the moment at which the order was sent:
# under *More settings*, leave *Bank down from* at 0s, and write 2h into *to*.
#
# Before you press *Play*: is the order paid as soon as the bank is back? Set the pin where you expect it. Then press
# *Play*: at which delivery is it paid (the first one is number 1)?
#
# wrong last_failure: That is the last delivery that fails, or the `reconsume_times` of the right one: the first
#   delivery has the number 1 and the count 0.
# wrong retries_after: That is one too many: the order is not delivered again after it was paid.
# wrong: Write 2h into *to*, press *Play*, and move *Delivery* to its end: the line under the axis names the delivery.
# note: The bank was back after two hours, and the order was paid 45 minutes later. The later a retry is, the longer the
#   wait before it, so a long outage delays even more.

# %% tags=["explorer"]
clock = retry_clock()
clock

# %%
### BEGIN SOLUTION
clock.play(bank_down=("0s", "2h"))
answer("lab07.two_hours", 16, clock)
### STARTER
# answer("lab07.two_hours", ..., clock)
### END SOLUTION

# %% [markdown]
# ## Where it waits
#
# Back to the first order, which failed once. How many units did the broker write for it, and where? (A **unit** is one
# message as stored in the commit log; its position is its first byte.)

# %% [prediction] lab07.retry_topic
# The copy of the failed order has a property `RETRY_TOPIC`. What does it hold?
#
# - orders: the topic that the order was sent to
#   = It records where the message came from.
# - %RETRY%billing: the topic in which billing finds its retries {lab07.retry_topic_is_where}
#   > The name suggests it, but the waiting copy's destination is in another property, `REAL_TOPIC`. The table of units
#   > shows both.
# - SCHEDULE_TOPIC_XXXX: the topic in which the copy waits
#   > A copy is already stored in that topic, so no property repeats it. `RETRY_TOPIC` holds the original topic.
# note: The client reads `RETRY_TOPIC` back before it calls the listener, so a listener never sees the retry topic.

# %%
lab = play(one_failure, seed=7, client=no_trace)
lab.copies(first.msg_id)

# %%
waiting = next(unit for unit in lab.store().messages("SCHEDULE_TOPIC_XXXX"))
reveal("lab07.retry_topic", waiting.properties["RETRY_TOPIC"])

# %% [markdown]
# 1. the order as the shop sent it;
# 2. a copy that **waits** in a topic of the broker (延迟主题), `SCHEDULE_TOPIC_XXXX`. Queue 2 belongs to level 3;
# 3. a copy of the copy in the retry topic, which billing reads like any other message.
#
# Each level has its own queue. All messages of a queue wait equally long, so the first one stored is the first one due,
# and the broker checks only one entry per queue. An entry has 20 bytes: the position of a unit, its size, and eight
# bytes that elsewhere hold a hash of the tag. In this topic they hold the due time:

# %%
entry = lab.store().queue("SCHEDULE_TOPIC_XXXX", 2).hexdump(0)
print("waits", entry.fields[2].value - waiting.store_timestamp, "ms")
entry

# %% [markdown]
# The three units say this about retries:


# %%
def bookkeeping(lab):
    names = ["RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DELAY"]
    names += ["REAL_TOPIC", "REAL_QID", "WAIT"]
    for unit in lab.store().messages():
        told = {name: unit.properties.get(name) for name in names}
        if told["ORIGIN_MESSAGE_ID"]:
            told["ORIGIN_MESSAGE_ID"] = "…" + told["ORIGIN_MESSAGE_ID"][-4:]
        place = {"topic": unit.topic, "queue_id": unit.queue_id}
        yield place | {"reconsume_times": unit.reconsume_times} | told


Table(bookkeeping(lab))

# %% [markdown]
# `DELAY` is the level. `REAL_TOPIC` and `REAL_QID` say where the copy goes when its time has come. `ORIGIN_MESSAGE_ID`
# is the `offset_msg_id` of the unit that failed first: the broker's address and a position in its log (you see the last
# digits). `WAIT` says whether a sender waits until the unit is safely on disk. The shop did; a copy has no waiting
# sender.
#
# Only a group whose members share the messages reads a retry topic. With `BROADCASTING` nothing is sent back:


# %%
def two_models(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    for model in ("CLUSTERING", "BROADCASTING"):
        consumer = lab.push_consumer(model.lower(), message_model=model)
        consumer.subscribe("orders")
        consumer.on_messages(simple)
        consumer.start()
    lab.run_for("5s")


models = play(two_models, seed=7, client=no_trace)
for group in ("clustering", "broadcasting"):
    online = models.admin.examine_consumer_connection_info(group)
    print(f"{group}:", *(one.topic for one in online.subscriptions))

# %% [answer] lab07.asks
# ### Your turn: the listener asks for a level
#
# A listener may ask for another level: `context.delay_level_when_next_consume`. Change `ASK` and watch the deliveries.
# Which value makes the order a dead letter at its first failure, without a single retry?
#
# wrong zero: 0 is the value when the listener does not ask: the broker decides, 3 + `reconsume_times`.
# wrong eighteen: That is the longest wait, two hours. Levels above 18 become 18.
# wrong: Try it in the cell above. The order must be in `%DLQ%billing` after one delivery.
# note: Every level below 0 means: do not retry. Use it for an order that cannot succeed.

# %% tags=["parameter"]
ASK = 1


def asks(messages, context):
    context.delay_level_when_next_consume = ASK
    return RECONSUME_LATER


def asked(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, asks, max_reconsume_times=3)
    send_orders(lab, "no")
    lab.run_for("7h")


asked_day = play(asked, seed=7, client=no_trace)
asked_day.waits(asked_day.deliveries("billing", absences=False)[0])

# %%
### BEGIN SOLUTION
answer("lab07.asks", -1, asked_day)
### STARTER
# answer("lab07.asks", ..., asked_day)
### END SOLUTION

# %% [markdown]
# ## Build the rewrite
#
# An order with two retries (`max_reconsume_times=2`) fails until it is dead. These are all units of the log:


# %%
def two_retries(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple, max_reconsume_times=2)
    send_orders(lab, "no")
    lab.run_for("1m")


lab = play(two_retries, seed=7, client=no_trace)
lab.copies(lab.deliveries("billing", absences=False)[0].msg_id)

# %%
Table(bookkeeping(lab))

# %% [markdown]
# After its second retry the order failed once more and became a **dead letter** (死信), the last unit. This time it did
# not wait. Compare which properties change at every failure, and which are set once.
#
# The time machine has the same day. In *The story*, grey marks the future, and a dashed line is a pull that the broker
# holds. *What this lab shows* has the broker's three queues at this stop. Find the stop at which billing is done with
# the order in `orders`, while its copy waits.

# %% tags=["explorer"]
from mqlab.lab.views.queue import show_queue


def queues_now(lab):
    places = [("orders", 0), ("SCHEDULE_TOPIC_XXXX", 2), ("%RETRY%billing", 0)]
    there = lab.store().topics()
    return [show_queue(lab, *place) for place in places if place[0] in there]


explorer = explore(two_retries, seed=7, show=queues_now, client=no_trace)
explorer

# %% [markdown]
# It is stop 13: the answer to `CONSUMER_SEND_MSG_BACK` has arrived, and the line ends with *in memory: next of orders 0
# is 1*. Billing's offset (消费位点) in `orders` has moved past the order while the copy waits; five seconds later billing
# reports it (stop 14). **A retry blocks no other order.** That is the purpose of the machinery, and it matters in the
# second part.

# %% [exercise] lab07.rewrite
# ### Exercise 2: build the send-back rewrite
#
# To send a message back, the consumer sends `CONSUMER_SEND_MSG_BACK` with four things: the message's position, its
# group, its `max_reconsume_times`, and a level. The level is 0, unless the listener has asked for another one. Write
# what the broker does then:
#
# | | it waits | it is dead |
# |---|---|---|
# | when | otherwise | it had its `max_reconsume_times` retries, or the level is below 0 |
# | level | 0: the broker decides, 3 + `reconsume_times`; otherwise as asked; never above 18 | |
# | topic and queue | `SCHEDULE_TOPIC_XXXX`, the level's | `%DLQ%` and the group, 0 |
#
# The table of units above shows the rest: compare a message with its copy. All other properties stay. Use strings,
# numbers and a dictionary; mqlab's broker is not allowed here.
#
# hint: First decide where the copy goes: dead when `message.reconsume_times >= max_reconsume_times` or `delay_level <
#   0`. Start from `dict(message.properties)`, so that untouched properties stay.
# hint: Set RETRY_TOPIC and ORIGIN_MESSAGE_ID only if they are missing: `properties.setdefault(name, value)` does that.
#   `message.topic` and `message.offset_msg_id` are the values for a first failure.
# hint: `level = min(delay_level or 3 + message.reconsume_times, 18)`. A waiting copy: topic SCHEDULE_TOPIC_XXXX, queue
#   level - 1, DELAY `str(level)`, REAL_TOPIC `f"%RETRY%{group}"`, REAL_QID "0". A dead one: `f"%DLQ%{group}"`, queue 0,
#   DELAY "0". Both: WAIT "false".
# note: This is AbstractSendMessageProcessor.consumerSendMsgBack. The broker keeps no other record of the failure: a
#   retry is a message like any other.


# %%
# exercise: lab07.rewrite
def give_back(message, group, max_reconsume_times, delay_level):
    """The unit that the broker writes for a message given back.

    message: as it stands in the log: topic, reconsume_times, properties, offset_msg_id.
    Returns a tuple of four: topic, queue_id, reconsume_times, properties (all texts).
    """
    ### BEGIN SOLUTION
    properties = dict(message.properties)
    properties.setdefault("RETRY_TOPIC", message.topic)
    properties.setdefault("ORIGIN_MESSAGE_ID", message.offset_msg_id)
    properties["WAIT"] = "false"
    count = message.reconsume_times
    if count >= max_reconsume_times or delay_level < 0:
        properties["DELAY"] = "0"
        return f"%DLQ%{group}", 0, count + 1, properties
    level = min(delay_level or 3 + count, 18)
    properties["DELAY"] = str(level)
    properties["REAL_TOPIC"] = f"%RETRY%{group}"
    properties["REAL_QID"] = "0"
    return "SCHEDULE_TOPIC_XXXX", level - 1, count + 1, properties
    ### END SOLUTION


# %%
check("lab07.rewrite")

# %% [belief] lab07.level_keeps_alive
# question: The last retry has failed, and its listener asks for level 5. What happens?
# claim: The message waits for level 5.
# refutation: The level is only a wish for how long to wait. A message is dead when its reconsume_times has reached
#   max_reconsume_times, whichever level the listener asks for.

# %% [belief] lab07.any_level
# question: A listener asks for level 30. Where does the message wait?
# claim: In queue 29.
# refutation: A message waits in queue level - 1 of SCHEDULE_TOPIC_XXXX; the highest level is 18.

# %% [belief] lab07.one_more_try
# question: max_reconsume_times is 2, and the message has been retried twice. It fails. Is it dead?
# claim: No: it has not been retried more than twice.
# refutation: A message is dead when its reconsume_times has reached max_reconsume_times, or the level asked is below
#   0.

# %% [belief] lab07.origin_is_last_copy
# question: A message fails a second time. What does ORIGIN_MESSAGE_ID name?
# claim: The copy that has just failed.
# refutation: ORIGIN_MESSAGE_ID holds the offset id of the message that failed first; it is set once and stays.

# %% [belief] lab07.queue_of_level
# question: In which queue does a message of level 3 wait?
# claim: In queue 3.
# refutation: In queue 2: a message waits in queue level - 1 of SCHEDULE_TOPIC_XXXX.

# %% [belief] lab07.where_it_failed
# question: A copy from %RETRY%billing fails. What is its RETRY_TOPIC?
# claim: %RETRY%billing, where it failed.
# refutation: RETRY_TOPIC holds the topic that the message was sent to; it is set at the first failure and stays.

# %% [belief] lab07.waits_in_retry_topic
# question: A message has failed. Where does it wait?
# claim: In the group's retry topic.
# refutation: A message that is not dead goes to SCHEDULE_TOPIC_XXXX to wait; from there it goes to the retry topic.

# %% [markdown]
# ## Dead letters
#
# No alarm says that the order is dead. It is in its own topic, `%DLQ%billing` (死信队列), which no consumer reads, so an
# operator must look there. RocketMQ's Dashboard has a page for that; `lab.admin.query_dlq` asks the same question:

# %%
lab = play(five_hours, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
(dead,) = lab.admin.query_dlq("billing")
print("five hours ago its id was", rows[0].msg_id)
MessageView(dead)

# %% [markdown]
# The unique id (`UNIQ_KEY`) is the same in all copies; only `offset_msg_id`, a position, differs. Suppose the bank has
# changed its mind, and an operator resends the order.

# %% [prediction] lab07.resent
# The operator's tool sends the dead letter to billing's retry topic as a new message. Its `reconsume_times` is 17.
# With which count does the listener get it now?
#
# - 0: with 0, like a new message
#   = It is a new message: it has not been tried yet.
# - 17: with 17, the count of the letter
#   > The count is a field of the stored unit, not of the order. A new unit begins with 0.
# - 18: with 18, one more try
#   > Then it would be a dead letter again at the next failure. The new unit does not carry the old one's attempts.
# note: The message gets all sixteen retries again, and the dead letter itself is still in its queue.

# %%
before = len(lab.deliveries("billing", absences=False))
given_back = lab.admin.resend_dlq("billing", dead.msg_id)
lab.run_for("1m")
given_back

# %%
new = lab.deliveries("billing", absences=False)[before:]
reveal("lab07.resent", new[0].reconsume_times)

# %%
lab.run_for("5h")
lab.waits(lab.deliveries("billing", absences=False)[0])

# %% [markdown]
# The bank has not changed its mind, and everything happened once more: 34 deliveries. How many dead letters are there?

# %%
names = ["queue_offset", "store_timestamp", "physical_offset", "msg_id"]
letters = lab.admin.query_dlq("billing")
Table({name: getattr(letter, name) for name in names} for letter in letters)

# %% [markdown]
# Two dead letters with one id: **the old one is still there**.
#
# ### What the Dashboard's button does
#
# `mqadmin` cannot resend dead letters. RocketMQ's Dashboard has a button *Resend*, which works differently from
# `resend_dlq`: it makes the broker hand a message to one member that is online, outside of all queues
# (`CONSUME_MESSAGE_DIRECTLY`):

# %%
(member,) = lab.admin.examine_consumer_connection_info("billing").connections
origin = dead.properties["ORIGIN_MESSAGE_ID"]
before = len(lab.copies())
result = lab.admin.consume_message_directly(
    "billing", member.client_id, "orders", origin
)
print("the listener's result:", result.consume_result)
print("units written:", len(lab.copies()) - before)

# %% [markdown]
# It takes the **original** order (`RETRY_TOPIC` and `ORIGIN_MESSAGE_ID` of the letter say where it is). The listener is
# called, and the operator sees its result. Nothing is written, and a failure is not retried.
#
# | version of the Dashboard | a dead letter |
# |---|---|
# | 1.0.0 | has no page of its own; the button is on the page of messages |
# | 2.0.0 | has a page: *Resend* for one letter as above; *batch resend* sends the field `topic` where the server reads `topicName` |
# | 2.1.0 | the same page in React: *Resend* passes its parameters in a place that the browser's `fetch` does not read |
#
# (According to the source of these versions.) Check what your tool does before you rely on it, or write your own, as in
# the next exercise.

# %% [exercise] lab07.redrive
# ### Exercise 3: redrive a queue of dead letters (死信重投)
#
# Billing had a bug, now fixed, and its dead letters must be processed. Write `redrive` with the producer that you are
# given: resending a message is sending it. (`lab.admin` does not help: the check has its own broker, and its group may
# have another name.) Beware:
#
# - *audit* also reads `orders`, and has handled all of them.
# - Some messages have died twice.
# - Some died while billing read in order. An orderly consumer gives up by sending a new message to the retry topic,
#   with two properties for the broker to compare: `RECONSUME_TIME` and `MAX_RECONSUME_TIMES`. They are still there.
#
# `message.properties` of a new message is a dict. Update it and the message has all of them, with tags, keys and id.
#
# hint: To which topic? orders belongs to every group, `f"%RETRY%{group}"` to this one alone.
# hint: `message.properties.update(...)` sets many properties at once, with tags, keys and id. Leave out those that
#   describe its former attempts: RECONSUME_TIME and MAX_RECONSUME_TIMES above all; also DELAY, REAL_TOPIC, REAL_QID.
#   Keep RETRY_TOPIC and UNIQ_KEY.
# hint: `for letter in {letter.msg_id: letter for letter in dead}.values():` takes each message once, though it may have
#   died twice. Then make a `Message(topic, letter.body)`, update its properties and send it.
# note: Before you redrive a real queue, make sure the bug is fixed. Ten thousand letters to a broken consumer are ten
#   thousand more failures, seventeen times each.


# %%
# exercise: lab07.redrive
def redrive(dead, producer, group):
    """Give each message among the dead letters back to its group, once.

    dead: all letters of %DLQ%group, oldest first (topic, body, properties, msg_id).
    Sends with producer.send(message); returns nothing.
    """
    ### BEGIN SOLUTION
    former_life = {
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "DELAY",
        "REAL_TOPIC",
        "REAL_QID",
    }
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {
            name: value
            for name, value in letter.properties.items()
            if name not in former_life
        }
        message = Message(f"%RETRY%{group}", letter.body)
        message.properties.update(kept)
        producer.send(message)
    ### END SOLUTION


# %%
check("lab07.redrive")

# %% [belief] lab07.key_is_message
# question: Two dead letters have the same key. Are they the same message?
# claim: Yes, a key names one message.
# refutation: A key names an order, and an order has several events. Only UNIQ_KEY, the msg_id, names a message, so
#   letters with equal keys are resent one by one.

# %% [belief] lab07.body_is_message
# question: Two dead letters have the same body. Are they the same message?
# claim: Yes, the second is a copy.
# refutation: Two customers may order the same book. Only UNIQ_KEY, the msg_id, names a message; letters with equal
#   bodies are resent one by one.

# %% [belief] lab07.body_is_read
# question: A dead letter's body is not UTF-8. Can it be redriven?
# claim: Its text can; what cannot be read is replaced.
# refutation: A message keeps its body, its tags, its keys and the sender's own properties. A body is bytes, and only
#   its reader knows what they mean.

# %% [belief] lab07.group_is_billing
# question: Whose dead letters does the function resend?
# claim: Those of billing, the group of this lab.
# refutation: Those of the group that it is called with. Name the retry topic after that argument, because billing has
#   no use for another group's letters.

# %% [belief] lab07.letters_are_orders
# question: To which topic was a dead letter sent at first?
# claim: To orders.
# refutation: A group may read several topics. Each letter names its own in RETRY_TOPIC, so leave that property as it is.

# %% [belief] lab07.redriven_is_new
# question: A dead letter is sent again. Is it a new message?
# claim: Yes: it has a new id.
# refutation: A message keeps its UNIQ_KEY: every reader recognises the message by it.

# %% [belief] lab07.count_for_ever
# question: A dead letter is resent. What happens to its count?
# claim: It stays: how often a message failed belongs to it.
# refutation: A dead letter must start from zero: with its old count the broker considers its retries used up.

# %% [belief] lab07.dead_once
# question: How often is a message among the dead letters?
# claim: Once.
# refutation: As often as it has died. However often it has died, it goes back once.

# %% [belief] lab07.sent_as_it_is
# question: What must change in a dead letter before it is sent back?
# claim: Nothing.
# refutation: The counts of its former attempts: with them, it is dead again at once.

# %% [belief] lab07.back_where_it_came_from
# question: Where is a dead letter sent?
# claim: To the topic it came from.
# refutation: Every group reads that topic. A dead letter belongs to one group, and goes to that group's retry topic.

# %% [belief] lab07.all_has_to_go
# question: Which properties of its former attempts must a dead letter lose?
# claim: All that the retries have written.
# refutation: RETRY_TOPIC must stay: without it the listener sees the retry topic in place of its own.

# %% [belief] lab07.message_is_its_body
# question: What makes a message?
# claim: Its body and its keys.
# refutation: Also its properties. RETRY_TOPIC is among them, and without it the listener sees %RETRY%billing.

# %% [markdown]
# ## The same day on yours
#
# A failed order leaves billing's cache once it is sent back, and the group's offset moves past it. Here the bank
# refuses one twice, on what you kept in `mybroker`: the cache of lab 04a and, when you come back from lab 16c, your
# retries. Those look once a second, so each wait may be a second longer. The rest is mqlab's own.
#
# Your turn: let the bank refuse a third time. Before you run the cell, say after how many seconds the order is paid.

# %% tags=["parameter"]
BANK = "no no 40"


def refused(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, BANK)
    lab.run_for("5m")


kept = mybroker.parts(process_queue=..., retries=...)  # ...: the ones you kept
on_yours = play(refused, seed=7, client=no_trace, parts=kept)
Table(deliveries(on_yours))

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | a listener's result | `ConsumeMessageConcurrentlyService.processConsumeResult` |
# | sending back | `DefaultMQPushConsumerImpl.sendMessageBack`, request `CONSUMER_SEND_MSG_BACK` (36) |
# | the rewrite | `AbstractSendMessageProcessor.consumerSendMsgBack` |
# | waiting | `HookUtils.handleScheduleMessage`, `ScheduleMessageService` |
# | the listener sees the original topic | `DefaultMQPushConsumerImpl.resetRetryAndNamespace` |
# | a message for one member | `AdminBrokerProcessor.consumeMessageDirectly` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | 16 retries take 4 h 46 min | 4 h 45 min 40 s, and 17 deliveries |
# | retries come after 1 s, 5 s, 10 s, … | after 10 s, 30 s, 1 min, …: level 3 is the first |
# | `RETRY_TOPIC` holds the retry topic | the original topic |
# | the retry topic is `%RETRY%group@group` | `%RETRY%group`; the form with `@` is a key of the offset table |
# | dead letters cannot be consumed | they can since 4.9.2: subscribe to `%DLQ%group` like to any topic |
# | after 16 failures a message is dropped | it is in `%DLQ%group`, until its log file is deleted |
# | the group's `retryMaxTimes` decides | the Java client sends its own number, which wins |
#
# New groups differ in one way: the group's first heartbeat creates the retry topic, and a member finds it at its second
# rebalance, 21 seconds after its start. That is why our days begin with half a minute of waiting. An order that fails
# in a new group's first seconds is redelivered after twenty seconds, not ten.

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab07.sunday
# **1.** Your bank is away for two hours every Sunday night. Which orders are paid when, and which are dead on Monday?
#
# answer: None is dead, if nothing is configured: the last retry comes after 4 h 45 min. For an order of the outage's
#   first minute, the last failed attempt comes after 1 h 45 min 40 s. It then waits for an hour and is paid 45 minutes
#   after the bank is back. An order of the last minute waits 10 s. With `max_reconsume_times=5` everything that was
#   sent more than seven minutes before the end is dead.

# %% [reflection] lab07.overtakes
# **2.** A retry overtakes: order-1 is paid while order-0 waits. For which of your messages does that matter?
#
# answer: For those that change the same thing: *created*, *paid* and *shipped* of one order, two updates of one price. It
#   does not matter for messages about different things. The second part shows what orderly consumption costs instead.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](07b-stop-in-time.ipynb) you decide how long a failure may take, with a listener that gives up in
# time, one that hangs, and an order that kills its process. All labs: [index](index.ipynb).

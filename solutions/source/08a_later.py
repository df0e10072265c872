# %% [markdown] tags=["reading"]
# # 08a Delayed messages: later
#
# ## Why
#
# If you order and do not pay within half an hour, you lose the order and the book returns to the shelf. For two years a
# job has read all unpaid orders every minute. Now there are four million, the job takes eleven minutes, and on Monday
# it cancelled an order in the second in which it was paid.
#
# A colleague says: "RocketMQ can wait for us. Send a message with a delay, and cancel when it arrives." Five sentences:
#
# - "It waits in its topic, and the broker hides it until its time has come."
# - "Give it a delay of 37 minutes."
# - "If the broker is down for a minute, all delays grow by a minute."
# - "A delayed message is delivered once, so cancelling needs no care."
# - "When it arrives, we check for the payment, and then cancel."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 04b](04b-beginning-again.ipynb) for the last exercise. Afterwards you can
#
# - predict to a tenth of a second when a delayed message is delivered, even after a crash;
# - build any delay out of the eighteen levels, and lose nothing when the process that does it crashes;
# - cancel unpaid orders safely while a payment arrives.

# %%
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.delay_queues import show_delays

no_trace = {"enable_trace": False}  # nothing but orders in the log
WAITING = "SCHEDULE_TOPIC_XXXX"  # the broker's own topic

# %%
old_questions("lab08")

# %% [markdown]
# ## Where a delayed message waits
#
# A message asks for a *level*, `delay_time_level=3`, not for a time. The broker has a table of levels,
# `messageDelayLevel`: `1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h`. Level 3 is ten seconds, level 16
# half an hour.


# %%
def topic(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)


def one_waits(lab):
    topic(lab)
    order = Message("orders", b"a book", keys="order-0", tags="unpaid")
    order.delay_time_level = 3
    lab.producer("shop").send(order)
    lab.run_for("5s")


# %% [prediction] lab08.where
# Where is the order five seconds after the send?
#
# - orders: in `orders`, marked as not to be shown yet
#   > A consume queue has no marks: consumers can pull every entry.
# - schedule: in a topic of the broker's, in the queue of its level
#   = SCHEDULE_TOPIC_XXXX has one queue per level. The real topic and queue travel as properties.
# - memory: in the broker's memory, in a list sorted by time
#   > A crash would lose it. It is in the commit log, under another topic.
# note: The broker changes the name of the topic, then stores it like any message.
# later: An order is sent with a delay level of 10 s. Where is it five seconds after the send?

# %%
waits = play(one_waits, seed=7, client=no_trace)
stored = {
    name: [message.keys for message in waits.store().messages(name)]
    for name in ("orders", WAITING)
}
reveal("lab08.where", "schedule" if stored[WAITING] else "orders")

# %%
(waiting,) = waits.store().messages(WAITING)
names = ("DELAY", "REAL_TOPIC", "REAL_QID")
Table(
    [
        {
            "queue_id": waiting.queue_id,
            **{name: waiting.properties[name] for name in names},
        }
    ],
    title="level 3 waits in queue 2",
)

# %% [markdown]
# Other entries hold the hash code of a tag; this one holds its due time:

# %%
waits.store().queue(WAITING, 2).hexdump(0)

# %% [markdown]
# Ten seconds later the broker writes it *again*, now into `orders`: a new unit with a new queue offset. So a delayed
# message costs two puts. (Older texts say that `CommitLog.putMessage` changes the topic. `HookUtils` does it now.)
#
# When exactly? The broker checks every 100 ms.

# %% [prediction] lab08.which_ms
# The order was stored at +0.005 s after the broker's start, with a level of 10 s. When is it in `orders`?
#
# - exact: at +10.005 s, when its time is up
#   > The broker checks the first entry of each level only every 100 ms.
# - grid: at +10.100 s, at the next check
#   = Checks begin a second after the start and follow every 100 ms: 10.0 was too early, 10.1 is the next.
# - second: at +11 s, at the next full second
#   > Only the levels are in whole seconds. The broker checks ten times per second.
# note: A delivery is up to a tenth of a second late and never early.


# %%
def and_comes(lab):
    one_waits(lab)
    lab.run_for("6s")


came = play(and_comes, seed=7, client=no_trace)
(order,) = came.store().messages("orders")
(waited,) = came.store().messages(WAITING)
after_ms = order.store_timestamp - waited.store_timestamp
print(f"in orders {after_ms} ms after the send")
reveal("lab08.which_ms", "grid" if 10_000 < after_ms <= 10_100 else "exact")

# %% [answer] lab08.too_high
# ### Your turn: a level that does not exist
#
# Set `LEVEL` to 40 and run the cell. After how many seconds does the order come? (The table ends with `1m` here.)
#
# wrong none: The broker does not refuse a level beyond the table, nor does it deliver at once.
# wrong standard: 7,200 s is the last level of the standard table, not of this broker's.
# wrong: The bar in the picture ends where the order was due.
# note: The broker takes its highest level. A shorter table shortens every delay beyond it.

# %% tags=["parameter"]
LEVEL = 3


def one_level(lab, level):
    topic(lab)
    shop = lab.producer("shop")
    shop.send(Message("orders", b"a book", keys="order-0", delay_time_level=level))
    lab.run_for("70s")


short = {"message_delay_level": "1s 5s 10s 30s 1m"}
clamped = play(lambda lab: one_level(lab, LEVEL), seed=7, client=no_trace, broker=short)
show_delays(clamped)

# %%
### BEGIN SOLUTION
high = play(lambda lab: one_level(lab, 40), seed=7, client=no_trace, broker=short)
answer("lab08.too_high", 60, high)
### STARTER
# answer("lab08.too_high", ..., clamped)
### END SOLUTION

# %% [markdown]
# ## Crashes of the broker and delays
#
# For each level the broker remembers the next entry to check. Every ten seconds it writes these offsets into a file,
# `delayOffset.json`.

# %% [prediction] lab08.down
# An order waits for ten seconds. The broker crashes a second after the send and restarts a minute later. When is the
# order in `orders`?
#
# - restart: about a second after the restart
#   = Its entry contains its due time, which has long passed. The first check is a second after the start.
# - again: ten seconds after the restart; the wait begins again {lab08.waits_again}
#   > The due time is a point in time, stored in the entry on disk. The restart does not matter.
# - at once: in the millisecond of the restart {lab08.at_once}
#   > The first check is 1,000 ms after the start.
# - never: never; it waited in the broker's memory
#   > Its unit and its entry are on disk.
# note: After an hour's outage, everything that fell due arrives at once: a wave for its consumers.


# %%
def dies_early(lab):
    topic(lab)
    shop = lab.producer("shop")
    shop.send(Message("orders", b"a book", keys="order-0", delay_time_level=3))
    lab.run_for("1s")
    lab.kill("broker-a")
    lab.run_for("60s")
    lab.start("broker-a")
    lab.run_for("12s")


early = play(dies_early, seed=7, client=no_trace)
show_delays(early)

# %%
back_ms = early.journal.of("fault.start")[0].now_ms
(order,) = early.store().messages("orders")
reveal("lab08.down", "restart" if order.store_timestamp - back_ms < 1_200 else "again")

# %% [markdown]
# Now three orders, four seconds apart. The broker crashes two seconds after it delivered the first of them.

# %% [prediction] lab08.twice
# How often is the first order delivered?
#
# - once: once; it was delivered before the crash {lab08.delivered_once}
#   > At the crash only memory held the new offset. The file is up to ten seconds old, and the broker delivers again
#   > what came after it.
# - twice: twice
#   = The file did not have the new offset yet. After the restart the broker reads the entry again, and it is due.
# note: A delayed message arrives at least once. A graceful shutdown writes the file.
# later: -


# %%
def dies_late(lab):
    topic(lab)
    shop = lab.producer("shop")
    for number in range(3):
        order = Message("orders", b"a book", keys=f"order-{number}")
        order.delay_time_level = 3
        shop.send(order)
        lab.run_for("4s")
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("20s")


late = play(dies_late, seed=7, client=no_trace)
show_delays(late)

# %%
first = [
    message for message in late.store().messages("orders") if message.keys == "order-0"
]
reveal("lab08.twice", "twice" if len(first) == 2 else "once")

# %% [exercise] lab08.due
# ### Exercise 1: when does it come?
#
# Write `due(stored, levels, lives)`.
#
# - `stored` is a list of `(stored_ms, level)`, in the order of the commit log. Message 0 is the first of them.
# - `levels` are the seconds of level 1, 2, … A level beyond the table counts as the highest.
# - `lives` is a list of `(up_ms, down_ms, offsets)`, one per process lifetime of the broker: when it started, when it
#   ended, and the content of `delayOffset.json` at its start, such as `{2: 5}`: level 2 begins with entry 5 of its
#   queue. A missing level begins with entry 0.
#
# In each lifetime the broker checks first at `up_ms + 1_000`, then every 100 ms. Return a list of `(number of the
# message, delivered_ms)`, one row per delivery, ordered by time, then by number. The check allows 100 ms more or less.
#
# hint: Give each message `level = min(level, len(levels))` and an offset: the number of earlier messages of that level.
# hint: Deliver an entry in a lifetime if its offset is at least `offsets.get(level, 0)`, and if it was stored and falls
#   due before the end.
# hint: Start with `first = up_ms + 1_000` and `at = max(stored_ms + levels[level - 1] * 1_000, first)`, then round up
#   to the next check: `at += -(at - first) % 100`.
# note: You have written `ScheduleMessageService.DeliverDelayedMessageTimerTask`. At work: after an outage, expect one
#   wave of due messages and a few repeats.


# %%
# exercise: lab08.due
def due(stored, levels, lives):
    """Which messages come when: [(number, delivered_ms)]."""
    ### BEGIN SOLUTION
    places, counts = [], {}
    for stored_ms, level in stored:
        level = min(level, len(levels))
        places.append((stored_ms, level, counts.get(level, 0)))
        counts[level] = counts.get(level, 0) + 1
    rows = []
    for up_ms, down_ms, offsets in lives:
        first = up_ms + 1_000
        for number, (stored_ms, level, offset) in enumerate(places):
            at = max(stored_ms + levels[level - 1] * 1_000, first)
            at += -(at - first) % 100
            if offset >= offsets.get(level, 0) and stored_ms < down_ms and at < down_ms:
                rows.append((number, at))
    return sorted(rows, key=lambda row: (row[1], row[0]))
    ### END SOLUTION


# %%
check("lab08.due")

# %% [belief] lab08.paid_is_final
# question: An order was cancelled, and the bank has its money now. What does its row become?
# claim: Paid, for the money is there.
# refutation: It stays cancelled, for its item was returned. Whoever writes 'paid' does so only if the row is still
#   'unpaid'; if it is not, the money goes back.

# %% [belief] lab08.absent_is_read
# question: A level is not in delayOffset.json. With which entry does the broker begin?
# claim: With none, because all of them were delivered.
# refutation: With entry 0. A level is missing if the broker had delivered none of its entries when it wrote the file.

# %% [belief] lab08.two_lives
# question: A broker was started three times. Which of its process lifetimes deliver messages?
# claim: The first one and the last one.
# refutation: Every lifetime delivers what falls due in it, from the offsets of its own file on.

# %% [belief] lab08.counts_begin_again
# question: A broker was restarted. What is the number of the next entry in the queue of a level?
# claim: It is 0; the numbers begin again at each start.
# refutation: The queue is a file and continues where it ended. After each start the broker delivers from the entry that
#   delayOffset.json names.

# %% [belief] lab08.all_again
# question: A broker comes back. Which delayed messages does it deliver?
# claim: All due messages in the queues of its levels.
# refutation: A broker that comes back begins, level by level, at the offset in delayOffset.json, and does not read
#   earlier entries again.

# %% [belief] lab08.no_such_level
# question: A message asks for level 30 of a table of 18. When does it come?
# claim: Never; there is no such level.
# refutation: The broker takes its highest level and puts the message into that level's queue, where it counts for the
#   offsets.

# %% [belief] lab08.rows_without_order
# question: Two messages of different levels become due. In which order are they listed?
# claim: In any order; each row has its time.
# refutation: In the order of delivery, as a reader sees them. Rows of the same time are ordered by number.

# %% [belief] lab08.offset_is_the_number
# question: `delayOffset.json` contains `{2: 5}`. Which messages are delivered after the start?
# claim: Those from number 5 on.
# refutation: Those of level 2 from entry 5 of *its queue* on. Each level has its own queue and counts its own entries.

# %% [markdown]
# ## Break it: a shorter table of levels
#
# Three orders wait for 30 s, one minute and two minutes. An operator restarts the broker with the table `1s 5s 10s
# 12s`. Level 4 is 12 s now, and levels 5 and 6 are gone.

# %% [prediction] lab08.shorter
# When are the three delivered?
#
# - as sent: after 30 s, one minute and two minutes; their due time is stored in their entries
#   > It is stored, but the broker treats a due time further away than the level's delay as an error.
# - at once: all three at once
#   > The broker has no timer for levels 5 and 6 any more.
# - first: the first one at once, the others never
#   = Level 4 now takes 12 s. The broker treats a due time further away as an error and delivers at once. Levels beyond
#   = its table have no timer.
# note: With the old table the two would be delivered. But no log line shows that they wait.
# later: -


# %%
def three_wait(lab):
    topic(lab)
    shop = lab.producer("shop")
    for level in (4, 5, 6):
        order = Message("orders", b"a book", keys=f"level-{level}")
        order.delay_time_level = level
        shop.send(order)
    lab.run_for("1s")
    lab.broker().shutdown()


# %%
old_table = play(three_wait, seed=7, client=no_trace)
new_table = play(
    lambda lab: lab.run_for("5m"),
    stores={"broker-a": old_table.directory / "broker-a"},
    broker={"message_delay_level": "1s 5s 10s 12s"},
    client=no_trace,
)
show_delays(new_table)

# %%
came = [message.keys for message in new_table.store().messages("orders")]
reveal("lab08.shorter", "first" if came == ["level-4"] else "as sent")

# %% [markdown]
# ## Any delay: 37 minutes
#
# RocketMQ 5 also has a timer wheel (`TIMER_DELIVER_MS`), for any time up to three days. Without it a *relay* makes any
# number of seconds out of eighteen levels: it reads `later`, computes how much time is left, and re-sends the message
# with a level.


# %%
MINUTES = [60 * minutes for minutes in (*range(1, 11), 20, 30, 60, 120)]
LEVELS = [1, 5, 10, 30, *MINUTES]


def plan(seconds, levels=LEVELS):
    """The levels that a delay is made of, the longest first."""
    parts = []
    while seconds:
        parts.append(max(level for level in levels if level <= seconds))
        seconds -= parts[-1]
    return parts


# %% [answer] lab08.worst
# ### Your turn: the worst delay
#
# Which delay of less than ten minutes (in seconds) needs the most levels, and is the shortest of those? Change the cell
# to find it.
#
# wrong longest: 599 s needs as many; it is not the shortest.
# wrong: Check all delays from 1 to 599: `max(range(1, 600), key=lambda seconds: len(plan(seconds)))` finds the first.
# note: 119 s is 60 + 30 + 10 + 10 + 5 and four times 1: nine levels. Each level costs two puts.

# %% tags=["parameter"]
delays = [7, 37, 65, 37 * 60, 2 * 3600]
Bars(
    {f"{seconds} s: {plan(seconds)}": len(plan(seconds)) for seconds in delays},
    unit="levels",
)

# %%
### BEGIN SOLUTION
worst = max(range(1, 600), key=lambda seconds: len(plan(seconds)))
answer("lab08.worst", worst)
### STARTER
# answer("lab08.worst", ...)
### END SOLUTION

# %% [markdown]
# A reminder is due after 65 s. It waited 60 s in level 5, and is back at the relay:

# %% [prediction] lab08.left
# How much time is left, and which level is next?
#
# - five: exactly 5 s, so level 2
#   > It also waited for the broker's next check and for a pull.
# - less: a little less than 5 s, and level 2 all the same
#   = Each level costs up to 0.2 s. If you choose a level below 4.9 s, four more seconds follow one by one.
# - below: a little less than 5 s, so level 1, four times, and then the rest {lab08.floor}
#   > Each level takes a little longer than its name. Round the time left up to a whole second before you choose, or the
#   > small levels multiply.
# note: Round up to a whole second, then take the longest level that fits: never early, at most a second late.
# later: -


# %%
def naive_relay(send, lab, left):
    def passes_on(messages, context):
        reminder = messages[0]
        left.append(int(reminder.properties["due_ms"]) - lab.now_ms)
        if left[-1] > 5_000:
            again = Message("later", reminder.body, keys=reminder.keys)
            again.properties["due_ms"] = reminder.properties["due_ms"]
            again.delay_time_level = 5
            send(again)
        return CONSUME_SUCCESS

    return passes_on


# %%
def starts_relay(lab, left):
    lab.create_topic("later", read_queue_nums=1, write_queue_nums=1)
    sends = lab.producer("relay", name="sends").send
    consumer = lab.push_consumer("relay")
    consumer.subscribe("later", "*")
    consumer.on_messages(naive_relay(sends, lab, left))
    consumer.start()
    lab.run_for("5s")


def one_hop(lab, left):
    starts_relay(lab, left)
    due = {"due_ms": str(lab.now_ms + 65_000)}
    lab.producer("shop").send(Message("later", b"pay!", keys="order-0", properties=due))
    lab.run_for("70s")


# %%
left_ms = []
hop = play(lambda lab: one_hop(lab, left_ms), seed=7, client=no_trace)
print("left at the relay, in ms:", left_ms)
reveal("lab08.left", "less" if left_ms[-1] < 5_000 else "five")

# %%
show_delays(hop)

# %% [exercise] lab08.any_delay
# ### Exercise 2: any delay out of eighteen levels
#
# Write `any_delay(send, now, levels)`; it returns the relay's listener. A reminder has two properties: `due_ms`, when
# it is due, and `target`, the topic in which it must then be. The shop sends it to the topic `later`, which your relay
# reads. `send(message)` returns when the broker has the message, `now()` is the time in ms, `levels` are the seconds of
# level 1, 2, …
#
# - It reaches its target topic not before its time, and at most 2 s after it, plus 0.2 s for each level.
# - It passes through no more levels than the smallest number whose sum is its delay.
# - It keeps its keys, its body and both properties.
# - The relay is killed before each line of its listener. The reminder arrives at least once, and never early. The check
#   plays a day per line, which takes three to five seconds.
#
# hint: Round the time left up to a whole second: `left = -(-(due_ms - now()) // 1000)`. If none is left, send it to its
#   target without a level.
# hint: Otherwise take the longest level that fits into `left`. If it fills `left` exactly, the broker itself can
#   deliver into the target topic; if not, send back to `later`.
# hint: Make a new `Message(topic, body, keys=…, properties={"due_ms": …, "target": …})`, set its `delay_time_level`,
#   send it, and only then return CONSUME_SUCCESS.
# note: Before version 5, every shop that needed 37 minutes had such a relay. At work: look for `delayTimeLevel` in your
#   code, and for the job next to it that "fixes" it.


# %%
# exercise: lab08.any_delay
def any_delay(send, now, levels):
    """The listener of the relay."""

    ### BEGIN SOLUTION
    def relay(messages, context):
        for reminder in messages:
            own = {name: reminder.properties[name] for name in ("due_ms", "target")}
            left = -(-(int(own["due_ms"]) - now()) // 1000)
            fitting = [number for number, level in enumerate(levels) if level <= left]
            last = not fitting or levels[fitting[-1]] == left
            topic = own["target"] if last else "later"
            on = Message(topic, reminder.body, keys=reminder.keys, properties=own)
            if fitting:
                on.delay_time_level = fitting[-1] + 1
            send(on)
        return CONSUME_SUCCESS

    return relay
    ### END SOLUTION


# %%
check("lab08.any_delay")

# %% [belief] lab08.sleeping_relay
# question: A reminder must wait. May the relay's listener sleep until it is due?
# claim: Yes, that needs no level at all.
# refutation: A sleeping listener keeps a thread, and after 15 minutes its messages are sent back. Re-send the reminder
#   with a level, and return.

# %% [belief] lab08.nearly_due
# question: A second is left. May the relay deliver now?
# claim: Yes, that is near enough.
# refutation: The last level must be at least as long as the time left.

# %% [belief] lab08.last_hop
# question: The relay chose a level below the time left. Where does the reminder go?
# claim: To its target, with that level.
# refutation: Only the last hop goes to the target, the others back to the relay.

# %% [belief] lab08.rounded_up
# question: A reminder asks for 3 minutes and 20 seconds. Which level is near enough?
# claim: The next longer one; one hop is cheap.
# refutation: The next longer level may be minutes too late. Take the longest level that fits, and then the rest.

# %% [belief] lab08.table_is_known
# question: Where does the relay get the seconds of each level from?
# claim: From RocketMQ's default table of eighteen levels.
# refutation: The table is a setting of the broker, and `levels` is its table. A level past its end is shorter than
#   expected, so the reminder comes too early.

# %% [belief] lab08.one_target
# question: In which topic is a reminder when its time has come?
# claim: In `reminders`, because that topic is for reminders.
# refutation: In the topic that its own property `target` names. Two reminders may name two topics.

# %% [belief] lab08.second_by_second
# question: Is level 1, again and again, a way to any delay?
# claim: Yes, and it is simple.
# refutation: Each hop costs two puts and a tenth of a second: 37 minutes would take 2,220 hops and arrive minutes too
#   late.

# %% [belief] lab08.due_is_known
# question: The reminder has arrived at its target. Does it need due_ms any more?
# claim: No; the reader is the last to have it.
# refutation: It does: the reader computes from it how late the reminder is. No later program can restore what a hop
#   removes.

# %% [markdown]
# ## Paid in the same moment
#
# With each order the shop sends a message that is due when the time to pay is over. Its consumer checks the order, asks
# the bank, which takes a moment, and cancels what is unpaid:


# %%
def shop_tables(lab, orders):
    with lab.database("shop").connect() as rows:
        rows.execute("CREATE TABLE orders (order_key TEXT PRIMARY KEY, state TEXT)")
        rows.executemany(
            "INSERT INTO orders VALUES (?, 'unpaid')", [(key,) for key in orders]
        )


# %%
def look_then_cancel(lab):
    def looks(messages, context):
        key = messages[0].keys
        with lab.database("shop").connect() as rows:
            state = rows.execute("SELECT state FROM orders WHERE order_key = ?", (key,))
            if state.fetchone()[0] == "paid":
                return CONSUME_SUCCESS
        context.sleep("40ms")  # asks the bank: no money there
        with lab.database("shop").connect() as rows:
            rows.execute(
                "UPDATE orders SET state = 'cancelled' WHERE order_key = ?", (key,)
            )
        return CONSUME_SUCCESS

    return looks


# %%
def customer_pays(lab):
    with lab.database("shop").connect() as rows:
        paid = "UPDATE orders SET state = 'paid' WHERE state = 'unpaid'"
        return rows.execute(paid).rowcount == 1


def state_of_the_order(lab):
    with lab.database("shop").connect() as rows:
        return rows.execute("SELECT state FROM orders").fetchone()[0]


# %% tags=["parameter"]
def payment_at(lab, pays_ms):
    """The customer pays so many ms after the listener was called."""
    topic(lab)
    shop_tables(lab, ["order-0"])
    consumer = lab.push_consumer("closing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(look_then_cancel(lab))
    consumer.start()
    lab.run_for("5s")
    order = Message("orders", b"a book", keys="order-0", delay_time_level=3)
    lab.producer("shop").send(order)
    lab.run_until("listener.start", limit="20s").run_for(pays_ms)
    money = "yes" if customer_pays(lab) else "no"
    lab.run_for("1s")
    outcomes[pays_ms] = f"money: {money}, order: {state_of_the_order(lab)}"


# %% [prediction] lab08.same_moment
# The customer pays 20 ms after the listener's check. What is the result?
#
# - paid: the order is paid; the listener also asked the bank
#   > The bank's answer is as old as the question.
# - cancelled: the order is cancelled, and the payment refused
#   > The payment service read 'unpaid', took the money and wrote 'paid'. It was first.
# - both: the money is taken, and the order cancelled
#   = The payment came between check and action: lab 04's check-then-act under another name.
# note: Forty milliseconds are a long time for four million orders.
# later: -

# %%
outcomes = {}
for ms in (1, 20, 60):
    play(lambda lab, ms=ms: payment_at(lab, ms), seed=7, client=no_trace)
Table([{"paid after ms": ms, "in the end": told} for ms, told in outcomes.items()])

# %%
both = outcomes[20] == "money: yes, order: cancelled"
reveal("lab08.same_moment", "both" if both else "paid")

# %% [exercise] lab08.cancel_unpaid
# ### Exercise 3: cancelled or paid, never both
#
# Write `cancel_unpaid(lab, ask_bank)`; it returns a listener. Each message is an order (`keys`) whose time is over. The
# database `lab.database("shop")` has
#
# - `orders (order_key, item, state)`: the state is `'unpaid'`, `'paid'` or `'cancelled'`;
# - `stock (item, free)`: a cancelled order's item returns, `free = free + 1`.
#
# `ask_bank(message, context)` takes 40 ms and returns whether the bank had the money *at the time of the question*.
# Some payments are at the bank and not yet in the table. The payment service turns `'unpaid'` into `'paid'` at any
# time, but only if the row is still `'unpaid'`. Your listener is killed before each of its lines.
#
# hint: Ask the bank first. If it has the money, there is nothing to do: CONSUME_SUCCESS.
# hint: Then let the database decide: `UPDATE orders SET state = 'cancelled' WHERE order_key = ? AND state = 'unpaid'`.
#   Its `.rowcount` shows whether your update changed the row.
# hint: Return the item only if it was 1, in the same transaction: `with lab.database("shop").connect() as tables:`
#   around both.
# note: This is a compare-and-set in SQL. At work: search for `SELECT` followed by `UPDATE` without a condition on the
#   state.


# %%
# exercise: lab08.cancel_unpaid
def cancel_unpaid(lab, ask_bank):
    """A listener that cancels what nobody has paid."""

    ### BEGIN SOLUTION
    def close(messages, context):
        for order in messages:
            if ask_bank(order, context):
                continue
            with lab.database("shop").connect() as tables:
                where = "WHERE order_key = ? AND state = 'unpaid'"
                cancel = f"UPDATE orders SET state = 'cancelled' {where}"
                if tables.execute(cancel, (order.keys,)).rowcount == 1:
                    item = "(SELECT item FROM orders WHERE order_key = ?)"
                    back = f"UPDATE stock SET free = free + 1 WHERE item = {item}"
                    tables.execute(back, (order.keys,))
        return CONSUME_SUCCESS

    return close
    ### END SOLUTION


# %%
check("lab08.cancel_unpaid")

# %% [belief] lab08.look_then_cancel
# question: The row is unpaid, and the bank has no money. May the order be cancelled now?
# claim: Yes, both were asked.
# refutation: The customer may have paid since. Let the UPDATE itself ask: WHERE … AND state = 'unpaid'. Its rowcount
#   shows whether it was.

# %% [belief] lab08.table_knows_all
# question: The row in the table is unpaid. Has the customer not paid?
# claim: Right, the customer has not paid.
# refutation: The money reaches the bank first and the table later. Ask the bank before you cancel.

# %% [belief] lab08.cancel_all
# question: A message reports that an order's time is over. Is the order unpaid?
# claim: Yes, otherwise the message would not have come.
# refutation: The message arrives whatever happened since the order. A payment does not take it back.

# %% [belief] lab08.cancelled_again
# question: An order was cancelled, and its message is redelivered. What happens to its item?
# claim: It returns to the shelf.
# refutation: The item of a cancelled order returned the first time. Let rowcount decide whether this update cancelled
#   the order, or one item returns twice.

# %% [belief] lab08.two_transactions
# question: The order is cancelled, then its item returns. In how many transactions?
# claim: In two, one after the other.
# refutation: The process may crash between them: the next attempt then finds a cancelled order and an item on no shelf.
#   Put both into one transaction.

# %% [answer] lab08.wave
# ### Your turn: a wave
#
# The shop sends ninety orders, one per second, and each waits for a minute. Set `DOWN` to 120 and run the cell: the
# broker is down for two minutes. How many orders come within the first two seconds after its restart?
#
# wrong one_minute: Sixty were waiting at the crash, and the shop could not send meanwhile. Were those all that were
#   due?
# wrong: Count the orders of `wave` that were stored in `orders` within 2,000 ms after the fault `start`.
# note: Everything that fell due during the outage comes at once. Make sure that the consumers can handle such a wave.


# %%
def broker_is_down(lab, seconds):
    topic(lab)
    shop = lab.producer("shop")
    for number in range(90):
        order = Message("orders", b"a book", keys=f"order-{number}")
        order.delay_time_level = 5
        shop.send(order)
        lab.run_for("1s")
    lab.kill("broker-a")
    lab.run_for(f"{seconds}s")
    lab.start("broker-a")
    lab.run_for("90s")


# %% tags=["parameter"]
DOWN = 5

wave = play(lambda lab: broker_is_down(lab, DOWN), seed=7, client=no_trace)
start_ms = wave.journal.of("fault.start")[0].now_ms
came_s = [
    (order.store_timestamp - start_ms) // 1000
    for order in wave.store().messages("orders")
]
fives = {f"{s} to {s + 5} s after": range(s, s + 5) for s in range(0, 60, 5)}
Bars(
    {name: sum(s in span for s in came_s) for name, span in fives.items()},
    unit="orders",
)

# %%
### BEGIN SOLUTION
downs = play(lambda lab: broker_is_down(lab, 120), seed=7, client=no_trace)
back_ms = downs.journal.of("fault.start")[0].now_ms
times = [order.store_timestamp - back_ms for order in downs.store().messages("orders")]
count = sum(0 <= ms < 2_000 for ms in times)
answer("lab08.wave", count, downs)
### STARTER
# answer("lab08.wave", ..., wave)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A clock that never jumps.** If the broker's clock is set back, every message waits longer; try it with
#   `lab.skew_clock`.
# - **One broker.** A crashed master delivers only when it is back, unless a slave acts for it.
# - **Only levels.** For the timer wheel see [lab 08c](08c-at-any-second.ipynb).
# - **Not modelled:** asynchronous delivery (`enableScheduleAsyncDeliver`), acting masters. [The whole
#   list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the change of the topic before the put | `HookUtils.handleScheduleMessage`, `transformDelayLevelMessage` |
# | one timer per level, every 100 ms | `ScheduleMessageService`, `DeliverDelayedMessageTimerTask` |
# | the due time in place of a tags code | `ScheduleMessageService.computeDeliverTimestamp`, in the entry of the consume queue |
# | due later than the level's delay: delivered now | `ScheduleMessageService.correctDeliverTimestamp` |
# | the offsets of the levels | `delayOffset.json`, every 10 s |
# | any time up to three days | `TimerMessageStore`, `TimerWheel` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | `CommitLog.putMessage` turns it into a delayed message; the service belongs to the store | a hook before the put, and a service of the broker |
# | a delayed message waits in its topic | it waits in SCHEDULE_TOPIC_XXXX, and is stored again when due |
# | it comes exactly after its delay | at the broker's next check, up to 100 ms later |
# | a level that does not exist is refused | the highest one is taken |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab08.job
# **1.** Four million unpaid orders: what can the message do that the job cannot, and what can only the job do?
#
# answer: The message arrives on its own, and its cost does not grow with the number of unpaid orders. The job sees all
#   orders, including one whose message was never sent. Many shops keep both.

# %% [reflection] lab08.take_back
# **2.** The customer has paid. Can the shop take the waiting message back?
#
# answer: Not with levels: a queue cannot erase. The message arrives and finds the order paid, which costs nothing.
#   (RocketMQ 5's timer messages can be recalled.)

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](08b-or-not-at-all.ipynb), an order is in the database, but its message was never sent. All labs:
# [index](index.ipynb).

# %% [markdown] tags=["reading"]
# # 05b Order: one at a time
#
# ## Why
#
# Billing reads in order now. Then one evening an order arrives whose amount is not a number. Billing fails at it once a
# second, all night, and a quarter of the shop waits until the morning.
#
# The team had said:
#
# - "A topic keeps the order of its messages."
# - "Orderly means one thread. That is why it is slow."
# - "After sixteen failures it goes to the dead letters, and the queue continues."
# - "When a member dies, another takes over at once."
#
# None of the four is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](05a-many-at-a-time.ipynb). Afterwards you can
#
# - keep the events of an order in order, from the shop to the warehouse, through a join and a crash;
# - say which member holds the lock of a queue, from when and for how long;
# - park a head that never succeeds, together with what belongs to it and nothing else;
# - handle many orders of one queue at once without losing the order of any.

# %%
from mqlab import (
    COMMIT,
    CONSUME_SUCCESS,
    ROLLBACK,
    SUCCESS,
    SUSPEND_CURRENT_QUEUE_A_MOMENT,
    Message,
    play,
)
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import lanes_board
from mqlab.lab.views import Bars, Curve, Table

# %% [markdown]
# ## An order has a queue
#
# An orderly listener (顺序消费) is registered with `on_messages_orderly`. It gets the messages of a queue one after
# another, and returns `SUCCESS` or `SUSPEND_CURRENT_QUEUE_A_MOMENT`.


# %% tags=["parameter"]
TAKES = {"created": "600ms", "paid": "300ms", "shipped": "150ms"}
no_trace = {"enable_trace": False}  # nothing but orders in the log


def warehouse(messages, context):
    for message in messages:
        context.sleep(TAKES[message.tags])
    return SUCCESS


# %%
def read_in_order(lab, does=warehouse, name="billing-1", **settings):
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages_orderly(does)
    consumer.start()
    lab.run_for("5s")


def send_lives(lab, orders=1, **how):
    shop = lab.producer("shop")
    for number in range(orders):
        for step in ("created", "paid", "shipped"):
            event = Message("orders", b"a book", tags=step, keys=f"order-{number}")
            shop.send(event, **how)


# %% [prediction] lab05.topic
# The topic has four queues, and billing reads it in order. The shop sends *created*, *paid* and *shipped* of one order,
# one after another, without choosing a queue. Which is done first?
#
# - created: *created*; it was sent first, and billing reads in order {lab05.topic_has_order}
#   > Billing reads in the order of each queue. A producer takes the next queue for each message.
# - shipped: *shipped*
#   = Three messages, three queues. Each queue is read in order, independently of the others.
# note: A queue has an order. A topic has none.


# %%
def four_queues(lab, **how):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    read_in_order(lab)
    send_lives(lab, **how)
    lab.run_for("10s")


# %%
def calls(lab):
    """Each call of billing's listener, in ms after the first one began."""
    rows = lab.deliveries("billing", absences=False)
    tags = {one.msg_id: one.tags for one in lab.store().messages("orders")}
    return [
        {
            "event": tags[row.msg_id],
            "queue_id": row.message_queue.queue_id,
            "begins": row.started_ms - rows[0].started_ms,
            "ends": row.ended_ms - rows[0].started_ms,
        }
        for row in rows
    ]


lab = play(four_queues, seed=7, client=no_trace)
Table(calls(lab))

# %%
reveal("lab05.topic", min(calls(lab), key=lambda call: call["ends"])["event"])

# %% [markdown]
# So the shop must choose the same queue for all events of an order. For that `send` takes a **selector**, a function of
# the queues, the message, and an `arg`:


# %%
def first_queue(queues, message, arg):
    return queues[0]


lab = play(
    lambda lab: four_queues(lab, selector=first_queue, arg=None),
    seed=7,
    client=no_trace,
)
Table(calls(lab))

# %% [prediction] lab05.threads_of_order
# Six orders are in three queues, two orders in each, and billing reads in order with twenty threads. How many events
# does it work on at the same time?
#
# - 1: one; orderly consumption has a single thread
#   > One thread per *queue* at a time. The three queues are worked on in parallel.
# - 3: three
#   = One thread for each queue that has something to do.
# - 6: six, one for each order
#   > RocketMQ does not know orders. It knows queues, and two orders share one.
# note: Orderly does not mean single-threaded. There are as many threads as queues, up to the size of the pool.

# %% tags=["explorer"]
board = lanes_board(mode="orderly", queues=3)
board

# %%
moments = [(call.began_ms, call.ended_ms) for call in board.run.calls]
most = max(sum(a <= at < b for a, b in moments) for at, _ in moments)
reveal("lab05.threads_of_order", most)

# %% [prediction] lab05.slice
# Billing has one thread and two queues. Ten orders wait in each, and each order takes ten seconds. The thread begins with
# queue 0. When does queue 1 get its first turn?
#
# - 10: after ten seconds; the queues take turns, order by order
#   > A thread that has entered a queue takes the next message of the same queue, for up to a minute.
# - 70: after 70 seconds
#   = When an order ends and the thread has been in the queue for more than a minute, it lets the other queue run.
# - 100: after 100 seconds, when queue 0 is empty
#   > A long queue would then stop all others. After a minute the thread leaves the queue.
# note: The minute that a thread may stay in a queue is checked between two calls. It does not interrupt a listener.
# later: Billing reads in order, with one thread and two queues. Ten orders wait in each, and each order takes ten
#   seconds. The thread begins with queue 0. When does queue 1 get its first turn?


# %% tags=["parameter"]
def ten_seconds(messages, context):
    context.sleep("10s")
    return SUCCESS


def one_thread(lab):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    for number in range(20):
        shop.send(Message("orders", b"a book", tags="created", keys=f"order-{number}"))
    read_in_order(lab, ten_seconds, consume_thread_min=1, consume_thread_max=1)
    lab.run_for("4m")


# %% tags=["picture"]
lab = play(one_thread, seed=7, client=no_trace)
begun = lab.deliveries("billing", absences=False)[0].started_ms
lab.queue_owners("billing", from_ms=begun - 5_000, until_ms=begun + 210_000)

# %%
first = next(call for call in calls(lab) if call["queue_id"] == 1)
reveal("lab05.slice", first["begins"] // 1000)

# %% [exercise] lab05.life_of_an_order
# ### Exercise 2: the life of an order
#
# Write two functions:
#
# - `send_event(shop, message)` sends an event; `shop` is a producer, the order is in `message.keys`.
# - `read_events(consumer, handle)` registers a listener at a subscribed consumer that is started later.
#   `handle(message, context)` is the warehouse: it takes its time, and raises ConnectionError when it is busy.
#
# The check has eight orders in four queues. A second member joins, billing-1 is killed, and the shop restarts. If
# `send_event` raises, the shop calls it again before it sends anything else. Events of an order must not overlap or get
# lost, and orders must not all wait for each other.
#
# hint: It takes two halves: all events of an order go into one queue, and one event of a queue is handled at a time.
# hint: The selector is called with (queues, message, arg) and returns one of the queues. It must choose the same one
#   for the same order in every process, so compute a number from the order: `int(order.rpartition("-")[2]) %
#   len(queues)`.
# hint: `consumer.on_messages_orderly(listener)`. The listener calls handle for each message; on ConnectionError it
#   returns SUSPEND_CURRENT_QUEUE_A_MOMENT, at the end SUCCESS. (An exception also counts as suspend.)
# note: `SelectMessageQueueByHash` is RocketMQ's selector, with `arg.hashCode()`. The lock of each queue
#   (`RebalanceLockManager`) kept the joining member from beginning too early. At work: the number of queues of such a
#   topic is fixed for ever, because a new number moves orders to other queues in the middle of their lives.


# %%
# exercise: lab05.life_of_an_order
def send_event(shop, message):
    """Send one event, so that nothing overtakes it."""

    ### BEGIN SOLUTION
    def by_order(queues, message, order):
        return queues[sum(order.encode()) % len(queues)]

    shop.send(message, selector=by_order, arg=message.keys)
    ### END SOLUTION


def read_events(consumer, handle):
    """Register a listener that handles the events of an order one after the other."""

    ### BEGIN SOLUTION
    def listener(messages, context):
        for message in messages:
            try:
                handle(message, context)
            except ConnectionError:
                return SUSPEND_CURRENT_QUEUE_A_MOMENT
        return SUCCESS

    consumer.on_messages_orderly(listener)
    ### END SOLUTION


# %%
check("lab05.life_of_an_order")

# %% [belief] lab05.queue_is_enough
# question: All events of an order are in one queue. Is that enough?
# claim: Yes, a queue is first in, first out.
# refutation: The messages of a queue go to many threads, and one that fails is redelivered later. Register the listener
#   with on_messages_orderly.

# %% [belief] lab05.swallowed
# question: The warehouse was busy. What does SUCCESS then mean?
# claim: That the listener has tried.
# refutation: SUCCESS means that the event is done: it is never redelivered, and the next event of its order begins.
#   Return SUSPEND_CURRENT_QUEUE_A_MOMENT instead.

# %% [belief] lab05.selector_remembers
# question: The shop was restarted. Does its selector choose the same queue for the same order as before?
# claim: Yes, it is the same function.
# refutation: After a restart the selector may choose another queue for an order that is under way. Python's `hash` of a
#   string differs from process to process, and variables start empty. Compute the number from the order's characters.

# %% [belief] lab05.async_is_stored
# question: `send_async` has returned. Is the message stored?
# claim: Yes, or it will be soon.
# refutation: When send_async has returned, it is not known yet whether the message is stored: a lost request raises
#   only in the callback, after the next event was sent. Let send_event send the message and wait for the broker's
#   answer, so that every event of the shop is stored.

# %% [belief] lab05.global_order
# question: How is the order of events kept?
# claim: With one queue for everything.
# refutation: One queue has one reader with one thread, so all orders of the shop wait for each other. Only the events
#   of one order must be in one queue.

# %% [markdown]
# ## Who holds the lock
#
# An orderly member asks the broker for a **lock** of each queue (队列锁). The broker keeps it for 60 s. Members renew
# every 20 s, and do not trust a lock that is older than 30 s.


# %%
def send_eight_a_second(lab):
    shop = lab.producer("shop")
    lab.traffic(shop, rates=[("0s", 8)], message=lambda n: Message("orders", b"x"))


# %% tags=["parameter"]
def two_readers(lab, orderly=True, killed=True):
    def quick(messages, context):
        context.sleep("100ms")
        return SUCCESS if orderly else CONSUME_SUCCESS

    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    first, second = (lab.push_consumer("billing", name=f"billing-{n}") for n in (1, 2))
    for one in (first, second):
        one.subscribe("orders", "*")
        (one.on_messages_orderly if orderly else one.on_messages)(quick)
        one.start()
    send_eight_a_second(lab)
    lab.run_for("70s")
    lab.kill("billing-1") if killed else first.shutdown()
    lab.run_for("80s")


# %% [prediction] lab05.dead_owner
# `billing-1` is killed and does not come back. The broker sees its connection close and notifies `billing-2`. When does
# `billing-2` get the first order of a queue that belonged to `billing-1`?
#
# - at once: at once, within a second
#   > `billing-2` is notified at once, and requests the locks at once. But the broker keeps them for billing-1, up to 60 s
#   > after their last renewal.
# - lock: when the lock has run out, 40 to 60 seconds after the crash
#   = The lock was renewed at most 20 s before the crash and lives 60 s. A crashed process does not release it.
# - two minutes: after two minutes, when the broker gives the member up
#   > That is for a member that falls silent. A closed connection is noticed at once.
# note: A member that shuts down gracefully unlocks its queues. A killed one leaves up to a minute of silence.
# later: Billing reads in order. `billing-1` is killed and does not come back; the broker sees its connection close
#   and notifies `billing-2`. When does `billing-2` get the first order of a queue that belonged to `billing-1`?

# %%
ordered = play(two_readers, seed=7, client=no_trace)
died = ordered.journal.of("fault.killed")[0].now_ms
ordered.queue_owners("billing", from_ms=died - 5_000, until_ms=died + 65_000)


# %%
def waited_s(lab):
    """From the last call of billing-1 to the next call for one of its queues."""
    rows = lab.deliveries("billing", absences=False)
    mine = [row for row in rows if row.client == "billing-1"]
    queues, last = {row.message_queue for row in mine}, mine[-1].started_ms
    later = [row for row in rows if row.client == "billing-2" and row.started_ms > last]
    taken = [row.started_ms for row in later if row.message_queue in queues]
    return (min(taken) - last) / 1000


# %%
waits = {
    "in order": waited_s(ordered),
    "concurrent": waited_s(
        play(lambda lab: two_readers(lab, orderly=False), seed=7, client=no_trace)
    ),
}
Bars(waits, unit="s until a member continues")

# %%
waited = waits["in order"]
found = "lock" if 35 <= waited <= 62 else "at once" if waited < 5 else "two minutes"
reveal("lab05.dead_owner", found)

# %% [answer] lab05.goodbye
# ### Your turn: a graceful end
#
# Set `KILLED` to False: `billing-1` is then shut down. After how many seconds does `billing-2` continue to read? Round
# up to a whole number.
#
# wrong lock: That is after a kill. Look at the line that your last run printed.
# wrong renewal: 20 s is how often a member renews its locks. A member that shuts down gracefully does not wait for
#   that.
# wrong: Round up what the cell printed.
# note: `ConsumeMessageOrderlyService.shutdown` unlocks all queues of the member, and the broker notifies the group at
#   once. At work: let your orchestrator wait for the shutdown. A kill after five seconds costs a minute of silence.

# %% tags=["parameter"]
KILLED = True

ended = play(lambda lab: two_readers(lab, killed=KILLED), seed=7, client=no_trace)
print(f"billing-2 continues after {waited_s(ended):.1f} s")

# %%
### BEGIN SOLUTION
ended = play(lambda lab: two_readers(lab, killed=False), seed=7, client=no_trace)
answer("lab05.goodbye", 1, ended)
### STARTER
# answer("lab05.goodbye", ..., ended)
### END SOLUTION

# %% [markdown]
# The other way round: the member runs, but its lock gets old.


# %% tags=["parameter"]
def cut_off(lab, cached=200):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(cached):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))

    def a_second(messages, context):
        context.sleep("1s")
        return SUCCESS

    read_in_order(lab, a_second)
    lab.run_for("10s")
    lab.partition("billing-1", "broker-a")
    lab.run_for("2m")


# %% [prediction] lab05.old_lock
# Billing has two hundred orders in its cache, and each takes a second. Now it cannot reach the broker. For how many
# seconds does it keep working on them?
#
# - 0: not at all
#   > It does not notice at once, and trusts its last lock for 30 s.
# - 30: for at most 30 seconds after its last renewal
#   = It stops before the broker would give the queue to another: 30 s here, 60 s there.
# - 200: until its cache is empty
#   > By then the broker may have given the queue to another member, and two would work on one queue.
# note: The client is more careful than the broker. The price is that no member works on the queue between 30 and 60 s.
# later: Billing reads in order. It has two hundred orders in its cache, and each takes a second. Now it cannot reach
#   the broker. For how many seconds does it keep working on them?

# %%
lab = play(cut_off, seed=7, client=no_trace)
began = lab.journal.of("fault.partition")[0].now_ms
rows = lab.deliveries("billing", absences=False)
after = [row for row in rows if row.started_ms > began]
seconds = dict.fromkeys(range(0, 60, 5), 0)
for row in after:
    seconds[(row.started_ms - began) // 5_000 * 5] += 1
Bars(
    {f"{at} to {at + 5} s": count for at, count in seconds.items()},
    unit="calls",
    title="after the cut",
)

# %%
reveal("lab05.old_lock", 0 if not after else 30 if len(after) <= 30 else 200)

# %% [markdown]
# ## A head that never succeeds
#
# Orderly consumption puts an event that fails back and calls the listener again after a second
# (`suspend_current_queue_time_millis`), 2,147,483,647 times. The evening of the incident: which orders wait?

# %% tags=["explorer"]
lanes_board(mode="orderly", queues=3, failing=True)

# %% [answer] lab05.alone
# ### Your turn: which orders wait
#
# The selector puts orders into queues by their number. How many queues does the topic need, so that no other order
# waits for order-1?
#
# wrong three: With three queues another order shares its queue.
# wrong one: With one queue the whole shop waits.
# wrong: Look at the table under the picture: which orders are not done?
# note: As many queues as orders, on this board. A shop has more orders than queues.

# %% tags=["explorer"]
alone = lanes_board(mode="orderly", queues=1, failing=True)
alone

# %%
### BEGIN SOLUTION
alone.play(queues=6)
answer("lab05.alone", 6, alone)
### STARTER
# answer("lab05.alone", ..., alone)
### END SOLUTION

# %% [markdown]
# With `max_reconsume_times=3` an orderly consumer gives up.

# %% [prediction] lab05.finite
# With that limit, *created* of order-1 fails every time. *paid* and *shipped* of order-1 come after it in the queue.
# What happens to them?
#
# - wait: they wait until *created* is done or dead
#   > The limit is there to let the queue continue. RocketMQ does not know that the events belong together.
# - dead: they become dead letters as well
#   > They do not fail. They are correct, except that their order does not exist.
# - handled: they are handled, although the order was never created
#   = *created* leaves the queue and becomes a dead letter, and the next events have their turn.
# note: The default waits for ever; a limit breaks the order. A shop wants neither.
# later: An orderly group has a limit of retries, and *created* of order-1 fails every time. *paid* and *shipped* of
#   order-1 come after it in the queue. What happens to them?


# %% tags=["parameter"]
def with_a_limit(lab, limit=3):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

    def cannot_create(messages, context):
        message = messages[0]
        bad = (message.keys, message.tags) == ("order-1", "created")
        return {True: SUSPEND_CURRENT_QUEUE_A_MOMENT, False: SUCCESS}[bad]

    read_in_order(lab, cannot_create, max_reconsume_times=limit)
    send_lives(lab, orders=3)
    lab.run_for("5m")


# %%
lab = play(with_a_limit, seed=7, client=no_trace)
events = {
    one.msg_id: f"{one.keys} {one.tags}" for one in lab.store().messages("orders")
}
rows = [
    {
        "event": events.get(row.msg_id, "order-1 created, sent again"),
        "read from": row.message_queue.topic,
        "reconsume_times": row.reconsume_times,
        "status": row.status,
    }
    for row in lab.deliveries("billing", absences=False)
]
Table(rows)

# %%
paid = [row for row in rows if row["event"] == "order-1 paid"]
dead = lab.admin.query_dlq("billing")
handled = any(row["status"] == "SUCCESS" for row in paid)
reveal("lab05.finite", "handled" if handled else "dead" if len(dead) > 1 else "wait")

# %%
dead

# %% [exercise] lab05.poisoned
# ### Exercise 3: park it
#
# `poisoned(lab, handle)` makes an orderly listener, called with one message at a time. An event that never succeeds is
# tried **three times**, then parked: a row in a table, and the queue continues. The later events of **its own order**
# are parked without being tried. Other orders neither wait nor are parked.
#
# `handle(message, context)` raises ValueError when it cannot handle an event. Of the lab there is
# `lab.database("billing").connect()`, with two tables:
#
# - `tries (msg_id TEXT PRIMARY KEY, count INTEGER NOT NULL)`
# - `parked (msg_id TEXT PRIMARY KEY, order_key TEXT, queue_offset INTEGER, body BLOB)`, with the order in
#   `message.keys`
#
# billing is killed before each line of your listener and restarted; what it had not reported is redelivered.
#
# hint: A restart sets reconsume_times to 0 and forgets your variables: count in the table `tries`, and commit the count
#   *before* you call handle.
# hint: Is there a row in `parked` with this order_key and a queue_offset that is not larger than this message's? Then
#   park this one as well. Without the offset you would also park an event that was done before the head and is
#   redelivered.
# hint: `INSERT INTO tries VALUES (?, 1) ON CONFLICT (msg_id) DO UPDATE SET count = count + 1` counts. If the count is
#   above 3, park instead of trying. `INSERT OR IGNORE` makes parking twice harmless. On ValueError: suspend.
# note: `ConsumeMessageOrderlyService.checkReconsumeTimes` would let it leave the queue and break its order. A parked
#   order can be repaired by a human and replayed in order. At work: alarm on the first row of that table.


# %%
# exercise: lab05.poisoned
def poisoned(lab, handle):
    """Makes a listener that parks an event after three tries, and its order behind it."""
    ### BEGIN SOLUTION
    database = lab.database("billing")
    is_held = "SELECT 1 FROM parked WHERE order_key = ? AND queue_offset <= ?"
    one_more = (
        "INSERT INTO tries VALUES (?, 1)"
        " ON CONFLICT (msg_id) DO UPDATE SET count = count + 1"
    )
    how_many = "SELECT count FROM tries WHERE msg_id = ?"

    def park(connection, message):
        row = (message.msg_id, message.keys, message.queue_offset, message.body)
        connection.execute("INSERT OR IGNORE INTO parked VALUES (?, ?, ?, ?)", row)

    def listener(messages, context):
        message = messages[0]
        where = (message.keys, message.queue_offset)
        with database.connect() as connection:
            if connection.execute(is_held, where).fetchone():
                park(connection, message)
                return SUCCESS
            connection.execute(one_more, (message.msg_id,))
            (count,) = connection.execute(how_many, (message.msg_id,)).fetchone()
            if count > 3:
                park(connection, message)
                return SUCCESS
        try:
            handle(message, context)
        except ValueError:
            return SUSPEND_CURRENT_QUEUE_A_MOMENT
        return SUCCESS

    return listener
    ### END SOLUTION


# %%
check("lab05.poisoned")

# %% [belief] lab05.count_comes_along
# question: An orderly listener counts failures by reconsume_times, or in a variable. Does it count to three?
# claim: Yes.
# refutation: A variable and `reconsume_times` are in the memory of one process: a restart sets them to 0. Count in the
#   table `tries`, before each try.

# %% [belief] lab05.count_afterwards
# question: A listener counts a failure in the table after it has happened. Which failures does it count?
# claim: All of them.
# refutation: The process may crash after a try and before it has counted the try. Count first, commit the count, then
#   call `handle`.

# %% [belief] lab05.gives_up_by_itself
# question: How often is the head of an orderly queue tried?
# claim: Sixteen times, then RocketMQ gives up.
# refutation: An orderly consumer tries the head of a queue for ever, unless the listener gives it up: after three tries
#   park it and return SUCCESS.

# %% [belief] lab05.only_the_head
# question: The poisoned event is parked. What about the rest?
# claim: The rest is healthy.
# refutation: The later events of its own order must not be handled without it: park them after it.

# %% [belief] lab05.again_is_behind
# question: An order has a row in parked. Must every event of it that arrives now be parked?
# claim: Yes.
# refutation: After a restart, events that were handled before the head was parked are redelivered. Only what comes
#   after it in the queue is held back: compare queue_offset.

# %% [belief] lab05.the_queue_is_held
# question: The head is poisoned. What is held back?
# claim: Everything after it in the queue.
# refutation: Most of what comes after it belongs to other orders. Park only events of its own order, with the same
#   message.keys.

# %% [markdown]
# ## Commit by hand
#
# An invoice comes as several messages, one for each line: `1/3`, `2/3`, `3/3`. The group's offset must never stop in
# the middle of one.
#
# When `context.auto_commit` is False, an orderly listener decides when the offset moves. `SUCCESS` then only takes the
# next message. `COMMIT` moves the offset past everything that was taken, and `ROLLBACK` puts back everything that was
# taken since the last commit. (The last two are deprecated, and nothing replaces them.)


# %% tags=["parameter"]
def invoice(lab, says, auto_commit=False):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    given = iter(says)

    def line_by_line(messages, context):
        context.auto_commit = auto_commit
        context.sleep("10ms")
        return next(given, SUCCESS)

    read_in_order(lab, line_by_line)
    shop = lab.producer("shop")
    for line in (1, 2, 3):
        shop.send(Message("orders", b"a line", keys="invoice-7", tags=f"{line}/3"))
    lab.run_for("30s")


# %%
def said(lab):
    """Every call: its line, its answer, and the offset in memory afterwards."""
    moves = [
        (record.now_ms, values["commit_offset"])
        for record, values in lab.journal.changes("offset.updated")
        if values["queue"].topic == "orders"
    ]
    for row in lab.deliveries("billing", absences=False):
        passed = [offset for ms, offset in moves if ms <= row.ended_ms]
        yield {
            "line": f"{row.queue_offset + 1}/3",
            "answer": row.status,
            "offset": passed[-1] if passed else "",
        }


# %% [prediction] lab05.by_hand
# Line 1: `SUCCESS`. Line 2: `ROLLBACK`. `auto_commit` is off. What is the next call about?
#
# - 2: line 2, as after a suspension
#   > `SUSPEND_CURRENT_QUEUE_A_MOMENT` puts back the messages of this call only.
# - 1: line 1
#   = Line 1 was taken and not committed, so `ROLLBACK` puts it back as well.
# - 3: line 3; what was rolled back goes to the retry topic
#   > An orderly failure stays in its queue and waits there.
# note: A rollback covers everything since the last commit.
# later: -

# %%
answers = [SUCCESS, ROLLBACK, SUCCESS, SUCCESS, COMMIT]
lab = play(lambda lab: invoice(lab, answers), seed=7, client=no_trace)
Table(said(lab))

# %%
lines = [row["line"] for row in said(lab)]
reveal("lab05.by_hand", lines[2][0])

# %% [exercise] lab05.manual
# ### Exercise 4: invoices as a whole
#
# `manual(book)` makes an orderly listener, called with one message at a time. `book(message, context)` books a line,
# and raises ConnectionError when the ledger is busy. Then the whole invoice must be booked again from its first line.
# The properties `line` and `of` of a message are texts, `"2"` and `"3"`. The offset moves only past the last line of an
# invoice. billing crashes in the middle of an invoice and starts again.
#
# hint: There are three results: the line is booked and it is not the last one; it is booked and it is the last one; it
#   failed.
# hint: `context.auto_commit = False` at the beginning of every call. `message.properties["line"]` is a text, and so is
#   `message.properties["of"]`.
# hint: On ConnectionError return ROLLBACK. Then `COMMIT if line == of else SUCCESS`.
# note: `ConsumeMessageOrderlyService.processConsumeResult`, with `ProcessQueue.commit` and `ProcessQueue.rollback`.
#   What is taken and not committed stays in memory, and after a crash all of it is redelivered. At work: prefer one
#   message with all lines, if it is less than 4 MB.


# %%
# exercise: lab05.manual
def manual(book):
    """Makes a listener that commits an invoice as a whole."""

    ### BEGIN SOLUTION
    def listener(messages, context):
        context.auto_commit = False
        message = messages[0]
        try:
            book(message, context)
        except ConnectionError:
            return ROLLBACK
        is_last = message.properties["line"] == message.properties["of"]
        return COMMIT if is_last else SUCCESS

    return listener
    ### END SOLUTION


# %%
check("lab05.manual")

# %% [belief] lab05.commit_by_default
# question: An orderly listener returns SUCCESS for the first line of an invoice. Where is the offset?
# claim: In front of the invoice, until the listener says COMMIT.
# refutation: By default every SUCCESS commits. Set context.auto_commit = False in each call, because it is a setting of
#   the call.

# %% [belief] lab05.success_commits
# question: Every line was booked. Which of them commits?
# claim: Each of them.
# refutation: A commit in the middle of an invoice leaves the offset there, and after a crash its first lines are not
#   redelivered. Return COMMIT for the last line only, SUCCESS for the others.

# %% [belief] lab05.numbers_as_text
# question: `line` is "2" and `of` is "10". Is `line >= of`?
# claim: No, 2 is less than 10.
# refutation: The properties are strings, and as a string "2" is larger than "10": the second of ten lines would be
#   committed. Compare numbers, `int(line)` and `int(of)`, or test the strings for equality.

# %% [belief] lab05.suspend_is_enough
# question: A line failed. Which status redelivers the whole invoice?
# claim: SUSPEND_CURRENT_QUEUE_A_MOMENT.
# refutation: ROLLBACK puts back everything that was taken since the last commit. SUSPEND_CURRENT_QUEUE_A_MOMENT puts
#   back this call's messages only.

# %% [belief] lab05.failure_commits
# question: A line failed. What does COMMIT or SUCCESS do then?
# claim: It remembers that something is missing.
# refutation: COMMIT and SUCCESS take the next message, and the failed line is never booked. Return ROLLBACK when book
#   raises.

# %% [markdown]
# ## What one queue costs
#
# "We want global order (全局顺序)": one queue for the whole shop. Each event takes 100 ms.

# %% [prediction] lab05.one_queue
# One queue is read in order by four members with twenty threads each. How many events are handled in a second?
#
# - 80: up to 800, twenty threads in four members
#   > A queue has one reader, and that reader uses one thread for it.
# - 40: 40, one thread in each member
#   > Three of the four members have no queue at all.
# - 10: ten
#   = One after another, 100 ms each. Neither members nor threads change that.
# note: Order costs parallelism: the more order, the less parallel work.
# later: One queue is read in order by four members with twenty threads each. Each event takes 100 ms. How many
#   events are handled in a second?


# %%
def a_tenth(messages, context):
    context.sleep("100ms")
    return SUCCESS


def many_queues(lab, queues, members=4):
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    for number in range(members):
        read_in_order(lab, a_tenth, name=f"billing-{number + 1}")
    lab.run_for("30s")
    shop = lab.producer("shop")
    for number in range(160):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("20s")


# %%
def measured(queues):
    lab = play(lambda lab: many_queues(lab, queues), seed=7, client=no_trace)
    rows = lab.deliveries("billing", absences=False)
    took = max(row.ended_ms for row in rows) - rows[0].started_ms
    return round(1000 * len(rows) / took, 1)


rates = {queues: measured(queues) for queues in (1, 2, 4, 8, 16)}
Curve(rates.items(), x="queues", y="events a second", log_x=True, log_y=True)

# %%
reveal("lab05.one_queue", 10 if rates[1] < 15 else 40 if rates[1] < 60 else 80)

# %% [answer] lab05.enough_queues
# ### Your turn: as few as will do
#
# The shop has 55 events a second at most. What is the smallest number of queues with which the group handles that?
# (`tried` keeps what you measure.)
#
# wrong eight: Eight are enough, but so are fewer: measure the numbers between 4 and 8.
# wrong five: Five queues do 50 a second.
# wrong: Read your table: which is the first number with 55 or more?
# note: At work you take more, because you cannot change the number while orders are alive. The end of this part shows
#   what happens if you do.

# %% tags=["parameter"]
TRY = [4, 8]

tried = {queues: measured(queues) for queues in TRY}
Bars(
    {f"{queues} queues": rate for queues, rate in tried.items()}, unit="events a second"
)

# %%
### BEGIN SOLUTION
tried = {queues: measured(queues) for queues in (4, 5, 6, 7, 8)}
answer("lab05.enough_queues", 6, tried)
### STARTER
# answer("lab05.enough_queues", ..., tried)
### END SOLUTION

# %% [markdown]
# More queues handle more events, but thousands of queues burden a broker. An orderly listener may also get several
# messages in one call (`consume_message_batch_max_size`), and sort them into **lanes**, one for each order. Within a
# lane, events run one after another. The lanes run in parallel, and the call returns when all are done.

# %% tags=["explorer"]
lanes_board(mode="lanes", batch=8)

# %% [exercise] lab05.lanes
# ### Exercise 5: lanes
#
# `lanes(handle)` makes an orderly listener, called with up to eight events of one queue. `handle(message, context)`
# handles one: it takes its time, and raises ConnectionError when it is busy. Handling an event again changes nothing.
#
# - An event begins only when the one before it in its order (`message.keys`) has ended well.
# - Different orders are handled in parallel: 24 events of eight orders take at most 60 % of the time that one after
#   another would take.
# - The offset passes nothing that is not handled, and no event is in the warehouse twice at a time.
# - billing is killed before each line of your listener and of what it starts.
#
# `context.start(function, …)` starts a function in parallel with the call. The `result()` of what it returns waits for
# its end, and raises what the function raised.
#
# hint: Sort the batch into a dictionary, message.keys to the list of its messages, in the order in which they arrive.
# hint: Start one function per order, which handles its list one after another. Then wait for all of them with result().
#   If you return before the last lane has ended, the offset passes it.
# hint: If one lane fails, the others still run: catch ConnectionError at each result(), wait for all, and only then
#   return SUSPEND_CURRENT_QUEUE_A_MOMENT. The whole batch is redelivered; the warehouse knows what was done.
# note: RocketMQ has nothing like it. The offset stays right because the call does not end before its work
#   (`ProcessQueue.commit` after `processConsumeResult`). A lane that fails holds its whole batch, as the board shows
#   with order-1: lanes and parking belong together. At work: make a batch as large as what you want to do at once.


# %%
# exercise: lab05.lanes
def lanes(handle):
    """Makes a listener that handles the orders of a batch side by side."""

    ### BEGIN SOLUTION
    def lane(events, context):
        for event in events:
            handle(event, context)

    def listener(messages, context):
        by_order = {}
        for message in messages:
            by_order.setdefault(message.keys, []).append(message)
        works = [context.start(lane, events, context) for events in by_order.values()]
        failed = False
        for work in works:
            try:
                work.result()
            except ConnectionError:
                failed = True
        return SUSPEND_CURRENT_QUEUE_A_MOMENT if failed else SUCCESS

    return listener
    ### END SOLUTION


# %%
check("lab05.lanes")

# %% [belief] lab05.start_waits
# question: context.start(handle, one, context), then context.start(handle, other, context). When does the other begin?
# claim: When the first has ended.
# refutation: context.start does not wait: what two calls of it start runs at once. Put the events of one order into one
#   lane, one after another, and return when the lanes have ended.

# %% [belief] lab05.lane_goes_on
# question: An event of a lane has failed. What about the next one in this lane?
# claim: It is another event, and may be handled.
# refutation: The next event of a lane belongs to the same order. A lane ends at its first failure, and the rest of it
#   waits for the next try.

# %% [belief] lab05.first_failure_ends
# question: One lane has failed. May the listener suspend the queue at once?
# claim: Yes; the batch is redelivered anyway.
# refutation: The other lanes still run. A second later the same batch is redelivered, and an event is in the warehouse
#   twice at a time. Wait for all lanes before you return.

# %% [belief] lab05.success_means_started
# question: All lanes are started. Is that a success?
# claim: Yes, they end on their own.
# refutation: With SUCCESS the offset passes the whole batch. A lane that had not ended when the process crashed, or
#   that failed, is lost. Wait for every lane, and suspend if one has failed.

# %% [belief] lab05.orderly_is_slow
# question: How many events of a batch can an orderly listener handle at once?
# claim: One.
# refutation: There is one call at a time, but the listener decides what happens within it. Start a lane for each order
#   of the batch, and wait for all of them.

# %% [markdown]
# ## Break it: one more queue
#
# The selector of an order is a number modulo the number of queues. Eight orders are created in four queues; order-6 has
# a long list, so creating it takes 40 s. Then an operator gives the topic a fifth queue, the shop is restarted, and all
# eight orders are paid. Which event of order-6 is done first?


# %% tags=["parameter"]
PAUSE = "5s"


def long_list(messages, context):
    event = (messages[0].keys, messages[0].tags)
    context.sleep("40s" if event == ("order-6", "created") else "5s")
    return SUCCESS


def by_number(queues, message, number):
    return queues[number % len(queues)]


# %%
def eight_orders(lab, step, name):
    shop = lab.producer("shop", name=name)
    for number in range(8):
        event = Message("orders", b"a book", tags=step, keys=f"order-{number}")
        shop.send(event, selector=by_number, arg=number)


def one_more_queue(lab):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    read_in_order(lab, long_list)
    eight_orders(lab, "created", "shop-1")
    lab.run_for(PAUSE)
    lab.create_topic("orders", read_queue_nums=5, write_queue_nums=5)
    eight_orders(lab, "paid", "shop-2")
    lab.run_for("2m")


# %%
lab = play(one_more_queue, seed=7, client=no_trace)
orders = {one.msg_id: one.keys for one in lab.store().messages("orders")}
rows = lab.deliveries("billing", absences=False)
of_six = [
    call for n, call in enumerate(calls(lab)) if orders[rows[n].msg_id] == "order-6"
]
Table(of_six)

# %% [markdown]
# Queue 2 was its queue, 6 modulo 4. With five queues it is queue 1, whose reader does not know that queue 2 is not
# done. Set `PAUSE` to `"1m"`: then the group finishes everything before the fifth queue is added.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A warehouse that knows what it has done** was given here: it is [lab 04b](04b-beginning-again.ipynb)'s exercise.
# - **An order in one queue** holds as long as the number of queues and the brokers stay the same. When a broker
#   crashes, the selector chooses other queues.
# - **Not modelled:** `lockInStrictMode`, and the FIFO groups of RocketMQ 5's proxy, which lock message groups instead
#   of queues. [What is not modelled](not-modelled.ipynb) has the whole list.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the queue of an order | `MessageQueueSelector`, `SelectMessageQueueByHash` |
# | one thread per queue at a time | `MessageQueueLock.fetchLockObject`, `ProcessQueue.getConsumeLock` |
# | the broker's lock, 60 s | `RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME` |
# | the client's trust, 30 s; renewal every 20 s | `ProcessQueue.REBALANCE_LOCK_MAX_LIVE_TIME`, `REBALANCE_LOCK_INTERVAL` |
# | a thread lets other queues run after 60 s | `MAX_TIME_CONSUME_CONTINUOUSLY` |
# | again after a second | `suspendCurrentQueueTimeMillis`, at least 10 ms and at most 30 s |
# | a limit, then a message to `%RETRY%`, which the broker stores as a dead letter | `ConsumeMessageOrderlyService.checkReconsumeTimes` |
# | commit and rollback | `ConsumeOrderlyStatus.COMMIT`, `ROLLBACK` (deprecated), `ProcessQueue` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | orderly consumption is single-threaded | one thread per queue at a time; queues run in parallel |
# | an orderly failure is tried for ever, every second | by default; with `maxReconsumeTimes` it becomes a dead letter, and its order is broken |
# | another member takes over at once | after a kill when the lock has run out, up to 60 s; after a shutdown at once |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab05.table
# **1.** The four sentences of the team: what is true of each?
#
# answer: *A topic keeps the order*: a queue does. *One thread*: one per queue at a time. *After sixteen failures*: that
#   is concurrent consumption; an orderly queue waits for ever, or loses its order with a limit. *At once*: after a
#   shutdown; after a kill when the broker's lock has run out.

# %% [reflection] lab05.more_queues
# **2.** The topic needs more queues. What happens to orders in the middle of their life, and how would you do it?
#
# answer: The selector computes with the new number, so an order's next event may go to another queue and be handled
#   before the one that waits in the old queue. Stop the shop's sends, let the group drain, then change the number. Or
#   keep the old topic for old orders and send new orders to a new topic.

# %% [markdown] tags=["reading"]
# ## Next
#
# Lab 08 sends messages that must arrive later, or only if something else has happened. All labs: [index](index.ipynb).

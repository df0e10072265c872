# %% [markdown] tags=["reading"]
# # 04b Resets: beginning again
#
# ## Why
#
# The day after the [first part](04a-how-far-have-we-read.ipynb) an operator resets the group "to 9:00". Billing begins
# to read, and reads for three days.
#
# None of the meeting's five sentences is true:
#
# - "It goes to the message that is closest to 9:00."
# - "A time that makes no sense is refused."
# - "A new group skips the backlog; `CONSUME_FROM_LAST_OFFSET` is the default."
# - "We set the start to the first offset, so it will begin at the first one."
# - "We look in the cache, then in the table, then we charge: billing is idempotent."

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the first part. Afterwards you can
#
# - plan a reset: from where to where, what is redelivered, what is skipped, before anything is changed;
# - say where a new group begins, and an old one;
# - write a consumer that charges once, whatever crashes;
# - free a group that does not move, without losing an order.

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, MessageQueue, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import crash_matrix
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.timeline import after


# %%
def work(messages, context):
    context.sleep("20ms")
    return CONSUME_SUCCESS


def send_orders(lab, count, first=0):
    shop = (
        lab.node_handle("shop-1") if "shop-1" in lab.handles else lab.producer("shop")
    )
    for number in range(first, first + count):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))


# %% tags=["parameter"]
def billing(lab, listener=work, name="billing-1", **settings):
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    return consumer


def one_queue(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)


no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Reset to a time
#
# An order arrived every ten seconds, and billing has read all twelve:


# %%
def every_ten_seconds(lab):
    one_queue(lab)
    billing(lab)
    for number in range(12):
        send_orders(lab, 1, number)
        lab.run_for("10s")


lab = play(every_ten_seconds, seed=7, client=no_trace)
stored = [order.store_timestamp for order in lab.store().messages("orders")]
first_ms = stored[0]
print("stored at second", [(ms - first_ms) // 1000 for ms in stored])

# %% [prediction] lab04.closest
# The group is reset to second 52. Order 5 was stored at second 50, order 6 at second 60. With which order does billing
# begin?
#
# - 5: with order 5, which is closest to second 52 {lab04.closest}
#   > If the closest message counted, a reset to 9:00 could return something from 8:59. A reset never returns messages
#   > that were stored before its time.
# - 6: with order 6, the first one that was stored at second 52 or later
#   = The broker searches the queue for the first message whose store time is not smaller.
# - 0: with order 0; there is no order at second 52
#   > A time between two messages is the normal case.
# note: The broker searches by the time at which it stored a message, not by the time at which the message was made.

# %% tags=["picture"]
plan = lab.admin.reset_offset_by_timestamp(
    "orders", "billing", first_ms + 52_000, dry_run=True
)
plan

# %%
reveal("lab04.closest", plan.queues[0].target_offset)

# %% [markdown]
# `dry_run=True` changes nothing. RocketMQ's `mqadmin resetOffsetByTime` has no dry run. It also accepts any time:

# %% [prediction] lab04.any_time
# An operator types a wrong year: a time three days before the oldest message. What does the broker do?
#
# - refused: it refuses; the time must lie between the first and the last message
#   > The broker has no such rule. The search accepts any number.
# - first: it begins at the first message that is there
#   = The first message that was stored at that time or later is the oldest one, so the whole log is read again.
# - nothing: nothing; there is no message of that time
#   > The search looks for the first message that is not older than that time.
# note: A mistyped time is accepted: one before the oldest message reads the whole log again, one in the future skips
#   everything in it.

# %%
days = 86_400_000
for name, at in {
    "three days ago": first_ms - 3 * days,
    "tomorrow": first_ms + days,
}.items():
    plan = lab.admin.reset_offset_by_timestamp("orders", "billing", at, dry_run=True)
    print(f"{name}: to {plan.queues[0].target_offset}, read again {plan.again}")
past = lab.admin.reset_offset_by_timestamp(
    "orders", "billing", first_ms - 3 * days, dry_run=True
)
reveal("lab04.any_time", "first" if past.queues[0].target_offset == 0 else "refused")

# %%
Table([{"beware": warning} for warning in past.warnings])

# %% [belief] lab04.only_back
# question: A group is reset to a time that lies after what it has read. What happens?
# claim: Nothing; a reset only goes back.
# refutation: The group moves to its target, also forward, and skips what is between. (Only the old way of resetting,
#   done by the members and without force, never goes forward.)

# %% [exercise] lab04.plan_reset
# ### Exercise 1: the dry run that mqadmin lacks
#
# Your tool gets three things:
#
# - `stats` has a row for each queue of the topic: `message_queue`, `min_offset`, `max_offset`.
# - `progress` is the group's; its `.queues` are rows of `message_queue` and `consumer_offset`, those of its retry topic
#   among them.
# - `search(message_queue, timestamp_ms)` is the first offset that was stored at that time or later. A `timestamp_ms`
#   below 0 is not a time: it means the end of every queue.
#
# Return a row for each queue of the topic: `(queue_id, now, to, again, skipped)`. The last two are lists of offsets.
# Deleted messages (before `min_offset`) are in neither. mqlab's own reset verbs are not allowed here.
#
# hint: `now = {row.message_queue: row.consumer_offset for row in progress.queues}`, then go through `stats`.
# hint: `to` is `row.max_offset` if the time is below 0, else `search(row.message_queue, timestamp_ms)`.
# hint: again: `list(range(max(to, row.min_offset), now))`; skipped: `list(range(max(now, row.min_offset), to))`. One of
#   the two is empty.
# note: At work: before you reset anything, write down such a table and show it to a second person. RocketMQ does the
#   real thing in AdminBrokerProcessor.resetOffset; its console asks "are you sure" without this table.


# %%
# exercise: lab04.plan_reset
def plan_reset(stats, progress, search, timestamp_ms):
    """What a reset by time would do: [(queue_id, now, to, again, skipped)]."""
    ### BEGIN SOLUTION
    offsets = {row.message_queue: row.consumer_offset for row in progress.queues}
    plan = []
    for row in stats:
        queue, first = row.message_queue, row.min_offset
        now = offsets[queue]
        to = row.max_offset if timestamp_ms < 0 else search(queue, timestamp_ms)
        again = list(range(max(to, first), now))
        skipped = list(range(max(now, first), to))
        plan.append((queue.queue_id, now, to, again, skipped))
    return plan
    ### END SOLUTION


# %%
check("lab04.plan_reset")

# %% [belief] lab04.minus_one
# question: What does a reset to the time -1 mean?
# claim: The first message after that time.
# refutation: -1 is not a time: it means the end of every queue.

# %% [belief] lab04.deleted_count
# question: A group is behind the smallest offset. What does a reset to the end skip?
# claim: Everything from its offset on.
# refutation: What is before the smallest offset was deleted, so it can neither be re-read nor skipped.

# %% [belief] lab04.reset_for_all
# question: What does a reset of a group on a topic move?
# claim: All that the group reads.
# refutation: Its queues of this topic. The group's retry topic stays as it is.

# %% [markdown]
# ## While they work
#
# Now the reset itself, with billing online.

# %% [prediction] lab04.notices
# The broker has the new offset in its table. When does billing begin again?
#
# - at once: at once; the broker notifies the members
#   > In this way of resetting, the broker has no request for that. It sets a mark and waits.
# - pull: when it pulls next, which takes up to 20 seconds
#   = The next pull of the queue is answered with "offset moved". A pull that the broker already holds is not woken for
#   = it.
# - restart: after a restart; a running member has its own memory
#   > It has, but the broker ignores the member's reports until the member has learned of the reset, with its next pull.
# note: Until then it continues. What is in its listener is finished, and the result is thrown away.
# later: An operator resets a group's offset by time, and the broker has the new offset in its table. When does
#   billing begin again?


# %%
def reset_to(second):
    def story(lab):
        every_ten_seconds(lab)
        first = next(iter(lab.store().messages("orders")))
        at_ms = first.store_timestamp + second * 1000
        lab.admin.reset_offset_by_timestamp("orders", "billing", at_ms)
        lab.run_for("40s")

    return story


# %%
lab = play(reset_to(52), seed=7, client=no_trace)
reset = lab.journal.of("offset.reset")[0]
moved = lab.journal.of("pull.offset_moved")[0]
print(
    f"after {(moved.now_ms - reset.now_ms) / 1000:.1f} s billing gets: {moved.about_text}"
)
reveal("lab04.notices", "pull" if moved.now_ms - reset.now_ms > 1000 else "at once")

# %%
lab.timeline(first_step=reset.step, last_step=moved.step + 30)

# %% [answer] lab04.again
# ### Your turn: how many are redelivered
#
# Set `SECOND` to 95 and run the cell. How many orders are delivered a second time?
#
# wrong from_the_one_before: Order 9 was stored at second 90, which is before 95, so it is not redelivered.
# wrong all: Those are all deliveries after the reset to second 52.
# wrong: Count the rows of the table.
# note: Orders 10 and 11: the first one stored at second 95 or later is that of second 100.

# %% tags=["parameter"]
SECOND = 52

resettled = play(reset_to(SECOND), seed=7, client=no_trace)
began = resettled.journal.of("offset.reset")[0].now_ms
rows = resettled.deliveries("billing", absences=False)
Table(
    [row for row in rows if row.started_ms > began],
    columns=["queue_offset", "started_ms", "status"],
)

# %%
### BEGIN SOLUTION
answer("lab04.again", 2, play(reset_to(95), seed=7, client=no_trace))
### STARTER
# answer("lab04.again", ..., resettled)
### END SOLUTION

# %% [markdown]
# Order 0 has failed and waits ten seconds for its retry (lab 07a). Meanwhile an operator resets the group on `orders`
# to the end.

# %% [prediction] lab04.retries
# Is order 0 redelivered after the reset?
#
# - yes: yes, ten seconds later
#   = A reset is for one topic. The order's copy waits in another one and returns through the retry topic.
# - no: no; the group was moved past it
#   > The group was moved in `orders`. The copy of a failed order is in another topic by now.
# note: To drop the retries, reset the group's retry topic as well. Even then, copies that still wait for their time are
#   delivered later. The Java consumer's own `resetOffsetByTimeStamp` resets both topics.
# later: -


# %%
def fails_once(messages, context):
    order = messages[0]
    first = order.keys == "order-0" and order.reconsume_times == 0
    return RECONSUME_LATER if first else CONSUME_SUCCESS


def waits_for_retry(lab):
    one_queue(lab)
    billing(lab, fails_once)
    lab.run_for("30s")
    send_orders(lab, 3)
    lab.run_for("1s")
    lab.admin.reset_offset_by_timestamp("orders", "billing", -1)  # to the end
    lab.run_for("30s")


# %% tags=["picture"]
lab = play(waits_for_retry, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
Table(
    rows,
    columns=[
        "message_queue",
        "queue_offset",
        "started_ms",
        "status",
        "reconsume_times",
    ],
)

# %%
reveal("lab04.retries", "yes" if rows[-1].reconsume_times else "no")

# %% [markdown]
# ## Old messages are slow
#
# Messages that the broker considers to be in its memory go out in pulls of 32, older ones in pulls of at most 8. Here
# 400 orders were read while they were fresh, and then the group is reset to the first one. This broker has 16 KB of
# memory:


# %%
def cold(lab):
    one_queue(lab)
    billing(lab)
    lab.run_for("2s")
    send_orders(lab, 400)
    lab.run_for("20s")
    lab.admin.reset_offset_by_timestamp("orders", "billing", 0)
    lab.run_for("40s")


# %%
lab = play(cold, seed=7, client=no_trace, memory="16KB")
reset = lab.journal.of("offset.reset")[0].step
pulls = [
    values["messages"]
    for step, values in lab.journal.changes("message.pulled")
    if step.step > reset and values["queue"].topic == "orders"
]
Bars({f"pulls of {n}": pulls.count(n) for n in sorted(set(pulls))}, unit="pulls")

# %% [markdown]
# In a real system each of these requests also waits for the disk. The dry run tells you beforehand: *cold reads*.

# %% [markdown]
# ## Where a group begins
#
# A group that has never read a queue has no offset there. `consume_from_where` decides then; its default is
# `CONSUME_FROM_LAST_OFFSET`.

# %% [prediction] lab04.last_offset
# A topic is an hour old and has 200 orders. A new group with the default starts. How many of them does it read?
#
# - 0: none; it skips the backlog
#   > It would, if the broker answered that it knows no offset. For a young topic the broker answers 0, and 0 is an
#   > offset.
# - 200: all of them
#   = While the first message of the queue is still stored and in memory, the broker answers 0 as if that were the
#   = group's offset.
# - 1: the last one, as the name says
#   > The last offset is one past the last message: that of the next one.
# note: The client asks the broker first. It uses `consume_from_where` only if the broker answers "not found".


# %%
def new_group(lab, **settings):
    one_queue(lab)
    send_orders(lab, 200)
    lab.run_for("5s")
    billing(lab, **settings)
    lab.run_for("15s")


lab = play(new_group, seed=7, client=no_trace)
lab.offset_strip("billing")

# %%
read = lab.deliveries("billing", absences=False)
reveal("lab04.last_offset", len(read))

# %% [markdown]
# Now the same topic at a broker with a small memory, where order 0 is only on the disk by now, and the other two
# settings:

# %%
counts = {}
for memory in (None, "16KB"):
    for start in ("LAST_OFFSET", "FIRST_OFFSET", "TIMESTAMP"):
        own = {"consume_from_where": f"CONSUME_FROM_{start}"}
        lab = play(
            lambda lab, own=own: new_group(lab, **own),
            seed=7,
            client=no_trace,
            memory=memory,
        )
        place = "in memory" if memory is None else "on disk"
        counts[f"{start}, order 0 {place}"] = len(
            lab.deliveries("billing", absences=False)
        )
Bars(counts, title="orders that a new group reads", unit="orders")

# %% [markdown]
# So the default skips the backlog of an *old* queue and reads that of a young one. If it matters, reset the group
# before its first start. (`TIMESTAMP` is half an hour ago, unless `consume_timestamp` says otherwise.)

# %% [prediction] lab04.set_start
# Billing has read all 200 orders and is shut down. One more order arrives. Billing starts again, now with
# `CONSUME_FROM_FIRST_OFFSET`. How many orders does it get?
#
# - 201: 201, from the first one
#   > The setting is for a queue without an offset. This group has one.
# - 1: one, the new one
#   = It resumes where it was, and ignores the setting.
# note: `consume_from_where` is not a way to read again. That is what a reset is for.


# %%
def old_group(lab):
    new_group(lab)
    lab.node_handle("billing-1").shutdown()
    send_orders(lab, 1, first=200)
    billing(lab, name="billing-2", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("15s")


lab = play(old_group, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
second_life = [row for row in rows if row.client == "billing-2"]
reveal("lab04.set_start", len(second_life))

# %% [answer] lab04.from_where
# ### Your turn: read nothing old, for certain
#
# A new group must read only what is sent after its start, even from a young topic. Which verb of `lab.admin` does it,
# between creating the group and starting its member? Put it into `before_the_start` and run the cell. How many orders
# does billing read?
#
# wrong everything: The group begins at 0: nothing has moved it yet.
# wrong: The bar shows what billing has read. With the right verb it is the number of orders sent after the start.
# note: `skip_accumulated_message` (or a reset with -1) writes an offset for the group, and a group with an offset
#   resumes from it. The group must exist before; the first line of the function makes it.


# %% tags=["parameter"]
def before_the_start(lab):
    lab.admin.create_and_update_subscription_group_config("billing")
    ### BEGIN SOLUTION
    lab.admin.skip_accumulated_message("orders", "billing")
    ### STARTER
    # ...  # lab.admin....("orders", "billing")
    ### END SOLUTION


def only_new(lab):
    one_queue(lab)
    send_orders(lab, 200)
    lab.run_for("5s")
    before_the_start(lab)
    billing(lab)
    lab.run_for("15s")
    send_orders(lab, 7, first=200)
    lab.run_for("15s")


begun = play(only_new, seed=7, client=no_trace)
Bars({"orders read": len(begun.deliveries("billing", absences=False))})

# %%
### BEGIN SOLUTION
answer("lab04.from_where", 7, begun)
### STARTER
# answer("lab04.from_where", ..., begun)
### END SOLUTION

# %% [markdown]
# ## An offset that leads nowhere
#
# A home-made tool commits 500 in a queue of three orders.

# %% [prediction] lab04.out_of_range
# What does the broker do with the 500?
#
# - refused: it refuses it; the largest offset is 3
#   > It stores any number, without comparing it with the smallest or the largest offset.
# - corrected: it sets it to 3
#   > Not the broker. The next member that pulls from there gets the right offset, and commits that.
# - kept: it keeps 500 until a member pulls from there
#   = The pull is answered with "offset moved to 3". The member continues there, and its next report is 3.
# note: Until then everything that reads the table believes it: a lag of minus 497.
# later: A tool commits the offset 500 in a queue of three orders. What does the broker do with the 500?


# %%
def five_hundred(lab):
    one_queue(lab)
    send_orders(lab, 3)
    member = billing(lab)
    lab.run_for("11s")
    member.shutdown()
    tool = lab.pull_consumer("billing", name="tool")
    queue = MessageQueue("orders", "broker-a", 0)
    tool.update_consume_offset(queue, 500)
    tool.offset_store.persist(queue)
    lab.run_for("1m")
    tool.shutdown()


lab = play(five_hundred, seed=7, client=no_trace)
columns = ["topic", "broker_offset", "consumer_offset", "lag"]
Table(lab.progress("billing"), columns=columns)

# %%
a_minute_later = lab.broker().offset_table.query("billing", "orders", 0)
billing(lab, name="billing-2")
lab.run_for("15s")
in_the_end = lab.broker().offset_table.query("billing", "orders", 0)
print("after a minute:", a_minute_later, "  after a member has pulled:", in_the_end)
reveal("lab04.out_of_range", "kept" if a_minute_later == 500 else "corrected")

# %% [markdown]
# A log keeps its files for 72 hours, or less when the disk is full (lab 01c). Here the group was away for a while:


# %%
def away(lab):
    one_queue(lab)
    send_orders(lab, 20)
    member = billing(lab)
    lab.run_for("12s")
    member.shutdown()
    send_orders(lab, 40, first=20)
    lab.disk_full("broker-a", used=0.87)
    lab.run_until("store.cleaned", limit="2m")
    lab.disk_full("broker-a", used=0.3)


# %%
small_files = {
    "mapped_file_size_commit_log": 2048,
    "mapped_file_size_consume_queue": 200,
}
lab = play(away, seed=7, client=no_trace, broker=small_files)
lab.offset_strip("billing")

# %%
billing(lab, name="billing-2")
lab.run_for("15s")
moved = lab.journal.changes("pull.offset_moved")[0][1]
never = moved["next_offset"] - 20
print(f"{moved['remark']}: billing continues at {moved['next_offset']}")
print(never, "orders are never read")

# %% [markdown]
# There is no error and no log entry, only a lag that is suddenly small.

# %% [markdown]
# ## Skip, or sort out
#
# A service was down for a night, and its messages are worthless after ten minutes. Move the group, and nothing records
# what was skipped; or read everything and throw away what is old.

# %% [answer] lab04.old
# ### Your turn: throw away what is old
#
# While billing was down for an hour, an order arrived every minute. Billing now reads them all; its listener pays only
# what is younger than `MINUTES`. Set it to 10 and run the cell. How many orders are paid?
#
# wrong all_read: Those are all that were read. The listener also returns success for the old ones, without paying them.
# wrong ten_exactly: An order that is exactly ten minutes old is not younger than that. Also check how old the youngest
#   is when billing reads it.
# wrong thrown_away: Those were read and not paid.
# wrong: The bar "paid" shows it.
# note: Reading is cheap, and the listener can record what it has thrown away. A reset is quicker and records nothing.
#   For a backlog of millions, reset; for one of thousands, sort out.

# %% tags=["parameter"]
MINUTES = 60


def overnight(lab):
    def only_young(messages, context):
        age_ms = lab.now_ms - messages[0].store_timestamp
        if age_ms < MINUTES * 60_000:
            context.sleep("200ms")  # the bank
        return CONSUME_SUCCESS

    one_queue(lab)
    for number in range(60):
        send_orders(lab, 1, number)
        lab.run_for("1m")
    billing(lab, only_young)
    lab.run_for("30s")


# %%
sorted_out = play(overnight, seed=7, client=no_trace)
rows = sorted_out.deliveries("billing", absences=False)
read = len(rows)
paid = sum(row.ended_ms - row.started_ms >= 200 for row in rows)
Bars({"read": read, "paid": paid, "thrown away": read - paid}, unit="orders")

# %%
### BEGIN SOLUTION
MINUTES = 10
answer("lab04.old", 9, play(overnight, seed=7, client=no_trace))
### STARTER
# answer("lab04.old", ..., sorted_out)
### END SOLUTION

# %% [markdown]
# ## Broadcasting: an offset per member
#
# In the mode `BROADCASTING` (广播消费) each member gets every message, new prices for example. So the members cannot share
# one offset.

# %% [prediction] lab04.broadcast
# Where is the offset of a broadcasting member kept?
#
# - broker: at the broker, like every offset
#   > The broker has one number per group and queue. Here every member has its own.
# - file: in a file on the member's own machine
#   = `offsets.json`, in a folder named after client id and group.
# - nowhere: nowhere; a member begins at the newest message each time
#   > It resumes where it was, as long as it finds its file.
# note: Each member keeps a file of its own, `offsets.json`. A member on a new machine (or in a new container) has
#   none, and begins like a new group.


# %%
def prices(lab):
    lab.create_topic("prices", read_queue_nums=1, write_queue_nums=1)
    for name in ("till-1", "till-2"):
        till = lab.push_consumer("tills", name=name, message_model="BROADCASTING")
        till.subscribe("prices", "*")
        till.on_messages(work)
        till.start()
    lab.run_for("2s")
    shop = lab.producer("shop")
    for _ in range(5):
        shop.send(Message("prices", b"12.50"))
    lab.run_for("20s")


# %%
lab = play(prices, seed=7, client=no_trace)
files = sorted((lab.directory / "offsets").rglob("offsets.json"))
for path in files:
    print(path.relative_to(lab.directory))
print(files[0].read_text())

# %%
of_the_group = lab.broker().offset_table.queues_of("tills", "prices")
print("the broker's table for the group:", of_the_group)
reveal("lab04.broadcast", "broker" if of_the_group else "file")

# %% [markdown]
# The text of `offsets.json` is not quite JSON: a key is an object. The folder's name begins with the client id. A
# clustering member gets a new id at each start (`ip@pid#…`). A broadcasting one keeps `ip@DEFAULT`, or it would never
# find its file again. (Here it is `ip@name`.)

# %% tags=["picture"]
deliveries = lab.deliveries("tills", absences=False)
Bars(
    {
        name: sum(row.client == name for row in deliveries)
        for name in ("till-1", "till-2")
    }
)

# %% [markdown]
# ## Charged once
#
# Orders are delivered twice after a crash, after a reset, when a queue changes its owner, and when the shop sends
# twice. So billing must be **idempotent** (幂等). The usual attempt looks into a cache whether the order was charged; if
# not, into the table; if it is not there either, it charges the account and writes the order into the table and the
# cache.


# %%
ACT = "UPDATE account SET paid = paid + 16"
LOOK = "SELECT 1 FROM charged WHERE order_key = ?"
RECORD = "INSERT OR IGNORE INTO charged VALUES (?)"


def look_act_record(lab):
    cache = set()

    def listener(messages, context):
        order, database = (messages[0].keys,), lab.database("billing").connect()
        if order not in cache and not database.execute(LOOK, order).fetchone():
            with database:
                database.execute(ACT)
            with database:
                database.execute(RECORD, order)
        cache.add(order)
        return CONSUME_SUCCESS

    return listener


# %%
def record_act(lab):
    def listener(messages, context):
        order, database = (messages[0].keys,), lab.database("billing").connect()
        with database:
            new = database.execute(RECORD, order).rowcount
        if new:
            with database:
                database.execute(ACT)
        return CONSUME_SUCCESS

    return listener


# %%
def together(lab):
    def listener(messages, context):
        order, database = (messages[0].keys,), lab.database("billing").connect()
        with database:  # one transaction
            if database.execute(RECORD, order).rowcount:
                database.execute(ACT)
        return CONSUME_SUCCESS

    return listener


# %% [prediction] lab04.idempotent
# Billing is killed once, before some line of its listener, and started again. Which of the three charges the order
# exactly once, whichever line that is?
#
# - all: all three; they all look before they charge {lab04.look_then_act}
#   > A process can crash between looking and writing, and another process can act there.
# - together: the third, which writes both in one transaction
#   = Either both are written or neither. A second attempt finds the row, or no trace of the first.
# - record: the second and the third; both write the order down before they charge
#   > The second one, killed between its two transactions, leaves an order that is written down and never charged.
# note: You need both, the row and the transaction. The database must refuse the second row, in the transaction that
#   changes the account.
# later: -


# %% tags=["parameter"]
def one_order(make):
    def story(lab):
        one_queue(lab)
        with lab.database("billing").connect() as connection:
            connection.execute("CREATE TABLE account (paid INTEGER NOT NULL)")
            connection.execute("INSERT INTO account VALUES (0)")
            connection.execute("CREATE TABLE charged (order_key TEXT PRIMARY KEY)")
        send_orders(lab, 1)
        billing(lab, make(lab))
        lab.run_for("7s")

    return story


def paid_in_all(lab):
    connection = lab.database("billing").connect()
    (paid,) = connection.execute("SELECT paid FROM account").fetchone()
    return f"{paid} paid"


# %% tags=["explorer"]
matrix = crash_matrix(
    {
        "look, act, record": one_order(look_act_record),
        "record, act": one_order(record_act),
        "record and act together": one_order(together),
    },
    node="billing-1",
    outcome=paid_in_all,
    good="16 paid",
    only=lambda point: point.kind == "line",
    seed=7,
    client=no_trace,
)
matrix

# %%
matrix.table()

# %%
bad = {row.variant for row in matrix.cells() if not row.good}
reveal("lab04.idempotent", "together" if len(bad) == 2 else "all")

# %% [exercise] lab04.once
# ### Exercise 2: charge once
#
# `once(lab)` makes billing's listener. `ask_rate(message, context)` asks a rate service for the price, and takes a
# while. Then the account is charged. Billing's database has
#
# - `CREATE TABLE accounts (customer TEXT PRIMARY KEY, paid INTEGER NOT NULL)`, a row for each customer,
# - `CREATE TABLE charged (order_key TEXT PRIMARY KEY)`.
#
# `message.keys` is the order's key, `message.properties["customer"]` the customer. Your listener is killed before each
# of its lines, a second member joins while orders are in the first one's listener, and the shop re-sends an order as a
# new message. Of the lab, use only `database`.
#
# hint: Ask for the rate first, outside of any transaction. Everything that may happen only once is in the last three
#   lines.
# hint: `with database.connect() as connection:` is one transaction: it commits at its end. `"INSERT OR IGNORE INTO
#   charged VALUES (?)"` does nothing for a row that exists; the cursor's `.rowcount` is then 0, else 1.
# hint: `if connection.execute(insert, (message.keys,)).rowcount: connection.execute("UPDATE accounts SET paid = paid +
#   ? WHERE customer = ?", (amount, customer))`, both in one `with`. Return CONSUME_SUCCESS in both cases.
# note: This is the whole secret: a unique row in the transaction of the effect. If the effect is not in your database
#   (a bank, a mail), send the order's key along and let the other system keep the row. RocketMQ has nothing that does
#   it for you.


# %% tags=["setup"]
def ask_rate(message, context):
    """What the order costs. It takes as long as it takes."""
    context.sleep(int(message.properties["rate_ms"]))
    return int(message.body)


# %%
# exercise: lab04.once
def once(lab):
    """Makes a listener that charges each order exactly once."""
    ### BEGIN SOLUTION
    database = lab.database("billing")
    record = "INSERT OR IGNORE INTO charged VALUES (?)"
    charge = "UPDATE accounts SET paid = paid + ? WHERE customer = ?"

    def inner(messages, context):
        message = messages[0]
        amount = ask_rate(message, context)
        with database.connect() as connection:
            if connection.execute(record, (message.keys,)).rowcount:
                connection.execute(charge, (amount, message.properties["customer"]))
        return CONSUME_SUCCESS

    return inner
    ### END SOLUTION


# %%
check("lab04.once")

# %% [belief] lab04.replace_tells
# question: After `INSERT OR REPLACE` of a row that exists, does rowcount show that it existed?
# claim: Yes; replacing a row says whether it was there.
# refutation: It counts one row in both cases. `INSERT OR IGNORE` counts none when the row exists.

# %% [belief] lab04.account_remembers
# question: Does the account tell whether an order was charged?
# claim: Yes; an account that is larger than the order has the order in it.
# refutation: It also contains the customer's other orders. Only a row for the order tells.

# %% [belief] lab04.row_of_the_customer
# question: Whose row says that an order was charged?
# claim: The customer's.
# refutation: A customer has many orders, and the second one would pass for charged. The row must be the order's.

# %% [belief] lab04.two_transactions
# question: Are two short transactions as good as one?
# claim: Yes, if nothing is between them.
# refutation: A process can crash between them. Then the account is charged, and no row says so.

# %% [belief] lab04.written_first
# question: An order is written down first, then charged. Is it charged exactly once?
# claim: Yes; the second attempt finds the row.
# refutation: If the process crashes between the two, the row says 'charged' of an order that is not.

# %% [belief] lab04.msg_id_is_the_order
# question: When the shop re-sends an order, which field identifies it?
# claim: The same msg_id.
# refutation: Its key. The msg_id belongs to the message, and the second message has a new one.

# %% [belief] lab04.set_remembers
# question: A set remembers what was charged. Is that enough?
# claim: Yes; every order passes through this process.
# refutation: Another process may own the queue by now, and after a crash the set is empty.

# %% [belief] lab04.second_is_an_error
# question: The order's row exists already. What does that mean?
# claim: An error, and an error is tried again.
# refutation: This is the second copy of something that is done. Change nothing and return CONSUME_SUCCESS.

# %% [belief] lab04.silence_is_done
# question: A listener ends without an error and returns nothing. Is the message done?
# claim: Yes, nothing failed.
# refutation: Without CONSUME_SUCCESS the message is redelivered after ten seconds, and up to sixteen times.

# %% [belief] lab04.refuse_a_copy
# question: An order that was charged already is redelivered. What does the listener return?
# claim: RECONSUME_LATER: it has not done anything.
# refutation: CONSUME_SUCCESS, because the order is done. A message that is sent back is redelivered, and its row will
#   still be there.

# %% [belief] lab04.body_is_the_price
# question: The shop wrote an amount into the body. Is that what the order costs?
# claim: Yes.
# refutation: It is what the shop believes. Ask the service that knows the price, however long that takes.

# %% [belief] lab04.one_order_each
# question: An account says what was paid. What does an order do to it?
# claim: It sets the amount.
# refutation: It adds the amount: a customer has more than one order.

# %% [belief] lab04.looking_records
# question: A listener looks for the order's row before it charges. Who writes the row?
# claim: The database remembers what was asked for.
# refutation: The listener must write it, in the transaction that charges. A later query finds only what was written.

# %% [markdown]
# ## Break it and repair it: a group that does not move
#
# Billing reads in order, and the head of a queue fails for ever. One queue of two stands still:


# %%
def head_fails(lab):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)

    def pay(messages, context):
        poisoned = messages[0].keys == "order-6"
        return "SUSPEND_CURRENT_QUEUE_A_MOMENT" if poisoned else "SUCCESS"

    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages_orderly(pay)
    consumer.start()
    lab.run_for("2s")
    send_orders(lab, 30)
    lab.run_for("40s")


stuck = play(head_fails, seed=7, client=no_trace)
stuck.how_far("billing", "orders")

# %% [markdown]
# An operator has progress, the deliveries, single messages by their offset, and a reset of one queue. Try them here
# (run the cell above to begin again):

# %% tags=["parameter"]
progress = stuck.admin.examine_consume_stats("billing", "orders")
print(
    [
        (row.message_queue.queue_id, row.consumer_offset, row.lag)
        for row in progress.queues
    ]
)
order = stuck.admin.query_message_by_offset("orders", "broker-a", 0, 3)
print(order.keys, order.msg_id)
rows = stuck.deliveries("billing", absences=False)
Table(
    [row for row in rows if row.queue_offset == 3][-3:],
    columns=["queue_offset", "status"],
)

# %% [exercise] lab04.rescue
# ### Exercise 3: rescue
#
# `rescue(lab)` is called when nothing has moved for a while. On some days billing reads in order, and the head of a
# queue or two fails for ever. On others it has two threads and two orders that hang in them, with healthy ones between
# and after. Billing has one member, `billing-1`, and two queues. When you return,
#
# - each poisoned order, and no other, has a row in `for_a_human` of the database `"billing"`: `CREATE TABLE for_a_human
#   (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL)`;
# - every other order gets paid, including those that arrive later;
# - nothing whose offset was committed is delivered again.
#
# You may use `lab.kill`, `lab.start`, `lab.run_for`, `lab.deliveries`, `lab.database` and the verbs of `lab.admin`,
# such as `reset_offset_of_queue(topic, group, broker, queue_id, offset)`.
#
# hint: Which order is it? The one at a queue's committed offset, if it has been delivered and no delivery of it ended
#   well. The head of the other queue may only be waiting for a thread.
# hint: One round: kill billing-1; for each poisoned head store the message (`query_message_by_offset`) and move its
#   queue to the next offset; start billing-1; let half a minute pass. A thread that hangs is free only after the kill.
# hint: Another order after the first one may be poisoned: repeat the round until no head is. Healthy orders are between
#   the two, so never move a queue by more than one.
# note: At work this is `mqadmin resetOffsetByTime -b … -q … -o …` (it silently ignores a target of 0), after the
#   message was saved. Let the consumer give up on its own before it comes to that: lab 07b, exercises 1 to 3.


# %%
# exercise: lab04.rescue
def rescue(lab):
    """Free the group billing on orders, and lose nothing."""
    ### BEGIN SOLUTION
    database = lab.database("billing")

    def poisoned_heads():
        every = lab.deliveries("billing", absences=False)
        for one in lab.admin.examine_consume_stats("billing", "orders").queues:
            place = (one.message_queue, one.consumer_offset)
            calls = [
                row.status
                for row in every
                if (row.message_queue, row.queue_offset) == place
            ]
            if calls and not {"SUCCESS", "CONSUME_SUCCESS"} & set(calls):
                yield place

    while heads := list(poisoned_heads()):
        lab.kill("billing-1")
        for queue, offset in heads:
            place = ("broker-a", queue.queue_id)
            order = lab.admin.query_message_by_offset("orders", *place, offset)
            with database.connect() as connection:
                sql = "INSERT OR IGNORE INTO for_a_human VALUES (?, ?)"
                connection.execute(sql, (order.msg_id, order.body))
            lab.admin.reset_offset_of_queue("orders", "billing", *place, offset + 1)
        lab.start("billing-1")
        lab.run_for("30s")
    ### END SOLUTION


# %%
check("lab04.rescue")

# %% [belief] lab04.id_is_the_key
# question: Under which name is a parked order found again?
# claim: Under its message's id; that is its key.
# refutation: An id belongs to one message, and a message that is sent again has another. The order's name is its key.

# %% [belief] lab04.offset_moves
# question: The group's offset moves again. Is the group rescued?
# claim: Yes; the offset moves, so the group continues.
# refutation: An offset can move past orders that were never charged. Look at what was done with each of them.

# %% [belief] lab04.restart_helps
# question: A group does not move. Does a restart help?
# claim: Yes, it begins afresh.
# refutation: It begins where the offset is, and that is at the poisoned order.

# %% [belief] lab04.skip_the_backlog
# question: A poisoned order is at the head of a backlog. What must go?
# claim: The backlog.
# refutation: One order. Every order after it belongs to a customer.

# %% [belief] lab04.offset_wakes
# question: An offset was moved while the group's member was down. Which process reads from there?
# claim: The broker wakes the group.
# refutation: No process, until you start a member. A broker sends only what a client asks for.

# %% [belief] lab04.broker_stands_still
# question: A group does not move. Must its broker be restarted?
# claim: Yes, it hangs.
# refutation: It answers every request. What fails is a listener, and meanwhile the shop needs the broker.

# %% [belief] lab04.body_is_text
# question: Is a message's body text?
# claim: Yes, decode it and store it.
# refutation: A body is bytes. Decoding them may lose some.

# %% [belief] lab04.head_is_poisoned
# question: A queue lags. Is its head poisoned?
# claim: Yes.
# refutation: It may be waiting for a thread. Check whether it was delivered, and how that ended.

# %% [belief] lab04.offset_matters
# question: A poisoned order is skipped. Is anything left to do?
# claim: No, the group moves.
# refutation: A customer wanted that order. Without a row for a human it is forgotten.

# %% [belief] lab04.read_again
# question: Something went wrong. Does it help to read everything again?
# claim: Yes, it cannot harm.
# refutation: Everything that was committed is done again, and the poisoned order is still there.

# %% [belief] lab04.one_poisoned
# question: A queue has a poisoned order. Is it the only one?
# claim: Yes.
# refutation: There may be another one after it. Check again after each step.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **The disk takes no time.** Only the number of pulls is measured.
# - **Residency is simple here.** Whether the first message of a queue counts as in memory depends, in RocketMQ, on the
#   pages that the operating system keeps. Here it depends on its distance from the end of the log.
# - **One database.** SQLite locks the whole file while it writes. A real database lets two transactions run at once,
#   and decides at the unique row; the result is the same.
# - **A group here has offsets.** POP has its own rules for where a group begins. [What is not
#   modelled](not-modelled.ipynb) lists RocketMQ 5's proxy.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the reset and its mark | `AdminBrokerProcessor.resetOffset`, `ConsumerOffsetManager.assignResetOffset` |
# | the answer to the next pull | `PullMessageProcessor`, code `PULL_OFFSET_MOVED`; in the client `DefaultMQPushConsumerImpl`, case `OFFSET_ILLEGAL` |
# | a time to an offset | `ConsumeQueue.getOffsetInQueueByTime` |
# | the first offset of a queue | `RebalancePushImpl.computePullFromWhereWithException`, at the broker `ConsumerManageProcessor.queryConsumerOffset` |
# | the file of a broadcasting member | `LocalFileOffsetStore` |
# | memory or disk | `DefaultMessageStore.checkInMemByConsumeOffset`, `isTheBatchFull` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | a reset goes to the message closest to the time | to the first message that was stored at that time or later |
# | the time must lie between the first and the last message | any number is taken; below 0 means the end |
# | a reset affects what is waiting for a retry | it is per topic; the retry topic needs its own reset |
# | `CONSUME_FROM_LAST_OFFSET` starts with the last message | at the largest offset, and only if the broker knows none and does not answer 0 |
# | since 5.x a new group begins at the largest offset | in the vendor's cloud; the open source 5.3 still answers 0 for a young queue |
# | a group starts where the user sets it | only where it has no offset yet |
# | the server corrects an offset out of range | at the next pull; the table changes when the member reports |
# | the server keeps the progress | for clustering groups; a broadcasting member keeps its own |
# | `Offsets.json`, under `ip@DEFAULT` | `offsets.json`; `ip@DEFAULT` is a broadcasting client's id, clustering clients have `ip@pid#nanoTime` |
# | cache, then table, then act is idempotent | two owners or a crash come between look and record |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab04.nine_oclock
# **1.** The group must read again from 9:00. Write down what you do, in order.
#
# answer: Ask whether billing is idempotent; if not, stop here. Make the plan: for each queue from where to where, how
#   many are redelivered or skipped, whether they are on the disk. Show it to a colleague. Check the time zone: the time
#   is in milliseconds since 1970 in UTC. Shut the group down gracefully, reset, look at the table, start one member,
#   watch the lag. Decide about the retry topic separately.

# %% [reflection] lab04.cache
# **2.** May a cache be part of an idempotent consumer at all?
#
# answer: Yes, before the transaction, to save work. Fill it only after the commit, and do not rely on it: it is empty
#   after a crash, and the queue's other owner has its own.

# %% [reflection] lab04.exactly
# **3.** Is billing exactly once now?
#
# answer: Its effect is. Its deliveries are not: the listener may be called several times for the same order, asks the
#   rate service each time, and changes nothing in the end. Exactly once is a property of an effect in one database, not
#   of a broker.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 07](07a-failure-takes-time.ipynb) shows what happens to a message that cannot be consumed. All labs:
# [index](index.ipynb).

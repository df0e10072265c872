# %% [markdown] tags=["reading"]
# # 08b Transactions: or not at all
#
# ## Why
#
# Thursday, 9:14. A customer has paid, the money is in the shop's database, and no book was ever sent. The log shows
# why: a process was restarted for a new version between committing the order and sending the message to the warehouse.
#
# All colleagues know what to do:
#
# - "Send the message inside the database transaction. If one fails, both are undone."
# - "RocketMQ has transactions. The half message is in the topic, and hidden until we commit."
# - "If we crash, the broker asks our process as soon as it is back."
# - "It asks until it gets an answer."
# - "No row in our table means that nothing was paid: roll back."
#
# All five are wrong.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](08a-later.ipynb); if delays do not interest you, lab 00 is enough.
# Afterwards you can
#
# - predict what is left of an order for each point at which the shop or the broker may crash;
# - show where a half message is, what ends it, and when the broker asks which process;
# - write a transaction listener that survives all of these crashes;
# - count what half messages cost, and what an outbox costs.

# %%
import sqlite3

from mqlab import COMMIT_MESSAGE, ROLLBACK_MESSAGE, UNKNOW, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets.boards.crash_matrix.commit_orders import commit_matrix
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.half_messages import show_halves
from mqlab.lab.views.queue import show_queue

no_trace = {"enable_trace": False}  # nothing but orders in the log
HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"

# %% [markdown]
# ## Two systems, one crash
#
# The shop does two things for an order: it writes the money into its database and notifies the warehouse. Here are
# three ways.


# %%
def database_then_send(shop, database, order):
    with database.connect() as rows:
        rows.execute("INSERT INTO money VALUES (?)", (order,))
    shop.send(Message("orders", b"a book", keys=order))


def send_then_database(shop, database, order):
    shop.send(Message("orders", b"a book", keys=order))
    with database.connect() as rows:
        rows.execute("INSERT INTO money VALUES (?)", (order,))


def send_inside(shop, database, order):
    with database.connect() as rows:
        rows.execute("INSERT INTO money VALUES (?)", (order,))
        shop.send(Message("orders", b"a book", keys=order))


# %% [prediction] lab08.between
# In `database_then_send`, the process crashes after the commit and before the send, and is restarted. What is the
# result?
#
# - both: both; the producer sends what was not sent
#   > An unsent message is in the memory of the crashed process. The new one does not know it.
# - neither: neither; the database takes the money back
#   > The money was committed. A database does not know about the message that should follow.
# - money: the money, and no message
#   = Not even the shop knows that a message is missing.
# note: The money is charged, and no message says so. That is Thursday, 9:14.
# later: -

# %% [prediction] lab08.inside
# `send_inside` sends before the database commits, and an error of the send rolls the money back. What can a crash of
# the shop leave behind?
#
# - never: only both or neither; they are in one transaction
#   > The broker takes no part in the database's transaction. A stored message stays stored.
# - money: money without a message
#   > The commit comes after the send, so the message is there first.
# - message: a message without money
#   = The process crashes between send and commit: the database forgets the money, and the warehouse sends a book.
# note: While the broker takes its time to answer, the transaction keeps its locks in the database.

# %% [markdown]
# In each of the three ways the shop is killed at every line, and at every step at which something reaches it. Click on
# a cell for the steps around the crash.

# %% tags=["explorer"]
naive = commit_matrix(
    {
        "database, then send": database_then_send,
        "send, then database": send_then_database,
        "send inside": send_inside,
    }
)
naive

# %%
ends = {
    name: {row.outcome for row in naive.cells() if row.variant == name}
    for name in ("database, then send", "send inside")
}
lost = "money, no message" in ends["database, then send"]
ghost = "message, no money" in ends["send inside"]
reveal("lab08.between", "money" if lost else "both")

# %%
reveal("lab08.inside", "message" if ghost else "never")

# %% [markdown]
# The order of the two lines does not help. Something must *remember* the second half, on disk, before the first half is
# done. There are two ways. An **outbox** stores the message as a row of the same database, in the same transaction, to
# be sent later. A **half message** (半消息) is stored at the broker first, where no consumer reads it, and the broker
# remembers to ask.

# %% [markdown]
# ## Half messages: in a queue, but not in yours
#
# A *transaction producer* sends a half message, calls the listener's `execute_local_transaction`, and reports its
# result to the broker: `COMMIT_MESSAGE`, `ROLLBACK_MESSAGE` or `UNKNOW` (RocketMQ's spelling). The other method,
# `check_local_transaction`, answers the broker's questions.


# %%
class Till:
    """Takes the money, and then takes its time."""

    def __init__(self, lab, takes=1_000):
        self.lab, self.takes = lab, takes

    def execute_local_transaction(self, message, arg):
        with self.lab.database("shop").connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))
        self.lab.handles["shop-1"].node.ports.workers.sleep(self.takes)
        return COMMIT_MESSAGE

    def check_local_transaction(self, message):
        look = "SELECT 1 FROM money WHERE order_key = ?"
        with self.lab.database("shop").connect() as rows:
            known = rows.execute(look, (message.keys,)).fetchone()
        return COMMIT_MESSAGE if known else ROLLBACK_MESSAGE


# %%
def opens(lab, listener=Till, **till):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    with lab.database("shop").connect() as rows:
        rows.execute("CREATE TABLE money (order_key TEXT PRIMARY KEY)")
    made = listener(lab, **till)
    shop = lab.transaction_producer("shop", made, name="shop-1")
    lab.run_for("1s")
    return shop


def an_order(number=0):
    return Message("orders", b"a book", keys=f"order-{number}")


def half_sent(lab):
    opens(lab).send_message_in_transaction_async(an_order())
    lab.run_for("500ms")


# %% [prediction] lab08.half_where
# The half message is stored, and the local transaction runs. Where is the order?
#
# - orders: in `orders`, and hidden
#   > A queue hides nothing. A consumer that pulls from `orders` gets every message in it.
# - half: in a topic of the broker's, in one queue for the half messages of all topics
#   = It is on disk in RMQ_SYS_TRANS_HALF_TOPIC, queue 0. The real topic and queue travel as properties.
# - memory: in the broker's memory, until the commit
#   > A crash of the broker would lose it, and with it the question that the broker must ask.
# note: This is the trick of 08a: an ordinary message under another topic's name.

# %%
lab = play(half_sent, seed=7, client=no_trace)
stored = {
    name: [message.keys for message in lab.store().messages(name)]
    for name in ("orders", HALF, OP)
}
print(stored)
reveal("lab08.half_where", "half" if stored[HALF] else "orders")

# %%
(half,) = lab.store().messages(HALF)
names = ("REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP")
Table([{name: half.properties[name] for name in names}], title="what it brings along")

# %% [prediction] lab08.units
# Half a second later the local transaction ends with COMMIT_MESSAGE. Five seconds after that, how many units does the
# broker's log contain for this order?
#
# - one: one; it was moved to `orders` {lab08.half_is_moved}
#   > A log only grows and moves nothing. The half message stays, and the order is stored again in its real topic.
# - two: two; the half message, and the order
#   > After a restart the broker must know that this half message has ended. It has stored that as well.
# - three: three
#   = The half message, the order, and an op message which records that half message 0 has ended.
# note: No queue can remove a message. The op topic lists the half messages that are complete.
# later: The local transaction of a half message ends with COMMIT_MESSAGE half a second after the send. Five seconds
#   later, how many units does the broker's log contain for this order?

# %%
lab.run_for("5s")
units = {name: len(list(lab.store().messages(name))) for name in ("orders", HALF, OP)}
print(units)
reveal("lab08.units", ["none", "one", "two", "three"][sum(units.values())])

# %%
show_queue(lab, HALF)

# %%
show_queue(lab, OP)

# %%
(op,) = lab.store().messages(OP)
Table([{"tags": op.tags, "body": op.body}], title="the op message names half offsets")

# %% [answer] lab08.one_names_many
# ### Your turn: one op message for many
#
# The broker does not write an op message per order: every three seconds a service records what has ended. Set `ORDERS`
# to 40 and run the cell. How many op messages are there?
#
# wrong each: One per order would be another put per order; see the bodies in the table.
# wrong one: One body takes up to 4,096 bytes, but the orders arrive over more than three seconds.
# wrong: Count the messages of the topic `OP`.
# note: Until the op message is written, only the broker's memory knows that the order has ended. Remember that for the
#   crash.


# %% tags=["parameter"]
def many(lab, orders):
    shop = opens(lab, takes=10)
    for number in range(orders):
        shop.send_message_in_transaction_async(an_order(number))
        lab.run_for("250ms")
    lab.run_for("8s")


ORDERS = 3

named = play(lambda lab: many(lab, ORDERS), seed=7, client=no_trace)
Table([{"op message": one.body.decode()} for one in named.store().messages(OP)])

# %%
### BEGIN SOLUTION
forty = play(lambda lab: many(lab, 40), seed=7, client=no_trace)
answer("lab08.one_names_many", len(list(forty.store().messages(OP))), forty)
### STARTER
# answer("lab08.one_names_many", ..., named)
### END SOLUTION

# %% [exercise] lab08.outbox_or_half tags=["easiest"]
# ### Exercise 4: outbox or half message?
#
# With an outbox, the shop writes the order and a row of the table `outbox` in one transaction. Then it sends every
# unmarked row and marks it. A restarted shop begins with that.
#
# What do the two ways cost when they are written well? Write `outbox_or_half(orders, declined, died)`. The bank
# declines `declined` of `orders`. At `died` of the others the shop crashes once, at the worst moment:
#
# - outbox: a declined order writes nothing and sends nothing. The shop crashes when a message is stored and not yet
#   marked.
# - half: every order begins with a half message; a declined one is rolled back. An accepted order writes its row and
#   one in `transactions`. The shop crashes after the commit and before its report to the broker. Then the broker stores
#   the half message again and asks, and the restarted shop answers with the missing end. (The next section shows it.)
#
# Return `{"outbox": (messages, requests, rows), "half": (messages, requests, rows)}`. The check counts in runs:
#
# - messages in the broker's log (half messages count, op messages do not),
# - requests between shop and broker (sends, ends and questions),
# - rows inserted or updated.
#
# hint: Start with `taken = orders - declined`. An outbox writes three rows per accepted order: the order, its outbox
#   row, and the mark.
# hint: After a crash, an outbox sends the message again: one more message and one more request. The rows stay the same.
# hint: Half messages: one half message per order, one message per accepted order, a send and an end per order. In a
#   crash the end is missing; the broker stores the half message again and asks, and gets an end as its answer.
# note: An outbox needs a table and a program that sweeps it. Half messages need a second message and request per order,
#   and a broker that asks. At work: count the declined orders, because they cost half messages.


# %%
# exercise: lab08.outbox_or_half
def outbox_or_half(orders, declined, died):
    """What both ways cost: {way: (messages, requests, rows)}."""
    ### BEGIN SOLUTION
    taken = orders - declined
    outbox = (taken + died, taken + died, 3 * taken)
    ends = orders - died  # those that were sent at once
    half = (orders + taken + died, orders + ends + 2 * died, 2 * taken)
    return {"outbox": outbox, "half": half}
    ### END SOLUTION


# %%
check("lab08.outbox_or_half")

# %% [belief] lab08.one_order_each
# question: Which key does a row of `transactions` need?
# claim: The customer's: it names the account.
# refutation: The order's. A customer has many orders, and each is a transaction of its own.

# %% [belief] lab08.outbox_once
# question: The outbox's shop crashes after a send. How often is the message stored?
# claim: Once; an outbox sends each message once.
# refutation: The mark is written after the send. A shop that crashes between the two sends again, so an outbox delivers
#   at least once.

# %% [belief] lab08.declined_is_free
# question: The bank declines an order. What did its half message cost?
# claim: Nothing; it was never sent.
# refutation: The half message is sent before the bank is asked, and the rollback is another request. Only the second
#   message is saved.

# %% [belief] lab08.end_is_free
# question: How does the broker learn that the local transaction was committed?
# claim: From the send, which has returned.
# refutation: From a separate one-way request per order, END_TRANSACTION, with code 37.

# %% [belief] lab08.marks_are_free
# question: How many rows does an outbox write for an order?
# claim: Two: the order, and its row in the outbox.
# refutation: Three, because the mark after the send is an update. Without marks, each sweep would re-send everything.

# %% [markdown]
# ## The broker asks after a crash
#
# The local transaction is committed, and the process crashes before it reports to the broker. It restarts two seconds
# later and continues to sell.


# %%
def dies_untold(lab, sells=True, back="shop-1"):
    shop = opens(lab, takes=60_000)
    shop.send_message_in_transaction_async(an_order())
    lab.run_for("1s").kill("shop-1")
    lab.run_for("2s")
    if back == "shop-1":
        lab.start("shop-1")
    else:
        shop = lab.transaction_producer("shop", Till(lab), name=back)
    if sells:
        shop.fetch_publish_message_queues("orders")  # as the first send would do
    lab.run_for("90s")


# %% [prediction] lab08.first_check
# When is the order in `orders`?
#
# - start: when the shop is back; it notifies the broker
#   > The new process does not know the order. The broker remembers it.
# - six: six seconds after the half message
#   > Six seconds are the minimum age for a question (`transactionTimeOut`). The broker does not check at that moment.
# - round: at the broker's next check once it is older than six seconds
#   = It checks every thirty seconds. A half message younger than six waits for the next check.
# note: The broker checks every thirty seconds, and asks about half messages older than six. So it takes between 6 and
#   36 seconds if a process is there to answer.
# later: -

# %%
untold = play(dies_untold, seed=7, client=no_trace)
show_halves(untold)

# %%
(came,) = untold.store().messages("orders")
first, again = untold.store().messages(HALF)
after_s = (came.store_timestamp - first.store_timestamp) / 1000
print(f"in orders {after_s} s after the half message")
reveal("lab08.first_check", "round" if 6 < after_s <= 36 else "start")

# %% [markdown]
# Look at the half queue again. Before it asks, the broker stores the half message *again* at the end of the queue, with
# a count of the questions, and moves its own offset past the old one. This is how a queue keeps a message for later.
# (Lab 07's retries do the same.)

# %%
names = ("TRANSACTION_CHECK_TIMES", "PGROUP")
Table(
    [
        {"half": one.queue_offset, **{name: one.properties.get(name) for name in names}}
        for one in untold.store().messages(HALF)
    ]
)

# %% [prediction] lab08.whom
# `shop-1` never restarts. `shop-2` was started on another machine, in the same producer group `shop`. Which process
# does the broker ask?
#
# - nobody: none; only shop-1 knows {lab08.memory_knows}
#   > The broker asks any process of the producer group. The answer must come from a table that all of them can read,
#   > not from one process's memory.
# - other: shop-2
#   = Any process of the producer group will do. A producer group exists for nothing else.
# - consumer: the consumers of `orders`
#   > The half message names a producer group, PGROUP.
# note: The question contains the whole message, and nothing else.
# later: A transactional producer `shop-1` dies before it reports, and never restarts. `shop-2` was started on
#   another machine, in the same producer group `shop`. Which process does the broker ask?

# %%
stranger = play(lambda lab: dies_untold(lab, back="shop-2"), seed=7, client=no_trace)
answers = [
    {"asked": change["client"], "says": change["state"]}
    for _, change in stranger.journal.changes("transaction.checked")
    if "client" in change
]
Table(answers)

# %%
reveal("lab08.whom", "other" if answers[0]["asked"] == "shop-2" else "nobody")

# %% [markdown]
# "Any process of the group" comes with fine print. A producer sends heartbeats to the brokers that it knows, and it
# learns of a broker with its first send. A new process that has sold nothing is connected to no broker:

# %%
quiet = play(lambda lab: dies_untold(lab, sells=False), seed=7, client=no_trace)
show_halves(quiet)

# %% [prediction] lab08.fifteen
# A listener always answers `UNKNOW`. What becomes of the half message?
#
# - ever: the broker asks every thirty seconds, for ever
#   > It counts its questions in the half message: TRANSACTION_CHECK_TIMES.
# - commit: the broker delivers it after a while; better twice than never
#   > The broker delivers only what was committed. It has no report that the order is paid.
# - given up: the broker puts it aside after fifteen questions and never delivers it
#   = At the sixteenth check it is copied to TRANS_CHECK_MAX_TIME_TOPIC, which has no readers. The money may have been
#   = taken.
# note: Put an alarm on that topic. `mqadmin`'s resumeCheckHalfMessage sends a message back into the half queue.


# %%
class NeverKnows:
    def __init__(self, lab):
        pass

    def execute_local_transaction(self, message, arg):
        return UNKNOW

    def check_local_transaction(self, message):
        return UNKNOW


def asked_in_vain(lab):
    opens(lab, NeverKnows).send_message_in_transaction(an_order())
    lab.run_for("10m")


# %%
vain = play(asked_in_vain, seed=7, client=no_trace)
show_halves(vain)

# %%
aside = list(vain.store().messages("TRANS_CHECK_MAX_TIME_TOPIC"))
reveal("lab08.fifteen", "given up" if aside else "ever")

# %% [answer] lab08.patience
# ### Your turn: less patience
#
# `transaction_check_max` is the number of questions. Set `MOST` to 4 and run the cell. How many seconds after it was
# stored is the half message given up?
#
# wrong last: The last question is asked then. The broker gives up at the next check.
# wrong standard: Eight minutes are fifteen questions and one more check. This broker asks less often.
# wrong: Read the end of the bar in the picture.
# note: So your database may be away for `transactionCheckMax` times thirty seconds before orders are put aside.

# %% tags=["parameter"]
MOST = 15

patient = play(
    asked_in_vain, seed=7, client=no_trace, broker={"transaction_check_max": MOST}
)
show_halves(patient)

# %%
### BEGIN SOLUTION
short = play(
    asked_in_vain, seed=7, client=no_trace, broker={"transaction_check_max": 4}
)
answer("lab08.patience", 149, short)
### STARTER
# answer("lab08.patience", ..., patient)
### END SOLUTION

# %% [markdown]
# ## Asked too early
#
# A question can also come while the local transaction is still running. This bank is slow: the listener may take the
# money after forty seconds, and the broker asks after thirty.


# %% tags=["parameter"]
class SlowBank(Till):
    """Asks the bank first, and then takes the money."""

    def execute_local_transaction(self, message, arg):
        self.lab.handles["shop-1"].node.ports.workers.sleep(self.takes)
        with self.lab.database("shop").connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))
        if self.dies:
            self.lab.handles["shop-1"].node.ports.workers.sleep(1_000)
        return COMMIT_MESSAGE

    dies = True


# %%
def slow_bank(lab, dies):
    shop = opens(lab, SlowBank, takes=40_000)
    shop.send_message_in_transaction_async(an_order())
    lab.run_for("40500ms")
    if dies:
        lab.kill("shop-1")
        lab.run_for("1s")
        lab.start("shop-1")
        shop.fetch_publish_message_queues("orders")
    lab.run_for("70s")


# %% [prediction] lab08.no_row
# The broker asks at 30 s. `check_local_transaction` finds no row and returns `ROLLBACK_MESSAGE`. At 40 s the listener
# takes the money, and the process crashes before its report. What is the result?
#
# - neither: neither; it was rolled back {lab08.no_row_no_money}
#   > Only the half message was rolled back. The local transaction was still running and took the money later: no row
#   > means not yet. Answer UNKNOW, or write a row that makes a later local transaction fail.
# - both: both; the broker asks once more after the crash
#   > The broker has its answer, and does not ask about a half message that was rolled back.
# - money: the money, and no message
#   = The check reported that nothing was paid, and ten seconds later it was.
# note: Without the crash, the broker would have accepted the COMMIT_MESSAGE after the rollback: it only checks that the
#   half message exists. Do not rely on that.
# later: -

# %%
slow = play(lambda lab: slow_bank(lab, True), seed=7, client=no_trace)
show_halves(slow)

# %%
with slow.database("shop").connect() as rows:
    money = rows.execute("SELECT count(*) FROM money").fetchone()[0]
arrived = len(list(slow.store().messages("orders")))
print(f"money: {money}, messages: {arrived}")
found = "both" if arrived else "money" if money else "neither"
reveal("lab08.no_row", found)

# %% [markdown]
# ## Break it: every crash
#
# Here half messages meet every crash, in both orders: database, then COMMIT, or COMMIT, then database. The second
# happens when `execute_local_transaction` only starts the work and reports success.


# %%
class DatabaseFirst:
    """Money in the local transaction; the answer follows."""

    def __init__(self, database):
        self.database = database

    def execute_local_transaction(self, message, arg):
        with self.database.connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))
        return COMMIT_MESSAGE

    def check_local_transaction(self, message):
        look = "SELECT 1 FROM money WHERE order_key = ?"
        with self.database.connect() as rows:
            known = rows.execute(look, (message.keys,)).fetchone()
        return COMMIT_MESSAGE if known else ROLLBACK_MESSAGE


# %%
class CommitFirst(DatabaseFirst):
    """The answer first; the money when the send has returned."""

    def execute_local_transaction(self, message, arg):
        return COMMIT_MESSAGE

    def afterwards(self, message):
        with self.database.connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))


halves = {"database, then COMMIT": DatabaseFirst, "COMMIT, then database": CommitFirst}

# %% [prediction] lab08.which_order
# The shop is killed at every point, and restarted each time. For which way do money and message agree in every cell?
#
# - database: database, then COMMIT
#   = Before the database commits there is neither; afterwards the check finds the row.
# - commit: COMMIT, then database
#   > COMMIT gives the message away. If the process crashes then, the money is never taken.
# - both: both of them; the broker asks in any case {lab08.half_means_paid}
#   > A half message shows an intent to pay, and the broker believes any COMMIT. Send it only when the table shows that
#   > the money was taken.
# note: Half message first, then the database, the answer last. Each step remembers the one before it.
# later: -

# %% tags=["explorer"]
shop_dies = commit_matrix(halves)
shop_dies

# %%
bad = {row.variant for row in shop_dies.cells() if not row.good}
fine = (
    "database" if bad == {"COMMIT, then database"} else "both" if not bad else "commit"
)
reveal("lab08.which_order", fine)

# %% [prediction] lab08.named_late
# The order is committed and stored in `orders`. A second later the broker crashes and is restarted. How often is the
# order in `orders` at the end?
#
# - once: once; the broker knows that it was committed
#   > It knew. It would have recorded the end of half message 0 in the next op message, up to six seconds later.
# - twice: twice
#   = No op message names it. So the broker asks, gets COMMIT again, and stores the order again.
# - none: not at all; the commit is lost
#   > The order is in the log, in its own topic. A crashed process loses nothing that it wrote to a file.
# note: RocketMQ's transactions deliver at least once. The consumer still needs lab 04's idempotence.
# later: A transactional order is committed and stored in `orders`. A second later the broker crashes and is
#   restarted. How often is the order in `orders` at the end?

# %% tags=["explorer"]
broker_dies = commit_matrix(halves, dies="broker-a")
broker_dies


# %%
def broker_dies_late(lab):
    opens(lab, takes=10).send_message_in_transaction(an_order())
    lab.run_for("1s").kill("broker-a")
    lab.run_for("2s")
    lab.start("broker-a")
    lab.run_for("70s")


late = play(broker_dies_late, seed=7, client=no_trace)
copies = len(list(late.store().messages("orders")))
reveal("lab08.named_late", {0: "none", 1: "once"}.get(copies, "twice"))

# %%
show_halves(late)

# %% [answer] lab08.your_way
# ### Your turn: where the message comes twice
#
# This board shows one way, and the shop crashes. Change `DIES` to `"broker-a"` and run the cell. At how many crash
# points of the broker is the message there twice?
#
# wrong bad: Those are the points where money and message disagree. Twice is not among them: both are there.
# wrong all: That is every point that was tried.
# wrong: Count the rows of `mine.cells()` whose outcome ends with `twice`.
# note: It needs a crash between the commit and the op message. They are three seconds apart, but only a few steps, and
#   the board shows steps.

# %% tags=["explorer"]
DIES = "shop-1"

mine = commit_matrix({"database, then COMMIT": DatabaseFirst}, dies=DIES)
mine

# %%
### BEGIN SOLUTION
theirs = commit_matrix({"database, then COMMIT": DatabaseFirst}, dies="broker-a")
twice = sum(row.outcome.endswith("twice") for row in theirs.cells())
answer("lab08.your_way", twice, theirs)
### STARTER
# answer("lab08.your_way", ..., mine)
### END SOLUTION

# %% [markdown]
# ## A listener that survives

# %% [exercise] lab08.transaction
# ### Exercise 5: money and message
#
# Write `transaction(lab, ask_bank)`. It returns a transaction listener: an object with
# `execute_local_transaction(message, arg)` and `check_local_transaction(message)`. An order is a message with the
# properties `customer` and `amount`. The database `lab.database("shop")` has
#
# - `accounts (customer, balance)`: take the amount, `balance = balance - ?`. The database refuses a balance below 0;
# - `transactions (order_key, state)`: yours. `order_key` is a primary key; you choose the content of `state`.
#
# - `ask_bank(message)` takes its time; call it before you take the money.
# - At the end, an order's money is taken and its message is in `orders`, or neither. An allowed order is there within
#   five seconds.
# - `transaction` is called again at each start of the shop. In the check the bank is slow once, and shop and broker are
#   killed at every step of an order.
#
# hint: Ask the bank first; then insert a row in `transactions` and take the money in one database transaction. Then
#   return COMMIT_MESSAGE. On `sqlite3.IntegrityError` (no such balance): ROLLBACK_MESSAGE.
# hint: The check looks for the row. If it exists, return COMMIT_MESSAGE. If not, the local transaction may still be
#   running: UNKNOW is safe, ROLLBACK_MESSAGE is not.
# hint: Better than UNKNOW: the check inserts a row with the state 'rolled back'. If that succeeds, the key is taken and
#   no local transaction can insert its own. Then ROLLBACK_MESSAGE is true.
# note: The row that the check inserts is a fence: no local transaction can commit after it, so ROLLBACK_MESSAGE is true
#   at once. UNKNOW is as safe, but the broker asks up to fifteen times. At work: ask of each `checkLocalTransaction`
#   (TransactionListener) what it returns while `executeLocalTransaction` is still running, and in a process that
#   started a second ago.


# %%
# exercise: lab08.transaction
def transaction(lab, ask_bank):
    """A transaction listener: money and message, or neither."""

    ### BEGIN SOLUTION
    class Listener:
        def execute_local_transaction(self, message, _arg):
            ask_bank(message)
            take = "UPDATE accounts SET balance = balance - ? WHERE customer = ?"
            order = (int(message.properties["amount"]), message.properties["customer"])
            try:
                with lab.database("shop").connect() as tables:
                    row = (message.keys, "taken")
                    tables.execute("INSERT INTO transactions VALUES (?, ?)", row)
                    tables.execute(take, order)
            except sqlite3.IntegrityError:
                return ROLLBACK_MESSAGE
            return COMMIT_MESSAGE

        def check_local_transaction(self, asked):
            fence = "INSERT OR IGNORE INTO transactions VALUES (?, 'rolled back')"
            look = "SELECT state FROM transactions WHERE order_key = ?"
            with lab.database("shop").connect() as tables:
                tables.execute(fence, (asked.keys,))
                (state,) = tables.execute(look, (asked.keys,)).fetchone()
            return COMMIT_MESSAGE if state == "taken" else ROLLBACK_MESSAGE

    return Listener()
    ### END SOLUTION


# %%
check("lab08.transaction")

# %% [belief] lab08.check_repeats
# question: The broker asks about an order. What does the check do?
# claim: It does the work again, to be sure.
# refutation: The check is a question, not a second attempt. If it takes the money, the money is taken twice.

# %% [belief] lab08.row_first
# question: The row in transactions is written before the money is taken. In how many transactions?
# claim: In two, so that the row is safe in any case.
# refutation: The process may crash between them, and the row then reports money that was never taken. Put row and money
#   into one database transaction.

# %% [belief] lab08.two_commits
# question: Money and row are written in two database transactions. What can happen between them?
# claim: Only the crash of the process.
# refutation: The broker's question can come between them. The check writes its row, and your second transaction fails
#   after the money is gone. Put row and money into one database transaction.

# %% [belief] lab08.row_later
# question: The money was taken. When is the row in transactions written?
# claim: Afterwards, when the money is certain.
# refutation: The process may crash between them: the money is gone, and the check finds no row. Put row and money into
#   one database transaction.

# %% [belief] lab08.unknow_is_safe
# question: Is UNKNOW always a safe answer to the broker's question?
# claim: Yes, the broker will find out in the end.
# refutation: After UNKNOW the broker asks again and again, then puts the message aside. When the row shows that the
#   money was taken, return COMMIT_MESSAGE.

# %% [belief] lab08.let_it_ask
# question: May execute_local_transaction always return UNKNOW, and leave the rest to the check?
# claim: Yes; the check knows best.
# refutation: To leave every answer to the check is safe but slow: each order waits for the broker's next check and
#   costs another half message. Return COMMIT_MESSAGE when the database has committed.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A database on its own machine.** Here the table survives every crash. A database that loses its last commits in a
#   power cut has no row for money that was taken.
# - **One broker.** Only the broker that stores a half message asks about it.
# - **One crash at a time.** The board kills one node, once. Try two crashes in one run, or a network that loses the
#   one-way END: `lab.partition`, `lab.drop`.
# - **Not modelled:** the escape to another broker, and acting masters. [The whole list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | half message, local transaction, END | `TransactionMQProducer`, `DefaultMQProducerImpl.sendMessageInTransaction`, `endTransaction` |
# | the change of the topic | `TransactionalMessageBridge.parseHalfMessageInner` |
# | commit: checked, and stored in its real topic | `EndTransactionProcessor` |
# | op messages, in batches every 3 s | `TransactionalOpBatchService`, `TransactionalMessageServiceImpl.deletePrepareMessage` |
# | the check every 30 s, 6 s, 15 questions | `TransactionalMessageCheckService`, `TransactionalMessageServiceImpl.check` |
# | which process to ask | `ProducerManager.getAvailableChannel`, by the group in PGROUP |
# | the question on the producer's side | `ClientRemotingProcessor.checkTransactionState`, `TransactionListener.checkLocalTransaction` |
# | put aside | `TransactionalMessageServiceImpl.getHalfMsg…`, `AbstractTransactionalMessageCheckListener.resolveDiscardMsg` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | a half message is in its topic, hidden from consumers | it is in RMQ_SYS_TRANS_HALF_TOPIC, in an ordinary queue |
# | it is asked about every 60 s, 5 times, after 3 s | every 30 s, 15 times, after 6 s |
# | after the last question it is rolled back | it is put into TRANS_CHECK_MAX_TIME_TOPIC; your database is not rolled back |
# | the broker asks the producer that sent it | any connected process of its group |
# | a rollback removes the half message | nothing is removed; an op message names it |
# | with transactions each message comes exactly once | at least once: a commit may be stored twice |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab08.choose
# **1.** Your shop has a database, and an outbox would be one more table. When would you still take half messages?
#
# answer: When the table is the problem: many services have their own databases and none wants a sweeper, or the
#   database is already the bottleneck. Half messages write two rows instead of three and let the broker ask. Take an
#   outbox where many orders are declined, where the broker may be away for long (the shop continues to sell; it cannot
#   send a half message), and where an operator must see in SQL what is still unsent.

# %% [reflection] lab08.deploy
# **2.** On Thursday, 9:14, a new version was being rolled out. What do you change besides the code?
#
# answer: Every process of the producer group must be able to answer for the others: same tables, and a check that knows
#   the old version's orders. Connect a new process before its first sale. Put an alarm on TRANS_CHECK_MAX_TIME_TOPIC
#   and on the number of open half messages. Shut down gracefully: let running local transactions end.

# %% [reflection] lab08.consumer
# **3.** Money and message agree in every run. Is a book sent for each payment, exactly once?
#
# answer: No. They agree on the producer's side. The message may be stored twice and delivered more often, so the
#   warehouse needs its own table of completed work, as in lab 04. And no transaction of the shop has asked whether the
#   warehouse has the book.

# %% [markdown] tags=["reading"]
# ## Next
#
# What if messages come late because there are too many? That is [lab 09](09a-falling-behind.ipynb). All labs:
# [index](index.ipynb).

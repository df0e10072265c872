# %% [markdown] minutes=2 tags=["reading"]
# # Lab 08b: Or not at all
#
# ## Why
#
# Thursday, 9:14. A customer has paid, the money is in the shop's database, and no book was ever sent. The log shows why: the
# order was committed, then the process was restarted for a new version, and the message to the warehouse should have been
# sent in the next line.
#
# Everybody in the room knows what to do:
#
# - "Send the message inside the database transaction. If one fails, both are undone."
# - "RocketMQ has transactions. The half message is in the topic, and hidden until we commit."
# - "If we die, the broker asks our process as soon as it is back."
# - "It asks until somebody answers."
# - "No row in our table means that nothing was paid: roll back."
#
# All five are wrong.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](08a-later.ipynb); if delays do not interest you, lab 00 is enough. When you
# are done you can
#
# - say what is left of an order for each place at which the shop or the broker may die;
# - show where a half message is, what ends it, and when the broker asks whom;
# - write a transaction listener that survives all of these deaths;
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

# %% [markdown] minutes=12
# ## Two systems, one death
#
# The shop has to do two things for an order: write its money into the database, and tell the warehouse. Here are three ways.


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
# `database_then_send`: the process dies after the commit and before the send. It is started again. What is there in the end?
#
# - both: both; the producer sends what was not sent
#   > What a producer has not sent is in the memory of a process that is dead. The new one knows nothing of it.
# - neither: neither; the database takes the money back
#   > It was committed. A database does not know that something else was to follow.
# - money: the money, and no message
#   = Nobody knows that a message is missing, not even the shop.
# note: That is Thursday, 9:14.

# %% [prediction] lab08.inside
# `send_inside`: the message is sent before the database commits, and an error of the send rolls the money back. What can a
# death of the shop leave behind?
#
# - never: only both or neither; they are in one transaction
#   > The broker does not take part in the database's transaction. What it has stored stays stored.
# - money: money without a message
#   > The commit comes after the send, so the message is there first.
# - message: a message without money
#   = It is sent, and then the process dies before the commit: the database forgets the money, the warehouse sends a book.
# note: And as long as the broker takes to answer, the transaction keeps its locks in the database.

# %% [markdown]
# Here is each of the three, killed at every line and at every step at which something reaches the shop. A click on a cell
# shows what happened around the death; a button below opens that run.

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
# No order of the two lines helps, and no try-except either: dead processes catch nothing. Something has to *remember* that
# the second half is still to come, and it must be on a disk before the first half is done. There are two ways. An
# **outbox** writes the message as a row of the same database, in the same transaction, and somebody sends it later. A
# **half message** (半消息) is stored at the broker first, where nobody reads it, and the broker remembers to ask.

# %% [markdown] minutes=34
# ## In a queue, but not in yours
#
# A *transaction producer* sends a half message, then calls the listener's `execute_local_transaction`, and then tells the
# broker what it returned: `COMMIT_MESSAGE`, `ROLLBACK_MESSAGE` or `UNKNOW` (RocketMQ writes it so). The other method,
# `check_local_transaction`, is for the broker's questions.


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
# The half message is stored, the local transaction runs. Where is the order?
#
# - orders: in `orders`, and hidden
#   > A queue hides nothing. Whoever pulls from `orders` gets what is in it.
# - half: in a topic of the broker's, in one queue for the half messages of all topics
#   = RMQ_SYS_TRANS_HALF_TOPIC, queue 0, on the disk like any message. The real topic and queue travel as properties.
# - memory: in the broker's memory, until the commit
#   > Then a crash of the broker would lose it, and with it the question that is still to be asked.
# note: It is the trick of 08a once more: an ordinary message under another topic's name.

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
# Half a second later the local transaction ends with COMMIT_MESSAGE. Five seconds after that: how many units are in the
# broker's log for this one order?
#
# - one: one; it was moved to `orders` {lab08.half_is_moved}
#   > A log only grows: nothing is moved. The half message stays, and the order is stored once more in its real topic.
# - two: two; the half message, and the order
#   > And how does the broker know after a restart that this half message has ended? It has written that down as well.
# - three: three
#   = The half message, the order, and an op message that says: half message 0 has ended.
# note: Half messages are not removed from their queue, because no queue can do that. The op topic says which ones are done.

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
# ### Your turn: one that names many
#
# The broker does not write an op message for each order: a service writes down every three seconds what has ended. Set
# `ORDERS` to 40 and run the cell. How many op messages are there?
#
# wrong each: One for each order would be another put for each; look at the bodies below the cell.
# wrong one: One body holds up to 4,096 bytes, but it is not kept open: the orders come over more than three seconds.
# wrong: Count the messages of the topic `OP`.
# note: Until one is written, that the order has ended is only in the broker's memory. Remember that for the crash.


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
# The outbox: the shop writes the order and a row of the table `outbox` in one transaction. Then it sends what is in the outbox
# and not marked, and marks it. A shop that died begins with that.
#
# Both ways are right if they are written well. What do they cost? Write `outbox_or_half(orders, declined, died)`. Of so many
# `orders` the bank declines `declined`; at `died` of the others the shop dies once, at the worst moment:
#
# - outbox: a declined order writes nothing and sends nothing. The shop dies when a message is stored and not yet marked.
# - half: every order begins with a half message; a declined one is rolled back. An order that is taken writes its row and one
#   in `transactions`. The shop dies when both are committed and the broker has not been told. Then the broker stores the half
#   message once more and asks, and the shop, which is back, answers with the end that is missing. (The next section shows it.)
#
# Return `{"outbox": (messages, requests, rows), "half": (messages, requests, rows)}`: messages in the broker's log (half
# messages count, op messages do not), requests between shop and broker (sends, ends and questions), rows that are inserted or
# updated. The check counts them in runs.
#
# hint: `taken = orders - declined`. An outbox writes three rows for each order that is taken: the order, its row in the outbox,
#   and the mark.
# hint: Where the shop dies in the outbox's way, the message is sent again: one message and one request more. The rows are
#   the same, because the mark is written once.
# hint: Half: one half message for each order and one message for each that is taken. A send and an end for each order. A death:
#   the end is not sent; the broker stores the half message once more and asks, and that question is answered with an end.
# note: An outbox needs a table and somebody who sweeps it. Half messages need a second message and a second request for each
#   order, and a broker that asks. At work on Monday: count the declined ones; half messages pay for those, too.


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

# %% [belief] lab08.outbox_once
# question: The outbox's shop dies after a send. How often is the message stored?
# claim: Once; an outbox sends each message once.
# refutation: The mark is written after the send, so a shop that dies between the two sends once more. An outbox delivers at
#   least once, like everything here.

# %% [belief] lab08.declined_is_free
# question: The bank declines an order. What did its half message cost?
# claim: Nothing; it was never sent.
# refutation: The half message is sent before anybody asks the bank, and the rollback is a request as well. What it does not
#   cost is a second message.

# %% [belief] lab08.end_is_free
# question: How does the broker learn that the local transaction was committed?
# claim: From the send, which has returned.
# refutation: By a request of its own, END_TRANSACTION, for each order: 37, one-way.

# %% [belief] lab08.marks_are_free
# question: How many rows does an outbox write for an order?
# claim: Two: the order, and its row in the outbox.
# refutation: And a third time when the message was sent: the row is marked, which is an update. Without marks all would be
#   sent again in each sweep.

# %% [markdown] minutes=27
# ## The broker asks
#
# Now the death: the local transaction is committed, and the process dies before it has told the broker. It is started again
# two seconds later and goes on selling.


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
# - start: when the shop is back; it tells the broker
#   > The new process does not know of the order. It is the broker who remembers.
# - six: six seconds after the half message
#   > Six seconds are the age at which a half message may be asked about (`transactionTimeOut`). Nobody looks at that moment.
# - round: at the broker's next look that finds it older than six seconds
#   = It looks every thirty seconds. A half message that is younger than six is left for the next look.
# note: So between 6 and 36 seconds, if somebody is there to answer.

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
# Look at the half queue again. Before the broker asks, it stores the half message *once more*, at the end of the queue, with
# a count of the questions, and moves its own offset over the old one. A queue is read from one offset, so this is how a
# message is kept for later. (Lab 07's retries do the same.)

# %%
names = ("TRANSACTION_CHECK_TIMES", "PGROUP")
Table(
    [
        {"half": one.queue_offset, **{name: one.properties.get(name) for name in names}}
        for one in untold.store().messages(HALF)
    ]
)

# %% [prediction] lab08.whom
# The question needs somebody to answer it. `shop-1` never comes back. `shop-2` has been started on another machine, in the
# same producer group `shop`. Whom does the broker ask?
#
# - nobody: nobody; only shop-1 knows {lab08.memory_knows}
#   > The broker asks any process of the producer group. So an answer must not come from the memory of one process, but from
#   > a table that all of them can read.
# - other: shop-2
#   = Any process of the producer group will do. That is what the group of a producer is for, and nothing else.
# - consumer: the consumers of `orders`
#   > They have never seen the order. The half message carries the name of a producer group, PGROUP.
# note: The question brings the whole message along, with its keys and properties: that is all the one who is asked gets.

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
# "Any process of the group" has a small print. A producer sends heartbeats to the brokers it knows, and it knows a broker
# from its first send. A process that was just started and has sold nothing yet is connected to nobody:

# %%
quiet = play(lambda lab: dies_untold(lab, sells=False), seed=7, client=no_trace)
show_halves(quiet)

# %% [prediction] lab08.fifteen
# A listener always answers `UNKNOW`. What becomes of the half message?
#
# - ever: the broker asks every thirty seconds, for ever
#   > It counts its questions in the half message: TRANSACTION_CHECK_TIMES.
# - commit: after a while it is delivered; better twice than never
#   > Nobody has said that the order is paid. What is not committed is not delivered.
# - given up: after fifteen questions it is put aside, and never delivered
#   = At the sixteenth look it is copied to TRANS_CHECK_MAX_TIME_TOPIC, where nobody reads. The money may have been taken.
# note: Put an alarm on that topic. `mqadmin` can send a message from it back into the half queue: resumeCheckHalfMessage.


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
# `transaction_check_max` is the number of questions. Set `MOST` to 4 and run the cell. How many seconds after it was stored
# is the half message given up?
#
# wrong last: That is when the last question is asked. It is given up at the look after that.
# wrong standard: Eight minutes are fifteen questions and one look more. This broker asks less often.
# wrong: Look at the picture: where does the bar end?
# note: So `transactionCheckMax` times thirty seconds is how long your database may be away before orders fall aside.

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

# %% [markdown] minutes=9
# ## Asked too early
#
# A question can also come while the local transaction is still running. Here the bank is slow: it needs forty seconds before
# the listener may take the money, and the broker asks after thirty.


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
# The broker asks at 30 s. `check_local_transaction` finds no row and says `ROLLBACK_MESSAGE`. At 40 s the money is taken, and
# a moment later the process dies, before it has told the broker. What is there in the end?
#
# - neither: neither; it was rolled back {lab08.no_row_no_money}
#   > What was rolled back is the half message. The local transaction was still running, and took the money afterwards: no row
#   > means not yet. Answer UNKNOW, or write a row that makes a later local transaction fail.
# - both: both; the broker asks once more after the death
#   > It has been given an answer, and it believes it. A half message that was rolled back is not asked about again.
# - money: the money, and no message
#   = The check has said "nothing was paid", and ten seconds later it was.
# note: Had it not died, its COMMIT_MESSAGE would have been taken, after the rollback: the broker only looks whether the half
#   message is there. Do not build on that.

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

# %% [markdown] minutes=14
# ## Break it: every death
#
# Now half messages against every death, in both orders: the database first and then COMMIT, or COMMIT first and then the
# database. The second way is not silly: it is what happens when `execute_local_transaction` only starts the work and says
# that it will go well.


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
# The shop is killed at every place, and started again each time. Which of the two ways ends with money and message in
# agreement in every cell?
#
# - database: database, then COMMIT
#   = Before the commit of the database there is neither, after it the row is there for the check to find.
# - commit: COMMIT, then database
#   > Whoever says COMMIT gives the message away. Then the process dies, and the money is never taken.
# - both: both of them; the broker asks in any case {lab08.half_means_paid}
#   > A half message says that somebody meant to pay, and the broker believes whoever says COMMIT. Say it only when the table
#   > says that the money was taken.
# note: The half message is first, the database in the middle, the answer last. Each step remembers the one before it.

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
# And the broker? The order is committed and stored in `orders`. A second later the broker dies, and it is started again. How
# often is the order in `orders` in the end?
#
# - once: once; the broker knows that it was committed
#   > It knew. That half message 0 has ended was to be written with the next op message, up to six seconds later.
# - twice: twice
#   = No op message names it, so the broker asks, is told COMMIT once more, and stores the order once more.
# - none: not at all; the commit is lost
#   > The order is in the log, in its own topic. A process that dies loses nothing of what it has written to a file.
# note: A transaction of RocketMQ delivers at least once. The consumer needs lab 04's way to do a thing once all the same.

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
# Here is the board for one way only, and the shop dies. Change `DIES` to `"broker-a"` and run the cell. At how many places of
# the broker's death is the message there twice?
#
# wrong bad: Those are the places where money and message disagree. Twice counts as good here: both are there.
# wrong all: That is every place that was tried.
# wrong: Count the rows of `mine.cells()` whose outcome ends with `twice`.
# note: It needs a death between the commit and the op message. They are three seconds apart, and steps are few: time is not
#   what a board of steps shows.

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

# %% [markdown] minutes=30
# ## A listener that survives
#
# You have what you need: what is asked, who is asked, and when. Write it down once, so that every death finds it right.

# %% [exercise] lab08.transaction
# ### Exercise 5: money and message
#
# Write `transaction(lab, ask_bank)`. It returns a transaction listener: an object with
# `execute_local_transaction(message, arg)` and `check_local_transaction(message)`. An order is a message with the properties
# `customer` and `amount`. The database `lab.database("shop")` has
#
# - `accounts (customer, balance)`: take the amount, `balance = balance - ?`. A balance below 0 is refused by the database;
# - `transactions (order_key, state)`: yours. `order_key` is a primary key; what stands in `state` is up to you.
#
# `ask_bank(message)` takes its time; call it before you take the money. In the end, for each order, the money is taken and
# its message is in `orders`, or neither. What is allowed is in `orders` within five seconds. `transaction` is called again in
# each life of the shop. In the check the bank is slow once, and shop and broker are killed at every step of an order.
#
# hint: Ask the bank first; then one database transaction with both: a row in `transactions`, and the money. Then
#   COMMIT_MESSAGE. On `sqlite3.IntegrityError` (no such balance): ROLLBACK_MESSAGE.
# hint: The check looks for the row. There is one: COMMIT_MESSAGE. There is none: the local transaction may still be running,
#   so UNKNOW is safe, and ROLLBACK_MESSAGE is not.
# hint: Better than UNKNOW: the check inserts a row itself, with the state 'rolled back'. If it succeeds, no local transaction
#   can insert its own any more: the key is taken. Then ROLLBACK_MESSAGE is true.
# note: A row that the check writes where there is none is a fence: no local transaction can commit after it, so
#   ROLLBACK_MESSAGE is true at once. UNKNOW is as safe, but the broker asks up to fifteen times. At work on Monday: look at each
#   `checkLocalTransaction` (TransactionListener). Ask what it returns while `executeLocalTransaction` is still running, and
#   what it returns in a process that was started a second ago.


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
# refutation: The check is a question, not a second try: the local transaction was done, or is still running. Whoever takes the
#   money there takes it twice.

# %% [belief] lab08.row_first
# question: The row in transactions is written before the money is taken. In how many transactions?
# claim: In two, so that the row is safe in any case.
# refutation: The process may die between them, and the row says that money was taken which was not. Row and money belong into
#   one database transaction.

# %% [belief] lab08.two_commits
# question: Money and row are written in two database transactions. What can happen between them?
# claim: Only the death of the process.
# refutation: The broker's question can come between them as well. The check writes its row, and your second transaction fails
#   when the money has gone already. Row and money belong into one database transaction.

# %% [belief] lab08.row_later
# question: The money was taken. When is the row in transactions written?
# claim: Afterwards, when it is sure that the money is there.
# refutation: The process may die between them: the money is gone, and the check finds no row. Row and money belong into one
#   database transaction.

# %% [belief] lab08.unknow_is_safe
# question: Is UNKNOW always a safe answer to the broker's question?
# claim: Yes, it will find out in the end.
# refutation: UNKNOW answers nothing: the broker asks again and again, and then puts the message aside. When the row says that
#   the money was taken, say COMMIT_MESSAGE.

# %% [belief] lab08.let_it_ask
# question: May execute_local_transaction always answer UNKNOW, and leave the rest to the check?
# claim: Yes; the check knows best.
# refutation: It is safe, and slow: each order waits for the broker's next look and costs another half message. Answer
#   COMMIT_MESSAGE when the database has committed.

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **A database of its own machine.** Here the table survives every death. A database that loses its last commits in a power
#   cut says "no row" about money that was there.
# - **One broker.** A half message is asked about by the broker that has it. If that broker is away, nobody asks.
# - **Deaths one at a time.** The board kills one node, once. Two deaths in one run, and networks that lose the one-way END, are
#   yours to try: `lab.partition`, `lab.drop`.
# - **Not modelled:** the escape to another broker, and acting masters. [What is not modelled](not-modelled.ipynb) has the list.

# %% [markdown] minutes=3 tags=["reading"]
# ## RocketMQ does it so
#
# | what | where in RocketMQ |
# |---|---|
# | half message, local transaction, END | `TransactionMQProducer`, `DefaultMQProducerImpl.sendMessageInTransaction`, `endTransaction` |
# | the change of the topic | `TransactionalMessageBridge.parseHalfMessageInner` |
# | commit: checked, and stored in its real topic | `EndTransactionProcessor` |
# | op messages, in batches every 3 s | `TransactionalOpBatchService`, `TransactionalMessageServiceImpl.deletePrepareMessage` |
# | the look every 30 s, 6 s, 15 questions | `TransactionalMessageCheckService`, `TransactionalMessageServiceImpl.check` |
# | whom to ask | `ProducerManager.getAvailableChannel`, by the group in PGROUP |
# | the question on the producer's side | `ClientRemotingProcessor.checkTransactionState`, `TransactionListener.checkLocalTransaction` |
# | put aside | `TransactionalMessageServiceImpl.getHalfMsg…`, `AbstractTransactionalMessageCheckListener.resolveDiscardMsg` |
#
# Where you may read it differently:
#
# | you may read | it is |
# |---|---|
# | a half message is in its topic, and consumers do not see it | it is in RMQ_SYS_TRANS_HALF_TOPIC, in a queue like any other |
# | it is asked about every 60 s, 5 times, after 3 s | every 30 s, 15 times, after 6 s |
# | after the last question it is rolled back | it is put into TRANS_CHECK_MAX_TIME_TOPIC, and nobody has rolled back your database |
# | the broker asks the producer that sent it | any process of its group that has a connection |
# | a rollback removes the half message | nothing is removed; an op message names it |
# | with transactions each message comes exactly once | at least once: a commit may be stored twice |

# %% [markdown] minutes=4 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab08.choose
# **1.** Your shop has a database, an outbox would be one more table. When would you take half messages nevertheless?
#
# answer: When the table is the problem: many services each with a database of its own, none of which wants a sweeper that polls
#   it, or a database that is the bottleneck already. Half messages write one row instead of three and let the broker do the
#   asking. An outbox is the better choice where many orders are declined, where the broker may be away for long (the shop goes
#   on selling; a half message cannot be sent), and where somebody has to see in SQL what is still to be sent.

# %% [reflection] lab08.deploy
# **2.** Thursday, 9:14, was a new version being rolled out. What do you change, besides the code?
#
# answer: Every process of the producer group has to be able to answer for the others: same tables, and a check that knows the
#   orders of the old version. See that a new process is connected before its first sale. Put an alarm on
#   TRANS_CHECK_MAX_TIME_TOPIC and on the number of open half messages. And shut down in good order: let running local
#   transactions end.

# %% [reflection] lab08.consumer
# **3.** Money and message agree in every run. Is a book sent for each payment, exactly once?
#
# answer: No. They agree at the producer's side. The message may be stored twice and delivered more often than that, so the
#   warehouse needs its own table of what it has done, as in lab 04. And that the warehouse can do it at all (is the book
#   there?) no transaction of the shop has asked.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# Messages come late, or not at all, when somebody wants them to. What if they come late because there are too many of them?
# That is lab 09. All labs: [index](index.ipynb).

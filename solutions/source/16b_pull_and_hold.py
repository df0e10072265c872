# %% [markdown] tags=["reading"]
# # 16b Your broker: pull and hold
#
# ## Why
#
# Your store has the orders, and billing asks for them. "That is one line," says the team lead, "`return
# store.get(…)`." By noon the new broker answers nine thousand requests per minute to a group that has nothing to read,
# and the board is full again:
#
# - "A pull gets what is there. If nothing is there, it gets nothing."
# - "The next pull begins after the last message that was given."
# - "An order wakes the consumer that has waited longest."
# - "A pull that the broker holds must be saved, or a crash loses it."
# - "Our pulls filter by the tag itself, so the tag trap of lab 06 is gone."
#
# None of the five is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](16a-a-log-and-its-queues.ipynb) and lab
# [06](06a-two-tags-in-one-group.ipynb). Afterwards you can
#
# - write what a broker does with a pull: read, filter, answer or hold, wake;
# - say where the next pull must begin, and what a wrong offset costs;
# - name the requests that waiting saves, and the latency that it keeps low.

# %%
from collections import Counter

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.course.given.lab16 import tried_pulls
from mqlab.course.widgets import crash_matrix, long_poll_scope, tag_trap_board
from mqlab.lab.parts import OwnParts, tag_of
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.queue import show_queue

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Answered at once
#
# A pull is a dictionary: queue, offset, at most how many, which tags, and until when it may wait. The broker hands it to
# `pull` under a number. This class answers every pull at once, and never holds one:


# %% tags=["setup"]
class AtOnce:
    """Every pull is answered with what is there."""

    def __init__(self, store):
        self.store = store

    def pull(self, number, pull, now_ms):
        place = pull["topic"], pull["queue_id"], pull["queue_offset"]
        seen = self.store.get(*place, pull["most"])
        wanted = [u for u in seen if not pull["tags"] or tag_of(u) in pull["tags"]]
        return wanted, pull["queue_offset"] + len(seen)  # an answer: units, next_offset

    def arrived(self, topic, queue_id):
        return []  # [(number, answer)] of the held pulls that a message wakes

    def look(self, now_ms):
        return []  # the same for those whose time is over; every second


# %%
def member(lab, group="billing", tags="*", name=None):
    consumer = lab.push_consumer(group, name=name)
    consumer.subscribe("orders", tags)
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()


def ten_idle_seconds(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab)
    lab.run_for("10s")


def pulls_of(lab, group="billing"):
    return [pull for pull in lab.pulls(group) if pull.topic == "orders"]


# %% [prediction] lab16.at_once
# Nothing is in the queue, and billing pulls for ten seconds from a broker that answers at once. A frame takes 1 ms. How
# many pulls are that?
#
# - 10: ten; the client pauses for a second when it got nothing
#   > RocketMQ's client does not pause. It trusts the broker to hold a pull that finds nothing.
# - 1: one; the client waits until there is something
#   > The broker has answered, so the pull is over. The client sends the next one.
# - 5000: thousands; the next pull leaves as soon as an answer is there
#   = A pull every two milliseconds, for each queue and each member, while nothing happens.
# note: A broker that never holds loses no message and delays none. It only costs all its time, so yours will hold.

# %%
lab = play(ten_idle_seconds, seed=7, client=no_trace, parts=OwnParts(pulls=AtOnce))
asked = len(pulls_of(lab))
held = play(ten_idle_seconds, seed=7, client=no_trace)
Bars({"answered at once": asked, "RocketMQ": len(pulls_of(held))}, unit="pulls")

# %%
reveal("lab16.at_once", min((1, 10, 5000), key=lambda number: abs(number - asked)))

# %% [answer] lab16.far_away
# ### Your turn: a slower network
#
# Change `LATENCY`, the time of a frame in one direction, to 10 ms. How many pulls of `orders` are there in the ten
# seconds now?
#
# wrong near: That is the number with 1 ms.
# wrong: Read it from the bar.
# note: The same broker, the same client: only the distance limits them. A thousand members next door would be a thousand
#   times that load.

# %% tags=["parameter"]
LATENCY = "1ms"


def from_afar(latency):
    own = OwnParts(pulls=AtOnce)
    network = {"latency": latency}
    return play(ten_idle_seconds, seed=7, client=no_trace, network=network, parts=own)


far_away = from_afar(LATENCY)
Bars({f"{LATENCY} away": len(pulls_of(far_away))}, unit="pulls")

# %%
### BEGIN SOLUTION
far_away = from_afar("10ms")
answer("lab16.far_away", 425, far_away)
### STARTER
# answer("lab16.far_away", ..., far_away)
### END SOLUTION

# %% [markdown]
# ## Hold or answer
#
# So a pull that finds nothing is *held*: the broker notes it and says nothing. It has a time limit, `until_ms`. One
# question decides between holding and answering, and it is asked right after reading.

# %% [prediction] lab16.nothing_fits
# Billing wants `paid`. The queue has five orders, all of them `new`. Billing pulls from offset 0, and the pull may wait.
# What does RocketMQ do?
#
# - holds: it holds the pull; nothing that is wanted has come
#   > Then the client would still be at 0, and its next pull would read the five again. RocketMQ answers it at once.
# - answers: it answers at once, without an order, and the next offset is 5
#   = The client pulls again from 5, finds the end of the queue, and *that* pull is held.
# - waits: it answers after five seconds, when it checks
#   > That check is for pulls that are held at the end of the queue (lab 06b).
# note: `next_offset` is an answer as well. A pull is held only if there is nothing at all to say.


# %%
def five_that_do_not_fit(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(5):
        shop.send(Message("orders", b"a book", tags="new", keys=f"order-{number}"))
    lab.run_for("1s")
    member(lab, tags="paid")
    lab.run_for("5s")


lab = play(five_that_do_not_fit, seed=7, client=no_trace)
first = pulls_of(lab)[0]
moved_at_once = first.next_offset == 5 and first.woken is None
reveal("lab16.nothing_fits", "answers" if moved_at_once else "holds")

# %% tags=["picture"]
Table(
    pulls_of(lab),
    columns=["from_offset", "status", "next_offset", "found", "woken"],
)

# %% [exercise] lab16.holds
# ### Exercise 1: hold it?
#
# Write `holds`. `pull` is a pull as your class will get it: a dictionary with `topic`, `queue_id`, `queue_offset`,
# `most`, `tags` and `until_ms`. The queue has been read for it: `units` were found, and `next_offset` is one past the
# last message that was looked at.
#
# hint: Three things must be true for a pull to be held. Which one is about `units`?
# hint: If `next_offset` is not the pull's `queue_offset`, the client must learn that.
# hint: The pull may wait as long as `now_ms < pull["until_ms"]`. At `until_ms` its time is over.
# note: One line of your class is done. RocketMQ has it in PullMessageProcessor: PULL_NOT_FOUND is held, and
#   PULL_RETRY_IMMEDIATELY is answered.


# %%
# exercise: lab16.holds
def holds(pull, units, next_offset, now_ms):
    """True to hold a pull, False to answer it with (units, next_offset)."""
    ### BEGIN SOLUTION
    moved = next_offset != pull["queue_offset"]
    return not units and not moved and now_ms < pull["until_ms"]
    ### END SOLUTION


# %%
check("lab16.holds")

# %% [belief] lab16.filtered_waits
# question: Everything that a pull looked at was filtered. Hold it?
# claim: Yes; it has nothing to give.
# refutation: A pull that found only filtered messages has the next offset to give. One whose next_offset has moved is
#   answered, or each look reads the same messages again.

# %% [belief] lab16.waits_until_full
# question: A pull asks for 32 messages and one is there. Hold it?
# claim: Yes, until 32 are there.
# refutation: `most` is a limit, not a wish: one wanted message is enough to answer at once.

# %% [belief] lab16.waits_for_ever
# question: Nothing is there, and the pull's time is over. Hold it?
# claim: Yes, until something comes.
# refutation: A pull that does not wait any longer is answered, even with nothing. Its client waits for an answer and
#   would give up.

# %% [belief] lab16.waits_at_its_end
# question: It is exactly until_ms. Hold the pull?
# claim: Yes, this is its last millisecond.
# refutation: At until_ms its time is over, so it is answered.

# %% [markdown]
# ## Read, and filter
#
# A pull looks at one message after the other, from its offset on. It gives those with a wanted tag, and stops when it
# has `most` of them or the queue ends.

# %% [prediction] lab16.next_of
# The tags of a queue are `new new paid new new paid new`. A pull from offset 0 wants `paid` and at most one message. It
# gets order 2. What is `next_offset`?
#
# - 1: 1; one message was given {lab16.counts_given}
#   > The next pull would look at 1 and 2 again, and give order 2 a second time.
# - 3: 3; one past the last that was looked at
#   = Orders 0 and 1 are filtered, order 2 is given. The next pull begins at 3.
# - 5: 5; the next message that is wanted
#   > That would be right as well, but the broker would have to look ahead. It stops when the answer is full.
# - 7: 7; the end of the queue {lab16.jumps_to_the_end}
#   > Then order 5 would be passed, and no pull would ever offer it.
# note: Two rules in one number: never before what was seen, never past what was not.


# %%
TAGS = ["new", "new", "paid", "new", "new", "paid", "new"]


def seven(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number, tag in enumerate(TAGS):
        shop.send(Message("orders", b"a book", tags=tag, keys=f"order-{number}"))
    lab.run_for("1s")


lab = play(seven, seed=7, client=no_trace)
puller = lab.pull_consumer("looks")
(queue,) = puller.fetch_subscribe_message_queues("orders")
pulled = puller.pull(queue, "paid", 0, 1)
show_queue(lab, "orders")

# %%
reveal("lab16.next_of", pulled.next_begin_offset)

# %% [answer] lab16.three
# ### Your turn: three pulls
#
# A queue has sixty orders, and every fifth is `paid`: numbers 4, 9, … 59. Find the smallest `MOST` with which three
# pulls read all of it.
#
# wrong all: That is the number of `paid` orders. With it a single pull is enough.
# wrong: Count the rows: one per pull. Decrease MOST until a fourth is needed.
# note: Twelve orders are wanted, so three pulls bring four each. The last pull ends at 60 because order 59 fills it. With
#   one more `new` order at the end there would be a fourth pull, which finds nothing.

# %% tags=["parameter"]
MOST = 32


def sixty(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    tags = ["paid" if number % 5 == 4 else "new" for number in range(60)]
    orders = [Message("orders", b"a book", tags=tag) for tag in tags]
    lab.producer("shop").send_batch(orders)
    lab.run_for("1s")


def read_all(puller, queue, most, end):
    offset = 0
    while offset < end:
        pulled = puller.pull(queue, "paid", offset, most)
        given, next_offset = len(pulled.msg_found_list), pulled.next_begin_offset
        yield {"from": offset, "given": given, "next_offset": next_offset}
        offset = next_offset


# %% tags=["picture"]
looks = play(sixty, seed=7, client=no_trace).pull_consumer("looks")
(all_sixty,) = looks.fetch_subscribe_message_queues("orders")
in_pulls = list(read_all(looks, all_sixty, MOST, 60))
Table(in_pulls)

# %%
### BEGIN SOLUTION
answer("lab16.three", 4, list(read_all(looks, all_sixty, 4, 60)))
### STARTER
# answer("lab16.three", MOST, in_pulls)
### END SOLUTION

# %% [markdown]
# ## Who is woken
#
# When a message has been dispatched, the broker calls `arrived(topic, queue_id)`. Your class answers the held pulls that
# want it: `[(number, (units, next_offset)), …]`. The others stay.

# %% [prediction] lab16.who_wakes
# Two groups hold a pull at the end of one queue: billing wants `paid`, audit wants everything. A `new` order arrives.
# Which of them gets an answer at once?
#
# - both: both; something has arrived in their queue
#   > Billing would get nothing and ask again: a request for each order that it does not want.
# - audit: audit only
#   = Its pull can give something. Billing's pull stays where it is.
# - first: the one that has waited longest {lab16.first_waiter_only}
#   > A queue in RocketMQ is read by every group, each with an offset of its own. A message wakes all that want it.
# note: Groups do not compete for a message. The members of one group do not either: each has queues of its own.


# %%
def two_wait(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, "billing", "paid")
    member(lab, "audit", "*")
    lab.run_for("25s")
    lab.producer("shop").send(Message("orders", b"a book", tags="new", keys="order-0"))
    lab.run_for("1s")


lab = play(two_wait, seed=7, client=no_trace)
woken = [
    group
    for group in ("billing", "audit")
    if any(pull.woken == "arrived" for pull in pulls_of(lab, group))
]
reveal("lab16.who_wakes", {("audit",): "audit"}.get(tuple(woken), "both"))

# %%
(order,) = lab.store().messages("orders")
lab.timeline(order.msg_id)

# %% [prediction] lab16.over_when
# Nothing comes any more. A pull that may wait 15 seconds arrives at 12:00:00.4. Your broker calls `look(now_ms)` every
# full second. When is the pull answered?
#
# - 15.4: at 12:00:15.4 exactly
#   > No clock rings for a single pull. It is found when the broker looks.
# - 16.0: at 12:00:16, at the first look after its time
#   = Between 0 and 1 second too late. RocketMQ looks every 5 seconds, so 15 seconds are 15 to 20 there.
# - 15.0: at 12:00:15, so that it is not too late
#   > Its time is not over then. It may still get a message.
# note: The client knows that: it waits 30 seconds for an answer before it gives up.


# %%
class Waits(AtOnce):
    """Holds everything until its time is over."""

    def __init__(self, store):
        super().__init__(store)
        self.held = {}

    def pull(self, number, pull, now_ms):
        self.held[number] = pull  # and no answer

    def look(self, now_ms):
        over = [n for n, pull in self.held.items() if pull["until_ms"] <= now_ms]
        return [(n, super(Waits, self).pull(n, self.held.pop(n), now_ms)) for n in over]


# %%
def forty_idle_seconds(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.run_for("397ms")
    member(lab)
    lab.run_for("40s")


lab = play(forty_idle_seconds, seed=7, client=no_trace, parts=OwnParts(pulls=Waits))
pull = next(pull for pull in pulls_of(lab) if pull.left_ms)
late_ms = pull.left_ms - pull.arrived_ms - 15_000
Bars({"may wait": 15_000, "was held": pull.left_ms - pull.arrived_ms}, unit="ms")

# %%
reveal("lab16.over_when", "16.0" if 0 <= late_ms <= 1000 else "15.4")

# %% [exercise] lab16.pulls
# ### Exercise 2: your pulls
#
# Write `MyPulls`. Its `store` has two methods of yours: `get(topic, queue_id, queue_offset, most)` and
# `max_offset(topic, queue_id)`. `tag_of(unit)` is a unit's tag, or None.
#
# 1. `pull`: read and filter. A pull from before the queue or from past its end is answered at once, with no units and
#    the nearest offset that exists. Then hold or answer.
# 2. `arrived`: answer the held pulls of this queue that find something now.
# 3. `look`: answer the held pulls whose time is over, with whatever they find.
#
# hint: Write `read(pull)` first, which returns (units, next_offset). All three methods need it.
# hint: In `read`: one `store.get(…, offset, 1)` after the other, `offset += 1` for each, until `most` are found or `offset`
#   is `max_offset`. Outside of the queue return `[], max(0, min(offset, end))`.
# hint: Keep held pulls in a dictionary number -> pull. Remove each pull that you answer: `self.held.pop(number)`. Go
#   over `list(self.held.items())`, because the dictionary changes meanwhile.
# note: This is PullMessageProcessor with PullRequestHoldService. In RocketMQ a pull looks at 800
#   entries at most, so that it does not hold up the others (lab 06b).


# %%
# exercise: lab16.pulls
class MyPulls:
    """What pulls are answered with, and which of them wait."""

    ### BEGIN SOLUTION
    def __init__(self, store) -> None:
        """store: get and max_offset."""
        self.store, self.held = store, {}

    def pull(self, number, pull, now_ms) -> tuple[list[bytes], int] | None:
        """Step 1. Returns (units, next_offset), or None to hold the pull."""
        units, next_offset = self.read(pull)
        moved = next_offset != pull["queue_offset"]
        if units or moved or pull["until_ms"] <= now_ms:
            return units, next_offset
        self.held[number] = pull
        return None

    def arrived(self, topic, queue_id) -> list[tuple]:
        """Step 2. Returns [(number, (units, next_offset))] of those that it wakes."""
        woken = []
        for number, pull in list(self.held.items()):
            if (pull["topic"], pull["queue_id"]) == (topic, queue_id):
                units, next_offset = self.read(pull)
                if units:
                    del self.held[number]
                    woken.append((number, (units, next_offset)))
        return woken

    def look(self, now_ms) -> list[tuple]:
        """Step 3. Returns the same for those whose time is over."""
        over = [number for number, p in self.held.items() if p["until_ms"] <= now_ms]
        return [(number, self.read(self.held.pop(number))) for number in over]

    def read(self, pull):
        """What is wanted from the pull's offset on, and one past the last seen."""
        queue, offset = (pull["topic"], pull["queue_id"]), pull["queue_offset"]
        end = self.store.max_offset(*queue)
        # 1. Outside of the queue: the nearest offset that exists.
        if not 0 <= offset <= end:
            return [], max(0, min(offset, end))
        # 2. One message after the other; what is filtered counts as seen.
        units = []
        while offset < end and len(units) < pull["most"]:
            (unit,) = self.store.get(*queue, offset, 1)
            offset += 1
            if not pull["tags"] or tag_of(unit) in pull["tags"]:
                units.append(unit)
        return units, offset

    ### STARTER
    # def __init__(self, store): ...
    # def pull(self, number, pull, now_ms): ...  # 1: (units, next_offset), None to hold
    # def arrived(self, topic, queue_id): ...  # 2: [(number, (units, next_offset))]
    # def look(self, now_ms): ...  # 3: the same
    ### END SOLUTION


# %% [markdown]
# Each step alone, on a store of the seven orders from above. You may run this at any time. (As long as you have not
# begun, the table shows what `Waits` returns.)

# %% tags=["picture"]
tried_pulls(mybroker.parts(pulls=MyPulls).pulls or Waits)

# %%
check("lab16.pulls")

# %% [belief] lab16.all_there_is
# question: A pull asks for 32 messages, and 100 are there. How many does it get?
# claim: All 100.
# refutation: At most `most`: the client has made room for that many.

# %% [belief] lab16.answers_with_nothing
# question: A pull finds nothing new, and it may wait. What is wrong with an empty answer?
# claim: Nothing; the client asks again.
# refutation: Its client asks again at once, thousands of times. A pull that has nothing to say is held.

# %% [belief] lab16.answered_stays_held
# question: A held pull was answered. Is it still held?
# claim: It waits for the next message.
# refutation: An answer ends a pull. The client sends a new one from the next offset.

# %% [belief] lab16.clients_filter
# question: Billing wants `paid`. What does the broker send?
# claim: Everything; the client filters.
# refutation: The broker sends only messages with a wanted tag.

# %% [belief] lab16.waits_outside
# question: A pull begins past the end of its queue. Hold it?
# claim: Hold it until the queue is that long.
# refutation: A pull outside of the queue is answered at once, with the nearest offset that exists.

# %% [markdown]
# When it passes, press *Keep it for my broker*, or run `keep("lab16.pulls")`. It becomes `mybroker/pulls.py`.
#
# ## A day on your pulls
#
# `yours` has your pulls, and your store as well if you kept it. (While the exercise is open, mqlab's own are in its
# place.) A pull waits, and an order comes after 42 seconds:

# %%
yours = mybroker.parts(pulls=MyPulls)


def one_comes(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, tags="paid")
    lab.run_for("42s")
    shop = lab.producer("shop")
    shop.send(Message("orders", b"a book", tags="paid", keys="order-0"))
    lab.run_for("10s")


your_day = play(one_comes, seed=7, client=no_trace, parts=yours)
(order,) = your_day.store().messages("orders")
your_day.timeline(order.msg_id)

# %%
Bars(Counter(pull.woken or "at once" for pull in pulls_of(your_day)), unit="pulls")

# %% [markdown]
# ### The long-poll scope on your pulls
#
# This is the board of lab 06b. Its broker has your pulls now: dashed bars are pulls that *your* class holds.

# %% [answer] lab16.own_scope
# ### Your turn: what your class holds
#
# Set *Messages a second* to 4 and, under *More settings*, *Rare tag* to 20. How many pulls of the first reader return
# without a message?
#
# wrong asking: That is the number of the reader that asks every second.
# wrong mqlab: That is RocketMQ's number, from lab 06b. Read yours in the board's table.
# wrong: It is in the board's table: column *without a message*, row *held pulls*.
# note: If your `arrived` wakes a pull only for what it wants, few return empty, and the group's offset stays where it is
#   for up to 15 seconds. If it wakes for every message, none waits and the offset moves at once. RocketMQ is in between:
#   it checks every five seconds.

# %% tags=["explorer"]
own_scope = long_poll_scope(parts=yours)
own_scope

# %%
### BEGIN SOLUTION
own_scope.play(rate=4, rare=20)
answer("lab16.own_scope", own_scope.requests()[0].empty, own_scope)
### STARTER
# answer("lab16.own_scope", ..., own_scope)
### END SOLUTION

# %% [markdown]
# ### The tag-trap board on your pulls
#
# In lab 06a two members of one group subscribed to different tags, and orders disappeared. The broker of that day
# compared hash codes. Yours compares the tags themselves.

# %% [prediction] lab16.same_trap
# Billing wants `paid`, shipping wants `shipped`, both are in one group, and the broker has your pulls. How many of the
# eight orders does no member receive?
#
# - 0: none; your filter is exact
#   > It is exact about the wrong tags: the broker has one subscription per group, the newest.
# - 6: six, as with RocketMQ's own
#   = The trap is in the table of subscriptions, not in the filter. Your class gets `tags` from that table.
# - 4: four; those that a hash let pass by mistake
#   > `paid` and `shipped` have different hash codes. No order of that day was passed by mistake.
# note: A part can keep its promise while the broker loses orders: a promise covers only what the part is asked.

# %% tags=["explorer"]
trap = tag_trap_board(parts=yours)
trap

# %%
trap.table()

# %%
reveal("lab16.same_trap", len(trap.nobody()))

# %% [markdown]
# ## Break it: the broker dies while it holds
#
# `MyPulls` has no disk. Whatever it holds is gone when the broker's process ends.

# %% [prediction] lab16.held_dies
# The broker is killed while it holds billing's pull, and is started again. An order comes. What does billing get?
#
# - nothing: nothing; its pull is gone, and it waits for an answer
#   > It notices that the connection has ended, long before its 30 seconds are over.
# - saved: the order, if the held pull was saved on the disk
#   > No broker saves it. A pull is a question, and its client still knows it.
# - again: the order; it pulls again from its own offset
#   = The client knows where it reads. A new pull says all that the lost one said.
# note: What the other side can repeat need not survive. That is why a store needs a disk, and pulls need none.


# %%
def asked_again(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, tags="paid")
    lab.run_for("12s")
    shop = lab.producer("shop")
    for number in range(3):
        shop.send_async(
            Message("orders", b"a book", tags="paid", keys=f"order-{number}")
        )
        lab.run_for("2s")
    lab.run_for("30s")


def got_of_stored(lab):
    stored = {message.msg_id for message in lab.store().messages("orders")}
    got = {row.msg_id for row in lab.deliveries("billing", absences=False)}
    return f"{len(stored - got)} stored orders are not delivered"


# %%
world = {"seed": 7, "client": no_trace, "parts": yours}
asked = {"node": "broker-a", "outcome": got_of_stored}
dies = crash_matrix(
    {"your pulls": asked_again},
    only=lambda point: 30 <= point.number < 100,
    **asked,
    **world,
)
missed = sum(int(cell.outcome[0]) for cell in dies.cells())
reveal("lab16.held_dies", "nothing" if missed else "again")

# %% tags=["explorer"]
dies

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A pull may look at everything.** Yours scans a queue of a million unwanted orders in one go, and all other pulls
#   wait. RocketMQ stops after 800 entries.
# - **Tags only.** A subscription by SQL is answered by mqlab's own code here, whatever your class does.
# - **One class, few pulls.** `arrived` goes over all held pulls. RocketMQ keeps them per queue.
# - **A subscription that changes** reaches your class with the next pull. Those that it holds keep the old tags.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | reading for a pull | `PullMessageProcessor.processRequest`, `DefaultMessageStore.getMessage` |
# | the filter | `ExpressionMessageFilter.isMatchedByConsumeQueue`: hash codes; the client compares the strings |
# | held pulls | `PullRequestHoldService`, `ManyPullRequest` per topic and queue |
# | an arrival | `NotifyMessageArrivingListener.arriving` |
# | the check every 5 seconds | `PullRequestHoldService.checkHoldRequest` |
# | the next offset | `nextBeginOffset` in the answer |

# %% [markdown] tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab16.push_or_pull
# **1.** Your broker could send each message to the members on its own, as soon as it is stored. What would it have to
# know that it does not know now?
#
# answer: For each member: how far it is, how much room it has, whether it is slow or dead. A broker that pushes must
#   slow down for each of them, or flood them. With pulls every member asks when it has room, and the broker remembers
#   nothing but questions that were not answered yet.

# %% [reflection] lab16.wake_or_sleep
# **2.** A thousand groups wait on one queue, each for another tag. An order comes. What does your `arrived` cost, and
# what would you change?
#
# answer: It reads the new order a thousand times to answer one pull. Read it once and compare its tag with a dictionary
#   from tags to held pulls. RocketMQ compares each held pull's hash codes with that of the arrived message, without
#   reading the message.

# %% [markdown] tags=["reading"]
# ## Next
#
# Your broker stores and answers. It does not know yet who is in a group, how far a group is, and what to do with an
# order that fails: [third part](16c-groups-offsets-retries.ipynb). All labs: [index](index.ipynb).

# %% [markdown] tags=["reading"]
# # 16c Your broker: groups, offsets, retries
#
# ## Why
#
# Your broker stores and answers. Now it must remember *who* reads, *how far* each group is, and *what failed*. At the
# whiteboard a colleague sums it up in five sentences:
#
# - "The members of a group must survive a crash, or nobody reads."
# - "An offset that is too old is as bad as one that is too new."
# - "Whoever loses its memory makes orders repeat: broker or billing, it is the same."
# - "A retry comes exactly when its time is over."
# - "A failed message is in the log, so a retry that waits in memory is safe."
#
# None of the five is true. Both parts of this notebook are small. What they write down, and when, decides what a crash
# costs.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need labs [04a](04a-how-far-have-we-read.ipynb) and
# [07a](07a-failure-takes-time.ipynb). Afterwards you can
#
# - say what a broker must save of a group, and what comes back on its own;
# - write offsets that never pass what a group committed;
# - write retries that come once, not too early, and after every crash.
#
# This part works without the first two. What you have not kept is mqlab's own.

# %%
import json
from collections import Counter

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.course.given.lab16 import tried_groups
from mqlab.course.widgets import crash_matrix, retry_clock
from mqlab.lab.parts import OwnParts, copied
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.views import Bars, Table
from mqlab.rocketmq.wire import record

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Members and offsets in memory
#
# A broker asks six things of its groups. This class does them with a set and a dictionary. `joined` is called with every
# heartbeat, `left` when a member leaves or its connection ends, `commit` when a client reports its offsets, and `save`
# every five seconds.


# %% tags=["setup"]
class MemoryGroups:
    def __init__(self, disk):
        self.there, self.offsets = set(), {}

    def joined(self, group, member):
        self.there.add((group, member))

    def left(self, group, member):
        self.there.discard((group, member))

    def members(self, group):
        return sorted(member for of, member in self.there if of == group)

    def commit(self, group, topic, queue_id, queue_offset):
        self.offsets[group, topic, queue_id] = queue_offset

    def committed(self, group, topic, queue_id):
        return self.offsets.get((group, topic, queue_id), -1)

    def save(self):
        pass


# %% [markdown]
# The shop sends an order every half second. Two members of billing share two queues. What the first knows of the second,
# it asks the broker.


# %%
def pay(messages, context):
    context.sleep("20ms")
    return CONSUME_SUCCESS


def billing(lab, listener=pay, name="billing-1", **settings):
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()


def shop_opens(lab, queues=1):
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    return lab.producer("shop")


def sells(lab, shop, seconds, first=0):
    for number in range(first, first + 2 * seconds):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
        lab.run_for("500ms")


# %% [prediction] lab16.forgotten_members
# The broker is killed after three seconds, before its first `save`, and is back a second later. `MemoryGroups` has
# forgotten both members. What happens to billing?
#
# - nobody: no member reads; the new broker has no members
#   > Members come back on their own: a client whose connection ended connects again and sends a heartbeat.
# - one: one member reads both queues, until the other one is restarted
#   > Both connect again and send heartbeats. No restart is needed.
# - both: both keep reading, each its own queue
#   = Every heartbeat brings the member again. RocketMQ keeps members in memory as well.
# note: What is repeated every few seconds anyway need not be saved.


# %%
def early_kill(lab):
    shop = shop_opens(lab, queues=2)
    billing(lab)
    billing(lab, name="billing-2")
    sells(lab, shop, 3)
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("30s")
    sells(lab, shop, 3, first=10)
    lab.run_for("5s")


# %%
young = play(early_kill, seed=7, client=no_trace, parts=OwnParts(groups=MemoryGroups))
late_ms = young.began_ms + 30_000
readers = Counter(
    row["client"]
    for row in young.deliveries("billing", absences=False)
    if row["started_ms"] > late_ms
)
Bars(readers, unit="orders", title="who reads after the kill")

# %%
reveal("lab16.forgotten_members", {0: "nobody", 1: "one"}.get(len(readers), "both"))

# %% [prediction] lab16.forgotten_offsets
# Now the broker lives for twelve seconds before it is killed. `save` was called twice, and did nothing. What happens
# when it is back?
#
# - again: billing starts at offset 0 and pays every order again
#   > That would happen to a new member. But the broker promised something at each `save`, and mqlab checks it first.
# - nothing: nothing; the clients know their offsets
#   > Running clients do. The broker must know as well, for the queue's next owner.
# - stops: the world stops; an offset that was saved is gone
#   = After `save`, what was committed is there in the next lifetime. mqlab asks right at the start.
# note: Heartbeats repeat who is there. Nothing repeats how far a group that is switched off has read.


# %%
def later_kill(lab):
    shop = shop_opens(lab)
    billing(lab)
    sells(lab, shop, 12)
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("20s")


try:
    play(later_kill, seed=7, client=no_trace, parts=OwnParts(groups=MemoryGroups))
    ends = "nothing"
except BrokenPart as broken:
    ends = "stops"
    print(broken)
reveal("lab16.forgotten_offsets", ends)

# %% [markdown]
# ## Older or newer
#
# A saved offset is always older than the last commit. That is allowed: what comes after it is read again. One that is
# *newer* than the last commit is not. Messages between the two would never be read by any member.

# %% [prediction] lab16.too_new
# A careful colleague adds 1 to every saved offset, "so that nothing is paid twice". Which rule does the next life of the
# broker break?
#
# - none: none; the order in between was delivered
#   > Delivered, but no member reported that it was done. The group would never see it again.
# - saved: "what was saved is there in the next life"
#   > It is there, and one more. That is the other direction.
# - passed: "a group's offset never passes what the group has committed"
#   = One too many loses a message, silently. One too few repeats one.
# note: An offset may be too old, and never too new. Each decision of a broker about offsets follows from this.


# %% tags=["setup"]
class OneTooMany(MemoryGroups):
    """Saves, and adds one."""

    def __init__(self, disk):
        super().__init__(disk)
        self.disk = disk
        for *key, saved in json.loads(disk.load("offsets.json") or b"[]"):
            self.offsets[tuple(key)] = saved + 1

    def save(self):
        rows = [[*key, offset] for key, offset in self.offsets.items()]
        self.disk.replace("offsets.json", json.dumps(rows).encode())


# %%
def quiet_kill(lab):
    shop = shop_opens(lab)
    billing(lab)
    sells(lab, shop, 3)
    lab.run_for("12s")  # everything is reported, and saved
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")


try:
    play(quiet_kill, seed=7, client=no_trace, parts=OwnParts(groups=OneTooMany))
    rule = "none"
except BrokenPart as broken:
    rule = "passed" if "never passes" in broken.rule else "saved"
    print(broken)
reveal("lab16.too_new", rule)

# %% [exercise] lab16.groups
# ### Exercise 1: your groups
#
# Write `MyGroups`. Members stay in memory: whichever is still there joins again. Offsets go to the disk with `save`:
# `disk.replace(name, data)` writes a small file as a whole, `disk.load(name)` reads it or returns None.
#
# A group has one offset per topic and queue, and another group has its own. The last commit counts, also a lower one.
# `committed` is -1 for a queue of which the group has committed nothing.
#
# hint: Start from `MemoryGroups` above. Three methods of it are finished; `joined` and `left` must not be confused by a
#   member that joins twice or leaves twice.
# hint: JSON has no tuples as keys. Save a list of rows `[group, topic, queue_id, offset]`, or join the key to one string.
# hint: Read the file in `__init__`: `json.loads(disk.load("offsets.json") or b"[]")`. In `save`, write all offsets with
#   one `disk.replace`. Never change the number.
# note: You have written the core of `ConsumerManager` and `ConsumerOffsetManager`. At work: `consumerOffset.json` is
#   saved every five seconds, so a killed broker loses up to five seconds of offsets.


# %%
# exercise: lab16.groups
class MyGroups:
    """Who is in a group, and how far the group has read."""

    ### BEGIN SOLUTION
    def __init__(self, disk) -> None:
        self.disk, self.groups = disk, {}
        self.offsets = json.loads(disk.load("config/myOffsets.json") or b"{}")

    def joined(self, group, member) -> None:
        self.groups.setdefault(group, set()).add(member)

    def left(self, group, member) -> None:
        self.groups.get(group, set()).discard(member)

    def members(self, group) -> list[str]:
        return sorted(self.groups.get(group, ()))

    def commit(self, group, topic, queue_id, queue_offset) -> None:
        self.offsets[f"{topic}@{group}@{queue_id}"] = queue_offset

    def committed(self, group, topic, queue_id) -> int:
        return self.offsets.get(f"{topic}@{group}@{queue_id}", -1)

    def save(self) -> None:
        self.disk.replace("config/myOffsets.json", json.dumps(self.offsets).encode())

    ### STARTER
    # def __init__(self, disk): ...  # in each life, on what the last one left
    # def joined(self, group, member): ...  # with each heartbeat
    # def left(self, group, member): ...  # or its connection has ended
    # def members(self, group): ...  # a list, each once
    # def commit(self, group, topic, queue_id, queue_offset): ...
    # def committed(self, group, topic, queue_id): ...  # -1 without a commit
    # def save(self): ...  # every five seconds, and at the end
    ### END SOLUTION


# %% [markdown]
# Each method alone, on a disk of its own, before and after a kill:


# %% tags=["picture"]
begun = mybroker.parts(groups=MyGroups).groups
tried_groups(begun or MemoryGroups)

# %%
check("lab16.groups")

# %% [belief] lab16.zero_is_nothing
# question: A group has committed 0. What is it told?
# claim: That it has committed nothing, for it has done nothing.
# refutation: 0 is an offset: the group begins with the first message. Without a commit it would begin at the end.

# %% [belief] lab16.letters_name_a_queue
# question: Is `topic + group + str(queue_id)` a name that only one queue of one group has?
# claim: Yes, all three are in it.
# refutation: The topic `orders1` with queue 0 and `orders` with queue 10 may get the same letters. Put a sign between
#   them that no name has, or use a tuple.

# %% [belief] lab16.joined_once
# question: joined comes a second time with the same member. Who is in the group?
# claim: The member, twice.
# refutation: Heartbeats come again and again. A member is in the list once.

# %% [belief] lab16.one_past_the_commit
# question: A group has committed 7. Where does it begin?
# claim: At 8; 7 was done.
# refutation: At 7: an offset is the next message to read.

# %% [belief] lab16.one_offset_per_queue
# question: Two groups read one queue. How many offsets does the broker keep?
# claim: One; it is the offset of the queue.
# refutation: One per group and queue: groups read at their own speed.

# %% [belief] lab16.offsets_in_memory
# question: The members of a group know how far they are. Must the broker save it?
# claim: No; they report it again.
# refutation: The next owner of a queue asks the broker. What is not saved begins at the start after a crash.

# %% [belief] lab16.members_stay
# question: A member has left. Who notices?
# claim: Its queues stay with it until it comes back.
# refutation: The others do, because the list is shorter. A member that stays in the list keeps queues that no member
#   reads.

# %% [belief] lab16.offsets_only_grow
# question: A group was at 8 and now commits 2. Where does it begin?
# claim: At 8; an offset never goes back.
# refutation: At 2, its last commit. A group goes back on purpose, to read something again.

# %% [belief] lab16.absent_groups_are_over
# question: A group has no member at the moment. Must its offsets be saved?
# claim: No; no member reads.
# refutation: They must. Without them the group has no offset when it is switched on again.

# %% [belief] lab16.zero_without_commit
# question: A group has never committed. What is its offset?
# claim: 0, the first message.
# refutation: -1: there is none. The client then decides where the group begins (lab 04b).

# %% [markdown]
# Keep it with the button, or with `keep("lab16.groups")`. From here on `yours` is your class; while the exercise is
# open, it is mqlab's own.
#
# ## The crash matrix on yours
#
# Lab 04a asked what a crash costs. Six orders of a second each; then one process is killed before each step that it
# takes from 76 to 109, while billing is paid, and starts again. First the broker, then billing.

# %% [prediction] lab16.whose_death
# One process is killed at any step and restarted. Whose death makes billing pay orders twice?
#
# - broker: the broker's; its saved offset is old
#   > It is old, but billing still runs and knows where it is. It reports again with the next commit.
# - billing: billing's; what it did since its last report is done again
#   = A running member needs the broker's offset only when it starts. If billing is new, it starts at the last report.
# - same: both; the offset is as old in both cases
#   > It is, but only a member that starts asks for it.
# note: When one machine takes both, both ages add up. That was the largest number of lab 04a.


# %% tags=["setup"]
def six_orders(lab):
    shop = shop_opens(lab)
    for number in range(6):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    shop.shutdown()

    def slowly(messages, context):
        context.sleep("1s")
        return CONSUME_SUCCESS

    billing(lab, slowly, consume_thread_min=1, consume_thread_max=1)
    lab.run_for("45s")


# %%
def paid(lab):
    rows = lab.deliveries("billing", absences=False)
    times = Counter(row.msg_id for row in rows if row.status == CONSUME_SUCCESS)
    twice = sum(count - 1 for count in times.values())
    return f"{6 - len(times)} never, {twice} twice"


# %%
def killed(node, parts):
    return crash_matrix(
        {f"{node} is killed": six_orders},
        node=node,
        outcome=paid,
        only=lambda point: 76 <= point.number < 110,
        seed=7,
        client=no_trace,
        parts=parts,
    )


yours = mybroker.parts(groups=MyGroups)

# %% tags=["explorer"]
broker_dies = killed("broker-a", yours)
broker_dies

# %% tags=["explorer"]
billing_dies = killed("billing-1", yours)
billing_dies


# %%
def most_twice(matrix):
    return max(int(cell.outcome.split()[2]) for cell in matrix.cells())


worst = {"broker": most_twice(broker_dies), "billing": most_twice(billing_dies)}
happened = "same" if len(set(worst.values())) == 1 else max(worst, key=worst.get)
Bars(worst, unit="orders paid twice at worst", title="one process is killed")

# %%
reveal("lab16.whose_death", happened)

# %% [answer] lab16.both_die
# ### Your turn: the machine that takes both
#
# Billing and the broker are on one machine. It fails `AT` seconds after the shop opened, and is back two seconds later.
# Try whole seconds from 15 to 24. Set `AT` to one at which the **most** orders are paid twice. How many are they?
#
# wrong one: That is the best moment, right after a `save`. Try each second, and watch the bars.
# wrong: Count the orders with more than one call in the run with your `AT`.
# note: Billing's offset also travels with each pull, so the broker knew nearly all of it. The disk knew what the last
#   `save` wrote: up to five seconds of orders are missing.

# %% tags=["parameter"]
AT = 15


def machine_fails(at):
    def story(lab):
        shop = shop_opens(lab)
        billing(lab)
        sells(lab, shop, at)
        lab.kill("billing-1")
        lab.kill("broker-a")
        lab.run_for("2s")
        lab.start("broker-a")
        lab.run_for("500ms")
        lab.start("billing-1")
        lab.run_for("40s")

    return story


# %% tags=["picture"]
both = play(machine_fails(AT), seed=7, client=no_trace, parts=yours)
calls = Counter(row.msg_id for row in both.deliveries("billing", absences=False))
Bars(
    Counter(f"calls: {count}" for count in calls.values()),
    unit="orders",
    title=f"{AT} s",
)

# %%
### BEGIN SOLUTION
at_19 = play(machine_fails(19), seed=7, client=no_trace, parts=yours)
answer("lab16.both_die", 9, at_19)
### STARTER
# answer("lab16.both_die", ..., both)
### END SOLUTION

# %% [markdown]
# ## Retries in memory
#
# A message that failed is sent back with its place in the log. The part makes a copy (`copied` adds one to
# `reconsume_times`) and lets it wait for the delay of its level. The broker calls `look` every second. This one has a
# list:


# %% tags=["setup"]
class MemoryRetries:
    """Knows level 3 only, and nothing of the dead: those are yours."""

    def __init__(self, store, disk, delays_ms):
        self.store, self.ten_seconds, self.waiting = store, delays_ms[2], []

    def send_back(self, group, unit, level, most, now_ms):
        self.waiting.append((now_ms + self.ten_seconds, group, copied(unit)))
        return "retry"

    def look(self, now_ms):
        for due_ms, group, copy in list(self.waiting):
            if due_ms <= now_ms:
                self.store.put(f"%RETRY%{group}", 0, copy)
                self.waiting.remove((due_ms, group, copy))


# %% [prediction] lab16.at_the_look
# An order fails for the first time; the delay of level 3 is 10 s. When does billing get it again?
#
# - exact: after 10 s; the part knows the time to the millisecond
#   > It does know. But the broker does not call it at that moment.
# - look: after 10 to 11 s
#   = The part acts when `look` is called, each second. The first call after the delay brings the order.
# - sooner: after 9 to 10 s; the last call before it is the nearest
#   > A retry that comes before its time breaks a rule. The part waits for the first call *after* it.
# note: Any delay is rounded up to the next look. RocketMQ looks every 100 ms.

# %% tags=["explorer"]
in_memory = OwnParts(retries=MemoryRetries)
clock = retry_clock(bank_down=("0s", "5s"), parts=in_memory)
clock

# %%
first_retry_ms = clock.deliveries().rows[1]["at_ms"]
happened = "sooner" if first_retry_ms < 10_000 else "look"
clock.table()

# %%
reveal("lab16.at_the_look", happened if first_retry_ms > 10_100 else "exact")

# %% [prediction] lab16.waits_in_memory
# The order is in the commit log. While its copy waits in the list, the broker is killed and restarted. What happens to
# the retry?
#
# - comes: it comes; the broker finds the failed order in the log
#   > The log has the order. That it *failed* was in the list only, and the group's offset is past it.
# - stops: the world stops; a retry that was promised never comes
#   = Billing has sent it back, got an answer, and committed the offset after it. No member will read it again.
# - again: billing asks for the order again, because it had not succeeded
#   > For billing it is finished: the broker took it over.
# note: If a part takes over a message, it must have written it down before the answer.


# %%
def fails_once(messages, context):
    again = messages[0].reconsume_times > 0
    return CONSUME_SUCCESS if again else RECONSUME_LATER


def killed_while_it_waits(down="1s"):
    def story(lab):
        shop = shop_opens(lab)
        billing(lab, fails_once)
        lab.run_for("25s")
        shop.send(Message("orders", b"a book", keys="order-0"))
        lab.run_for("2s")
        lab.kill("broker-a")
        lab.run_for(down)
        lab.start("broker-a")
        lab.run_for("60s")

    return story


# %%
try:
    play(
        killed_while_it_waits(),
        seed=7,
        client=no_trace,
        parts=in_memory,
    )
    ends = "comes"
except BrokenPart as broken:
    ends = "stops"
    print(broken)
reveal("lab16.waits_in_memory", ends)

# %% [markdown]
# ## Which first: put or note?
#
# So the list is a file. `look` then does two things for a copy that is due: it *puts* it into the retry topic, and it
# *notes* that it is done. A crash may come between the two.

# %% [prediction] lab16.put_or_note
# The broker is killed between the two steps, at the worst moment. Which order of them loses no retry?
#
# - note: note first, then put; so it cannot come twice
#   > Then the file says that it is done, and the copy was never put. No process knows of it any more.
# - put: put first, then note
#   = At worst the next life puts it once more. A listener must tolerate that anyway.
# - both: both; the two files are written within a millisecond
#   > A kill comes at any moment, also between two writes.
# note: First the effect, then the note that it happened. Offsets, outboxes (02b) and streaming checkpoints (12a) follow
#   the same rule.


# %%
def comes(steps, killed_before):
    """Copies in the retry topic after two lives, the first of which ends at a step."""
    noted, copies = False, 0
    for life in (1, 2):
        for number, step in enumerate(() if noted else steps, 1):
            if (life, number) == (1, killed_before):
                break  # kill -9
            if step == "put":
                copies += 1
            else:
                noted = True
    return copies


# %%
ways = {"put first": ("put", "note"), "note first": ("note", "put")}
times = {
    f"{way}, killed before step {at}": comes(steps, at)
    for way, steps in ways.items()
    for at in (1, 2, 3)
}
safe = [way for way in ways if all(comes(ways[way], at) for at in (1, 2, 3))]
Bars(times, unit="copies in the retry topic", title="a crash between two steps")

# %%
reveal("lab16.put_or_note", "both" if len(safe) == 2 else safe[0].split()[0])

# %% [exercise] lab16.retries
# ### Exercise 2: your retries
#
# Write `MyRetries`, with the methods of `MemoryRetries`, for all levels. Where copies wait is up to you: a file that is
# replaced, or a topic of your own that you `put` into and read with `store.get(topic, queue_id, offset, most)`.
#
# - Level 0 means 3 plus the retries so far; a level past the table's end means the last one.
# - A retry comes once, not earlier than its delay, and also in the next life.
# - A message is "dead" after `most` retries or with a level below 0. Its copy is in `%DLQ%group`, queue 0.
#
# hint: With a file: JSON has no bytes, but `unit.hex()` and `bytes.fromhex(text)` convert both ways. Save before
#   `send_back` returns "retry"; in `look`, put first and save after it.
# hint: With a topic: `copied(unit, DUE=str(due_ms), GROUP=group)` gives the copy properties of yours, which
#   `record.decode(unit).property_map` shows. One queue per level keeps each queue in the order of its due times.
# hint: `look` reads each level from where it was last time. Remember how far you are, per level, in a file that you
#   replace after the puts.
# note: RocketMQ's retries wait in `SCHEDULE_TOPIC_XXXX`, a queue per level, so that the first of each queue is always due
#   first. Its notes are the offsets of those queues, in `delayOffset.json`.


# %%
# exercise: lab16.retries
class MyRetries:
    """Messages that failed: they wait, come again, and die."""

    def __init__(self, store, disk, delays_ms):
        """Level n waits delays_ms[n - 1]."""
        ### BEGIN SOLUTION
        self.store, self.disk, self.delays_ms = store, disk, delays_ms
        self.moved = json.loads(disk.load("config/myRetries.json") or b"{}")
        ### END SOLUTION

    def send_back(self, group, unit, level, most, now_ms):
        """A unit failed in a group: returns "retry" or "dead"."""
        ### BEGIN SOLUTION
        times = record.decode(unit).reconsume_times
        if times >= most or level < 0:
            self.store.put(f"%DLQ%{group}", 0, copied(unit))
            return "dead"
        level = min(level or 3 + times, len(self.delays_ms))
        due_ms = now_ms + self.delays_ms[level - 1]
        waits = copied(unit, MY_GROUP=group, MY_DUE=str(due_ms))
        self.store.put("WAITING_RETRIES", level, waits)
        return "retry"
        ### END SOLUTION

    def look(self, now_ms):
        """Each second: what is due goes to %RETRY%group, queue 0."""
        ### BEGIN SOLUTION
        before = dict(self.moved)
        for level in range(1, len(self.delays_ms) + 1):
            number = self.moved.get(str(level), 0)
            for unit in self.store.get("WAITING_RETRIES", level, number, 32):
                waits = record.decode(unit).property_map
                if int(waits["MY_DUE"]) > now_ms:
                    break
                self.store.put(f"%RETRY%{waits['MY_GROUP']}", 0, unit)
                number += 1
            self.moved[str(level)] = number
        if self.moved != before:
            self.disk.replace("config/myRetries.json", json.dumps(self.moved).encode())
        ### END SOLUTION


# %%
check("lab16.retries")

# %% [belief] lab16.copies_in_memory
# question: A copy waits for ten minutes. Where?
# claim: In the memory of the broker.
# refutation: What waits must outlive the broker, or a crash loses the retry.

# %% [belief] lab16.below_zero_waits
# question: A message is sent back with level -1. What happens?
# claim: It comes back without a delay.
# refutation: A level below 0 means that it is dead at once.

# %% [belief] lab16.due_stays_due
# question: A copy is due and was put into the retry topic. What about the next look?
# claim: It is still due, so it is put again.
# refutation: A copy is put once, and must then be forgotten.

# %% [belief] lab16.table_has_every_level
# question: A listener asks for level 6, and the table has five. How long does the message wait?
# claim: It does not; level 6 is an error.
# refutation: As long as at the last level, which stands for all further ones.

# %% [belief] lab16.what_came_is_over
# question: A copy was put into the retry topic. Who must know that after a crash?
# claim: Nobody; it is done.
# refutation: The part. Without a note on the disk, its next life puts every copy there once more.

# %% [belief] lab16.dead_is_dropped
# question: A message is dead. Where is it?
# claim: It was dropped.
# refutation: A copy is in %DLQ%group, and an operator can send it again.

# %% [belief] lab16.first_back_first_again
# question: Two orders fail, one with level 9 and then one with level 1. Which comes first?
# claim: The one that was sent back first.
# refutation: The one whose delay ends first. Wait per level, so that a long delay holds up no short one.

# %% [belief] lab16.copy_is_the_message
# question: What is put into the retry topic?
# claim: The message, as it is.
# refutation: A copy with one more in reconsume_times. Without it no message would ever be dead.

# %% [belief] lab16.retries_at_once
# question: An order has failed. When does its copy go into the retry topic?
# claim: At once; the consumer waits.
# refutation: When the delay of its level is over. Consumers do not wait, they read what is there.

# %% [belief] lab16.one_retry_more
# question: most is 2, and the message comes back with reconsume_times 2. Is it dead?
# claim: No; it is dead when it was given more often than that.
# refutation: It was retried 2 times, which is as often as allowed. Now it is dead.

# %% [belief] lab16.first_is_level_one
# question: A message fails for the first time, with level 0. Which delay does it wait for?
# claim: That of level 1.
# refutation: Level 0 means 3 plus the retries so far, so the first retry waits for level 3.

# %% [markdown]
# Keep it: `keep("lab16.retries")`.
#
# ## The retry clock on yours
#
# Lab 07a's order fails again and again, now on your class. Move the pin to where you expect the third retry, and look
# at the waits. The board takes your own levels as well.

# %%
yours = mybroker.parts(groups=MyGroups, retries=MyRetries)

# %% tags=["explorer"]
your_clock = retry_clock(max_retries=8, parts=yours)
your_clock

# %% [prediction] lab16.late_by
# Eight retries wait for levels 3 to 10, and the delays add up to 1,300 s. By how much is the eighth retry late, at most?
#
# - 1: by one second; the look after its time
#   > One second *each*. The next delay begins at the delivery, not at the time that was planned.
# - 8: by eight seconds
#   = Each of the eight waits is rounded up to a look, and the next one begins where that one ended.
# - none: by nothing; delays are absolute
#   > Each is counted from the moment at which the message was sent back, and that moment is late already.
# note: RocketMQ's looks are 100 ms apart, so its sixteen retries are late by 1.6 s at most. Lab 07a measured that.

# %%
late_s = (your_clock.deliveries().rows[8]["at_ms"] - 1_300_000) / 1000
print(f"the eighth retry is {late_s:.1f} s late")

# %%
reveal("lab16.late_by", "none" if late_s < 0.5 else "1" if late_s < 2 else "8")

# %% [markdown]
# The same failing order as in 07a, with three retries, on your parts: the delivery, its retries, and the dead letter
# that your class has put away.


# %%
def never_pays(lab):
    shop = shop_opens(lab)
    billing(lab, lambda messages, context: RECONSUME_LATER, max_reconsume_times=3)
    lab.run_for("25s")
    shop.send(Message("orders", b"a book", keys="order-0"))
    lab.run_for("3m")


dead_day = play(never_pays, seed=7, client=no_trace, parts=yours)
first_call = dead_day.deliveries("billing", absences=False)[0]
dead_day.waits(first_call, scale="linear")

# %% [answer] lab16.quick_death
# ### Your turn: dead within a minute
#
# An alarm wants to see a dead letter within a minute, and the bank wants three retries. Change `LEVELS` so that the
# third retry comes between 50 and 60 seconds after the first failure. Keep at least five levels. What is the delay of
# level 5 in your table, in seconds?
#
# wrong level3: That is level 3, the first of the three waits.
# wrong sum: That is the sum of the three waits. The question is level 5 alone.
# wrong: Read the fifth entry of your own `LEVELS`.
# note: Levels 1 and 2 do not matter for retries. If you change the table, you change the delays of all groups and of
#   all delayed messages.

# %% tags=["parameter"]
LEVELS = "1s 5s 10s 30s 1m"

quick = retry_clock(levels=LEVELS, max_retries=3, parts=yours)
quick.table()

# %%
### BEGIN SOLUTION
quick = retry_clock(levels="1s 5s 10s 15s 30s", max_retries=3, parts=yours)
answer("lab16.quick_death", 30, quick)
### STARTER
# answer("lab16.quick_death", ..., quick)
### END SOLUTION

# %% [markdown]
# ## Break it: a broker that is down when the time is over
#
# An order fails, and two seconds later the broker is killed. It stays down for `DOWN`. Its retry is due ten seconds
# after the failure.

# %% [answer] lab16.down_for
# ### Your turn: late because it was down
#
# Set `DOWN` to `"30s"` and run the cell. How many whole seconds after the first delivery does billing get the order
# again?
#
# wrong delay: Ten seconds is the delay. The broker was down when it was over.
# wrong sum: The delay is not added to the time that the broker was down. The delay continued while the broker was down.
# wrong: Take the difference of the two `after` times, and round it down.
# note: A delay is a moment, not a waiting time. The first look after the restart finds that it has passed.

# %% tags=["parameter"]
DOWN = "1s"

down = play(killed_while_it_waits(DOWN), seed=7, client=no_trace, parts=yours)
down_rows = down.deliveries("billing", absences=False)
Table(
    {
        "after": f"{(row.started_ms - down_rows[0].started_ms) / 1000} s",
        "status": row.status,
    }
    for row in down_rows
)

# %%
### BEGIN SOLUTION
down = play(killed_while_it_waits("30s"), seed=7, client=no_trace, parts=yours)
first, second = down.deliveries("billing", absences=False)
answer("lab16.down_for", (second.started_ms - first.started_ms) // 1000, down)
### STARTER
# answer("lab16.down_for", ..., down)
### END SOLUTION

# %% [markdown]
# And killed before each step that the broker takes between the two calls, while the copy waits: the order is paid in the
# end.


# %%
def one_fails(lab):
    shop = shop_opens(lab)
    billing(lab, fails_once)
    lab.run_for("25s")
    shop.send(Message("orders", b"a book", keys="order-0"))
    shop.shutdown()
    lab.run_for("60s")


def was_paid(lab):
    rows = lab.deliveries("billing", absences=False)
    times = sum(row.status == CONSUME_SUCCESS for row in rows)
    return f"paid {times} times" if times != 1 else "paid once"


# %% tags=["explorer"]
calm = play(one_fails, seed=7, client=no_trace, parts=yours)
failed, again = calm.deliveries("billing", absences=False)
between = range(failed.ended_ms + 1, again.started_ms + 1)
steps = {step.step for step in calm.journal if step.now_ms in between}
retries_die = crash_matrix(
    {"your retries": one_fails},
    node="broker-a",
    outcome=was_paid,
    only=lambda point: point.number in steps,
    seed=7,
    client=no_trace,
    parts=yours,
)
retries_die

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **One broker.** Offsets of a slave, and groups on two brokers, are RocketMQ's business: each master has its own.
# - **Saved as a whole.** Your file is rewritten each time. With ten thousand groups that is megabytes every five
#   seconds; RocketMQ does the same.
# - **No clock that jumps.** A broker whose clock is set back lets retries wait longer.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | members, heartbeats, closed connections | `ConsumerManager`, `ConsumerGroupInfo`, `ClientHousekeepingService` |
# | offsets, saved every 5 s | `ConsumerOffsetManager`, `consumerOffset.json` |
# | send back | `AbstractSendMessageProcessor.consumerSendMsgBack` |
# | the wait | `ScheduleMessageService`, a queue per level, `delayOffset.json` |
# | the retry topic, the dead letters | `MixAll.getRetryTopic`, `MixAll.getDLQTopic` |

# %% [markdown] tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab16.save_each
# **1.** "Then save the offsets with each commit, and a crash costs nothing." What does that cost, and what does it leave?
#
# answer: A file is replaced for each report of each member. What remains is billing's own age: orders that it has done
#   since its last report. Only a write that contains the payment *and* the offset makes that zero (lab 04b, idempotence).

# %% [reflection] lab16.queue_per_level
# **2.** RocketMQ has a queue of waiting messages per level, and not one sorted by time. Why is that enough?
#
# answer: Within a level every message waits equally long, so they become due in the order in which they came. A queue
#   that only grows is then always sorted, and one offset says how far it is done. Any delay needs another structure:
#   the timing wheel of lab 08c.

# %% [markdown] tags=["reading"]
# ## Next
#
# Four parts are written. So far mqlab has called them. In the [last part](16d-on-the-wire.ipynb) your broker reads
# requests and writes answers itself, and clients that know nothing of this course use it. All labs:
# [index](index.ipynb).

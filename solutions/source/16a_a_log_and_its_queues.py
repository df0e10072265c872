# %% [markdown] tags=["reading"]
# # 16a Your broker: a log and its queues
#
# ## Why
#
# For fifteen labs you have watched someone else's broker. On Monday the team lead says: "Then write one." Before the
# first line is typed, five sentences are on the board:
#
# - "A store is a dictionary of lists. What else is there?"
# - "The number of a message says where it is in the log."
# - "Queues must be saved carefully: without them the log is of no use."
# - "What was written is on the disk."
# - "After a crash we keep whatever can still be read."
#
# None of the five is true. In four notebooks you write a broker of about 400 lines. It starts with what everything else
# stands on: a store that forgets nothing.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need labs [00](00-a-messages-day.ipynb) and [01](01a-what-the-broker-writes.ipynb).
# Afterwards you can
#
# - write a store whose files RocketMQ reads;
# - say what a broker asks of its store, and what must be true after every crash;
# - explain which of its files can be lost without losing a message.
#
# Nearly all the pieces are yours already: you decoded a unit in 01a, followed an entry in 01b, and rebuilt a queue and
# found the end of a torn log in 01c. Here they become one class.

# %%
import struct

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.course.given.lab16 import TrialMachine, tried_store, unit_of_order
from mqlab.course.widgets import crash_matrix
from mqlab.errors import MqlabError
from mqlab.lab.parts import OwnParts, placed, stored_ms
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.queue import show_queue
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.java_hash import tags_code

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %%
from mqlab.course import old_questions

old_questions("lab16")

# %% [markdown]
# ## A store of lists
#
# A broker needs seven methods of its store. Here are the first three. A message arrives as a *unit*, the bytes of lab
# 01a, and `placed` writes its number and its place into it:


# %% tags=["setup"]
class ListLog:
    def __init__(self, disk):
        self.log, self.queues, self.shown, self.new = [], {}, {}, []

    def put(self, topic, queue_id, unit):  # for each message that arrives
        queue = self.queues.setdefault((topic, queue_id), [])
        queue.append(placed(unit, len(queue), len(self.log)))
        self.log.append(queue[-1])
        self.new.append((topic, queue_id, len(queue) - 1))
        return len(queue) - 1, len(self.log) - 1

    def flush(self):  # every 500 ms; under SYNC_FLUSH before each answer
        pass

    def unit_at(self, physical_offset):  # by the id of a message, and for retries
        return self.log[physical_offset]


# %% [markdown]
# `dispatch` is called a millisecond after a `put`. What it returns can be read from then on, by the other three:


# %% tags=["setup"]
class ListStore(ListLog):
    def dispatch(self):
        new, self.new = self.new, []
        self.shown.update({(topic, queue): number + 1 for topic, queue, number in new})
        return new

    def max_offset(self, topic, queue_id):  # one past the last that can be read
        return self.shown.get((topic, queue_id), 0)

    def get(self, topic, queue_id, queue_offset, most):  # for each pull
        stop = min(queue_offset + most, self.max_offset(topic, queue_id))
        return self.queues.get((topic, queue_id), [])[queue_offset:stop]

    def offset_at(self, topic, queue_id, ms):  # when an operator resets a group
        units = self.get(topic, queue_id, 0, self.max_offset(topic, queue_id))
        return sum(stored_ms(unit) < ms for unit in units)


# %% [markdown]
# `Lab(parts=…)` and `play(story, parts=…)` put it into the broker, in place of mqlab's own store. Name server, shop,
# network and billing stay as they are. Here is lab 00's day:


# %%
ORDERS = {"order-1": "книга", "order-2": "三本书", "order-3": "🎁 for Anna"}


def handle(messages, context):
    context.sleep("200ms")
    return CONSUME_SUCCESS


def billing(lab):
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(handle)
    consumer.start()


# %% [prediction] lab16.lists_day
# The broker has lists in place of its store. What do the shop and billing notice during lab 00's day?
#
# - nothing: nothing; three answers, three deliveries
#   = What they see are numbers, units and the moment at which a message can be read. The lists do all of that.
# - refused: the shop gets no SUCCESS, because nothing is on a disk
#   > By default SUCCESS does not wait for a disk, in RocketMQ either (lab 01c).
# - unordered: billing gets the orders without their order
#   > A queue is a list that only grows, and this store has such lists.
# note: A store is what it does, as long as nothing crashes. The interface is in docs/your-broker.md.


# %%
def noon(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for key, body in ORDERS.items():
        shop.send(Message("orders", body.encode(), keys=key))
        lab.run_for("20ms")
    billing(lab)
    lab.run_for("30s")


day = play(noon, seed=7, client=no_trace, parts=OwnParts(store=ListStore))
done = [row.status for row in day.deliveries("billing", absences=False)]
reveal("lab16.lists_day", "nothing" if done == [CONSUME_SUCCESS] * 3 else "unordered")

# %%
day.timeline()

# %% [prediction] lab16.lists_killed
# In the evening the broker's process is killed and started again a second later. What happens on the store of lists?
#
# - again: billing gets the three orders once more
#   > From where? The lists were in the process that was killed.
# - goes_on: nothing; billing continues at 3, and the next order gets number 3
#   > The new process counts from 0. The next order would be number 0, and billing would never read it.
# - stops: the world stops; three orders that had SUCCESS are gone
#   = mqlab remembers what a part was given to keep. A part that breaks a rule stops the world at that step.
# note: The message has four lines: the rule, the call, expected and found. You will meet it while you write your own.


# %%
def evening(lab):
    noon(lab)
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("20s")


try:
    play(evening, seed=7, client=no_trace, parts=OwnParts(store=ListStore))
    ends = "goes_on"
except BrokenPart as broken:
    ends = "stops"
    print(broken)
reveal("lab16.lists_killed", ends)

# %% [markdown]
# So the first sentence of the board falls. What a store *does* takes thirty lines of lists; what it must *survive* takes
# the rest of this notebook.

# %% [markdown]
# ## A log of many files
#
# RocketMQ's answer is one log for all messages of all topics, in files of equal size. A file's name is the place of its
# first byte, in twenty digits. Here a file has 1,024 bytes.


# %%
def five_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(5):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("1s")


small = {"mapped_file_size_commit_log": 1024}

# %% [prediction] lab16.fifth
# Each of five orders takes 230 bytes, and a log file has 1,024. Four end at byte 920. Where does the fifth order begin?
#
# - 920: at byte 920; its end goes into the second file {lab16.split_in_two}
#   > A unit is never split over two files. What is left becomes a BLANK, and the unit begins at the next file.
# - 1024: at byte 1,024; the rest of the first file stays blank
#   = 104 bytes are left and 230 are needed. The fifth order begins the second file.
# - 0: at place 0, the first byte of the second file {lab16.place_in_file}
#   > A place counts from the first byte of the log, through all its files.
# note: The two numbers of a message have nothing to do with each other: the number counts messages of one queue, the
#   place counts bytes of the whole log.

# %%
rolled = play(five_orders, seed=7, client=no_trace, broker=small)
orders = list(rolled.store().messages("orders"))
rolled.store_map(orders[4])

# %%
reveal("lab16.fifth", orders[4].physical_offset)

# %% [markdown]
# What is left of the first file is a *BLANK*. It needs 8 bytes for its own length and magic. RocketMQ keeps them free in
# every file, so a unit fits only if 8 bytes are left after it.

# %% [exercise] lab16.next_place
# ### Exercise 1: where the next unit begins
#
# Write `next_place`. The log ends at `end`, a unit of `size` bytes comes, and each file has `file_bytes` bytes.
#
# hint: How many bytes are left in the file in which `end` is? `file_bytes - end % file_bytes`.
# hint: The unit fits if `size + 8` is at most what is left. Then it begins at `end`, and nothing is blank.
# hint: Otherwise all that is left is blank, and the unit begins at `end` plus what is left.
# note: This is the first half of `put`. RocketMQ answers END_OF_FILE here, makes the next file and tries again.


# %%
# exercise: lab16.next_place
def next_place(end, size, file_bytes):
    """Where a unit begins that comes next, and how many bytes are blank before it.

    Returns a tuple of two: its place in the log, and the bytes of the BLANK; 0 if
    the unit fits into the file.
    """
    ### BEGIN SOLUTION
    room = file_bytes - end % file_bytes
    return (end, 0) if size + 8 <= room else (end + room, room)
    ### END SOLUTION


# %%
check("lab16.next_place")

# %% [belief] lab16.fills_the_file
# question: A file has 300 bytes left, and a unit of 300 bytes comes. Where does it begin?
# claim: Where the log ends; it fits exactly.
# refutation: A file always keeps 8 bytes free for a BLANK, so a unit fits only if 8 bytes are left after it.

# %% [answer] lab16.blank
# ### Your turn: four orders to a file
#
# A file has 2,048 bytes here. Change `BODY`, the number of letters in each order, until exactly four orders are in the
# first file. How many bytes of it are blank?
#
# wrong unit: That is the size of one unit. The BLANK is what four of them leave of 2,048.
# wrong: Take the place of the fifth order, and subtract where the fourth one ends.
# note: On a real broker a file has 1 GiB, and a message at most 4 MiB: at most 0.4 % of a log is blank.

# %% tags=["parameter"]
BODY = 40


def log_of(body):
    def eight_orders(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(8):
            shop.send(Message("orders", b"x" * body, keys=f"order-{number}"))
        lab.run_for("1s")

    files = {"mapped_file_size_commit_log": 2048}
    return play(eight_orders, seed=7, client=no_trace, broker=files)


# %% tags=["picture"]
my_log = log_of(BODY)
Table(
    {
        "order": order.keys,
        "from": order.physical_offset,
        "to": order.physical_offset + order.store_size,
    }
    for order in my_log.store().messages("orders")
)

# %%
### BEGIN SOLUTION
my_log = log_of(260)
answer("lab16.blank", my_log.store().blanks()[0][1], my_log)
### STARTER
# answer("lab16.blank", ..., my_log)
### END SOLUTION

# %% [markdown]
# ## Step 1: put
#
# `put` finds the place, writes number and place into the unit, writes the unit into the file, and counts. Two counters
# are enough: where the log ends, and the next number of each queue. Three orders go to queue 0, to queue 1, and to
# queue 0 again:


# %%
def three_orders(lab):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    first, second = sorted(shop.fetch_publish_message_queues("orders"))
    for number, queue in enumerate((first, second, first)):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"), queue)
    lab.run_for("1s")


# %% [prediction] lab16.third
# What does `put` return for the third order: its number, and its place? (Each unit has 230 bytes.)
#
# - 2 and 460: number 2, place 460
#   > It is the third message of the store, but the second of its queue. Each queue counts its own messages from 0.
# - 1 and 460: number 1, place 460
#   = Queue 0 has one message before it; the log has two, one after another.
# - 1 and 230: number 1, place 230
#   > That is where the message of queue 1 is.
# note: Each queue has numbers of its own, and all queues share one log. A broker writes in one place, however many
#   queues it has.

# %%
lab = play(three_orders, seed=7, client=no_trace)
puts = [values for _, values in lab.journal.changes("message.stored")]
third = puts[2]
reveal("lab16.third", f"{third['queue_offset']} and {third['physical_offset']}")

# %% tags=["picture"]
Table(puts, columns=["queue_id", "queue_offset", "physical_offset", "size"])

# %% [markdown]
# Your store gets a `Disk`. `create` makes a file of zeros, `write` writes into it, `sync` waits until the file would
# survive a power cut. This one is in a `TrialMachine` whose power you can cut. Three orders are written by hand:

# %%
LOG = f"commitlog/{0:020d}"
machine = TrialMachine()
disk = machine.disk()
disk.create(LOG, 4096)
place = 0
for number in range(3):
    unit = placed(unit_of_order(number), number, place)
    disk.write(LOG, place, unit)
    place += len(unit)
print("the log ends at", place)

# %% [markdown]
# How does a process that has just started find what is there? It walks. `record.check` says what is at a place: a
# UNIT with its size, a BLANK, or neither. You wrote this as `valid_end` in 01c, so it is given here:


# %%
def whole_units(disk):
    """Place and unit, one after the other, up to the first that is not whole."""
    data, place = disk.read(LOG, 0, 4096), 0
    while (found := record.check(data, place)).kind == "UNIT":
        yield place, data[place : place + found.size]
        place += found.size


def walked(disk):
    rows = [(place, record.decode(unit)) for place, unit in whole_units(disk)]
    return [
        {"place": place, "number": one.queue_offset, "key": one.property_map["KEYS"]}
        for place, one in rows
    ]


Table(walked(disk))

# %% [prediction] lab16.synced
# Three orders were written and none was synced. Now the log is synced, a fourth order is written, and the power fails.
# How many orders are on the disk?
#
# - 4: four; what was written is on the disk
#   > Written means: in the memory of the machine. Only a sync puts it on the disk.
# - 3: three
#   = The page has on the disk what it had at the last sync.
# - 0: none; all are in one page, and that page was not synced again
#   > The disk still has the page as it was at the sync. What is lost is what was written since then.
# note: `flush` is the broker's way to say "sync now". Under SYNC_FLUSH it calls it before each SUCCESS, by default every
#   500 ms.

# %%
disk.sync(LOG)
disk.write(LOG, place, placed(unit_of_order(3), 3, place))
machine.power_cut()
disk = machine.disk()
Table(walked(disk))

# %%
reveal("lab16.synced", len(walked(disk)))

# %% [markdown]
# ## Step 2: dispatch
#
# `dispatch` walks over what is new in the log. For each unit it writes an entry of 20 bytes into the queue's file:
# place, size, code of the tag. From then on the message can be read. `max_offset` is a table in memory.

# %% [prediction] lab16.readable
# The shop has SUCCESS for an order, and in the same millisecond, before dispatch, the broker is killed. It is started
# again. Does billing get the order?
#
# - no: no; it has no entry, so it is in the log for nothing
#   > The log has the whole message: topic, queue, number. The first dispatch after the restart makes the entry.
# - resent: only if the shop sends it again
#   > The shop has SUCCESS and forgets the order, so it does not send it again.
# - yes: yes; the first dispatch after the start walks over the log
#   = An entry can always be made from its unit. A unit cannot be made from anything.
# note: An entry can be made from its unit at any time, so queues need no care: they may be lost, late or torn. Write
#   them, sync them with the rest, and make them again after each start.


# %%
def killed_before_dispatch(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.producer("shop").send_async(Message("orders", b"a book", keys="order-0"))
    lab.run_until("message.stored")
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    billing(lab)
    lab.run_for("30s")


lab = play(killed_before_dispatch, seed=7, client=no_trace)
got = len(lab.deliveries("billing", absences=False))
lab.store().queue("orders", 0).hexdump(0)

# %%
reveal("lab16.readable", "yes" if got else "no")

# %% [markdown]
# Entry *n* of a queue is at byte 20 · *n*, and these files roll as well: `consumequeue/orders/0/`, then twenty digits
# for the byte with which the file begins. In 01c you made such entries with `struct.pack(">qiq", …)`.

# %% [markdown]
# ## Step 3: get
#
# `get` goes the other way: from the number to the entry, from the entry to the unit. It returns at most as many as were
# asked for, and nothing that was not dispatched.
#
# An operator who resets a group asks for a time: `offset_at` returns the first message that was stored at that time or
# later. Times in a queue only grow.

# %% [prediction] lab16.looks
# A queue has a million messages, and no table of times. How many of them must `offset_at` read?
#
# - 500000: half a million on average
#   > That is what reading from the front costs. The times are in order, so one look in the middle excludes half of them.
# - 20: about 20
#   = Each look halves what is left, and a million can be halved 20 times.
# - 1: one; the number can be computed from the time
#   > Messages do not come at a fixed rate. But a look in the middle says in which half the answer is.
# note: RocketMQ does the same, first over the queue's files and then over the entries of one file.


# %%
def looks_of(count):
    """How many messages are read when all of them are later than the time."""
    low, high, looks = 0, count, 0
    while low < high:
        half = (low + high) // 2
        looks += 1
        high = half  # the one in the half is late enough
    return looks


Bars({f"{10**power:,} messages": looks_of(10**power) for power in range(1, 8)})

# %%
reveal("lab16.looks", looks_of(1_000_000))

# %% [answer] lab16.halvings
# ### Your turn: ten looks
#
# Change `COUNT`: what is the largest queue in which ten looks are always enough?
#
# wrong one_more: With one message more than ten looks can tell apart, an eleventh is needed.
# wrong half: Ten looks are enough there. Try a larger queue.
# wrong: The cell shows your number and one more: the first must need 10 looks, the second 11.
# note: One look tells apart two halves and costs one read. With 1,023 messages there are 1,024 possible answers, one of
#   them "later than all".

# %% tags=["parameter"]
COUNT = 300

my_looks = {count: looks_of(count) for count in (COUNT, COUNT + 1)}
Bars({f"{count:,} messages": looks for count, looks in my_looks.items()}, unit="looks")

# %%
### BEGIN SOLUTION
answer("lab16.halvings", 1023, {count: looks_of(count) for count in (1023, 1024)})
### STARTER
# answer("lab16.halvings", ..., my_looks)
### END SOLUTION

# %% [markdown]
# ## Step 4: recovery
#
# Your store is made once per process, with whatever is on the disk then. `__init__` walks over the log, counts what put
# has to know, and stops at the first unit that is not whole. Here are five orders; a byte in the body of the third is
# wrong, as after a power cut that took a page.


# %%
def five_on_a_disk():
    """Five orders of equal size; their places."""
    disk, place, places = TrialMachine().disk(), 0, []
    disk.create(LOG, 4096)
    for number in range(5):
        unit = placed(unit_of_order(number), number, place)
        disk.write(LOG, place, unit)
        places.append(place)
        place += len(unit)
    return disk, places


def torn_at(number):
    disk, places = five_on_a_disk()
    in_the_body = places[number] + 88  # lab 01c: the body begins at byte 88
    disk.write(LOG, in_the_body, b"?")
    return disk, places


# %% [prediction] lab16.torn_end
# The third order is torn, the fourth and the fifth are whole. With how many orders does the broker start?
#
# - 4: four; only the torn one is lost
#   > Then number 2 would be missing between 1 and 3, and get has nothing to return for it.
# - 2: two
#   = The log ends at the first unit that is not whole, whatever comes after it.
# - 0: none; the log is damaged
#   > What is before the hole is whole, and was acknowledged.
# note: A queue without holes is worth more than two orders that were never promised: they were written, but not synced.

# %% tags=["picture"]
disk, places = torn_at(2)
Table(walked(disk))

# %%
reveal("lab16.torn_end", len(walked(disk)))

# %% [prediction] lab16.leftover
# The log ends after the second order now. A new order of the same size comes and is written there. The broker is killed
# once more. With how many orders does it start?
#
# - 3: three; two old ones and the new one
#   > The bytes of the old fourth and fifth order are still there, and the walk arrives at them.
# - 5: five; the old fourth and fifth are back
#   = The new unit closes the gap. After it the walk meets two old, whole units.
# - 2: two; the new order is on a damaged place
#   > The place is not damaged. The new unit was written over the torn one and is whole.
# note: Ghosts: messages that the last life declared lost, with numbers that new messages may have got meanwhile. So
#   recovery writes zeros over everything after the end.

# %%
disk.write(LOG, places[2], placed(unit_of_order(7), 2, places[2]))
Table(walked(disk))

# %%
reveal("lab16.leftover", len(walked(disk)))

# %% [markdown]
# With zeros first, as recovery must do it:

# %% tags=["picture"]
disk, places = torn_at(2)
disk.write(LOG, places[2], bytes(4096 - places[2]))
disk.write(LOG, places[2], placed(unit_of_order(7), 2, places[2]))
Table(walked(disk))

# %% [exercise] lab16.store
# ### Exercise 2: your store
#
# Write `MyStore`, with the seven methods of `ListStore`, on the files of a disk. You have `record.check`, `blank` and
# `decode`, `placed`, `stored_ms`, `tags_code` and `struct`. `disk.names("commitlog")` lists files, `disk.size(name)` is 0
# for a missing one, and one call reads or writes at most half a megabyte.
#
# Go step by step: the cell below the exercise tries each step alone, at any time. The check then puts your class into a
# broker that is killed, loses its power, and has a torn end. Each promise that you keep gives points.
#
# hint: Begin with a method that writes into the log at a place: which file (`place - place % LOG_BYTES`, twenty digits),
#   which byte in it. Make the file if its size is 0, and remember its name for `flush`.
# hint: Write the walk once, as a generator `(place, unit)` from a place on: it serves `dispatch` (from where the last one
#   ended) and recovery (from 0). A BLANK leads to the next file, a file that is not there ends the log.
# hint: Recovery: `numbers[topic, queue_id] = queue_offset + 1` and `end = place + len(unit)` for each unit, then zeros
#   from `end` to the end of its file and over all later files. `max_offset` stays 0 until dispatch has walked.
# note: This is CommitLog, ConsumeQueue and CommitLogDispatcher in a hundred lines. RocketMQ adds the index, a checkpoint
#   that shortens the walk, and threads.


# %%
# exercise: lab16.store
LOG_BYTES, QUEUE_BYTES = 1 << 18, 20_000  # a log file; a file of a queue: 1,000 entries


class MyStore:
    """A log and its queues."""

    ### BEGIN SOLUTION
    def __init__(self, disk) -> None:
        """Step 4: what is on the disk is what the last life has left."""
        self.disk = disk
        self.end = self.dispatched = 0  # where the log ends; how far dispatch came
        self.numbers, self.readable = {}, {}  # per queue: the next number; max_offset
        self.unsynced = set()
        # 1. Count what is whole.
        for place, unit in self.units_from(0):
            one = record.decode(unit)
            self.numbers[one.topic, one.queue_id] = one.queue_offset + 1
            self.end = place + len(unit)
        # 2. Whatever is behind the end must never be read again.
        for name in disk.names("commitlog"):
            begin = int(name.rpartition("/")[2])
            keeps = min(max(0, self.end - begin), LOG_BYTES)
            self.write(name, LOG_BYTES, keeps, bytes(LOG_BYTES - keeps))
        self.flush()

    def put(self, topic, queue_id, unit) -> tuple[int, int]:
        """Step 1. Returns (queue_offset, physical_offset)."""
        # 1. A unit is never split: if it does not fit, the rest of the file is blank.
        room = LOG_BYTES - self.end % LOG_BYTES
        if len(unit) + 8 > room:
            self.write_log(self.end, record.blank(room))
            self.end += room
        # 2. Its number in the queue and its place in the log are written into it.
        number, place = self.numbers.get((topic, queue_id), 0), self.end
        self.write_log(place, placed(unit, number, place))
        self.end += len(unit)
        self.numbers[topic, queue_id] = number + 1
        return number, place

    def flush(self) -> None:
        """Step 1. What was put survives a power cut from now on."""
        for name in sorted(self.unsynced):
            self.disk.sync(name)
        self.unsynced.clear()

    def dispatch(self) -> list[tuple[str, int, int]]:
        """Step 2. Returns the new messages, [(topic, queue_id, queue_offset)]."""
        new = []
        for place, unit in self.units_from(self.dispatched):
            one = record.decode(unit)
            code = tags_code(one.property_map.get("TAGS"))
            entry = struct.pack(">qiq", place, len(unit), code)
            name, position = self.entry_of(one.topic, one.queue_id, one.queue_offset)
            self.write(name, QUEUE_BYTES, position, entry)
            self.readable[one.topic, one.queue_id] = one.queue_offset + 1
            self.dispatched = place + len(unit)
            new.append((one.topic, one.queue_id, one.queue_offset))
        return new

    def max_offset(self, topic, queue_id) -> int:
        """Step 3. One past the last message that was dispatched."""
        return self.readable.get((topic, queue_id), 0)

    def get(self, topic, queue_id, queue_offset, most) -> list[bytes]:
        """Step 3. The units from there on, at most that many."""
        units = []
        end = min(queue_offset + most, self.max_offset(topic, queue_id))
        for number in range(queue_offset, end):
            name, position = self.entry_of(topic, queue_id, number)
            place, _, _ = struct.unpack(">qiq", self.disk.read(name, position, 20))
            units.append(self.unit_at(place))
        return units

    def unit_at(self, physical_offset) -> bytes:
        """Step 3. The unit that begins there."""
        name, position = self.log_file(physical_offset)
        size = int.from_bytes(self.disk.read(name, position, 4), "big")
        return self.disk.read(name, position, size)

    def offset_at(self, topic, queue_id, ms) -> int:
        """Step 3. The first message stored at ms or later, else the queue's end."""
        low, high = 0, self.max_offset(topic, queue_id)
        while low < high:
            middle = (low + high) // 2
            (unit,) = self.get(topic, queue_id, middle, 1)
            if stored_ms(unit) < ms:
                low = middle + 1
            else:
                high = middle
        return low

    def log_file(self, place):
        """The file of a place, and the byte in it."""
        return f"commitlog/{place - place % LOG_BYTES:020d}", place % LOG_BYTES

    def entry_of(self, topic, queue_id, number):
        """The file of an entry, and the byte in it."""
        start, position = divmod(20 * number, QUEUE_BYTES)
        return f"consumequeue/{topic}/{queue_id}/{start * QUEUE_BYTES:020d}", position

    def write_log(self, place, data):
        name, position = self.log_file(place)
        self.write(name, LOG_BYTES, position, data)

    def write(self, name, size, position, data):
        if not self.disk.size(name):
            self.disk.create(name, size)
        self.disk.write(name, position, data)
        self.unsynced.add(name)

    def units_from(self, place):
        """(place, unit) from a place on, to the first that is not whole."""
        name, position = self.log_file(place)
        while self.disk.size(name):
            found = record.check(self.disk.read(name, 0, LOG_BYTES), position)
            if found.kind == "UNIT":
                yield place, self.disk.read(name, position, found.size)
            elif found.kind != "BLANK":
                return
            place += found.size
            name, position = self.log_file(place)

    ### STARTER
    # def __init__(self, disk): ...  # step 4, and whatever you count
    # def put(self, topic, queue_id, unit): ...  # 1: (queue_offset, physical_offset)
    # def flush(self): ...  # 1
    # def dispatch(self): ...  # 2: [(topic, queue_id, queue_offset)], what is new
    # def max_offset(self, topic, queue_id): ...  # 3
    # def get(self, topic, queue_id, queue_offset, most): ...  # 3: units
    # def unit_at(self, physical_offset): ...  # 3: the unit that begins there
    # def offset_at(self, topic, queue_id, ms): ...  # 3: a number
    ### END SOLUTION


# %% [markdown]
# Each step alone, on a disk of its own. (As long as you have not begun, the table shows what the store of lists returns.)

# %% tags=["picture"]
tried_store(mybroker.parts(store=MyStore).store or ListStore)

# %%
check("lab16.store")

# %% [belief] lab16.dispatched_again
# question: dispatch was called before. Where does it begin now?
# claim: At the beginning of the log.
# refutation: dispatch begins where it ended the last time. What was returned once is not new.

# %% [belief] lab16.unit_as_it_came
# question: A unit comes to put. Are its number and its place in it?
# claim: They are; the broker has written them.
# refutation: put finds both, and placed writes them into the unit before it is stored.

# %% [belief] lab16.number_of_the_store
# question: The store has 40 messages, queue 1 has none. What number does the first message of queue 1 get?
# claim: 40; it is the 41st message.
# refutation: 0. Each queue counts its own messages.

# %% [belief] lab16.readable_at_once
# question: A message was put and not dispatched. What is max_offset?
# claim: One past it; it is stored.
# refutation: One past the last message that was dispatched. What has no entry cannot be read.

# %% [belief] lab16.written_is_safe
# question: Every unit was written into its file. What is left to do in flush?
# claim: Nothing; it is on the disk.
# refutation: `disk.write` survives a kill. Only `disk.sync` makes it survive a power cut.

# %% [belief] lab16.starts_empty
# question: A new life of the broker begins. Where does its log end?
# claim: At 0; it is a new store.
# refutation: At the end of the last whole unit on the disk. A put at 0 writes over what was acknowledged.

# %% [belief] lab16.tail_is_harmless
# question: Recovery has found the end of the log. What about the bytes after it?
# claim: Nothing; the next put writes over them.
# refutation: It may write over a part of them. Whole units after that part are then walked again, with old numbers.

# %% [belief] lab16.strictly_later
# question: offset_at is asked for 10:00, and a message was stored at 10:00 exactly. Is it the answer?
# claim: No; the answer is later than the time.
# refutation: The answer is the first message stored at that time or later.

# %% [markdown]
# When it passes, keep it: press *Keep it for my broker* under the check, or run `keep("lab16.store")`. It becomes the
# file `mybroker/store.py` next to your notebooks. The next notebooks use it from there, `play(story, mine=True)` runs
# any story on it, and `mqlab progress` lists it.
#
# ## The same day on yours
#
# From here on `yours` is your store. (While the exercise is open it is mqlab's own, so that every cell runs.) Lab 00's
# day once more, with the kill in the evening that the lists did not survive:

# %%
yours = mybroker.parts(store=MyStore)
your_day = play(evening, seed=7, client=no_trace, parts=yours)
Table(
    your_day.deliveries("billing", absences=False),
    columns=["queue_offset", "client", "status"],
)

# %%
show_queue(your_day, "orders")

# %% [markdown]
# These are the files that your class has written, and how they lead to each other. The map is made by the same reader
# that `mqlab inspect` uses:

# %%
_, order_2, _ = your_day.store().messages("orders")
your_day.store_map(order_2)

# %%
your_day.store().hexdump(order_2.physical_offset)

# %% [markdown]
# ## Every crash
#
# One kill in one evening says little. A short day: the shop sends three orders, `PAUSE` milliseconds apart, and notes
# which of them were answered with SUCCESS. Here the broker is killed before each step that it takes between the first
# send and the pull that brings billing the orders (steps 24 to 69 of the day; in the others nothing new can be lost).
# An order may be refused while the broker is down. It must not be acknowledged and then lost.


# %% tags=["setup"]
def sends_three(pause_ms):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        billing(lab)
        shop, lab.acknowledged = lab.producer("shop"), set()
        for number in range(3):
            try:
                result = shop.send(Message("orders", b"a book", keys=f"order-{number}"))
                lab.acknowledged.add(result.msg_id)
            except MqlabError:
                pass  # refused: the shop knows
            lab.run_for(f"{pause_ms}ms")
        lab.run_for("40s")

    return story


# %% tags=["setup"]
def outcome(lab):
    rows = lab.deliveries("billing", absences=False)
    got = {row.msg_id for row in rows if row.status == CONSUME_SUCCESS}
    return f"{len(lab.acknowledged - got)} acknowledged and lost"


def crashed(how, pause_ms=20, **broker):
    story = {"your store": sends_three(pause_ms)}
    world = {"seed": 7, "client": no_trace, "broker": broker, "parts": yours}
    asked = {"node": "broker-a", "how": how, "outcome": outcome}
    return crash_matrix(
        story, only=lambda point: 24 <= point.number < 70, **asked, **world
    )


# %% tags=["explorer"]
killed = crashed("kill")
killed

# %% [prediction] lab16.power_async
# Now the power of the machine fails instead, before each of the same steps. The flush policy is the default,
# ASYNC_FLUSH. How does it end?
#
# - stops: the world stops; a rule is broken when an acknowledged order is gone
#   > The rule says: what was flushed survives. Under ASYNC_FLUSH the broker has not called your flush before the
#   > answer.
# - lost: acknowledged orders are lost at some points, and no rule is broken
#   = Your store kept its promise. The broker's SUCCESS promised less than the shop believed.
# - nothing: nothing is lost; put has written every order
#   > Written into the memory of the machine. It takes `flush` to put it on the disk.
# note: The promise of a store is made of two methods: put survives a kill, flush survives the power. Which of the two an
#   answer waits for is the broker's business.

# %% tags=["explorer"]
cut = crashed("power_off")
cut

# %%
worst = max(int(cell.outcome[0]) for cell in cut.cells())
cut.table()

# %%
reveal("lab16.power_async", "lost" if worst else "nothing")

# %% [answer] lab16.pause
# ### Your turn: how much can be lost
#
# (For this question exercise 2 must be done.) The broker calls your `flush` every 500 ms. Increase `PAUSE`, in steps of
# 100 ms, until no power cut loses more than one acknowledged order. Which is the smallest such `PAUSE`? (The cell also
# runs the day with 100 ms less.)
#
# wrong less: With that pause a power cut still loses two orders at some point. Look at the outcomes again.
# wrong: With your number no power cut may lose two orders, and with 100 less one must.
# note: What a power cut can take is what came since the last flush: half a second of orders, whatever the rate. With
#   SYNC_FLUSH it takes nothing, and every answer waits for the disk. Try `flush_disk_type="SYNC_FLUSH"`.

# %% tags=["parameter"]
PAUSE = 100

paused = {pause: crashed("power_off", pause) for pause in (PAUSE - 100, PAUSE)}
Table(
    {"pause_ms": pause, "outcome": row["outcome"], "points": row["points"]}
    for pause, matrix in paused.items()
    for row in matrix.table()
)

# %%
### BEGIN SOLUTION
paused = {pause: crashed("power_off", pause) for pause in (400, 500)}
answer("lab16.pause", 500, paused)
### STARTER
# answer("lab16.pause", ..., paused)
### END SOLUTION

# %% [markdown]
# ## Break it: a page of your log
#
# As in 01c: twelve orders of nearly a page each (4 KiB), no flush yet, the power fails, and the disk has all pages of
# your log but one.

# %% tags=["parameter"]
MISSING = 5


def without_page(missing):
    def page_is_lost(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(12):
            shop.send(Message("orders", b"a book" * 628, keys=f"order-{number:02}"))
        lab.kill("broker-a")
        lab.broker().files.power_cut(keep=lambda part: part.page != missing)
        lab.start("broker-a")

    return play(page_is_lost, seed=7, client=no_trace, parts=yours)


# %% tags=["picture"]
hole = without_page(MISSING)
left = hole.broker().store.max_offset("orders", 0)
Bars({f"without page {MISSING}": left}, unit="orders left", title="twelve orders")

# %% [answer] lab16.hole
# ### Your turn: the page that costs least
#
# Change `MISSING` in the cell above, from 0 to 11. Which page must be missing so that as many of the twelve orders as
# possible are left, and not all of them?
#
# wrong first: Page 0 costs everything: the log ends where it begins.
# wrong: Try the next page. How many are readable?
# note: Whatever comes after the hole is gone, so the last page costs least. That is recovery's rule, and your class has
#   it now.

# %%
### BEGIN SOLUTION
hole = without_page(11)
answer("lab16.hole", 11, hole)
### STARTER
# answer("lab16.hole", ..., hole)
### END SOLUTION

# %% [markdown]
# ## Others read your files
#
# Your broker is switched off for good. Its directory has log and queues in RocketMQ's form, and nothing else of
# RocketMQ's store: no checkpoint, no index, no `abort`.

# %% [prediction] lab16.foreign
# RocketMQ's store, as this course has it, opens the directory that your class has written. What happens?
#
# - refuses: it refuses; files are missing
#   > Everything but the log can be made from the log. Missing files are made.
# - empty: it starts empty; without a checkpoint it does not know where to begin
#   > Without a checkpoint recovery begins with the first file and walks.
# - goes_on: it has your orders, and the next one gets the next number
#   = Form is all that a reader knows of you.
# note: That is why the form of files and frames is worth copying: a reader does not care who wrote them.

# %%
import shutil
import tempfile

from mqlab.rocketmq.store import MessageStore

your_day.close()
with tempfile.TemporaryDirectory() as folder:
    theirs = shutil.copytree(your_day.store().directory, f"{folder}/store")
    with MessageStore.open(theirs) as store:
        print(store.recovery_report)
        result = store.put(Message("orders", b"a lamp", keys="theirs"), queue_id=0)
        found = store.get("orders", queue_id=0, queue_offset=0, max_nums=32)
        rows = [
            {"number": one.queue_offset, "keys": one.keys} for one in found.messages()
        ]
Table(rows)

# %%
reveal("lab16.foreign", "goes_on" if result.queue_offset == 3 else "empty")

# %% [markdown]
# Here is a whole broker without any part of yours, on a copy of the same directory. A new group reads from the
# beginning:


# %%
def reads_yours(lab):
    billing(lab)
    lab.run_for("30s")


taken_over = play(
    reads_yours,
    seed=7,
    client=no_trace,
    stores={"broker-a": your_day.store().directory},
)
taken_over.timeline()

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **One thread.** RocketMQ puts, flushes and dispatches in threads of their own, and orders them with locks. Your class
#   is called by one.
# - **Your walk begins at 0.** With a terabyte of log that takes hours. RocketMQ's checkpoint says from which file on
#   queues and index may lack something.
# - **Nothing is deleted.** Retention (01c) removes the oldest files of the log, and `get` must then say where a queue
#   begins.
# - **A page is lost as a whole here.** A real disk may write half a page. The check of a unit's length, magic and body
#   finds that as well.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | put, and the BLANK | `CommitLog.asyncPutMessage`, `AppendMessageCallback.doAppend` (END_OF_FILE) |
# | the next number of a queue | `QueueOffsetOperator`, a table in memory |
# | dispatch | `ReputMessageService`, `CommitLogDispatcherBuildConsumeQueue` |
# | the entry | `ConsumeQueue.putMessagePositionInfo` |
# | get | `DefaultMessageStore.getMessage` |
# | the offset of a time | `ConsumeQueue.getOffsetInQueueByTime` |
# | recovery, and the zeros | `CommitLog.recoverAbnormally`, `MappedFileQueue.truncateDirtyFiles` |
# | flush | `CommitLog.FlushRealTimeService`, `GroupCommitService` |

# %% [markdown] tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab16.one_log
# **1.** Each queue could have a log of its own, and `dispatch` would be superfluous. What would that cost?
#
# answer: A write and a sync in another file for each queue. With ten thousand queues the disk writes at ten thousand
#   places, and a flush waits for all of them. One log is one place to write and one sync for all messages that came
#   together. Kafka has a log per partition, and is slower with very many partitions.

# %% [reflection] lab16.which_file
# **2.** You may save one directory of a dying machine: `commitlog`, `consumequeue` or `config`. Which one, and what is
# lost with the others?
#
# answer: `commitlog`: all messages and all queues can be made from it. Without `consumequeue` nothing is lost but the time
#   to make it. Without `config` the messages are there, but not the offsets of the groups and the settings of the topics:
#   every group begins again where its first-offset rule says (lab 04b).

# %% [markdown] tags=["reading"]
# ## Next
#
# Your store forgets nothing. But it cannot answer a pull for something that is not there yet: in the [second
# part](16b-pull-and-hold.ipynb) a pull waits. All labs: [index](index.ipynb).

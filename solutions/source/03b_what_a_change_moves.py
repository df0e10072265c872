# %% [markdown] tags=["reading"]
# # 03b Rebalance: what a change moves
#
# ## Why
#
# On Monday at 9:00 two instances joined, and queues changed hands. "We will take consistent hashing", says the meeting.
# "It moves nothing that need not move. With enough virtual nodes it is also fair." You count what moves, build the
# ring, and design a strategy that is fair and moves little.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](03a-who-reads-which-queue.ipynb). Afterwards you can
#
# - say how many queues a join or a leave moves, and how many had to;
# - build RocketMQ's hash ring, and say when it is unfair;
# - write a strategy of your own and let real consumers use it.

# %%
from collections import Counter
from itertools import pairwise, permutations, product

from mqlab import CONSUME_SUCCESS, MessageQueue, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import allocation_board
from mqlab.course.widgets.boards.allocation import fewest_moves
from mqlab.lab.views import Bars
from mqlab.lab.views.hash_ring import HashRing
from mqlab.lab.views.owners_grid import OwnersGrid
from mqlab.rocketmq.client.allocate import md5_u32, strategy

# %% [markdown]
# ## What a join moves
#
# When a member joins or leaves (扩缩容), queues change hands. Each costs: its reader stops, another one begins, and some
# messages are delivered twice.

# %% [prediction] lab03.join_moves
# Three members divide eight queues by AVG. A fourth joins, and its id comes last. How many queues change their owner?
#
# - 0: none; only the queues of a member that leaves have to move {lab03.only_leaving_moves}
#   > If only the queues of a leaving member moved, one that joins would have nothing to read. It gets its share from
#   > the others.
# - 2: two, those that the fourth gets
#   > Two would be enough: 3, 3 and 2 queues could become 2, 2, 2 and 2. AVG does not know the former division; it draws
#   > all blocks again.
# - 5: five, more than half of them
#   = The blocks begin at other positions now, so members pass queues to their neighbours.
# note: Two had to move; five did.


# %%
def divided(name, queues, members, **options):
    """Queue -> owner, as a strategy of RocketMQ divides them."""
    every = [MessageQueue("orders", "broker-a", number) for number in range(queues)]
    chosen, found = strategy(name, **options), {}
    for member in members:
        for queue in chosen.allocate("billing", member, every, members):
            found[queue.queue_id] = member
    return dict(sorted(found.items()))


# %% tags=["parameter"]
def history(name, queues=8, **options):
    three = ["billing-1", "billing-2", "billing-3"]
    moments = [("three members", three), ("4 joins", [*three, "billing-4"])]
    moments.append(("2 leaves", ["billing-1", "billing-3", "billing-4"]))
    return [
        (label, divided(name, queues, members, **options), members)
        for label, members in moments
    ]


avg = OwnersGrid(history("AVG"), title="AVG")
avg

# %%
reveal("lab03.join_moves", len(avg.moved(1)))

# %%
OwnersGrid(history("AVG_BY_CIRCLE"), title="AVG_BY_CIRCLE")

# %% [markdown]
# AVG_BY_CIRCLE moves even more. And consistent hashing (一致性哈希), which was invented for exactly this?

# %%
OwnersGrid(history("CONSISTENT_HASH"), title="CONSISTENT_HASH")

# %% [markdown]
# But look at the counts at the end of each line.

# %% [exercise] lab03.churn
# ### Exercise 4: how much moved that need not have?
#
# `churn` gets `moments` as before and returns the queues that changed their owner, summed over the history, divided by the
# sum of those that **had to**.
#
# With n queues and k members, `each, extra = divmod(n, k)`. For even shares a member keeps `each` of its queues, and
# `extra` of the members keep one more. The rest had to move. When the fourth joins 3, 3 and 2, each may keep two, so
# two must move.
#
# hint: `pairwise(moments)` gives each moment with the next one. The queues q with `before[q] != after[q]` changed.
# hint: A member that stays may keep `min(had, each)`. Of those that had more than `each`, `extra` may keep one more. A
#   member that has left keeps nothing.
# hint: `kept = sum(min(had, each) for had in counts) + min(extra, sum(had > each for had in counts))`, where counts are
#   the queues that each member of the new moment had before. `len(before) - kept` had to move. Divide the two sums at
#   the end.
# note: 1.0 is the best that is fair at every moment. Below 1.0 the price is uneven shares, as on the hash ring. At
#   work: each queue that moves is a burst of duplicates, so deploy rarely, or in one step.


# %%
# exercise: lab03.churn
def churn(moments):
    """Queues that changed their owner, divided by those that had to.

    moments: a list of (members, owners): ids, and a dictionary queue -> id.
    """
    ### BEGIN SOLUTION
    moved = needed = 0
    for (_, before), (members, after) in pairwise(moments):
        moved += sum(before[queue] != after[queue] for queue in before)
        each, extra = divmod(len(before), len(members))
        counts = [list(before.values()).count(member) for member in members]
        kept = sum(min(had, each) for had in counts)
        kept += min(extra, sum(had > each for had in counts))
        needed += len(before) - kept
    return moved / needed
    ### END SOLUTION


# %%
check("lab03.churn")

# %% [markdown]
# ## The ring
#
# Hashes of members are points on a ring. A queue has a hash too, and belongs to the next point: the first one whose
# hash is not below its own. When a member joins, its points take a piece from the next point's member. An arc belongs
# to the point at its end.

# %% [prediction] lab03.points
# How many points does a member have on RocketMQ's ring, if you configure nothing?
#
# - 1: one: the hash of its client id {lab03.one_point}
#   > Many books draw it that way. One point per member would give arcs of very different lengths.
# - 10: ten, with hashes of `id-0` to `id-9`
#   = They are called virtual nodes (虚拟节点).
# - 160: a hundred and sixty, as in other systems
#   > Other systems do that. RocketMQ's constructor has another default.
# note: A hash is the first four bytes of an MD5 digest, as a number from 0 to 4,294,967,295.

# %% tags=["parameter"]
NODES = 10


def ring_of(nodes, queues=12, members=3):
    ids = [f"10.0.0.{number + 2}@billing-{number}" for number in range(1, members + 1)]
    points = strategy("CONSISTENT_HASH", virtual_node_cnt=nodes).ring(ids)
    every = [MessageQueue("orders", "broker-a", number) for number in range(queues)]
    places = [(str(queue.queue_id), md5_u32(str(queue))) for queue in every]
    return HashRing(points, places, title=f"{nodes} virtual nodes")


ring_of(NODES)

# %%
default = strategy("CONSISTENT_HASH").ring(["10.0.0.3@billing-1"])
reveal("lab03.points", len(default))

# %% [prediction] lab03.more_nodes
# With 10 virtual nodes, three members have 3, 3 and 6 of twelve queues. What will they have with 500?
#
# - even: 4, 4 and 4: with enough virtual nodes it becomes fair
#   > The pieces of the ring do become equally large. But twelve queues are twelve darts: it would be luck if each
#   > member were hit by four.
# - uneven: something uneven, again
#   = Virtual nodes make the arcs even, not the queues.
# - same: 3, 3 and 6, as before
#   > With other points, other queues belong to other members.
# note: With thousands of keys, even arcs mean even shares. A topic has eight queues, or sixteen.

# %%
many = ring_of(500)
many

# %%
counts = many.table().column("queues")
reveal("lab03.more_nodes", "even" if max(counts) - min(counts) <= 1 else "uneven")

# %% [answer] lab03.unlucky
# ### Your turn: an unlucky number
#
# A colleague reads that ten virtual nodes are too few, and sets another number. Find a number from 11 to 30 with which
# one of the three members reads nine of the twelve queues: change `NODES` and run the cell. Which number is it?
#
# wrong ten: With ten the largest has six. Try other numbers.
# wrong: With this number no member has nine queues. Set `NODES` to it and look at the last column.
# note: The arcs are quite even there, and the queues are not. Before you set it, draw it for your own client ids. They
#   contain the process's number, so the next deployment rolls the dice again.

# %% tags=["parameter"]
NODES = 11

mine = ring_of(NODES)
mine

# %%
### BEGIN SOLUTION
answer("lab03.unlucky", 20)
### STARTER
# answer("lab03.unlucky", ...)
### END SOLUTION

# %% [exercise] lab03.ring
# ### Exercise 5: CONSISTENT_HASH
#
# It must answer as RocketMQ's class does:
#
# | what | how |
# |---|---|
# | hash of a text | MD5 of its UTF-8 bytes, the first four bytes of the digest, as a big-endian number |
# | points of a member | the hashes of `f"{member}-{k}"` for k = 0, 1, …, `virtual_nodes` - 1 |
# | key of a queue | `str(queue)`, as `MessageQueue [topic=orders, brokerName=broker-a, queueId=0]` |
# | owner of a queue | the member of the first point not below its hash; beyond the last point, of the first point |
#
# hint: `hashlib.md5(text.encode()).digest()[:4]` are the bytes, `int.from_bytes(…, "big")` is the number.
# hint: Make a sorted list of (hash, member) for all members and all k. `bisect.bisect_left` finds the index of a
#   queue's hash among the sorted hashes; beyond the last one, take number 0.
# hint: `at = bisect.bisect_left(hashes, hash_of(str(queue)))`; `owner = points[at % len(points)][1]`. Return the queues
#   whose owner is me, in their order.
# note: This is AllocateMessageQueueConsistentHash with ConsistentHashRouter, a TreeMap and its tailMap. At work: a
#   member whose id changes at each start (the default, process id and time) is a new member to the ring. Set
#   instance_name if you want it to keep its queues.


# %%
# exercise: lab03.ring
def ring(queues, members, me, virtual_nodes):
    """The queues of one member, by consistent hashing.

    queues, members: sorted lists; me: a client id. Returns a list of queues.
    """
    ### BEGIN SOLUTION
    import bisect
    import hashlib

    def hash_of(text):
        return int.from_bytes(hashlib.md5(text.encode()).digest()[:4], "big")

    points = sorted(
        (hash_of(f"{member}-{k}"), member)
        for member in members
        for k in range(virtual_nodes)
    )
    hashes = [place for place, _ in points]
    mine = []
    for queue in queues:
        at = bisect.bisect_left(hashes, hash_of(str(queue)))
        if points[at % len(points)][1] == me:
            mine.append(queue)
    return mine
    ### END SOLUTION


# %%
check("lab03.ring")

# %% [markdown]
# ## All of it on one board
#
# To the broker a restart is a rename, because RocketMQ's default id contains the process's number. Fairness and moves
# are counted over the history. Change what you like.

# %% [answer] lab03.worst
# ### Your turn: the worst history
#
# Let AVG_BY_CIRCLE divide. Find a history of three changes or more in which it moves at least three times as many
# queues as had to. How many queues moved in your history? (`board.moved` is that number.)
#
# wrong needed: That is how many had to move, the fewest. The question is how many did.
# wrong: The board says it under the history, and `board.table()` has a row for each change.
# note: `board.compare()` shows the same history under every strategy.

# %% tags=["explorer"]
board = allocation_board(
    "AVG", queues=8, members=3, history=[("join", "billing-4")], recorded={}
)
board

# %%
### BEGIN SOLUTION
board.change(strategy="AVG_BY_CIRCLE")
board.join("billing-5").leave("billing-1").leave("billing-2")
answer("lab03.worst", board.moved, board)
### STARTER
# answer("lab03.worst", ..., board)
### END SOLUTION

# %%
board.compare()

# %% [markdown]
# ## A strategy that moves little
#
# AVG is fair and moves much; the ring moves little and is unfair. Can one strategy be both?

# %% [prediction] lab03.ideal
# Can a strategy be even at every moment and move only what has to move, whichever members join and leave?
#
# - remember: yes; it has to remember the former owners, and change as little as possible {lab03.remembers}
#   > Each member computes alone. One that started a minute ago remembers nothing, and would divide differently from the
#   > others.
# - hash: yes; consistent hashing moves only what has to move
#   > But it is not even: its three members had 3, 4 and 1 of the eight queues.
# - no: no; from two lists alone it cannot be done
#   = The member that came last should get the smaller share, and a list does not say which one that is.
# note: It would take a leader that remembers for all, and tells the others. RocketMQ's members have no leader.

# %% [markdown]
# You can prove it by counting. With four queues and members a, b and c, one member has two queues, say a. If a was
# there first and c joined, c took one queue, which is the minimum. But if b and c were there and a joined, then a took
# two queues where one would do. All possible strategies for four queues:


# %% tags=["picture"]
def divisions(members):
    """All even divisions of four queues: a tuple of owners."""
    owners = [member for member in members for _ in range(4 // len(members))]
    extra = 4 % len(members)
    found = set()
    for more in members if extra else [None]:
        found |= set(permutations(owners + ([more] if more else [])))
    return sorted(found)


# %% tags=["picture"]
def moved(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


best = Counter()
for ab, ac, bc, abc in product(*map(divisions, ("ab", "ac", "bc", "abc"))):
    # Each pair joined by the third: one queue has to move.
    best[moved(ab, abc) + moved(ac, abc) + moved(bc, abc)] += 1
Bars(
    {f"{moves} moves": count for moves, count in sorted(best.items())},
    unit="strategies",
    title="three joins, each of which has to move one queue",
)

# %%
reveal("lab03.ideal", "no" if min(best) > 3 else "hash")

# %% [markdown]
# No strategy makes fewer than four moves, where three are necessary. Without a memory 1.0 cannot be reached. How close
# are RocketMQ's strategies? Two hundred joins and leaves of small groups, 32 queues:


# %% tags=["parameter"]
CHANGED = 200


def a_long_history(seed=7):
    """Members after each change; ids that sort anywhere."""
    import random

    rng = random.Random(seed)
    members = [f"10.0.{rng.randrange(256)}.3@billing-{n}" for n in range(3)]
    for number in range(3, CHANGED + 3):
        if len(members) == 2 or (len(members) < 8 and rng.random() < 0.35):
            members.append(f"10.0.{rng.randrange(256)}.3@billing-{number}")
        else:
            members.remove(rng.choice(members))
        yield sorted(members)


# %%
def times_what_had_to(divide, queues=32):
    """Moved, divided by what had to move, over the long history."""
    every = [MessageQueue("orders", "broker-a", number) for number in range(queues)]
    before, changed, needed = (), 0, 0
    for members in a_long_history():
        shares = divide(every, members)
        owner = {queue: member for member, mine in shares.items() for queue in mine}
        now = [(owner[queue],) for queue in every]
        if before:
            changed += sum(one != other for one, other in zip(before, now, strict=True))
            needed += fewest_moves(before, members)
        before = now
    return changed / needed


# %%
def of_rocketmq(name):
    chosen = strategy(name)
    return lambda queues, members: {
        member: chosen.allocate("billing", member, queues, members)
        for member in members
    }


known = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
churns = {name: times_what_had_to(of_rocketmq(name)) for name in known}
Bars(churns, unit="times what had to move", title="200 joins and leaves")

# %% [markdown]
# The ring is below 1 because its shares are uneven, so it need not move what evenness requires.

# %% [exercise] lab03.sticky
# ### Exercise 6: a sticky strategy
#
# `sticky(queues, members)` gets the two sorted lists and returns a dictionary with an entry for each member: the list
# of its queues. Each member calls it in its own process, so it may use nothing but the lists. It is judged in three
# ways:
#
# 1. Ten histories of 40 joins and leaves, 32 or 64 queues, 2 to 8 members. After each change every queue has one owner,
#    and the numbers of queues differ by at most one.
# 2. Over all ten histories, at most **1.3** times as many queues move as had to.
# 3. It runs in real consumers that join, leave and crash: every queue is read by one member once a change has settled.
#
# Python's own `hash` of a text differs from process to process; `hashlib` does not. The check also asks your answer
# again in the middle of a history, so a memory is noticed.
#
# hint: Give each pair of a queue and a member a weight that depends only on these two, such as an MD5 digest. If a
#   queue always goes to the member of the largest weight, a join takes only what the new member wins. (Rendezvous
#   hashing.)
# hint: That is not even yet. Give each member a limit: the even share, and one more for as many members as the
#   remainder says. Go through all pairs from the largest weight to the smallest; skip queues that are taken and members
#   that are full.
# hint: `pairs = sorted((md5(f"{queue} {member}"), queue, member) for queue in … for member in …)`; for each pair: if
#   the queue is free and the member has fewer than `each` queues, or has `each` and `extra` is above 0 (then take one
#   from `extra`), it gets the queue.
# note: Rendezvous hashing with a limit moves about 1.15 times what had to. RocketMQ takes any object with allocate(…)
#   as an AllocateMessageQueueStrategy. At work: bring your own strategy only if a moved queue really costs you
#   something, and roll it out to all members at once.


# %%
# exercise: lab03.sticky
def sticky(queues, members):
    """Divide queues among members: even, and with few moves when members change.

    queues, members: sorted lists. Returns a dictionary: member -> list of its queues.
    """
    ### BEGIN SOLUTION
    import hashlib

    each, extra = divmod(len(queues), len(members))
    pairs = sorted(
        (hashlib.md5(f"{queue} {member}".encode()).digest(), queue, member)
        for queue in queues
        for member in members
    )
    shares = {member: [] for member in members}
    taken = set()
    for _, queue, member in pairs:
        has = len(shares[member])
        if queue in taken or has > each or (has == each and extra == 0):
            continue
        extra -= has == each
        shares[member].append(queue)
        taken.add(queue)
    return shares
    ### END SOLUTION


# %%
check("lab03.sticky")

# %% [markdown]
# To make a function a strategy, give it RocketMQ's form:


# %% tags=["parameter"]
class Own:
    """A function queues, members -> shares, as a strategy of a consumer."""

    name = "OWN"

    def __init__(self, divide):
        self.divide = divide

    def allocate(self, group, client_id, queues, client_ids):
        return self.divide(queues, client_ids)[client_id]


# %%
def join(lab, name, divide):
    own = {"allocate_message_queue_strategy": Own(divide)}
    consumer = lab.push_consumer("billing", name=name, **own)
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()


def owned(lab):
    """Queue -> member, and the members, of those that run."""
    consumers = [one for one in lab.handles.values() if one.role == "consumer"]
    present = [one for one in consumers if one.is_up and one.is_running]
    pairs = [(queue, one.name) for one in present for queue in one.message_queues]
    mine = {queue.queue_id: name for queue, name in pairs if queue.topic == "orders"}
    return dict(sorted(mine.items())), [member.name for member in present]


# %%
def comes_and_goes(lab, divide, moments):
    lab.create_topic("orders", read_queue_nums=12, write_queue_nums=12)
    for number in (1, 3, 5):
        join(lab, f"billing-{number}", divide)
    changes = {
        "three members": lambda: None,
        "7 joins": lambda: join(lab, "billing-7", divide),
        "3 is killed": lambda: lab.kill("billing-3"),
        "1 leaves": lambda: lab.handles["billing-1"].shutdown(),
    }
    for label, change in changes.items():
        change()
        lab.run_for("25s")
        moments.append((label, *owned(lab)))


# %%
def in_consumers(divide):
    moments = []
    play(lambda lab: comes_and_goes(lab, divide, moments), seed=7)
    return OwnersGrid(moments, title="twelve queues")


# %% [answer] lab03.measured
# ### Your turn: in real consumers
#
# Members come and go, under AVG_BY_CIRCLE at first. Set `DIVIDE` to `sticky`, or to `of_rocketmq("AVG")`, and run the
# cell again. How many queues moved in all, at the three changes?
#
# wrong: Add up the numbers at the end of the lines of your own picture.
# note: The same group and the same changes, but other moves. Each of them is a pause, and a chance for a second charge.

# %% tags=["parameter"]
DIVIDE = of_rocketmq("AVG_BY_CIRCLE")

grid = in_consumers(DIVIDE)
grid

# %%
### BEGIN SOLUTION
grid = in_consumers(sticky)
answer("lab03.measured", sum(len(grid.moved(number)) for number in (1, 2, 3)), grid)
### STARTER
# answer("lab03.measured", ..., grid)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A move was a number here.** The third part shows how long it takes.
# - **Random histories are not your deployments.** Ten instances that restart one after another are ten leaves and ten
#   joins of new ids.
# - **Even numbers of queues are not even work.** A hot key makes a hot queue, whichever member reads it.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the ring | `AllocateMessageQueueConsistentHash`, `ConsistentHashRouter`, `ConsistentHashRouter.MD5Hash` |
# | ten virtual nodes | the constructor of `AllocateMessageQueueConsistentHash`; 0 makes a ring on which no member owns anything |
# | a strategy of your own | `AllocateMessageQueueStrategy.allocate`; an exception in it leaves the old division as it is |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the consumer's hash is put on the ring | ten hashes of `id-0` … `id-9`, 32 bits of MD5 each |
# | virtual nodes make it fair | they make the arcs even; with a few queues the shares stay uneven |
# | a join moves only the newcomer's queues | with the ring; AVG and AVG_BY_CIRCLE moved 1.5 and 2.7 times what had to |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab03.choice
# **1.** A colleague wants CONSISTENT_HASH "because we deploy ten times a day". What do you ask?
#
# answer: Do the client ids survive a deployment? By default they do not, so all points move. How many queues does the
#   busiest member have on the ring, for our ids? And what does a moved queue cost us? If listeners are idempotent, it
#   costs a second.

# %% [reflection] lab03.rename
# **2.** All instances are restarted, one after another, and each comes back with another client id. What does that cost
# AVG, and what does it cost your strategy?
#
# answer: To the group each restart is a leave and a join of a new member, at another position of the sorted list. AVG
#   draws its blocks again both times. Your strategy moves about one share both times, because a new id gets other
#   weights. With a fixed instance name the same id comes back, and with it the same queues.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [third part](03c-when-queues-move.ipynb) moves take seconds, and sometimes queues have two readers. All labs:
# [index](index.ipynb).

# %% [markdown] tags=["reading"]
# # 03a Queue allocation: who reads which queue
#
# ## Why
#
# Monday, 9:00. Over the weekend billing was scaled from three instances to five. One of the five still does 40 % of the
# work, one does nothing at all, and for half a minute after the deployment orders were charged twice.
#
# The meeting is sure:
#
# - "The strategy is called *averagely*. Averaging is fair."
# - "We will take consistent hashing: it moves nothing that need not move. With enough virtual nodes it is also fair."
# - "A queue never has two readers."
# - "Clustering means that a message is consumed once."
#
# Each of the four is wrong. Here you write two allocation strategies (分配策略).

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - say which instance reads which queue, for each strategy of RocketMQ;
# - find the instance that does too much, and say why more instances do not help it;
# - say what strategies with machine rooms do, and what they do not do.

# %%
from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.lab.views import Bars
from mqlab.lab.views.owners_grid import OwnersGrid
from mqlab.rocketmq.client.allocate import strategy

# %%
old_questions("lab03")

# %% [markdown]
# ## Three instances, eight queues
#
# The members of a consumer group (消费者组) divide the queues (消息队列) of a topic, so that each queue has one reader. No
# server hands the queues out. Every member fetches the same two lists, the queues of the topic and the client ids of
# the group, sorts both, and computes its own share (重平衡, rebalance).


# %% tags=["setup"]
def billing(messages, context):
    context.sleep("20ms")
    return CONSUME_SUCCESS


def start(lab, number, **settings):
    consumer = lab.push_consumer("billing", name=f"billing-{number}", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(billing)
    consumer.start()
    return consumer


# %% tags=["setup"]
def owners_in(lab, topic="orders"):
    """Queue -> who owns it, asked of the members themselves."""
    found = {}
    for name, handle in lab.handles.items():
        if handle.role == "consumer":
            mine = [queue for queue in handle.message_queues if queue.topic == topic]
            found |= {queue.queue_id: name for queue in mine}
    return dict(sorted(found.items()))


# %% [prediction] lab03.eight_by_three
# `orders` has eight queues, 0 to 7, and billing has three members with RocketMQ's default strategy, AVG. Which queues
# does the second member read?
#
# - 3 4 5: a block of three, after the block of the first
#   = Eight divided by three is two, and two are left over. The first two members get one more each.
# - 1 4 7: every third one; queues are dealt like cards {lab03.one_by_one}
#   > To deal queues like cards is another strategy, AVG_BY_CIRCLE. AVG counts first, and then hands out blocks.
# - 2 3: two; the last member takes what is left over
#   > The remainder goes to the first members, one queue each.
# note: Members are sorted by client id as strings, so 10.0.0.10 comes before 10.0.0.9.


# %%
def three_instances(lab):
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    for number in (1, 2, 3):
        start(lab, number)
    lab.run_for("25s")


lab = play(three_instances, seed=7)
OwnersGrid([("AVG", owners_in(lab))], title="Eight queues, three members")

# %%
second = [queue for queue, name in owners_in(lab).items() if name == "billing-2"]
reveal("lab03.eight_by_three", " ".join(map(str, second)))

# %% [exercise] lab03.average
# ### Exercise 1: AVG (平均分配)
#
# Write it for any two lists. The members are client ids; `me` is the one that asks. The check compares your answer with
# RocketMQ's own class, on queues of several brokers, whose list is divided as a whole. One call comes from a member
# that is not in the list, because its heartbeat has not arrived yet. It gets nothing.
#
# hint: `each, extra = divmod(len(queues), len(members))` gives the even share, and how many members get one queue more.
# hint: The blocks of the n members before member number n (`members.index(me)`) come before its own. `min(n, extra)` of
#   them are larger by one.
# hint: `start = n * each + min(n, extra)`; the block is `queues[start : start + each + (1 if n < extra else 0)]`.
#   Before that: `if me not in members: return []`.
# note: This is AllocateMessageQueueAveragely.allocate. At work: if a group has more members than the topic has queues,
#   the last members by client id do nothing. Look at the client ids before you look at the code.


# %%
# exercise: lab03.average
def average(queues, members, me):
    """The queues of one member: a block of neighbours, the first members get one more.

    queues, members: sorted lists; me: a client id. Returns a list of queues.
    """
    ### BEGIN SOLUTION
    if me not in members:
        return []
    each, extra = divmod(len(queues), len(members))
    number = members.index(me)
    start = number * each + min(number, extra)
    return queues[start : start + each + (1 if number < extra else 0)]
    ### END SOLUTION


# %%
check("lab03.average")

# %% [markdown]
# ## Dealt like cards
#
# Averagely by circle deals the queues one by one. A consumer gets its strategy when it is made, by RocketMQ's name or
# as an object. Two brokers with four queues each:


# %% tags=["parameter"]
def two_brokers(lab, chosen):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    members = [
        start(lab, number, allocate_message_queue_strategy=chosen)
        for number in (1, 2, 3)
    ]
    lab.run_for("25s")
    return {
        f"{queue.broker_name[-1]}{queue.queue_id}": member.name
        for member in members
        for queue in member.message_queues
        if queue.topic == "orders"
    }


# %%
def asked(chosen):
    given = []
    play(lambda lab: given.append(two_brokers(lab, chosen)), seed=7, brokers=2)
    return dict(sorted(given[0].items()))


by_name = asked("AVG_BY_CIRCLE")
by_object = asked(strategy("AVG"))
OwnersGrid(
    [("AVG", by_object), ("AVG_BY_CIRCLE", by_name)],
    title="Queues of broker-a and of broker-b",
    changes=False,
)

# %% [markdown]
# Both are equally fair. With AVG two of the three members read from one broker only; with AVG_BY_CIRCLE every member
# reads from both.

# %% [exercise] lab03.circle
# ### Exercise 2: AVG_BY_CIRCLE (环形平均分配)
#
# The arguments are the same. A queue's number is its index in the list of all queues; `queue_id` begins at 0 on each
# broker.
#
# hint: Member number n gets the queues number n, n + k, n + 2k, …, where k is the number of members.
# hint: `enumerate(queues)` gives each queue with its number; `%` gives the remainder of a division.
# hint: `queues[members.index(me) :: len(members)]` is every k-th queue from number n on. A member that is not in the
#   list still gets `[]`.
# note: This is AllocateMessageQueueAveragelyByCircle.allocate. At work: all members must use the same strategy. During
#   a deployment that changes it they do not, and the third part shows what happens then.


# %%
# exercise: lab03.circle
def circle(queues, members, me):
    """The queues of one member, dealt one by one.

    queues, members: sorted lists; me: a client id. Returns a list of queues.
    """
    ### BEGIN SOLUTION
    if me not in members:
        return []
    return queues[members.index(me) :: len(members)]
    ### END SOLUTION


# %%
check("lab03.circle")

# %% [markdown]
# ## Monday, 9:00
#
# Billing reads two topics: `orders`, with four queues, and `refunds`, with one. Four messages out of five are orders.
# On Friday there were three instances, on Monday there are five.

# %% [prediction] lab03.idle
# Five instances use AVG. `orders` has four queues and `refunds` has one. How many of the five have nothing to do?
#
# - 0: none; five queues, five instances, and averaging is fair {lab03.averaging_is_fair}
#   > AVG divides each topic on its own, and each division begins with the first member by client id.
# - 1: one
#   = The fifth gets nothing of `orders`, and nothing of `refunds` either: both topics begin with the first member.
# - 2: two; there are fewer queues than instances
#   > Four instances get a queue of `orders`. Which one gets the queue of `refunds`?
# note: The surplus of every topic goes to the same members: those whose client ids come first.


# %% tags=["parameter"]
def monday(lab, orders, refunds, instances=5):
    lab.create_topic("orders", read_queue_nums=orders, write_queue_nums=orders)
    lab.create_topic("refunds", read_queue_nums=refunds, write_queue_nums=refunds)
    for number in range(1, instances + 1):
        consumer = lab.push_consumer("billing", name=f"billing-{number}")
        consumer.subscribe("orders", "*")
        consumer.subscribe("refunds", "*")
        consumer.on_messages(billing)
        consumer.start()
    lab.run_for("25s")
    shop = lab.producer("shop")
    for number in range(200):
        topic = "refunds" if number % 5 == 4 else "orders"
        shop.send(Message(topic, b"a book", keys=f"order-{number}"))
    lab.run_for("10s")


# %% tags=["picture"]
def work(lab):
    """The share of the messages that each member was given, in percent."""
    rows = lab.deliveries("billing", absences=False)
    names = [name for name, handle in lab.handles.items() if handle.role == "consumer"]
    given = [row.client for row in rows]
    return {name: 100 * given.count(name) / len(given) for name in names}


lab = play(lambda lab: monday(lab, orders=4, refunds=1), seed=7)
Bars(work(lab), unit="% of the messages", title="Monday, 9:00")

# %%
reveal("lab03.idle", sum(share == 0 for share in work(lab).values()))

# %% [markdown]
# That is Monday morning. More instances would change nothing, because `orders` has four queues. What would?

# %% [answer] lab03.enough
# ### Your turn: enough queues
#
# Change `ORDERS` and `REFUNDS`, the numbers of queues, until each of the five has something to do and none gets more
# than a quarter of the messages. What is the smallest total number of queues with which that works?
#
# wrong ten: Ten, five and five, works for every instance, but it is more than needed.
# wrong orders_only: Look at the first instance. However many queues `orders` has, the one queue of `refunds` brings it
#   20 % of all messages, in addition to its share of the orders.
# wrong more: That many queues are enough, as your last run shows, but fewer are enough too. Try one queue less for one
#   of the topics.
# wrong: This is not the number of queues in your last run, which works. Find the smallest numbers that work, and answer
#   with their sum.
# note: Eight, five of them for the orders. Queues are cheap, and they limit how many instances can work: make more than
#   you need today.

# %% tags=["parameter"]
ORDERS, REFUNDS = 4, 1

enough = play(lambda lab: monday(lab, ORDERS, REFUNDS), seed=7)
Bars(work(enough), unit="% of the messages", title=f"{ORDERS} and {REFUNDS} queues")

# %%
### BEGIN SOLUTION
enough = play(lambda lab: monday(lab, 5, 3), seed=7)
answer("lab03.enough", 8, enough)
### STARTER
# answer("lab03.enough", ..., enough)
### END SOLUTION

# %% [exercise] lab03.fairness
# ### Exercise 3: how unfair was it?
#
# `moments` is the history of a group: for each moment a tuple of the members (a list of ids) and of the owners (a
# dictionary, queue -> member). Return the largest difference between the member with most queues and the member with
# fewest, over all moments.
#
# hint: For each moment, count for each member how often it is among `owners.values()`.
# hint: Go through `members` instead of the owners: a member without queues is not among the owners.
# hint: `counts = [list(owners.values()).count(member) for member in members]`; the moment's difference is `max(counts)
#   - min(counts)`; the answer is the largest of them.
# note: RocketMQ has no such number; put it on your dashboard. At work: count messages too, because queues are rarely
#   equally full.


# %%
# exercise: lab03.fairness
def fairness(moments):
    """The largest difference of queue counts at any moment.

    moments: a list of (members, owners): ids, and a dictionary queue -> id.
    """
    ### BEGIN SOLUTION
    worst = 0
    for members, owners in moments:
        counts = [list(owners.values()).count(member) for member in members]
        worst = max(worst, max(counts) - min(counts))
    return worst
    ### END SOLUTION


# %%
check("lab03.fairness")

# %% [markdown]
# ## Rooms
#
# Brokers are in two machine rooms (机房), and so are members. `MACHINE_ROOM` gets a list of rooms and compares it with
# the brokers' names: `room1@broker-a` is in room1.

# %% [prediction] lab03.rooms
# Two brokers, `room1@broker-a` and `room2@broker-b`, have four queues each. All members use
# `AllocateMessageQueueByMachineRoom` with the rooms {room1}. Who reads the queues of room2?
#
# - all: all members; queues without a reader in their own room are shared by average
#   > That is close to what MACHINE_ROOM_NEARBY does. MACHINE_ROOM never falls back to anything.
# - nobody: no member
#   = Queues of rooms that are not listed have no reader, and their messages wait for ever.
# - members in room2: the members that run in room2
#   > It does not know where a member runs. It looks only at the names of brokers.
# note: MACHINE_ROOM divides the queues of the listed rooms among all members, wherever those are.


# %%
class Rooms:
    """Where brokers and members are, for MACHINE_ROOM_NEARBY."""

    def broker_deploy_in(self, queue):
        return queue.broker_name.partition("@")[0]

    def consumer_deploy_in(self, client_id):
        return client_id.partition("-")[0]


# %%
def in_rooms(chosen, members):
    brokers = ("room1@broker-a", "room2@broker-b")
    every = [MessageQueue("orders", name, n) for name in brokers for n in range(4)]
    found = {f"{q.broker_name[4]}/{q.queue_id}": None for q in every}
    for member in members:
        for q in chosen.allocate("billing", member, every, members):
            found[f"{q.broker_name[4]}/{q.queue_id}"] = member
    return found


room1 = strategy("MACHINE_ROOM", consumeridcs=["room1"])
both = ["room1-billing-1", "room2-billing-2"]
listed = in_rooms(room1, both)
OwnersGrid([("MACHINE_ROOM", listed, both)], title="room/queue")

# %%
readers = {member for place, member in listed.items() if place.startswith("2/")}
reveal("lab03.rooms", "nobody" if readers == {None} else "all")

# %% [markdown]
# `MACHINE_ROOM_NEARBY` asks a resolver of yours where brokers and members are. A member reads in its own room. The
# queues of a room without a single member are shared by all. Now the last member of room2 crashes:

# %% tags=["picture"]
near = strategy("MACHINE_ROOM_NEARBY", inner="AVG", machine_room_resolver=Rooms())
three = ["room1-billing-1", "room1-billing-3", "room2-billing-2"]
OwnersGrid(
    [
        ("room2 has one", in_rooms(near, three), three),
        ("it dies", in_rooms(near, three[:2]), three[:2]),
    ],
    title="MACHINE_ROOM_NEARBY, room/queue",
)

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Even numbers of queues are not even work.** A hot key makes a hot queue, whichever member reads it. Lab 10 looks
#   for it.
# - **Nothing changed here.** The second part shows what moves when members come and go, the third how long it takes.
# - **A strategy is computed from equal lists.** Members that see different lists divide differently.
# - **The members divide.** RocketMQ 5 can also let the broker divide the queues (`clientRebalance=false`), and with POP
#   ([lab 15a](15a-leased-not-owned.ipynb)) several members may read one queue on purpose.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the default | `AllocateMessageQueueAveragely`; set in the constructor of `DefaultMQPushConsumer`, or by its setter before the start |
# | averagely by circle | `AllocateMessageQueueAveragelyByCircle` |
# | rooms | `AllocateMessageQueueByMachineRoom`, `AllocateMachineRoomNearby` |
# | a fixed list | `AllocateMessageQueueByConfig`: the same list for every topic; without `%RETRY%group` in it, no member reads retries |
# | sorting before it | `RebalanceImpl.rebalanceByTopic` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | averaging is fair | for one topic, to within one queue; over several topics the surplus is always with the same members |
# | same room first, else all by average | two classes: MACHINE_ROOM never falls back, NEARBY shares only rooms without members |
# | the strategy is passed to the constructor | to the constructor, or to the setter |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab03.sixteen
# **1.** Your topic has 16 queues on four brokers. How many instances can work, and with how many is the work even?
#
# answer: Up to 16 can work; a seventeenth reads nothing. It is even with 1, 2, 4, 8 or 16. With 5, one has four queues
#   and the others three. With 12, four have two queues and eight have one, so the busiest do twice as much: twelve
#   instances finish a burst no sooner than eight.

# %% [reflection] lab03.surplus
# **2.** A group reads twelve topics with five queues each, and has three instances. How much does each do, and what
# would you change?
#
# answer: Of each topic the first two instances get two queues and the third gets one, which makes 24, 24 and 12 queues.
#   More queues per topic make the difference smaller; a multiple of the number of instances removes it. A strategy of
#   your own could begin with another member for each topic.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](03b-what-a-change-moves.ipynb) members come and go, and you write a strategy that moves little.
# All labs: [index](index.ipynb).

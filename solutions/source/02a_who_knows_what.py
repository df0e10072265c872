# %% [markdown] tags=["reading"]
# # 02a Routes: who knows what
#
# ## Why
#
# 16:40. The disk of broker-b is failing: each put takes three seconds. Orders are late, and some are charged twice. At
# 16:55 an operator switches broker-b off. The shop keeps sending to it for half a minute. At 17:10 a network card
# fails, and the shop sends orders to a broker that billing does not read.
#
# The meeting explains it:
#
# - "The name server tells the clients when a broker is gone."
# - "Then the name server was slow to notice."
# - "Both name servers know the same; that is why there are two."
# - "And the new topic must be on all brokers: it was created automatically."
#
# None of the four is true. What does each process know, and since when? The [second part](02b-what-a-send-costs.ipynb)
# sends in four ways, the [third](02c-sixteen-queues-then-eight.ipynb) removes eight of sixteen queues.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - say when a name server, a producer and a consumer learn of a broker that dies, falls silent or joins;
# - say what two name servers do when they receive different registrations;
# - find the brokers on which a first message creates its topic, and what it creates there.

# %%
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.widgets import knows_board
from mqlab.course.widgets.boards.knows import KnowsSettings, play_knows
from mqlab.lab.views import Bars, Table

# %%
old_questions("lab02")

# %% [markdown]
# ## A broker dies
#
# A broker registers with every name server (名字服务): at its start, and then every 30 s. A client asks one name server for
# the route (路由) of each topic that it uses: which brokers have it, with how many queues. It asks when it first needs
# the route, and then every 30 s.
#
# There are two brokers, a shop that sends one order per second, and billing, which reads them. Then the process of
# broker-b is killed: the operating system closes its connections.

# %% [prediction] lab02.killed
# When does the shop learn that broker-b is gone?
#
# - at_once: at once; the name server sees the closed connection and tells the clients
#   > The name server sees it at once. But it has no list of clients and sends them nothing; the shop asks every 30 s.
# - poll: when it asks next, after up to 30 s
#   = The shop gets no notice. It uses its last route until it asks again.
# - expiry: after 120 s, when the name server has not heard from the broker for that long
#   > 120 s are for silence. A closed connection removes the broker at once.
# note: A name server only answers requests.
# later: A broker's process is killed, and its connections close. When does a producer that sends to it learn that it
#   is gone?

# %% tags=["parameter"]
killed = play_knows(KnowsSettings(happens="kill"))
learned = {name: killed.since(name) / 1000 for name in killed.observers}
Bars(learned, unit="s", title="broker-b is killed: who changes its mind, and when")

# %%
late = learned["shop"] - learned["nameserver-1"]
reveal("lab02.killed", "at_once" if late < 1 else "poll" if late <= 30 else "expiry")

# %% [markdown]
# Billing follows slightly after the shop, because it needs the route and then a rebalance (重平衡).
#
# Now the machine of broker-b loses its power. No connection is closed, and no packet comes.

# %% [prediction] lab02.silent
# The last registration of broker-b came some seconds before. When does the name server take it off its list?
#
# - missed: after 30 s, when a registration is missing
#   > One or two may be late. The name server waits four times as long.
# - expiry: after 120 s of silence, at its next scan
#   = It scans every 5 s, and removes brokers that have been silent for more than 120 s.
# - at_once: at once, because the connection is broken
#   > A connection whose other end lost power looks like an idle one. The name server waits for 120 s of silence.
# note: The worst case is 120 + 5 s until the name server knows, and 30 s more until a client asks. For two and a half
#   minutes half of all sends time out.
# later: A broker falls silent, but its connections stay open. When does the name server take it off its list?

# %% tags=["parameter"]
silent = play_knows(KnowsSettings(happens="power_off"))
learned = {name: silent.since(name) / 1000 for name in silent.observers}
failed = sum(not send.stored for send in silent.sends)
Bars(learned, unit="s", title=f"broker-b loses power: {failed} sends of the shop fail")

# %%
noticed = learned["nameserver-1"]
happened = "at_once" if noticed < 5 else "missed" if noticed < 60 else "expiry"
reveal("lab02.silent", happened)

# %% [markdown]
# Choose what happens to broker-b, move the moment, and read what each process believes then. Where two rows contradict
# each other, sends fail or orders stay unread.

# %% tags=["explorer"]
knows_board()

# %% [answer] lab02.in_vain
# ### Your turn: fewer failed sends
#
# broker-b is killed. Change **one** setting of this board so that the shop learns of it within ten seconds. How many
# sends to broker-b fail then? (The line above the picture says it, and `quick.wasted`.)
#
# wrong thirty: That is how many there are when clients ask every 30 s.
# wrong none: A client that asks more often knows it sooner, but still not at once.
# wrong: Look at the line above the picture again, or at `quick.wasted`.
# note: After each failed send the shop tries the other broker, so no order is lost. The price is more requests to the
#   name server; the setting is `pollNameServerInterval`.

# %% tags=["explorer"]
quick = knows_board(happens="kill", recorded={})
quick

# %%
### BEGIN SOLUTION
quick.play(poll_s=10)
answer("lab02.in_vain", 1, quick)
### STARTER
# answer("lab02.in_vain", ..., quick)
### END SOLUTION

# %% [exercise] lab02.believes
# ### Exercise 1: what a client believes
#
# `events` is what happened, in order: tuples `(second, what, who)`.
#
# | what | who | what happens |
# |---|---|---|
# | `"registered"` | a broker | its registration reaches the name server |
# | `"closed"` | a broker | its connection to the name server is closed |
# | `"scan"` | | the name server scans for silent brokers: those that have not registered for **more** than 120 s |
# | `"asked"` | a client | the client asks for the route of the topic, which all registered brokers have |
#
# `believes(events, who, t)` returns the sorted names of the brokers in the route of the client `who` at second `t`
# (events at `t` count). A client that never asked has none. When no broker of the topic is left, the name server
# answers *no route*, and then **the client keeps what it has**.
#
# hint: Go through the events with two memories: what the name server knows (when did each broker last register?), and
#   the last answer that the client got.
# hint: `registered` sets a time, `closed` removes a broker, `scan` removes all whose time is more than 120 s ago. Only
#   `asked`, by this client, changes what the client believes.
# hint: `if what == "asked" and name == who and last: held = sorted(last)`, where `last` is a dict from broker to
#   second. Stop at the first event after `t`.
# note: That is `RouteInfoManager` (registerBroker, onChannelDestroy, scanNotActiveBroker) and, at the client,
#   `MQClientInstance.updateTopicRouteInfoFromNameServer`, which keeps the old route when the answer is TOPIC_NOT_EXIST.
#   At work: after every change, wait for 30 s before you check whether it worked.


# %% tags=["picture"]
events = [
    (0, "registered", "broker-a"),
    (1, "registered", "broker-b"),
    (5, "asked", "shop"),
    (20, "closed", "broker-b"),
    (30, "registered", "broker-a"),
    (35, "asked", "shop"),
]
both = "broker-a, broker-b"
told = ["", "", both, both, both, "broker-a"]
Table(
    {"second": second, "what": what, "who": who, "the shop believes in": believed}
    for (second, what, who), believed in zip(events, told, strict=True)
)


# %%
# exercise: lab02.believes
def believes(events, who, t):
    """The brokers that a client believes in at second t, as a sorted list."""
    ### BEGIN SOLUTION
    last, held = {}, []
    for second, what, name in events:
        if second > t:
            break
        if what == "registered":
            last[name] = second
        elif what == "closed":
            last.pop(name, None)
        elif what == "scan":
            last = {one: then for one, then in last.items() if second - then <= 120}
        elif name == who and last:
            held = sorted(last)
    return held
    ### END SOLUTION


# %%
check("lab02.believes")

# %% [belief] lab02.told_at_once
# question: A broker is gone, and the name server knows it. What does a client know?
# claim: The same, at once.
# refutation: A name server notifies no client: a client knows only the last answer that it got.

# %% [belief] lab02.closed_waits
# question: A broker's connection is closed. When does the name server remove it?
# claim: After 120 s without a registration.
# refutation: A closed connection removes a broker at once; the 120 s are for brokers that fall silent.

# %% [belief] lab02.nothing_left
# question: The last broker of a topic is gone, and a client asks for the route. What does it believe now?
# claim: That there is no broker.
# refutation: When no broker of the topic is left, the name server answers that there is no route, and a client keeps
#   the one that it has: it keeps trying brokers that are gone.

# %% [belief] lab02.silence_is_seen
# question: A broker has been silent for 121 s. Which process knows it?
# claim: The name server.
# refutation: The name server sees silence only at a scan; between two scans it answers with what it has.

# %% [belief] lab02.one_missed
# question: A broker registers every 30 s, and one registration is missing. What does the name server do?
# claim: It removes the broker.
# refutation: A broker counts as alive for 120 s after its last registration: three may be missing.

# %% [markdown]
# ## Two name servers that disagree
#
# Name servers do not know each other. A client asks one, and stays with it as long as its connection holds. Now a cable
# fails, and only nameserver-1 no longer hears from broker-b.


# %% tags=["parameter"]
no_trace = {"enable_trace": False}  # nothing but orders in the log


def billing_reads(lab):
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()


# %% tags=["parameter"]
def cut_off(lab, cut_for="4m"):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    billing_reads(lab)
    shop = lab.producer("shop")
    lab.traffic(shop, rates=[("0s", 1)], message=order)
    lab.run_for("20s")
    lab.partition("broker-b", "nameserver-1")
    lab.run_for(cut_for)


def order(number):
    return Message("orders", b"a book", keys=f"order-{number}")


# %% [prediction] lab02.disagree
# Four minutes later. The shop happens to ask nameserver-2, billing nameserver-1. Both run well, and so does broker-b.
# What happens to the orders that the shop sends to broker-b?
#
# - nothing: nothing special; the name servers tell each other what they know
#   > They never talk to each other. Each knows only the brokers that register with it.
# - elsewhere: the shop sends to broker-a alone, because broker-b counts as dead
#   > For nameserver-1 it does. The shop asks nameserver-2, which hears from broker-b every 30 s.
# - unread: they stay there, and no consumer reads them
#   = The shop's route has broker-b, billing's does not. No log has an error.
# note: Nothing is lost: the orders are in broker-b's log. But no alarm shows that they wait; a dashboard that asks
#   nameserver-1 does not even show the broker.
# later: broker-b is known to nameserver-2 alone. The shop happens to ask nameserver-2, billing nameserver-1, and all
#   of them run well. What happens to the orders that the shop sends to broker-b?

# %%
lab = play(cut_off, seed=7, brokers=2, name_servers=2, client=no_trace)
waiting = {"broker-a": 0, "broker-b": 0}
for row in lab.progress("billing"):
    waiting[row.broker] += row.lag
Bars(
    waiting,
    unit="orders that nobody has read",
    title="four minutes after the cable failed",
)

# %%
sent_there = lab.store("broker-b").messages("orders")
recent = any(one.store_timestamp > lab.now_ms - 60_000 for one in sent_there)
unread = waiting["broker-b"] > 10
happened = "unread" if recent and unread else "nothing" if recent else "elsewhere"
reveal("lab02.disagree", happened)

# %% [markdown]
# Each client chooses its name server at random when it starts, and again when that one cannot be reached:

# %% tags=["picture"]
names = {lab.name_server(f"nameserver-{n}").address: f"nameserver-{n}" for n in (1, 2)}
known = {
    name: ", ".join(sorted(lab.name_server(name).routes.brokers))
    for name in names.values()
}
Table(
    {
        "client": name,
        "asks": names[lab.node_handle(name).client.cluster.name_servers.chosen],
        "which knows": known[
            names[lab.node_handle(name).client.cluster.name_servers.chosen]
        ],
    }
    for name in ("shop-1", "billing-1")
)

# %% [answer] lab02.healed
# ### Your turn: the cable is replaced
#
# Choose a `CUT_FOR` of at least a minute with which the fault does no harm: only a few orders wait when the cable is
# replaced. How many orders waited then?
#
# wrong many: That is what waits after four minutes: the name server had forgotten broker-b by then.
# wrong: Run the cell again with your CUT_FOR and read the number under it.
# note: Silence of less than 120 s changes nothing. Most short network failures therefore go unnoticed.

# %% tags=["parameter"]
CUT_FOR = "4m"


def healed(lab):
    cut_off(lab, CUT_FOR)
    lab.waiting = sum(row.lag for row in lab.progress("billing"))
    lab.heal()
    lab.run_for("2m")


cable = play(healed, seed=7, brokers=2, name_servers=2, client=no_trace)
print(cable.waiting, "orders waited when the cable was replaced")

# %%
### BEGIN SOLUTION
CUT_FOR = "70s"
cable = play(healed, seed=7, name_servers=2, brokers=2, client=no_trace)
answer("lab02.healed", cable.waiting, cable)
### STARTER
# answer("lab02.healed", ..., cable)
### END SOLUTION

# %% [markdown]
# ## A topic that the first message creates
#
# Three brokers. The shop sends two orders to a topic that does not exist. `autoCreateTopicEnable` is on, as by default.


# %% tags=["parameter"]
def first_orders(lab, orders=2):
    shop = lab.producer("shop")
    for number in range(orders):
        shop.send(order(number))
    lab.run_for("1s")


# %% [prediction] lab02.auto
# Where is the topic now?
#
# - all: on all three brokers, with four queues on each
#   > A broker creates a topic only when a message for it arrives. The other two received none.
# - one: on the broker, or the brokers, that received an order
#   = The shop uses the route of the template TBW102, which names all three. Only a broker that gets a message creates
#   = the topic.
# - nameserver: at the name server; the brokers get it when they need it
#   > Brokers create topics. The name server only stores what they register.
# note: Once one broker has the topic, its route names that broker alone, and every other client sends there: a whole
#   cluster works like one broker until an operator creates the topic properly.
# later: Three brokers create topics automatically. The shop sends two orders to a topic that does not exist. Where
#   is the topic now?

# %%
lab = play(first_orders, seed=7, brokers=3, client=no_trace)
brokers = ("broker-a", "broker-b", "broker-c")
found = {name: 1 if lab.broker(name).topics.get("orders") else 0 for name in brokers}
Bars(found, unit="topics called orders", title="after two orders")

# %%
many = sum(found.values())
reveal("lab02.auto", "all" if many == 3 else "one" if many else "nameserver")

# %% [markdown]
# The route that every other client gets now:

# %% tags=["picture"]
lab.admin.examine_topic_route_info("orders")

# %% [markdown]
# There are four queues, although the template has eight: the client asks for four (`defaultTopicQueueNums`), and the
# smaller number wins. What is a topic on that broker's disk?

# %% [prediction] lab02.physical
# The topic has four queues and two orders. How many directories of queues are on the disk?
#
# - four: four; the queues are created with the topic
#   > Creating a topic only writes a line with two numbers into `topics.json`. A queue's directory comes with its first
#   > message.
# - two: two
#   = The two orders went to different queues, and a queue's directory comes with its first dispatched message.
# - none: none; all messages are in one commit log
#   > The messages are. But their queues have files of their own, 20 bytes per message.
# note: An empty queue is only a number, so sixteen queues cost no more than eight.

# %%
(name,) = [broker for broker in brokers if found[broker]]
queues = sorted((lab.directory / name / "consumequeue" / "orders").iterdir())
reveal("lab02.physical", {0: "none", 2: "two", 4: "four"}[len(queues)])

# %% [markdown]
# `TopicConfig` does not contain a topic's messages. It has only this:

# %% tags=["picture"]
config = lab.admin.examine_topic_config("orders")
fields = (
    "topic_name",
    "read_queue_nums",
    "write_queue_nums",
    "perm",
    "topic_sys_flag",
    "order",
)
Table([{name: getattr(config, name) for name in fields}])

# %% [answer] lab02.spread
# ### Your turn: how many orders until it is everywhere
#
# Change `ORDERS` so that the shop's first burst creates the topic on **all** three brokers, with as few orders as you
# can. Answer with the number of orders.
#
# wrong three: Round robin goes queue by queue, and four queues of a broker come one after the other.
# wrong many: That is enough, and fewer are also enough.
# wrong: Try numbers between 2 and 20, and look at the line under the cell.
# note: Within 30 s the shop asks for the route, and from then on it uses only the brokers that have the topic. Create
#   topics before you use them.

# %% tags=["parameter"]
ORDERS = 2

burst = play(lambda lab: first_orders(lab, ORDERS), seed=7, brokers=3, client=no_trace)
print(
    ORDERS,
    "orders:",
    [name for name in brokers if burst.broker(name).topics.get("orders")],
)

# %%
### BEGIN SOLUTION
ORDERS = 9
burst = play(lambda lab: first_orders(lab, ORDERS), brokers=3, seed=7, client=no_trace)
answer("lab02.spread", ORDERS, burst)
### STARTER
# answer("lab02.spread", ..., burst)
### END SOLUTION

# %% [markdown]
# ## Break it: no name server is left
#
# Both name servers are killed. Five minutes later a second shop opens. What do you expect for the orders of the old
# shop, for billing, and for the new shop?


# %% tags=["parameter"]
DIES_TOO = None  # or "broker-b"


def nobody_to_ask(lab):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    billing_reads(lab)
    lab.traffic(lab.producer("shop"), rates=[("0s", 1)], message=order)
    lab.run_for("30s")
    for name in ("nameserver-1", "nameserver-2", DIES_TOO):
        if name:
            lab.kill(name)
    lab.run_for("5m")


# %%
lab = play(nobody_to_ask, seed=7, brokers=2, name_servers=2, client=no_trace)
died = lab.journal.of("fault.killed")[0].now_ms
bars = {
    f"stored in {name}": sum(
        one.store_timestamp > died for one in lab.store(name).messages("orders")
    )
    for name in ("broker-a", "broker-b")
}
rows = lab.deliveries("billing", absences=False)
bars["read by billing"] = sum(row.started_ms > died for row in rows)
Bars(bars, unit="orders", title="five minutes without a name server")

# %%
try:
    lab.producer("shop", name="second-shop").send(order(1_000))
except Exception as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# A client with a route continues; a new client has no name server to ask. Set `DIES_TOO` to `"broker-b"`: every order
# arrives in broker-a, but the shop never learns that it need not try broker-b first.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **The times** follow from when each process started. Start them at other seconds, and half a minute becomes five
#   seconds, or thirty.
# - **A closed connection** is seen at once here. In a real network a firewall may drop the close, which leaves silence.
# - **Slaves** do not appear here: with one, a route still names the broker when its master is gone, and consumers keep
#   reading.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | brokers register every 30 s | `registerNameServerPeriod`, `BrokerController.registerBrokerAll` |
# | a closed connection removes a broker at once | `BrokerHousekeepingService.onChannelClose`, `RouteInfoManager.onChannelDestroy` |
# | silence of more than 120 s, scanned for every 5 s | `scanNotActiveBroker`, `scanNotActiveBrokerInterval` |
# | clients ask every 30 s | `pollNameServerInterval`, `updateTopicRouteInfoFromNameServer` |
# | one name server of several, kept while it answers | `NettyRemotingClient.getAndCreateNameserverChannel` |
# | created by the first message | `autoCreateTopicEnable`, template `TBW102`, `createTopicInSendMessageMethod` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | an automatically created topic has four queues on each broker | on each broker that receives a message for it; 4 is the smaller of the client's 4 and the template's 8 |
# | four queues are created physically | the directory of a queue comes with its first dispatched message |
# | TopicConfig holds the data of all queues | two numbers of queues, a permission and flags |
# | the name server scans every 10 s | 5 s since 5.0 |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab02.no_push
# **1.** Why does a name server not simply notify the clients?
#
# answer: It would have to know all clients, and agree with the other name servers on which one notifies which client.
#   Without that it stays simple: only memory, no peers, and any of them can be switched off. The price is half a minute
#   with old routes, and a failed send is retried at another broker.

# %% [reflection] lab02.switch_off
# **2.** How do you switch off a broker without a single failed send?
#
# answer: Remove its write permission (`wipeWritePerm`), wait at least 30 s until all producers have asked, wait until
#   all groups have read its messages, and then shut it down. Try it on the board: *an operator takes its write
#   permission*.

# %% [markdown] tags=["reading"]
# ## Next
#
# The [second part](02b-what-a-send-costs.ipynb) shows what retries cost, and when they do not help. All labs:
# [index](index.ipynb).

# %% [markdown]
# # What is not modelled, and why
#
# mqlab is a complete small broker, with the clients that go with it, and not all of RocketMQ 5.3. This page says what is
# missing, what RocketMQ does there, and what happens here instead, so that nobody takes a gap for a fact. The rule was:
# what a lab needs to be honest is here, to the byte; what would make the code longer without teaching something new is not.
#
# Three pages together say where mqlab and RocketMQ differ. This one lists what is missing.
# [Where mqlab differs on purpose](../docs/differences.md) lists what is here and behaves in another way. *What this does
# not prove* in each lab says what its simulation cannot show. Every module names what it leaves out in the last lines of
# its docstring. The terms are explained in the [glossary](glossary.ipynb); all labs are in the [index](index.ipynb).

# %% [markdown]
# ## Ways of consuming
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **POP** | a consumer takes messages with a lease and acknowledges each one by a receipt; the broker keeps what is out, queues have no owner | request codes of POP are answered "not supported" (3); its retry topics are plain names. A second, different model of consuming would double the consumer's code; the labs are about the first one |
# | **client_rebalance=false**, message request mode | the broker tells a group's members which queues are theirs | members always compute it themselves, which is the default |
# | **proxy** and gRPC clients | a stateless server between new clients and brokers, which speaks POP for them | clients talk to brokers in the remoting protocol |
# | **request-reply** | a producer sends and waits for another program's answer, which travels as a message | codes 324 to 326 are not known; two topics do the same and show how |
# | **recall** | a delayed message is taken back before its time | not known; it rests on the timer wheel |
# | **automatic batches** | a producer collects small messages and sends them as one request | off in RocketMQ by default; `send` sends at once |
# | **class filters** | Java code uploaded to a filter server | tags and SQL92; RocketMQ itself has abandoned it |

# %% [markdown]
# ## Kinds of storage
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **timer wheel** | messages delayed by any time, up to days, in files `timerlog` and `timerwheel` | the 18 delay levels; messages with timer properties are refused as by a broker with `timerWheelEnable=false` |
# | **RocksDB** | queues and configuration in an embedded database instead of files | files, which a learner can open; foreign files are named and left alone |
# | **tiered** storage | old log segments in object storage | retention deletes; a Parquet copy of a store (lab 10) is the nearest thing |
# | **compaction** topics | only the newest message of each key is kept | all topics are ordinary ones |
# | **batch** consume queues, INNER_BATCH | several messages in one unit and one queue entry | a batch is stored as one unit each, which is the default |
# | queue **extension**, filter **bitmap** | tag codes of any length and precomputed SQL results beside the queue | SQL is evaluated at the pull; both are off by default |
# | **LMQ** (light queues) | thousands of queues that share one topic's messages, for MQTT | ordinary queues |
# | **transient** store pool, warm-up, swap | writing through off-heap memory, touching pages early | written straight into the mapped file: the difference is speed, and mqlab's speed is not RocketMQ's |
# | **cold-data** control | pulls that read cold data are slowed down | cold reads get smaller answers (32, then 8); nothing is slowed down |

# %% [markdown]
# ## More than one copy, more than one name
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **DLedger** | the commit log replicated by Raft | a master and its replicas with RocketMQ's own protocol; elections are a course of their own |
# | **controller** | elects a new master among in-sync replicas, with epochs in the log | a master that is down stays down until it is started again |
# | **acting master** | a replica takes over some duties, such as queue locks and delayed messages | replicas are read from, and do nothing else |
# | **static topics** (logical queues) | queues that keep their numbers while they move between brokers | a queue lives on one broker |
# | **namespace**s | a prefix to topics and groups, so that tenants do not meet | names are taken as they are |
# | broker **container** | several brokers in one process | a node each |
# | **VIP** channel | a second port for sends and administration, which pulls cannot hold up | one port |

# %% [markdown]
# ## Operation
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **ACL**, users | signatures, permissions a user and resource | everybody may do everything; the labs have no enemies inside |
# | **TLS** | encrypted connections, HAProxy headers | plain frames, so that they can be looked at |
# | **HTTP** or DNS lists of name servers | a client finds its name servers by an address | they are given |
# | heartbeat **V2** | a short heartbeat with a digest instead of the whole list of subscriptions | the answer does not offer it, so clients send whole ones |
# | thread **pool**s per kind of request | overload in one kind does not block another; a full pool answers `SYSTEM_BUSY` | one mailbox a node: requests take their turn, and a node's own code costs no time |
# | OpenTelemetry **metrics** | counts, lags and latencies exported to Prometheus | counters and statistics that the journal and `lab.admin` show |
# | **Windows** | runs on it | Linux and macOS; inside WSL on Windows |
# | **jstack** in running info | the stacks of a consumer's threads | a coroutine has no thread to dump; the journal says what it waits for |

# %% [markdown]
# ## The world around
#
# These are not parts of RocketMQ, and what a Lab says about them holds for the Lab.
#
# | not here | in a data centre | here instead |
# |---|---|---|
# | time that code takes | a broker under load is slow because it computes | node code costs nothing; only `context.sleep` and `context.compute` of a listener pass time |
# | **bandwidth** | large bodies take longer | one latency for all frames, unless a fault says otherwise |
# | lost and doubled packets | TCP hides them, at a price | a partition holds frames back and delivers them in order when it heals; a drop loses them |
# | disks that lie, **torn pages** | a page is half new, half old after a power cut | a page of 4 KiB is there or not |
# | clocks that disagree | each machine has its own time | one virtual clock for all |
#
# Simulated numbers are therefore good for *when*, *how often*, *in which order* and *what is lost*. They say nothing about
# how many messages a second a real broker takes: for that, measure one.

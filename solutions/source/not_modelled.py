# %% [markdown]
# # What is not modelled, and why
#
# mqlab is a complete small broker with its clients, but it does not have everything that RocketMQ 5.3 has. This page lists what is missing, what RocketMQ does there, and what happens here instead. Everything that a lab needs to be honest is here, byte for byte. Code that would teach nothing new is not.
#
# [Where mqlab differs on purpose](../docs/differences.md) lists features that behave differently, and *What this does not prove* in each lab what its simulation cannot show. The [glossary](glossary.ipynb) explains the terms; all labs are in the [index](index.ipynb).

# %% [markdown]
# ## Ways of consuming
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **POP** on RocksDB, limits of messages in flight | a second implementation of POP; a limit on what one group has out | the classic implementation, which is the default; both are off in RocketMQ |
# | **orderly pop** by clients of a Lab | the proxy pops the messages of a group one after another | an orderly push consumer locks its queues and pulls, as RocketMQ's does, even where its group pops; `mqlab serve --grpc` pops in order |
# | **proxy** in a Lab | a server between clients that speak gRPC and brokers, which speaks POP for them | clients in a Lab talk to brokers in the remoting protocol; `mqlab serve --grpc` answers the others |
# | **request-reply** | a producer sends a message and waits for another program's answer, which is also a message | a broker pushes replies to a waiting client of another language; mqlab's own producer does not wait for one: two ordinary topics do the same and show how it works |
# | **automatic batches** | a producer collects small messages and sends them as one request | off in RocketMQ by default; `send` sends at once |
# | **class filters** | Java code uploaded to a filter server | tags and SQL92; RocketMQ itself has abandoned class filters |

# %% [markdown]
# ## Kinds of storage
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **RocksDB** | queues and configuration in an embedded database instead of files | files, which a learner can open; a store's other files are reported and left alone |
# | **tiered** storage | old log segments in object storage | retention deletes; a Parquet copy of a store (lab 10) is the nearest thing |
# | **compaction** topics | only the newest message of each key is kept | all topics are ordinary topics |
# | **batch** consume queues, INNER_BATCH | several messages are stored in one unit with one queue entry | each message of a batch is stored in its own unit, which is the default |
# | queue **extension**, filter **bitmap** | tag codes of any length, and SQL results computed in advance, are stored next to the queue | SQL is evaluated when a pull is answered; both are off by default |
# | **LMQ** (light queues) | thousands of queues that share one topic's messages, for MQTT | ordinary queues |
# | **transient** store pool, warm-up, swap | messages are written through off-heap memory; pages are touched in advance | messages are written straight into the mapped file. The difference is one of speed, and mqlab does not have RocketMQ's speed |
# | daily check of the **timer** wheel | at 5 o'clock the counts of waiting messages are computed again from the wheel | the counts change with each message, and are not computed again |
# | **cold-data** control | pulls that read cold data are slowed down | answers to cold reads have fewer messages (8 instead of 32); nothing is slowed down |

# %% [markdown]
# ## More than one copy, more than one name
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **DLedger** | the commit log replicated by Raft | a master and its slaves with RocketMQ's own protocol; elections would be a separate course |
# | **controller** | elects a new master among in-sync replicas, with epochs in the log | a master that is down stays down until it is restarted |
# | **escape** of revived messages | with an acting master, a message that was popped and not acknowledged may be put to another broker | a broker revives what it has handed out itself |
# | **acting master** | a slave takes over some duties, such as queue locks and delayed messages | clients can read from slaves; slaves do nothing else |
# | **static topics** (logical queues) | queues keep their numbers while they move between brokers | a queue stays on one broker |
# | **namespace**s | a prefix on topics and groups keeps tenants apart | names are used as they are |
# | broker **container** | several brokers run in one process | each broker is a separate node |
# | **VIP** channel | a second port for sends and administration, so that pulls cannot delay them | one port |

# %% [markdown]
# ## Operation
#
# | not here | what RocketMQ does with it | here instead, and why |
# |---|---|---|
# | **ACL** | requests are signed; there are permissions per user and resource | in a Lab every client may do everything, because a Lab has no attacker; `mqlab serve` checks signatures, but no permissions |
# | **TLS** | connections are encrypted; HAProxy headers are understood | plain frames, so that students can look at them |
# | **HTTP** or DNS lists of name servers | a client looks up its name servers under an address | clients get their name servers when they are created |
# | heartbeat **V2** | a short heartbeat has a digest instead of the whole list of subscriptions | the broker's answer does not offer V2, so clients send whole heartbeats |
# | thread **pool**s per kind of request | overload in one kind does not block another; a full pool answers `SYSTEM_BUSY` | one mailbox per node: requests are handled one after another, and a node's own code costs no time |
# | OpenTelemetry **metrics** | counts, lags and latencies are exported to Prometheus | counters and statistics that the journal and `lab.admin` show |
# | **Windows** | RocketMQ runs on it | Linux and macOS, or WSL on Windows |
# | **jstack** in running info | running info has the stacks of a consumer's threads | a coroutine has no thread whose stack could be shown; the journal shows what it waits for |

# %% [markdown]
# ## The world around
#
# These are not parts of RocketMQ. What a Lab shows about them is true only in the Lab.
#
# | not here | in a data centre | here instead |
# |---|---|---|
# | time that code takes | a broker under load is slow because it computes | the code of a node costs no time; only `context.sleep` and `context.compute` in a listener do |
# | **bandwidth** | large bodies take longer | one latency for all frames, unless a fault changes it |
# | lost and repeated packets | TCP hides them, which costs time | a partition holds frames back and delivers them in order when it heals; a drop loses them |
# | disks that lie, **torn pages** | after a power cut a page may be half new and half old | a page of 4 KiB is either written or not |
# | clocks that disagree | each machine has its own time | one virtual clock for all, unless `skew_clock` changes a node's |
#
# Simulated numbers are therefore good for *when*, *how often*, *in which order* and *what is lost*. They say nothing
# about how many messages per second a real broker takes: to know that, measure one.

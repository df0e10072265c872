# %% [markdown]
# # Glossary (术语表)
#
# The terms of the labs and of the package, one sentence each, with the Chinese term and the name that RocketMQ's
# source, settings or tools use. The last column links the lab that explains the term. All labs are in the
# [index](index.ipynb). Features that mqlab does not have are in [What is not
# modelled](not-modelled.ipynb).
#
# [The machines](#The-machines) · [Messages](#Messages) · [Files](#Files) · [Reading](#Reading) · [Filtering](#Filtering)
# · [Retries and dead letters](#Retries-and-dead-letters) · [Delayed and transactional
# messages](#Delayed-and-transactional-messages) · [Spark and streaming](#Spark-and-streaming) · [Running and
# looking](#Running-and-looking)

# %% [markdown]
# ## The machines
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | broker | 代理服务器（Broker） | the server that stores messages, answers pulls and remembers how far each group has read | `BrokerController` | [00](00-a-messages-day.ipynb) |
# | client | 客户端 | the part of a program that talks to name servers and brokers; all its producers and consumers share one | `MQClientInstance` | [02](02a-who-knows-what.ipynb) |
# | client id | 客户端标识 | the name by which brokers distinguish the members of a group; two members with the same id look like one | `ClientConfig.buildMQClientId` | [03](03c-when-queues-move.ipynb) |
# | cluster | 集群 | brokers that register with the same name servers under one cluster name | `brokerClusterName` | [02](02a-who-knows-what.ipynb) |
# | consumer | 消费者 | a member of a consumer group: it pulls from the queues that are its own and hands the messages to a listener | `DefaultMQPushConsumer` | [00](00-a-messages-day.ipynb) |
# | consumer group | 消费者组 | the consumers with the same group name; they share a topic's queues and have one offset per queue | `consumerGroup`, `ConsumerGroupInfo` | [00](00-a-messages-day.ipynb) |
# | lite pull consumer | LitePull 消费者 | a consumer that fetches in the background and hands out messages when the program calls `poll` | `DefaultLitePullConsumer` | [06](06b-what-a-filter-passes-over.ipynb) |
# | master, slave | 主, 从 | the broker that takes messages, and a broker of the same name that copies its log and can be read from | `brokerRole`, `brokerId` (0 is the master) | [02](02a-who-knows-what.ipynb) |
# | name server | 名字服务（NameServer） | the server that brokers report to and that tells clients which broker has which topic | `NamesrvController`, `RouteInfoManager` | [00](00-a-messages-day.ipynb) |
# | producer | 生产者 | the part of a program that sends messages | `DefaultMQProducer` | [00](00-a-messages-day.ipynb) |
# | push consumer | 推动式消费者（Push） | a consumer that pulls on its own and calls a listener; nothing is pushed to it | `DefaultMQPushConsumer` | [00](00-a-messages-day.ipynb) |
# | request, remoting command | 请求, 通信命令 | a frame with a numeric code, header fields and a body, matched to its answer by the number `opaque` | `RemotingCommand`, `RequestCode` | [00](00-a-messages-day.ipynb) |

# %% [markdown]
# ## Messages
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | batch | 批量消息 | several messages of one topic that are sent in one request; each is stored as its own unit | `MessageBatch` | [02](02b-what-a-send-costs.ipynb) |
# | body | 消息体 | the bytes of a message that the broker stores and never looks into | `Message.body` | [00](00-a-messages-day.ipynb) |
# | key | 消息键 | a string by which a message can be found; a message may have several, separated by spaces | `KEYS`, `keys` | [01](01b-finding-a-message.ipynb) |
# | message | 消息 | a topic, a body and properties; a stored message also has an offset in the log, a number in its queue, and times | `Message`, `MessageExt` | [00](00-a-messages-day.ipynb) |
# | message queue, broker system | 消息队列 | a system that takes messages from some programs and keeps them for others, so that the two need not run at the same time | RocketMQ itself | [00](00-a-messages-day.ipynb) |
# | offset message id | 偏移量消息ID（offsetMsgId） | 32 hexadecimal digits that the broker makes of its address and the message's physical offset | `offsetMsgId`, `MessageDecoder.createMessageId` | [07](07a-failure-takes-time.ipynb) |
# | permission | 权限 | whether a topic may be read (4) and written (2) on a broker | `perm`, `PermName` | [02](02c-sixteen-queues-then-eight.ipynb) |
# | property | 属性 | a string with a name in a message; RocketMQ also keeps tags, keys, ids and retry counts in properties | `MessageConst` | [01](01a-what-the-broker-writes.ipynb) |
# | queue | 队列 | one of the numbered sequences of messages that make up a topic; messages are in order within a queue only | `MessageQueue` | [00](00-a-messages-day.ipynb) |
# | read and write queue count | 读写队列数 | how many queues of a topic clients may read, and how many they may send to; they differ while a topic grows or shrinks | `readQueueNums`, `writeQueueNums` | [02](02c-sixteen-queues-then-eight.ipynb) |
# | route | 路由 | a topic's brokers, their addresses, queue counts and permissions, as a name server reports them | `TopicRouteData` | [02](02a-who-knows-what.ipynb) |
# | system flag | 系统标志 | bits of a stored message: compressed, half or committed, IPv6 addresses | `MessageSysFlag` | [01](01a-what-the-broker-writes.ipynb) |
# | tag | 标签 | one word in a message by which consumers choose; a message has at most one | `TAGS`, `tags` | [01](01a-what-the-broker-writes.ipynb) |
# | topic | 主题 | a name for messages of one kind; its messages are spread over its queues | `TopicConfig` | [00](00-a-messages-day.ipynb) |
# | unique id | 消息唯一ID | 32 hexadecimal digits that the producer gives a message; it stays the same through all retries | `UNIQ_KEY`, `MessageClientIDSetter` | [07](07a-failure-takes-time.ipynb) |

# %% [markdown]
# ## Files
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | abort file | 异常退出标记 | a small file that exists while a broker runs; a broker that finds it at its start knows that the last run ended in a crash | `abort` | [01](01c-what-survives.ipynb) |
# | asynchronous flush | 异步刷盘 | the broker answers `SUCCESS` as soon as the message is in the page cache; it reaches the disk later | `flushDiskType=ASYNC_FLUSH` | [01](01c-what-survives.ipynb) |
# | BLANK | 文件尾填充 | eight bytes at the end of a full log file; they say how many bytes are left and that nothing follows in this file | `CommitLog.BLANK_MAGIC_CODE` | [01](01b-finding-a-message.ipynb) |
# | chain | 链表 | the entries of one index slot, from the newest to the oldest; each names its predecessor | `IndexFile.putKey` | [01](01b-finding-a-message.ipynb) |
# | checkpoint | 检查点 | a file with the times up to which log, queues and index are certainly on disk; recovery begins a little earlier | `StoreCheckpoint` | [01](01c-what-survives.ipynb) |
# | commit log | 提交日志 | the single growing log in which a broker stores the messages of all topics, in the order of their arrival | `CommitLog` | [01](01a-what-the-broker-writes.ipynb) |
# | consume queue | 消费队列 | the file of a queue, with 20 bytes per message with the message's position in the commit log | `ConsumeQueue` | [01](01a-what-the-broker-writes.ipynb) |
# | dispatch | 分发 | the step after storing that writes a unit's entries in its queue and in the index | `ReputMessageService` | [01](01a-what-the-broker-writes.ipynb) |
# | entry | 消费队列条目 | 20 bytes of a consume queue: physical offset, size, tag code | `ConsumeQueue.CQ_STORE_UNIT_SIZE` | [01](01a-what-the-broker-writes.ipynb) |
# | flush | 刷盘 | to make the operating system put written bytes on disk (fsync) | `GroupCommitService`, `FlushRealTimeService` | [01](01c-what-survives.ipynb) |
# | index | 索引文件 | a hash table on disk that leads from keys to physical offsets; it does not hold the keys | `IndexFile`, `IndexService` | [01](01b-finding-a-message.ipynb) |
# | mapped file | 内存映射文件 | a file of fixed length that a broker reads and writes as memory | `DefaultMappedFile`, `MappedFileQueue` | [01](01a-what-the-broker-writes.ipynb) |
# | page cache | 页缓存 | the operating system's memory for file contents; it survives the crash of a process, but not a power cut | `mmap` | [01](01c-what-survives.ipynb) |
# | physical offset | 物理偏移量 | a position in the commit log, counted in bytes from the first byte that the log ever had | `commitLogOffset`, `phyOffset` | [01](01b-finding-a-message.ipynb) |
# | power cut | 断电 | the machine stops at once, and what was not flushed is lost; the disk in the labs keeps track of every page | | [01](01c-what-survives.ipynb) |
# | queue offset | 队列偏移量, 队列位点 | a message's number in its queue, from 0; the broker assigns it when it stores the message | `queueOffset`, `QueueOffsetOperator` | [00](00-a-messages-day.ipynb) |
# | recovery | 恢复 | what a broker does with its files when it starts: it finds the end of the log, cuts off what follows, and adds missing entries | `recoverNormally`, `recoverAbnormally` | [01](01c-what-survives.ipynb) |
# | retention | 过期文件清理 | the deletion of whole log files, oldest first, read or unread: after 72 hours at 04:00, earlier when the disk fills | `fileReservedTime`, `deleteWhen` | [01](01c-what-survives.ipynb) |
# | slot | 哈希槽 | 4 bytes of an index file that hold the number of the newest entry whose hash falls there | `IndexFile.selectPhyOffset` | [01](01b-finding-a-message.ipynb) |
# | smallest and largest offset | 最小位点, 最大位点 | the queue offset of the oldest message that a queue still has, and the number that its next message gets | `minOffset`, `maxOffset` | [01](01b-finding-a-message.ipynb) |
# | synchronous flush | 同步刷盘 | the broker answers `SUCCESS` when the message is on disk; all waiting messages share one flush | `flushDiskType=SYNC_FLUSH` | [01](01c-what-survives.ipynb) |
# | tag code | 标签哈希, 哈希码 | Java's 32-bit `hashCode` of the tag, in the entry's last 8 bytes; in the topic of delayed messages the time of delivery | `tagsCode` | [01](01a-what-the-broker-writes.ipynb) |
# | timer log | 定时日志 | a log with 52 bytes per timed message: where it waits in the commit log, and the slot's unit before it | `TimerLog` | [08](08c-at-any-second.ipynb) |
# | timer wheel | 时间轮 | a file with a slot per second; a slot is the head of a list in the timer log | `TimerWheel` | [08](08c-at-any-second.ipynb) |
# | unit | 存储单元 | one message in the commit log, with all its fields in a fixed order | `MessageExtEncoder` | [01](01a-what-the-broker-writes.ipynb) |

# %% [markdown]
# ## Reading
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | acknowledgement | 确认 | a listener's `CONSUME_SUCCESS`; it moves the group's offset and does not delete anything | `ConsumeConcurrentlyStatus` | [00](00-a-messages-day.ipynb) |
# | acknowledgement of a lease | 消息确认（ACK） | a popping consumer says that one message is done; the handle names the lease | `ACK_MESSAGE` | [15](15a-leased-not-owned.ipynb) |
# | allocation strategy | 分配策略 | the rule by which the members of a group share a topic's queues, each computing it alone | `AllocateMessageQueueStrategy` | [03](03a-who-reads-which-queue.ipynb) |
# | at least once | 至少一次 | the promise that an acknowledged message is not lost, and the warning that it may be delivered again | | [00](00-a-messages-day.ipynb) |
# | averagely, averagely by circle | 平均分配, 环形平均分配 | the two strategies that share queues evenly: contiguous blocks, or one queue at a time in a circle | `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle` | [03](03a-who-reads-which-queue.ipynb) |
# | batch, ack index | 批量消费 | several messages in one call of a listener; messages up to the ack index count as consumed, later ones are sent back | `consumeMessageBatchMaxSize`, `ackIndex` | [05](05a-many-at-a-time.ipynb) |
# | broadcasting | 广播消费 | every consumer of a group gets every message and keeps its own offsets in a local file | `MessageModel.BROADCASTING` | [04](04b-beginning-again.ipynb) |
# | clustering | 集群消费 | the usual way: each queue belongs to one member of the group, and the broker keeps the offsets | `MessageModel.CLUSTERING` | [03](03c-when-queues-move.ipynb) |
# | cold read | 冷读 | reading messages that are no longer in memory; the broker then puts fewer of them into one answer | `accessMessageInMemoryMaxRatio` | [09](09b-what-gives-way.ipynb) |
# | committed offset | 已提交位点 | the offset of a group that the broker knows; a group that restarts continues there | `ConsumerOffsetManager`, `UPDATE_CONSUMER_OFFSET` | [00](00-a-messages-day.ipynb) |
# | concurrent consumption | 并发消费 | a listener is called by many threads, and messages of a queue may overtake each other | `MessageListenerConcurrently` | [05](05a-many-at-a-time.ipynb) |
# | consistent hashing | 一致性哈希 | members and queues are points on a ring of hashes; a queue belongs to the next member, so that a change moves few queues | `AllocateMessageQueueConsistentHash` | [03](03b-what-a-change-moves.ipynb) |
# | consumer offset, offset of a group | 消费位点 | the queue offset of the next message that a group reads from a queue | `OffsetStore`, `consumerOffset.json` | [00](00-a-messages-day.ipynb) |
# | delivery | 投递 | one call of a listener with a message; a message that fails has several | `consumeMessage` | [00](00-a-messages-day.ipynb) |
# | duplicate | 重复消费 | a delivery of a message that was handled already | | [00](00-a-messages-day.ipynb) |
# | flow control | 流控 | a consumer stops pulling from a queue while it holds too many of the queue's messages | `pullThresholdForQueue`, `consumeConcurrentlyMaxSpan` | [04](04a-how-far-have-we-read.ipynb) |
# | global order | 全局顺序 | one queue for all messages of a topic; its price is one thread of one member | | [05](05b-one-at-a-time.ipynb) |
# | handle | 消息句柄（POP_CK） | the name of a lease: start offset, pop time, invisible time, queue and offset | `POP_CK`, `extraInfo` | [15](15a-leased-not-owned.ipynb) |
# | heartbeat | 心跳 | what a client reports to every broker every 30 s: its id, its groups, what they subscribe to | `HEART_BEAT`, `HeartbeatData` | [03](03c-when-queues-move.ipynb) |
# | hook | 钩子 | user code that a client or a broker calls before and after something, such as a call of the listener | `ConsumeMessageHook`, `SendMessageHook` | [05](05a-many-at-a-time.ipynb) |
# | idempotent | 幂等 | handling a message twice has the same result as handling it once | | [04](04b-beginning-again.ipynb) |
# | initial position | 初始位点 | where a group begins in a queue for which it has no offset at the broker | `consumeFromWhere` | [04](04b-beginning-again.ipynb) |
# | invisible time | 不可见时间 | how long a popped message stays on lease before the group gets it again | `invisibleTime` | [15](15b-when-it-comes-back.ipynb) |
# | lag | 消费堆积, 堆积 | how many messages of a queue a group has not acknowledged: the largest offset minus the committed offset | `consumerProgress`, `ConsumeStats` | [09](09a-falling-behind.ipynb) |
# | lease | 租约（不可见期） | the time for which a popped message is out; it ends by an ack, by a change, or by the clock | `PopCheckPoint` | [15](15a-leased-not-owned.ipynb) |
# | listener | 监听器 | the function or object to which a consumer hands messages; its result says whether it handled them | `MessageListener` | [00](00-a-messages-day.ipynb) |
# | Little's law | 利特尔法则 | calls in progress = calls per second times seconds per call; it holds for every listener and every queue | | [09](09a-falling-behind.ipynb) |
# | long polling | 长轮询 | a pull that finds nothing is held by the broker, up to 15 s from a push consumer, and answered when a message arrives | `PullRequestHoldService`, `suspendTimeoutMillis` | [00](00-a-messages-day.ipynb) |
# | machine room | 机房 | a data centre or zone with brokers and members; two strategies keep reading within it | `AllocateMessageQueueByMachineRoom` | [03](03a-who-reads-which-queue.ipynb) |
# | message queue selector | 队列选择器 | the function by which a producer chooses the queue of a message, so that all events of an order are in one | `MessageQueueSelector` | [05](05b-one-at-a-time.ipynb) |
# | orderly consumption | 顺序消费 | the messages of a queue are handled one after another, under a lock that the broker grants | `MessageListenerOrderly` | [05](05b-one-at-a-time.ipynb) |
# | POP | POP 消费 | to consume without owning queues: messages are leased to any member that asks, and acknowledged one by one | `POP_MESSAGE` | [15](15a-leased-not-owned.ipynb) |
# | process queue | 处理队列 | the messages of one queue that a consumer has pulled and not yet finished; the smallest of their offsets is the group's progress | `ProcessQueue` | [04](04a-how-far-have-we-read.ipynb) |
# | pull | 拉取 | the request for messages of a queue from an offset on; the answer has messages and the next offset to ask for | `PULL_MESSAGE`, `nextBeginOffset` | [00](00-a-messages-day.ipynb) |
# | queue lock | 队列锁 | the broker's promise that for the next 60 s only one client reads a queue, for orderly consumption | `RebalanceLockManager` | [05](05b-one-at-a-time.ipynb) |
# | rebalance | 重平衡 | each member computes again which queues it owns, after a change and every 20 s | `RebalanceImpl`, `RebalanceService` | [03](03c-when-queues-move.ipynb) |
# | reset | 重置位点 | setting a group's offsets to those of a point in time, forwards or backwards | `resetOffsetByTime` | [04](04b-beginning-again.ipynb) |
# | revival | 消息重新投递（Revive） | the broker stores a message whose lease ended without an ack again, in the retry topic of group and topic | `PopReviveService` | [15](15b-when-it-comes-back.ipynb) |
# | scaling out and in | 扩缩容 | members are added to a group or removed, and queues move | | [03](03b-what-a-change-moves.ipynb) |
# | thread | 线程 | a listener is called in several threads of its client at once, by default 20 | `consumeThreadMin`, `consumeThreadMax` | [00](00-a-messages-day.ipynb) |

# %% [markdown]
# ## Filtering
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | message filtering | 消息过滤 | a consumer names the messages of a topic that it wants, by tag or by an expression | `ExpressionType` | [06](06a-two-tags-in-one-group.ipynb) |
# | SQL filter | SQL92过滤 | an expression over a message's properties that the broker evaluates before it answers a pull | `SqlFilter`, `enablePropertyFilter` | [06](06b-what-a-filter-passes-over.ipynb) |
# | subscription | 订阅关系 | a topic and a filter expression; all members of a group must have the same subscriptions | `SubscriptionData` | [06](06a-two-tags-in-one-group.ipynb) |
# | tag filter | 标签过滤 | the broker compares tag codes, the client compares the tags themselves | `DefaultMessageFilter` | [06](06a-two-tags-in-one-group.ipynb) |
# | unknown | 未知（三值逻辑） | the third value of an SQL condition, when a property is missing; a message passes only if the value is true | `SqlFilter` | [06](06b-what-a-filter-passes-over.ipynb) |

# %% [markdown]
# ## Retries and dead letters
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | consume timeout | 消费超时 | every 15 minutes a consumer sends back the messages that its listener has held for longer than that; the listener keeps running | `consumeTimeout` | [07](07b-stop-in-time.ipynb) |
# | dead letter | 死信 | a message that failed as often as its group allows; it is kept in a topic that no consumer reads unless it subscribes to it | `%DLQ%` + group | [07](07a-failure-takes-time.ipynb) |
# | dead-letter queue | 死信队列 | the topic of a group's dead letters, with one queue per broker; consumers can subscribe to it like to any topic (before 4.9.2 it could only be written to) | `MixAll`, `%DLQ%` | [07](07a-failure-takes-time.ipynb) |
# | latency fault table | 故障延迟规避（延迟故障表） | the producer's table of brokers that were slow or failed, each banned for a time that depends on the class of its latency; off by default | `MQFaultStrategy`, `sendLatencyFaultEnable` | [02](02b-what-a-send-costs.ipynb) |
# | outbox | 本地消息表 | a table in which a program stores messages to send, in the transaction of the data that they report | | [02](02b-what-a-send-costs.ipynb) |
# | redrive, resend | 死信重投 | re-sending dead letters to the group in which they failed | the DLQ page of RocketMQ Dashboard | [07](07a-failure-takes-time.ipynb) |
# | retry | 重试, 消息重试 | another delivery of a message whose listener failed, after a delay that grows | `RECONSUME_LATER` | [07](07a-failure-takes-time.ipynb) |
# | retry count | 重试次数 | how often a message was sent back before this delivery; 0 at the first | `reconsumeTimes` | [07](07a-failure-takes-time.ipynb) |
# | retry topic | 重试主题（%RETRY%） | the topic of a group in which its failed messages are redelivered; every member reads it | `%RETRY%` + group | [07](07a-failure-takes-time.ipynb) |
# | send retry | 发送重试 | after a failure a synchronous send is repeated, to another broker if there is one, at most twice | `retryTimesWhenSendFailed` | [02](02b-what-a-send-costs.ipynb) |
# | send-back | 消息回发 | the request by which a consumer returns a failed message to the broker, which stores a copy of it | `CONSUMER_SEND_MSG_BACK` | [07](07a-failure-takes-time.ipynb) |
# | suspend | 挂起 | an orderly listener that fails holds its queue for a moment and gets the same message again | `SUSPEND_CURRENT_QUEUE_A_MOMENT` | [07](07b-stop-in-time.ipynb) |

# %% [markdown]
# ## Delayed and transactional messages
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | check-back | 事务回查 | the broker asks a producer's group for the outcome of a half message | `CHECK_TRANSACTION_STATE` | [08](08b-or-not-at-all.ipynb) |
# | delay level | 延迟级别 | one of 18 waiting times, from 1 s to 2 h; each has its own queue | `messageDelayLevel` | [07](07a-failure-takes-time.ipynb) |
# | delayed message | 延迟消息 | a message that waits in the schedule topic until the time of its delay level has passed | `DELAY`, `ScheduleMessageService` | [08](08a-later.ipynb) |
# | due time | 到期时间 | when a delayed message must be delivered; it is stored in the entry of the schedule topic in place of a tag's hash code | `tagsCode`, `delayOffset.json` | [08](08a-later.ipynb) |
# | half message | 半消息 | a message of a transaction, stored where no consumer of its topic sees it until it is committed | `RMQ_SYS_TRANS_HALF_TOPIC` | [08](08b-or-not-at-all.ipynb) |
# | op message | 操作消息 | a message with the half-queue offsets of half messages that have ended | `RMQ_SYS_TRANS_OP_HALF_TOPIC` | [08](08b-or-not-at-all.ipynb) |
# | recall | 撤回 | a request to drop a timed message; the broker stores a marker that is read before its slot is delivered | `RECALL_MESSAGE`, `recallHandle` | [08](08c-at-any-second.ipynb) |
# | roll window | 滚动窗口 | the longest time that a timed message stays in one slot; later ones are stored again on the way | `timerRollWindowSlot` | [08](08c-at-any-second.ipynb) |
# | schedule topic | 延迟主题 | the broker's own topic in which delayed and failed messages wait, with one queue per delay level | `SCHEDULE_TOPIC_XXXX` | [07](07a-failure-takes-time.ipynb) |
# | timed message | 定时消息 | a message with a delivery time; it waits in the timer topic until its slot of the timer wheel is due | `TIMER_DELIVER_MS`, `rmq_sys_wheel_timer` | [08](08c-at-any-second.ipynb) |

# %% [markdown]
# ## Spark and streaming
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | batch of a stream | 微批 | the rows that a stream passes to its sink at a time; its range is in the checkpoint before it begins | | [12](12a-every-number-twice.ipynb) |
# | broadcast join | 广播连接 | every task gets a copy of the small table, so that the rows of the large one stay where they are | | [10](10b-what-a-query-costs.ipynb) |
# | call of a listener | 调用 | one invocation of a listener with a message or a batch; a trace has its beginning and its end | `SubBefore`, `SubAfter` | [11](11a-what-happened-to-each-message.ipynb) |
# | checkpoint of a stream | 检查点 | the folder in which a job remembers how far each batch reads (`offsets`) and which are done (`commits`) | | [12](12a-every-number-twice.ipynb) |
# | coverage of a trace | 覆盖率 | for how many of the messages that a group has passed a call is known; below 100 %, "lost" is a guess | | [11](11a-what-happened-to-each-message.ipynb) |
# | DataFrame | DataFrame | a table in Spark; a store directory that is read with format `rocketmq` is one, with one row per message | | [10](10a-spark-reads-the-broker.ipynb) |
# | exactly once | 精确一次 | each message is delivered at least once, and the sink makes a repetition harmless | | [12](12a-every-number-twice.ipynb) |
# | filtered | 过滤 | not delivered to a group, because the group never gets messages with this tag | | [11](11a-what-happened-to-each-message.ipynb) |
# | hot key | 热点键 | a key, such as a customer, to which a large part of all messages belong | | [10](10a-spark-reads-the-broker.ipynb) |
# | hot queue | 热点队列 | a queue that gets far more messages than the others of its topic, often because of one key | | [10](10a-spark-reads-the-broker.ipynb) |
# | lost | 丢失 | passed by the offset of a group that wanted it, without a call | | [11](11a-what-happened-to-each-message.ipynb) |
# | outcome | 结局 | the state of a message in a group: consumed, dead, pending, filtered or lost | | [11](11a-what-happened-to-each-message.ipynb) |
# | outer join | 外连接 | also returns rows without a partner; for two streams only when none can come any more | | [12](12b-what-comes-late.ipynb) |
# | output mode | 输出模式 | when a stream emits a row to its sink: once when it is final (`append`), whenever it has changed (`update`), always (`complete`) | | [12](12b-what-comes-late.ipynb) |
# | Parquet | Parquet（列式存储格式） | a file format that keeps each column together, so that a query reads only the columns it needs | | [10](10b-what-a-query-costs.ipynb) |
# | percentile | 百分位数 | the value that a given per cent of all values do not exceed, such as p99; it cannot be computed from percentiles of parts | | [11](11b-slow-and-again.ipynb) |
# | plan | 执行计划 | what Spark will do for a query: which columns and partitions it reads, and where rows move | | [10](10a-spark-reads-the-broker.ipynb) |
# | pushed-down condition | 谓词下推 | a condition that the reader of a file checks itself, before Spark sees a row | | [10](10b-what-a-query-costs.ipynb) |
# | retry amplification | 重试放大 | how many more deliveries a failed message costs on average | | [10](10b-what-a-query-costs.ipynb) |
# | retry storm | 重试风暴 | minutes in which many of a broker's stored messages are retries | | [11](11b-slow-and-again.ipynb) |
# | salt | 加盐 | a number that cuts a hot key into pieces, so that several tasks share its rows | | [10](10b-what-a-query-costs.ipynb) |
# | selectivity | 选择性 | the share of messages that a filter lets pass | | [10](10b-what-a-query-costs.ipynb) |
# | shuffle | Shuffle（混洗） | rows move between tasks, so that all rows with the same key are in one task | | [10](10b-what-a-query-costs.ipynb) |
# | sink | Sink（接收端） | where the rows of a stream go: a table, a file, another topic | | [12](12a-every-number-twice.ipynb) |
# | skew | 数据倾斜 | one task has most of the rows, and all others wait until it is done | | [10](10b-what-a-query-costs.ipynb) |
# | stage | 阶段 | the tasks between two shuffles; the next stage begins when the last of them has ended | | [10](10b-what-a-query-costs.ipynb) |
# | state of a stream | 状态 | the rows that a stream keeps from batch to batch: open counts, rows that wait for a partner, values already seen | | [12](12b-what-comes-late.ipynb) |
# | stream | 流 | a query that runs again and again, each time over the new rows | | [12](12a-every-number-twice.ipynb) |
# | task | 任务 | one part of the work of a query: a piece of the data that one core reads | | [10](10b-what-a-query-costs.ipynb) |
# | trigger | 触发器 | controls when a stream begins its next batch, and whether it ends | | [12](12a-every-number-twice.ipynb) |
# | watermark | 水位线 | the newest time that a stream has seen, minus a delay; older groups are finished, and their late rows are dropped | | [12](12b-what-comes-late.ipynb) |
# | Zipf's law | 齐普夫定律 | the second most frequent key is half as frequent as the first, the tenth a tenth; a straight line on logarithmic axes | | [10](10a-spark-reads-the-broker.ipynb) |

# %% [markdown]
# ## Running and looking
#
# | term | Chinese&nbsp;(中&#8288;文) | what it is | in RocketMQ | lab |
# |---|---|---|---|---|
# | alarm | 告警 | a monitoring's report after a run: what is wrong at the end, but not why | | [14](14-find-the-bug.ipynb) |
# | harm | 损害 | an incident's effect on messages: lost, more than five minutes late, or delivered twice; it lasts longer than the trouble | | [13](13a-what-went-wrong.ipynb) |
# | invariant | 不变式 | what must hold at every step; look for a cause at the first step that violates it | | [14](14-find-the-bug.ipynb) |
# | journal | 事件记录 | everything that happened in a run, step by step, with its cause; timelines and deliveries are read from it | | [00](00-a-messages-day.ipynb) |
# | kill | 杀进程 | the process ends at once, and its written data stays with the operating system (`kill -9`) | | [00](00-a-messages-day.ipynb) |
# | Lab | 实验环境 | a whole cluster inside a notebook, with its own clock | | [00](00-a-messages-day.ipynb) |
# | message trace | 消息轨迹 | what clients report about sending and consuming, as messages in a separate topic | `RMQ_SYS_TRACE_TOPIC` | [11](11a-what-happened-to-each-message.ipynb) |
# | rolling back | 回滚 | returning one component at a time to its earlier release, and playing the same day | | [14](14-find-the-bug.ipynb) |
# | root cause | 根因 | the first thing that is wrong; everything wrong after it may be a consequence | | [14](14-find-the-bug.ipynb) |
# | schedule of a failure | 故障剧本 | the messages and faults of a run as a list of events, each of which can be left out | | [14](14-find-the-bug.ipynb) |
# | seed | 随机种子 | the number from which everything random in a run follows: the same story and seed give the same run | | [00](00-a-messages-day.ipynb) |
# | shrinking | 收缩（最小化） | leaving out events of a schedule while it still goes wrong, until nothing more can go | | [14](14-find-the-bug.ipynb) |
# | story | 剧本 | a function that receives a Lab and makes things happen in it; `play` runs it | | [00](00-a-messages-day.ipynb) |
# | system topic | 系统主题 | a topic that brokers and clients make for themselves; programs may not send to most of them | `TopicValidator` | [07](07a-failure-takes-time.ipynb) |
# | timeline | 时间线 | the journal of a run as a picture: time goes downwards, and each machine has a column | | [00](00-a-messages-day.ipynb) |
# | triage | 分诊 | the first list of what went wrong, the most harmful first | | [13](13a-what-went-wrong.ipynb) |
# | virtual time | 虚拟时间 | a Lab's clock, which jumps to the next event; a day takes as long as its events | | [00](00-a-messages-day.ipynb) |

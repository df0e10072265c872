"""POP: the broker gives messages out on lease, and each is acknowledged by itself; no queue belongs to a consumer.

Mirrors: PopMessageProcessor, AckMessageProcessor, ChangeInvisibleTimeProcessor, PopBufferMergeService,
PopReviveService, PopLongPollingService, ConsumerOrderInfoManager (the classic implementation, not the one on RocksDB).

    pop ──▶ messages, and a check point (popping, buffer) ──▶ timer wheel ──▶ revive queue ──▶ revival:
    ack ──▶ an ack message (acking)                       ──▶ timer wheel ──▶ revive queue     what has no ack goes to
                                                                                               the group's retry topic
    The committed offset says what was given out, not what was consumed.

Left out: the RocksDB implementation, limits on messages in flight, the escape of revived messages to another broker.
"""

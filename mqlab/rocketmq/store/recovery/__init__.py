"""What a store does to its directory before it takes messages: find the end of the log, repair what depends on it.

Mirrors: DefaultMessageStore.recover with CommitLog.recoverNormally and recoverAbnormally.

    recovery         the steps, in order, and the scan of the log unit by unit
    fast_scan        the same scan with numpy; index_bulk writes the index entries of many units at once
    misfits          units whose queue offset is not the next one of their queue
    queue_scan       where the units of a queue end
    deleted_topics   which queues are missing because their topic was deleted
"""

"""The topics and groups of every run.

Mirrors: nothing of RocketMQ.

    orders   billing (concurrent), audit (one tag)     passing   billing; it is deleted and made again
    steps    ledger (orderly)                          leased    leasing (pops), in some runs
"""

ORDERS, STEPS, PASSING = "orders", "steps", "passing"
BILLING, AUDIT, LEDGER = "billing", "audit", "ledger"
LEASED, LEASING = "leased", "leasing"
LEASE_MS = 10_000
TAGS = ("paid", "sent")
TOPICS = {BILLING: (ORDERS, PASSING), AUDIT: (ORDERS,), LEDGER: (STEPS,), LEASING: (LEASED,)}
SMALL_LOG = 16 << 10
MINE = "mine"  # in a plan's world: it is run on the parts in the folder mybroker
LEVELS_MS = (1_000, 1_000, 2_000, 2_000, 3_000, 3_000)
FIRST_RETRY_LEVEL, MOST_RETRIES = 3, 2

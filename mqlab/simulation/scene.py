"""The topics and groups of every run.

Mirrors: nothing of RocketMQ.

    orders   billing (concurrent), audit (one tag)     passing   billing; it is deleted and made anew
    steps    ledger (orderly)
"""

ORDERS, STEPS, PASSING = "orders", "steps", "passing"
BILLING, AUDIT, LEDGER = "billing", "audit", "ledger"
TAGS = ("paid", "sent")
TOPICS = {BILLING: (ORDERS, PASSING), AUDIT: (ORDERS,), LEDGER: (STEPS,)}
SMALL_LOG = 16 << 10

"""Pictures of streams: what one keeps and drops (state_board), and whether its sink has each message once (ledger)."""

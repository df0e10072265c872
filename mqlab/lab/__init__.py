"""The laboratory: worlds of brokers and clients, their drivers and faults, what happened in them, and how it looks."""

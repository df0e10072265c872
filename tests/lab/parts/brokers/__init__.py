"""Three brokers that were written from docs/your-broker.md alone: in RocketMQ's shape, of dicts and lists, of files."""

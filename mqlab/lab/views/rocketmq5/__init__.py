"""Pictures of what came with RocketMQ 5: the timer wheel, and messages on lease."""

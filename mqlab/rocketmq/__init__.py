"""RocketMQ: its files, frames, nodes and clients in plain Python, driven from outside through ports."""

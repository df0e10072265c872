"""The console: RocketMQ Dashboard's pages over a Lab, a directory or a cluster."""

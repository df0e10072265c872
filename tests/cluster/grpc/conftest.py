"""The fixture that mqlab gives to others, from its module: an environment may be older than its entry point."""

from __future__ import annotations

from mqlab.cluster.testing.plugin import rocketmq, rocketmq_server, rocketmq_settings

collect_ignore = ["order_service"]  # a project of its own, which test_order_service.py installs and runs

__all__ = ["rocketmq", "rocketmq_server", "rocketmq_settings"]

"""The fixture ``rocketmq`` for pytest: a RocketMQ in the process of the tests, for RocketMQ's clients and mqlab's own.

Mirrors: a container of RocketMQ that a test suite starts. pytest finds this module by its entry point.

    def test_an_order_is_paid(rocketmq):
        orders = rocketmq.topic("orders")
        shop.send(rocketmq.grpc, orders, b"order-1")          rocketmq.grpc, rocketmq.namesrv: where clients connect
        assert [each.body for each in rocketmq.messages("orders")] == [b"order-1"]

One server a session (and worker of pytest-xdist), started when the first test asks for it; topics and groups have names
of each test's own. ``rocketmq_settings`` can be overridden: lines of broker.conf.

Nothing but pytest is imported before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mqlab.cluster.testing.server import RocketMQ, ServerOfTests


@pytest.fixture(scope="session")
def rocketmq_settings() -> tuple[str, ...]:
    """Settings of the broker, as in broker.conf; override it to add some."""
    return ()


@pytest.fixture(scope="session")
def rocketmq_server(
    rocketmq_settings: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerOfTests]:
    """The server of the session."""
    from mqlab.cluster.testing.server import ServerOfTests

    server = ServerOfTests(tmp_path_factory.mktemp("rocketmq"), rocketmq_settings)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def rocketmq(rocketmq_server: ServerOfTests) -> Iterator[RocketMQ]:
    """RocketMQ, as one test sees it: see mqlab.cluster.testing.server.RocketMQ."""
    one_test = rocketmq_server.for_a_test()
    yield one_test
    one_test.end()

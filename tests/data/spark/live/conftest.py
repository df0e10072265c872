"""One cluster of two brokers for all tests of this folder; each test has topics of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import mqlab
from mqlab.cluster.connected import Cluster
from mqlab.cluster.serving import Server
from tests.cluster.serving.served import server_in


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("served"), brokers=2) as server:
        server.wait_until_registered()
        yield server


@pytest.fixture(scope="package")
def address(served: Server) -> str:
    return str(served.plan.name_server)


@pytest.fixture(scope="package")
def cluster(address: str) -> Iterator[Cluster]:
    with mqlab.connect(address) as cluster:
        yield cluster


@pytest.fixture
def make_topic(cluster: Cluster) -> Callable[[str], str]:
    """Makes a topic of two queues on each broker, and waits until both brokers are in its route."""

    def make(topic: str) -> str:
        admin = cluster.operator
        admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        while len(admin.brokers_of(topic)) < 2:
            pass
        return topic

    return make

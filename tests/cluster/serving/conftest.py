from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlab.cluster.serving import Server
from tests.cluster.serving.served import server_in


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A name server and a broker, registered."""
    with server_in(tmp_path_factory.mktemp("served")) as server:
        server.wait_until_registered()
        yield server

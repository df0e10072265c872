from __future__ import annotations

import pytest

from tests.interop.java_store import JavaStore, what_is_missing


@pytest.fixture(scope="session")
def java_store(tmp_path_factory: pytest.TempPathFactory) -> JavaStore:
    """RocketMQ's own store, ready to be asked; without a JDK or Maven the tests that need it are skipped."""
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(f"the real RocketMQ store {missing}")
    return JavaStore(tmp_path_factory.mktemp("java"))

"""What the tests of notebooks share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.labs.notebooks import WarmProcess


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """Runs notebooks; to start it takes more than a second of a processor."""
    from tests.labs.notebooks import WarmProcess

    started = WarmProcess()
    yield started
    started.close()

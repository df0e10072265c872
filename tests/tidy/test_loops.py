"""An event loop that another test left running is out of sight."""

from __future__ import annotations

import asyncio

from tests.conftest import outside_of_loops


def test_a_loop_that_another_test_left_running_is_out_of_sight_and_comes_back() -> None:
    left = asyncio.new_event_loop()
    asyncio._set_running_loop(left)  # so Playwright leaves it between two calls
    try:
        with outside_of_loops():
            assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"
        assert asyncio._get_running_loop() is left
    finally:
        asyncio._set_running_loop(None)
        left.close()

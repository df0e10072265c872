"""A store's life: its phases follow the table, and what each phase allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.state_table import IllegalMove
from mqlab.rocketmq.store.life import STORE_LIFE
from mqlab.rocketmq.store.put_result import SERVICE_NOT_AVAILABLE
from mqlab.rocketmq.wire.record import Record


def test_a_store_is_new_loaded_running_and_closed(new_world: Callable[..., Any]) -> None:
    world = new_world()
    phases = [world.store.state.phase]
    world.store.load()
    phases.append(world.store.state.phase)
    world.store.start()
    phases.append(world.store.state.phase)
    world.store.shutdown()
    phases.append(world.store.state.phase)
    assert phases == ["new", "loaded", "running", "closed"]
    assert not world.files.exists(f"{world.directory}/abort")


def test_a_store_that_cannot_sync_at_its_end_is_aborted_and_keeps_its_abort_file(
    new_world: Callable[..., Any], new_record: Callable[..., Record]
) -> None:
    world = new_world()
    store = world.start()
    store.put(new_record(1))
    store.flusher.stalled = True
    store.shutdown()
    assert store.state.phase == "aborted"
    assert world.files.exists(f"{world.directory}/abort")
    assert not world.start().recovery_report.clean_exit


def test_a_store_that_cannot_be_loaded_is_failed_and_lets_go_of_its_lock(new_world: Callable[..., Any]) -> None:
    world = new_world()
    world.files.make_directory(f"{world.directory}/commitlog")
    world.files.write(f"{world.directory}/commitlog/notes.txt", b"not a log file")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        world.store.load()
    assert world.store.state.phase == "failed"
    with pytest.raises(UsageError, match="loaded before, it is failed"):
        world.store.load()
    world.files.remove(f"{world.directory}/commitlog/notes.txt")
    assert world.start().state.phase == "running"


def test_only_a_running_store_takes_messages(new_world: Callable[..., Any], new_record: Callable[..., Record]) -> None:
    world = new_world()
    statuses = [world.store.put(new_record(1)).status]
    world.store.load()
    statuses.append(world.store.put(new_record(1)).status)
    world.store.start()
    assert world.store.put(new_record(1)).is_ok
    world.store.shutdown()
    statuses.append(world.store.put(new_record(2)).status)
    assert statuses == [SERVICE_NOT_AVAILABLE] * 3


def test_a_step_that_the_table_does_not_have_is_an_error() -> None:
    with pytest.raises(IllegalMove, match="'start' is not legal in the state new"):
        STORE_LIFE["new", "start"]


def test_a_store_that_was_closed_stays_closed(new_world: Callable[..., Any]) -> None:
    world = new_world()
    store = world.start()
    store.shutdown()
    store.shutdown()
    assert store.state.phase == "closed"
    with pytest.raises(UsageError, match="start"):
        store.start()

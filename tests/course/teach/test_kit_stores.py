"""Stores that hold exactly what a case asks for."""

from __future__ import annotations

from pathlib import Path

from mqlab.course.kit.stores import Stored, shared_folder, store_of
from mqlab.lab.inspector import StoreInspector


def test_messages_have_their_times_their_places_and_their_broker(tmp_path: Path) -> None:
    wanted = [Stored(7_000, "orders", 3, b"late", {"KEYS": "O2"}, born_ms=6_000), Stored(5_000, "orders", 3, b"early")]
    store = StoreInspector(str(store_of(tmp_path / "broker-b", wanted)))
    found = [(one.store_timestamp, one.queue_id, one.queue_offset, one.body) for one in store.messages()]
    assert found == [(5_000, 3, 0, b"early"), (7_000, 3, 1, b"late")]
    first, last = store.messages()
    assert (first.born_timestamp, last.born_timestamp, last.keys) == (5_000, 6_000, "O2")
    other = StoreInspector(str(store_of(tmp_path / "broker-a", wanted)))
    assert next(iter(other.messages())).store_host != first.store_host


def test_a_shared_folder_can_be_read_by_other_processes() -> None:
    assert shared_folder("test").stat().st_mode & 0o055 == 0o055

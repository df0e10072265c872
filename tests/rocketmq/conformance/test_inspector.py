"""The inspector against what the real store answered for its own directories, and untouched files afterwards."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from mqlab.lab.inspector.inspector import StoreInspector

STORES = ["clean", "killed", "edges", "edges-killed"]


def state_of(directory: Path) -> dict[str, tuple[int, str]]:
    """Everything a look could have changed: names, times of change, content."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.parametrize("name", STORES)
def test_bounds_blanks_and_queues(unpacked_stores, expected, name):
    store, answers = StoreInspector(unpacked_stores / name), expected(name)
    assert store.min_physical_offset == answers["minPhysicalOffset"]
    assert store.max_physical_offset == answers["maxPhysicalOffset"]
    wanted = [(blank["physicalOffset"], blank["size"]) for blank in answers["blanks"]]
    assert store.blanks(deep=True) == store.blanks(deep=False) == wanted
    found = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
    for queue in answers["queues"]:
        if queue["maxOffset"] == 0:
            continue  # the real store makes a queue when it is asked for one
        reader = found.pop((queue["topic"], queue["queueId"]))
        assert (reader.min_offset, reader.max_offset) == (queue["minOffset"], queue["maxOffset"])
        units = [[u.physical_offset, u.size, u.tags_code] for _, u in reader.units()]
        assert units == queue["units"]
    assert not found


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", STORES)
def test_every_message_and_every_key(unpacked_stores, expected, name, small, monkeypatch):
    monkeypatch.setattr("mqlab.lab.inspector.inspector.SMALL_LOG_BYTES", 1 << 40 if small else 0)
    store, answers = StoreInspector(unpacked_stores / name), expected(name)
    found = [(piece.physical_offset, hashlib.sha256(piece.raw()).hexdigest()) for piece in store.pieces()]
    assert found == [(m["physicalOffset"], m["unitSha256"]) for m in answers["messages"]]
    topics = {message["topic"] for message in answers["messages"]}
    for topic in topics:
        wanted = [m["physicalOffset"] for m in answers["messages"] if m["topic"] == topic]
        assert [piece.physical_offset for piece in store.pieces(topic)] == wanted
        assert [piece.physical_offset for piece in store.pieces(topic, count=-3)] == wanted[-3:]
    for lookup in answers["keyLookups"][:: len(answers["keyLookups"]) // (40 if small else 200) + 1]:
        pieces = store.pieces(lookup["topic"], key=lookup["key"])
        offsets = [piece.physical_offset for piece in pieces]
        assert offsets[-64:] == sorted(set(lookup["physicalOffsets"]))[-64:] or len(offsets) > 64


@pytest.mark.parametrize("name", STORES)
def test_looking_at_everything_changes_nothing(real_store, name):
    directory = real_store(name)
    before = state_of(directory)
    store = StoreInspector(directory)
    list(store.pieces()), list(store.pieces(key="order-1")), store.blanks(), store.tree(), store.checkpoint()
    store.index_files(), store.sizes(), store.config("topics.json"), store.queues(), store.other_parts()
    assert store.problems(deep=True) == []
    assert store.problems(deep=False) == []
    repr(store), [repr(queue) for queue in store.queues()]
    store.close()
    assert state_of(directory) == before


@pytest.mark.parametrize("name", STORES)
def test_sizes_are_found_in_the_files(unpacked_stores, name):
    found = StoreInspector(unpacked_stores / name).sizes()
    commit_log = 65536 if name.startswith("edges") else 262144
    assert (found.commit_log, found.consume_queue, found.hash_slot_num, found.index_num) == (commit_log, 1200, 200, 400)


def damage(case: dict, directory: Path) -> None:
    """Do to a copy of edges-killed what was done to the copy the real store recovered."""
    if case.get("queuesDeleted"):
        shutil.rmtree(directory / "consumequeue")
    at = case["at"]
    log = directory / "commitlog" / f"{at - at % 65536:020d}"
    data = bytearray(log.read_bytes())
    if case["xor"] is None and case["damage"] != "zero-from":
        return
    if case["damage"] == "zero-from":
        data[at % 65536 :] = bytes(len(data) - at % 65536)
    else:
        data[at % 65536] ^= case["xor"]
    log.write_bytes(data)


def test_of_damaged_copies_it_lists_at_least_what_the_real_store_recovered(unpacked_stores, expected, tmp_path):
    unseen: set[tuple[str, bool]] = set()
    for number, case in enumerate(expected("edges-killed.damaged")["cases"]):
        directory = tmp_path / str(number)
        shutil.copytree(unpacked_stores / "edges-killed", directory)
        damage(case, directory)
        store = StoreInspector(directory)
        assert len(list(store.messages())) >= case["messages"], case
        if not store.problems(deep=True):
            unseen.add((case["damage"], case["queuesDeleted"]))
        shutil.rmtree(directory)
    # of a whole store, only damage to fields stays unseen that nothing else repeats: times, flags, a property's value
    fields = {"flip-header", "flip-storeTimestamp", "flip-tags", "flip-anywhere-early"}
    assert {kind for kind, queues_deleted in unseen if not queues_deleted} <= fields
    assert not {kind for kind, _ in unseen} & {"flip-body", "flip-topic", "zero-from"}

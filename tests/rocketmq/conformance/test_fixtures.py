"""The copies of the real broker's files open, and each test gets its own."""

import pytest


@pytest.mark.parametrize("name", ["clean", "killed", "edges", "edges-killed"])
def test_every_store_has_its_log_and_its_answers(real_store, expected, name):
    store = real_store(name)
    assert sorted(p.name for p in (store / "commitlog").iterdir())[0] == "0" * 20
    answers = expected(name)
    assert answers["messages"][0]["physicalOffset"] == answers["minPhysicalOffset"]


def test_each_test_may_write_into_its_copy(real_store, unpacked_stores):
    (real_store("clean") / "checkpoint").write_bytes(b"")
    assert (unpacked_stores / "clean" / "checkpoint").stat().st_size == 4096
    assert real_store("clean") == real_store("clean")

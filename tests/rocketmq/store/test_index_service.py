"""The index as a whole: what is indexed, over which files a question goes, and when files come and go."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import StoreError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.store.index_service import IndexService, file_name
from mqlab.rocketmq.wire import sys_flag
from mqlab.rocketmq.wire.java_hash import index_key_hash

NOW_MS = 1700000000456


@dataclass
class Config:
    max_hash_slot_num: int = 10
    max_index_num: int = 5  # four entries a file
    max_msgs_num_batch: int = 64
    utc_offset_ms: int = 0


class StandingClock:
    def now_ms(self) -> int:
        return NOW_MS

    def call_at(self, due_ms, action, kind):
        raise AssertionError("the index waits for nothing")

    call_later = call_at


def open_index(path, **settings):
    checkpoint = Checkpoint(RealFiles(), f"{path}/checkpoint")
    index = IndexService(RealFiles(), f"{path}/index", Config(**settings), StandingClock(), checkpoint)
    index.load(True, 0)
    return index, checkpoint


def names(path):
    return sorted(file.name for file in (path / "index").iterdir())


@pytest.fixture
def filled(tmp_path):
    """Ten messages, a second and 100 bytes apart, each with its own key and the key "common"."""
    index, _ = open_index(tmp_path)
    for number in range(10):
        index.put("订单", number * 100, NOW_MS + number * 1000, keys=f"k{number} common")
    return index


def test_unique_key_then_each_key_under_the_units_own_topic(tmp_path):
    index, _ = open_index(tmp_path, max_index_num=100)
    assert index.put("orders", 0, NOW_MS, unique_key="7F00", keys="a  ключ 😀 ") == 4
    hashes = [index.index_files[0].entry(number)[0] for number in (1, 2, 3, 4)]
    assert hashes == [index_key_hash(f"orders#{key}") for key in ("7F00", "a", "ключ", "😀")]
    assert index.query("orders", "ключ") == [0]
    assert index.query("other", "ключ") == []


def test_a_message_without_keys_makes_no_entry_and_no_file(tmp_path):
    index, _ = open_index(tmp_path)
    assert index.put("orders", 0, NOW_MS) == index.put("orders", 0, NOW_MS, keys=" ") == 0
    assert not (tmp_path / "index").exists()


def test_prepared_units_are_indexed_rolled_back_ones_are_not(tmp_path):
    index, _ = open_index(tmp_path)
    assert index.put("orders", 0, NOW_MS, keys="a", sys_flag=sys_flag.TRANSACTION_PREPARED) == 1
    assert index.put("orders", 1, NOW_MS, keys="a", sys_flag=sys_flag.TRANSACTION_ROLLBACK) == 0


def test_what_comes_before_the_end_is_skipped_the_end_itself_is_not(tmp_path):
    index, _ = open_index(tmp_path)
    index.put("orders", 100, NOW_MS, keys="a")
    assert index.put("orders", 99, NOW_MS, keys="a") == 0
    assert index.put("orders", 100, NOW_MS, keys="a") == 1
    assert index.query("orders", "a") == [100, 100]


def test_a_question_goes_over_all_files_newest_first(filled, tmp_path):
    assert len(names(tmp_path)) == 5
    assert filled.query("订单", "common") == [n * 100 for n in range(9, -1, -1)]
    assert filled.query("订单", "common", max_nums=3) == [900, 800, 700]
    assert filled.query("订单", "k4") == [400]
    assert filled.query("订单", "nothing") == []


def test_times_are_known_to_the_second_and_a_follow_up_files_first_entry_is_late(filled):
    assert filled.query("订单", "common", begin_ms=NOW_MS + 9000) == [900]
    # files hold messages 0-1, 2-3, 4-5, ...: message 8 is entry 1 of its file, 1 s late by its own seconds
    assert filled.query("订单", "k8", end_ms=NOW_MS + 8500) == []
    assert filled.query("订单", "k8", end_ms=NOW_MS + 9000) == [800]


def test_at_most_64_answers(tmp_path):
    index, _ = open_index(tmp_path, max_index_num=200)
    for number in range(100):
        index.put("orders", number, NOW_MS, keys="a")
    assert index.query("orders", "a", max_nums=1000) == list(range(99, 35, -1))


def test_files_of_one_millisecond_get_rising_names_and_a_full_one_is_checkpointed(filled, tmp_path):
    assert names(tmp_path)[:2] == ["20231114221320456", "20231114221320457"]
    again = Checkpoint(RealFiles(), f"{tmp_path}/checkpoint")
    assert again.index_msg_timestamp == filled.index_files[-2].end_timestamp


def test_file_names_are_local_time_and_rise_even_when_the_clock_is_set_back(tmp_path):
    hour_ms = 3_600_000
    for offset_hours, first in ((8, 0), (-8, 4)):
        index, _ = open_index(tmp_path, utc_offset_ms=offset_hours * hour_ms)
        for number in range(first, first + 4):
            index.put("orders", number, NOW_MS, keys="a")
        index.close()
    assert names(tmp_path) == ["20231115061320456", "20231115061320457"]


@given(st.text(max_size=20), st.text(min_size=1, max_size=40).filter(lambda key: " " not in key))
def test_keys_are_hashed_as_a_whole_whatever_their_script(tmp_path_factory, topic, key):
    index, _ = open_index(tmp_path_factory.mktemp("index"), max_index_num=100)
    for number in range(2):  # the second time the start of the key is remembered
        index.put(topic, number, NOW_MS, unique_key=key)
        assert index.index_files[0].entry(number + 1)[0] == index_key_hash(f"{topic}#{key}")


def test_file_names_follow_the_calendar():
    assert file_name(1700000000456) == "20231114221320456"
    assert file_name(951782400000) == "20000229000000000"


def test_after_a_clean_stop_all_files_are_kept_and_answers_are_the_same(filled, tmp_path):
    before = names(tmp_path)
    filled.close()
    index = IndexService(RealFiles(), f"{tmp_path}/index", Config(), StandingClock())
    assert index.load(True, 0) == []
    assert names(tmp_path) == before
    assert index.query("订单", "common") == [n * 100 for n in range(9, -1, -1)]


def test_after_a_crash_files_newer_than_the_checkpoint_go(filled, tmp_path):
    filled.close()
    index = IndexService(RealFiles(), f"{tmp_path}/index", Config(), StandingClock())
    deleted = index.load(False, NOW_MS + 3000)
    assert deleted == names_of(2, 3, 4)
    assert names(tmp_path) == names_of(0, 1)
    assert index.query("订单", "common") == [300, 200, 100, 0]


def names_of(*numbers):
    return [str(20231114221320456 + number) for number in numbers]


def test_strange_names_are_left_alone(filled, tmp_path):
    filled.close()
    (tmp_path / "index" / "README").write_text("not an index")
    (tmp_path / "index" / "12").mkdir()
    index, _ = open_index(tmp_path)
    assert len(index.index_files) == 5


def test_another_size_is_refused_before_anything_is_deleted(filled, tmp_path):
    filled.close()
    before = names(tmp_path)
    index = IndexService(RealFiles(), f"{tmp_path}/index", Config(max_hash_slot_num=20), StandingClock())
    with pytest.raises(StoreError, match="max_index_num"):
        index.load(False, 0)
    assert names(tmp_path) == before


@pytest.mark.parametrize("length", [0, 1, 20, 40, 79, 80, 100, 150, 179])
def test_a_file_cut_among_others_is_filled_up_and_what_is_left_is_found(filled, tmp_path, length):
    filled.close()
    path = tmp_path / "index" / names(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:length])
    index, _ = open_index(tmp_path)
    assert path.stat().st_size == 180
    found = index.query("订单", "common")
    assert set(found) >= {900, 800, 700, 600, 500, 400, 100, 0} and set(found) <= {n * 100 for n in range(10)}
    index.put("订单", 1000, NOW_MS + 10_000, keys="common")
    assert index.query("订单", "common")[0] == 1000


def test_retention_deletes_from_the_oldest_and_never_the_last(filled, tmp_path):
    assert filled.delete_before(300) == names_of(0)
    assert filled.delete_before(10_000) == names_of(1, 2, 3)
    assert names(tmp_path) == names_of(4)
    assert filled.query("订单", "common") == [900, 800]


@pytest.mark.parametrize("log_end", range(0, 1100, 50))
def test_what_lies_beyond_the_log_is_forgotten_and_indexed_again(filled, tmp_path, log_end):
    filled.truncate_after(log_end, lambda physical_offset: NOW_MS + physical_offset * 10)
    kept = [n for n in range(10) if n * 100 < log_end]
    assert filled.query("订单", "common") == [n * 100 for n in reversed(kept)]
    for number in range(10):
        if number not in kept:
            filled.put("订单", number * 100, NOW_MS + number * 1000, keys=f"k{number} common")
    assert filled.query("订单", "common") == [n * 100 for n in range(9, -1, -1)]
    assert [f.end_timestamp for f in filled.index_files] == [NOW_MS + n * 1000 for n in (1, 3, 5, 7, 9)]


def test_destroy_leaves_nothing(filled, tmp_path):
    filled.destroy()
    assert names(tmp_path) == [] and filled.end_physical_offset == 0

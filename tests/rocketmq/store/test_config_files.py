"""Saving a text so that every crash leaves the old or the new one, and loading it back from whatever is there."""

from __future__ import annotations

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.config_files import ConfigFile

OLD, NEW = '{"группа":"старая 旧 😀"}', '{"группа":"новая 新 😀"}'


class Interrupted(Exception):
    pass


class FilesThatStop(RealFiles):
    """Real files that break off before their n-th change."""

    def __init__(self, changes: int) -> None:
        super().__init__()
        self.left = changes

    def _change(self) -> None:
        if self.left == 0:
            raise Interrupted
        self.left -= 1

    def write(self, path, data, *, sync=False):
        self._change()
        assert sync
        super().write(path, data, sync=sync)

    def rename(self, source, target):
        self._change()
        super().rename(source, target)

    def sync_directory(self, path):
        self._change()
        super().sync_directory(path)


def config(tmp_path, files=None):
    return ConfigFile(files or RealFiles(), f"{tmp_path}/config/topics.json")


def names(tmp_path):
    return sorted(path.name for path in (tmp_path / "config").iterdir())


def test_nothing_saved_is_nothing_loaded(tmp_path):
    assert config(tmp_path).load() is None
    assert "not saved" in repr(config(tmp_path))


def test_the_text_before_becomes_the_backup(tmp_path):
    config(tmp_path).save(OLD)
    assert names(tmp_path) == ["topics.json"]
    config(tmp_path).save(NEW)
    assert names(tmp_path) == ["topics.json", "topics.json.bak"]
    assert (tmp_path / "config" / "topics.json.bak").read_text("utf-8") == OLD
    assert config(tmp_path).load() == NEW


@pytest.mark.parametrize("changes", range(5))
def test_broken_off_anywhere_the_old_or_the_new_text_is_there(tmp_path, changes):
    config(tmp_path).save(OLD)
    try:
        config(tmp_path, FilesThatStop(changes)).save(NEW)
        completed = True
    except Interrupted:
        completed = False
    assert config(tmp_path).load() == (NEW if completed or changes >= 3 else OLD)
    config(tmp_path).save(NEW)
    assert config(tmp_path).load() == NEW


@pytest.mark.parametrize("damaged", ["", "   ", '{"a":', "\x00" * 50, '{"a":"\udcff"}'])
def test_a_damaged_main_file_gives_way_to_the_backup_and_never_replaces_it(tmp_path, damaged):
    config(tmp_path).save(OLD)
    config(tmp_path).save(OLD)
    (tmp_path / "config" / "topics.json").write_bytes(damaged.encode("utf-8", "surrogateescape"))
    assert config(tmp_path).load() == OLD
    with pytest.raises(Interrupted):
        config(tmp_path, FilesThatStop(1)).save(NEW)
    assert config(tmp_path).load() == OLD


@pytest.mark.parametrize("length", range(len(OLD.encode())))
def test_a_file_cut_at_any_byte_is_never_half_believed(tmp_path, length):
    config(tmp_path).save(NEW)
    config(tmp_path).save(NEW)
    (tmp_path / "config" / "topics.json").write_bytes(OLD.encode()[:length])
    assert config(tmp_path).load() == NEW


def test_two_damaged_files_are_an_error_that_names_them_and_nothing_is_lost(tmp_path):
    config(tmp_path).save(OLD)
    config(tmp_path).save(OLD)
    for name in names(tmp_path):
        (tmp_path / "config" / name).write_text("{broken")
    with pytest.raises(CorruptionError, match=r"topics\.json.*topics\.json\.bak"):
        config(tmp_path).load()
    contents = [(tmp_path / "config" / name).read_text() for name in names(tmp_path)]
    assert contents == ["{broken", "{broken"]


def test_a_parser_decides_what_counts_as_readable(tmp_path):
    config(tmp_path).save('{"counter":1}')
    config(tmp_path).save('{"counter":"many"}')
    assert config(tmp_path).load_as(lambda text: int(text.split(":")[1].rstrip("}"))) == 1

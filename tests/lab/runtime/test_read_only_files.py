"""Looking without touching."""

from __future__ import annotations

import pytest

from mqlab.errors import StoreError
from mqlab.rocketmq.machine.read_only_files import ReadOnlyFiles

FILES = ReadOnlyFiles()


def test_maps_the_file_as_it_is(tmp_path):
    path = tmp_path / "файл 文件 😀"
    path.write_bytes(b"abcabc")
    mapping = FILES.map(str(path), 1000)
    assert bytes(mapping.view) == b"abcabc" and mapping.size == 6
    assert mapping.find(b"abc", 1, 6) == 3
    held = mapping.view[2:4]
    mapping.close()
    assert bytes(held) == b"ca"
    assert FILES.read(str(path)) == b"abcabc"
    assert FILES.list(str(tmp_path)) == [path.name]


def test_an_empty_file_has_an_empty_view(tmp_path):
    (tmp_path / "empty").touch()
    mapping = FILES.map(f"{tmp_path}/empty")
    assert mapping.size == 0 and bytes(mapping.view) == b"" and mapping.find(b"a", 0, 0) == -1


def test_a_missing_file_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        FILES.map(f"{tmp_path}/missing", 10, create=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda path: FILES.write(path, b""),
        lambda path: FILES.rename(path, path + "2"),
        lambda path: FILES.remove(path),
        lambda path: FILES.remove_tree(path),
        lambda path: FILES.make_directory(path + "2"),
        lambda path: FILES.sync_directory(path),
        lambda path: FILES.set_modified_ms(path, 0),
        lambda path: FILES.lock(path),
        lambda path: FILES.map(path).write(0, b"x"),
        lambda path: FILES.map(path).zero(0),
    ],
)
def test_whatever_would_change_something_is_refused(tmp_path, change):
    path = tmp_path / "file"
    path.write_bytes(b"kept")
    stamp = path.stat()
    with pytest.raises(StoreError, match="reading only"):
        change(str(path))
    assert path.read_bytes() == b"kept" and path.stat().st_mtime_ns == stamp.st_mtime_ns
    assert list(tmp_path.iterdir()) == [path]


def test_the_bytes_cannot_be_written_through_the_view(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(TypeError):
        FILES.map(f"{tmp_path}/file").view[0] = 1

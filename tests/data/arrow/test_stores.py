"""Which stores a path means: one, the brokers' side by side in a folder, or several; and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.data.arrow.reading import read_table
from mqlab.data.arrow.stores import StoreFolder, find_stores
from mqlab.errors import UsageError
from mqlab.rocketmq.store import MessageStore
from tests.data.arrow.logs import some_records, write_log


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Three brokers' stores, one of them in a folder ``store``, and what else stands in such a folder."""
    for name in ("broker-b/store", "broker-a", "склад-🚚"):
        write_log(tmp_path / "run" / name, some_records(4))
    (tmp_path / "run" / "namesrv" / "kv").mkdir(parents=True)
    (tmp_path / "run" / "README.md").write_text("订单")
    return tmp_path / "run"


def test_a_folder_of_stores_is_a_cluster(cluster: Path) -> None:
    assert find_stores(cluster) == [
        StoreFolder(str(cluster / "broker-a"), "broker-a"),
        StoreFolder(str(cluster / "broker-b" / "store"), "broker-b"),
        StoreFolder(str(cluster / "склад-🚚"), "склад-🚚"),
    ]
    table = read_table(cluster, ["broker_name", "physical_offset"])
    assert table.column("broker_name").to_pylist() == ["broker-a"] * 4 + ["broker-b"] * 4 + ["склад-🚚"] * 4


def test_a_store_is_itself_however_it_is_named(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cluster / "broker-a")
    for path in (".", "../broker-a/", cluster / "broker-a"):
        assert find_stores(path) == [StoreFolder(str(cluster / "broker-a"), "broker-a")]
    for path in (cluster / "broker-b", cluster / "broker-b" / "store"):
        assert find_stores([path]) == [StoreFolder(str(cluster / "broker-b" / "store"), "broker-b")]


def test_several_paths_and_names_of_ones_own(cluster: Path) -> None:
    found = find_stores([cluster / "broker-b", cluster / "broker-a"], ["left", "right"])
    assert [(Path(store.directory).name, store.broker_name) for store in found] == [
        ("store", "left"),
        ("broker-a", "right"),
    ]


def test_a_store_without_messages_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "broker-a" / "commitlog").mkdir(parents=True)
    with MessageStore.open(str(tmp_path / "broker-b")):
        assert [store.broker_name for store in find_stores(tmp_path)] == ["broker-a", "broker-b"]
        assert read_table(tmp_path).num_rows == 0


def test_file_uris_are_local_paths(cluster: Path) -> None:
    for prefix in ("file:", "file://", "file://localhost", "FILE:"):
        assert find_stores(f"{prefix}{cluster}") == find_stores(cluster)
        assert read_table([f"{prefix}{cluster}/broker-a"], ["topic"]).num_rows == 4


@pytest.mark.parametrize(
    ("path", "system"),
    [
        ("s3a://lake/stores/broker-a", "the file system 's3a'"),
        ("s3a://lake", "the file system 's3a'"),
        ("hdfs://head:8020/stores", "the file system 'hdfs'"),
        ("hdfs:/stores", "the file system 'hdfs'"),
        ("abfss://a@b.dfs.core.windows.net/c", "the file system 'abfss'"),
        ("file://other-host/stores", "the machine 'other-host'"),
    ],
)
def test_paths_of_other_file_systems_are_told_what_to_do(path: str, system: str) -> None:
    with pytest.raises(UsageError, match=rf"expected a local path, found one of {system}") as caught:
        find_stores(path)
    assert path in str(caught.value)
    assert "only local paths are read" in caught.value.hint and "copy the store" in caught.value.hint


def test_a_folder_whose_name_looks_like_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path / "hdfs:" / "broker-a", some_records(2))
    monkeypatch.chdir(tmp_path)
    assert read_table("hdfs:/broker-a", ["topic"]).num_rows == 2


def test_wrong_paths_are_told_what_to_give(cluster: Path) -> None:
    with pytest.raises(UsageError, match=r"no store directory .*nowhere[\s\S]*commitlog/"):
        find_stores(cluster / "nowhere")
    with pytest.raises(UsageError, match=r"no commit log in .*namesrv[\s\S]*commitlog/"):
        find_stores(cluster / "namesrv")
    with pytest.raises(UsageError, match=r"named 'broker-a'[\s\S]*brokerName"):
        find_stores([cluster, cluster / "broker-a"])
    with pytest.raises(UsageError, match="2 broker names for 3 stores"):
        find_stores(cluster, ["a", "b"])
